//! The channel of a producer: what it sends, and what becomes of the broker's answers.

use std::sync::Arc;

use courser_client::batch::{Confirmed, Envelope, PublishBatch};
use courser_client::{Channel, Connection, Error};

use crate::arguments;
use crate::clock::now_ns;
use crate::context::Context;
use crate::latency::Recorder;
use crate::stamp::Stamp;
use crate::transaction::Transaction;
use crate::window::Window;

/// A channel, until it or its connection ends.
pub struct Session {
    pub connection: Connection,
    pub channel: Channel,
    pub batch: PublishBatch,
    pub window: Option<Arc<Window>>,
    pub transaction: Option<Transaction>,
}

impl Session {
    /// How many messages can be published now, when so many were.
    pub fn room(&self, sent: u64) -> u64 {
        match (&self.window, &self.transaction) {
            (Some(window), _) => window.room(sent + 1),
            (None, Some(transaction)) => transaction.room(),
            (None, None) => u64::MAX,
        }
    }
}

/// Opens a channel for a producer that has published so many messages before.
///
/// # Errors
/// When the broker cannot be reached or refuses.
pub async fn open(
    context: &Arc<Context>,
    index: usize,
    sent: u64,
    confirm_latency: &Arc<Recorder>,
) -> Result<Session, Error> {
    let connection = context.producer_links.connection(&context.endpoints, index).await?;
    let channel = connection.open_channel().await?;
    let options = &context.options;
    let window = (options.confirms() > 0).then(|| Arc::new(Window::new(options.confirms())));
    if let Some(window) = &window {
        let handler =
            on_confirm(context.clone(), index, sent, window.clone(), confirm_latency.clone());
        channel.confirm_batches(handler).await?;
    }
    if options.flags.mandatory {
        count_returns(context, index, &channel)?;
    }
    let transaction = match options.tx {
        0 => None,
        size => Some(Transaction::begin(&channel, size).await?),
    };
    Ok(Session { batch: PublishBatch::new(&channel), connection, channel, window, transaction })
}

/// The envelopes of a producer: one for each of its routing keys, as often as there are priorities.
///
/// # Errors
/// When a name or the properties are too long.
pub fn envelopes(context: &Context, index: usize) -> Result<Vec<Envelope>, Error> {
    let options = &context.options;
    let headers = arguments::table(&options.headers);
    // They were read when the options were.
    let mut properties = arguments::properties(&options.properties).unwrap_or_default();
    properties.delivery_mode = options.flags.persistent.then_some(2);
    properties.headers = (!headers.is_empty()).then_some(headers);
    let priorities: Vec<_> = match options.kind.max_priority {
        Some(highest) if properties.priority.is_none() => (0..=highest).map(Some).collect(),
        _ => vec![properties.priority],
    };
    let keys = context.topology.message_keys(index);
    let mut envelopes = Vec::with_capacity(keys.len() * priorities.len());
    for priority in priorities {
        properties.priority = priority;
        for key in &keys {
            let envelope = Envelope::new(&options.exchange, key)?.with_properties(&properties);
            envelopes.push(if options.flags.mandatory { envelope.mandatory() } else { envelope });
        }
    }
    Ok(envelopes)
}

/// What happens when the broker answers publishes on a channel that began behind `sent` messages.
fn on_confirm(
    context: Arc<Context>,
    index: usize,
    sent: u64,
    window: Arc<Window>,
    latency: Arc<Recorder>,
) -> impl FnMut(Confirmed) + Send + 'static {
    move |Confirmed { first, last, is_ack }| {
        let now_ns = now_ns();
        let (first, last) = (sent + first, sent + last);
        let count = last - first + 1;
        let measured_from_ns = context.counters.measuring_from_ns();
        let mut recording = latency.lock();
        window.close(first, last, |sent_ns| {
            if is_ack && sent_ns >= measured_from_ns {
                recording.add(now_ns.saturating_sub(sent_ns));
            }
        });
        if is_ack {
            context.counters.confirmed.add(count, now_ns);
        } else {
            context.ledger.excuse(index, first - 1..=last - 1);
            context.counters.nacked.add(count, now_ns);
        }
    }
}

/// Counts the mandatory messages of a producer that come back to its channel.
fn count_returns(context: &Arc<Context>, index: usize, channel: &Channel) -> Result<(), Error> {
    let mut returns = channel.returns()?;
    let context = context.clone();
    tokio::spawn(async move {
        let Context { counters, ledger, options, .. } = &*context;
        // An error is the channel's, which its producer reports.
        while let Ok(Some(returned)) = returns.next().await {
            let stamp = Stamp::read(returned.message.body());
            let is_own = stamp.map_or(!options.has_stamps(), |stamp| {
                context.is_of_run(stamp)
                    && usize::from(stamp.producer) == index
                    && ledger.has_published(index, stamp.number)
            });
            if is_own && let Some(Stamp { number, .. }) = stamp {
                ledger.excuse(index, number..=number);
            }
            let counter = if is_own { &counters.returned } else { &counters.foreign };
            counter.add(1, now_ns());
        }
    });
    Ok(())
}

//! A producer: a connection that publishes as fast as it may.

use std::io;
use std::sync::Arc;

use courser_client::batch::{Confirmed, Envelope, PublishBatch};
use courser_client::{Channel, Connection, Error};

use crate::alarm::Alarm;
use crate::arguments;
use crate::clock::now_ns;
use crate::context::Context;
use crate::latency::Recorder;
use crate::options::steps::value_at;
use crate::pace::Pacer;
use crate::stamp::{STAMP_LEN, Stamp};
use crate::window::Window;

/// A batch is handed over when it has this many bytes.
const BATCH_BYTES: usize = 64 * 1024;
/// Bytes of a message on the wire besides its body, roughly; to know how many make a batch.
const OVERHEAD_BYTES: usize = 64;

/// One producer, connected and ready to start.
pub struct Producer {
    context: Arc<Context>,
    index: usize,
    connection: Connection,
    channel: Channel,
    /// By the message's number modulo their number.
    envelopes: Vec<Envelope>,
    batch: PublishBatch,
    body: Vec<u8>,
    /// Messages handed over so far; also the number of the next one.
    sent: u64,
    window: Option<Arc<Window>>,
}

/// What is left of a producer that has stopped.
pub struct Stopped {
    /// Why it has stopped before it should.
    pub error: Option<Error>,
    connection: Connection,
    channel: Channel,
    context: Arc<Context>,
    index: usize,
    sent: u64,
    window: Option<Arc<Window>>,
}

impl Producer {
    /// Connects. Confirm latencies go to `confirm_latency`.
    ///
    /// # Errors
    /// When the broker cannot be reached or refuses.
    pub async fn connect(
        context: Arc<Context>,
        index: usize,
        confirm_latency: Arc<Recorder>,
    ) -> Result<Self, Error> {
        let connection =
            context.endpoints.connect(index, &format!("producer {}", index + 1)).await?;
        let channel = connection.open_channel().await?;
        let options = &context.options;
        let window = (options.confirm > 0).then(|| Arc::new(Window::new(options.confirm)));
        if let Some(window) = &window {
            let handler = on_confirm(context.clone(), index, window.clone(), confirm_latency);
            channel.confirm_batches(handler).await?;
        }
        if options.flags.mandatory {
            count_returns(&context, &channel)?;
        }
        Ok(Self {
            envelopes: envelopes(&context, index)?,
            batch: PublishBatch::new(&channel),
            body: vec![0; options.largest_size()],
            sent: 0,
            window,
            context,
            index,
            connection,
            channel,
        })
    }

    /// Publishes until it is told to stop, the limit of messages is reached, or the connection fails.
    pub async fn run(mut self) -> Stopped {
        let error = self.publish_all().await.err();
        Stopped {
            error,
            connection: self.connection,
            channel: self.channel,
            context: self.context,
            index: self.index,
            sent: self.sent,
            window: self.window,
        }
    }

    async fn publish_all(&mut self) -> Result<(), Error> {
        let context = self.context.clone();
        let started_ns = now_ns();
        let mut pacer = self.pacer(started_ns);
        let mut alarm = Alarm::new().map_err(lost)?;
        while !context.is_stopping() {
            let now_ns = now_ns();
            self.resize(now_ns - started_ns);
            let batch_len = (BATCH_BYTES / (self.body.len() + OVERHEAD_BYTES)).max(1) as u64;
            let due = pacer.due(now_ns).min(batch_len);
            if due == 0 {
                tokio::select! {
                    woken = alarm.wait_until(pacer.wake_at_ns(now_ns)) => woken.map_err(lost)?,
                    () = context.stopped() => break,
                    error = self.connection.closed() => return Err(error),
                }
                continue;
            }
            let room =
                self.window.as_ref().map_or(due, |window| window.room(self.sent + 1).min(due));
            if room == 0 {
                let Some(window) = &self.window else { continue };
                tokio::select! {
                    () = window.freed() => {}
                    () = context.stopped() => break,
                    error = self.connection.closed() => return Err(error),
                }
                continue;
            }
            let count = context.take_quota(room);
            if count == 0 {
                break;
            }
            self.fill(count, &mut pacer, now_ns)?;
            let sent = tokio::select! {
                biased;
                sent = self.channel.send(&mut self.batch) => sent.map(drop),
                () = context.stopped() => {
                    self.withdraw(count);
                    break;
                }
            };
            if let Err(error) = sent {
                self.withdraw(count);
                return Err(error);
            }
            self.sent += count;
            context.counters.published.add(count, now_ns);
        }
        Ok(())
    }

    /// Producers start evenly spread over the time between two messages.
    fn pacer(&self, now_ns: u64) -> Pacer {
        let options = &self.context.options;
        let interval_ns = 1_000_000_000_u64.checked_div(options.rate).unwrap_or(0);
        let offset_ns = interval_ns * self.index as u64 / u64::from(options.producers);
        match &options.variable_rate[..] {
            [] => Pacer::new(now_ns + offset_ns, options.rate),
            steps => Pacer::in_steps(now_ns, steps),
        }
    }

    /// Makes bodies as large as they are at this time.
    fn resize(&mut self, elapsed_ns: u64) {
        if let Some(size) = value_at(&self.context.options.variable_size, elapsed_ns) {
            self.body.resize(size as usize, 0);
        }
    }

    /// Encodes messages into the batch and enters them in the books.
    fn fill(&mut self, count: u64, pacer: &mut Pacer, now_ns: u64) -> Result<(), Error> {
        let Context { run, ledger, .. } = &*self.context;
        ledger.publishing(self.index, count);
        for number in self.sent..self.sent + count {
            let time_ns = pacer.next_stamp_ns(now_ns);
            if let Some(room) = self.body.first_chunk_mut::<STAMP_LEN>() {
                *room =
                    Stamp { time_ns, run: *run, producer: self.index as u16, number }.to_bytes();
            }
            if let Some(window) = &self.window {
                window.open(number + 1, time_ns);
            }
            let turn = (number % self.envelopes.len() as u64) as usize;
            self.batch.push(&self.envelopes[turn], &self.body)?;
        }
        Ok(())
    }

    /// The batch was not sent.
    fn withdraw(&mut self, count: u64) {
        self.batch.clear();
        self.context.ledger.not_published(self.index, count);
        self.context.return_quota(count);
        if let Some(window) = &self.window {
            window.withdraw(self.sent + 1, count);
        }
    }
}

impl Stopped {
    /// Publishes that the broker has not answered yet.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.window.as_ref().map_or(0, |window| window.outstanding().into())
    }

    /// What is unconfirmed by now is not expected to arrive; gives its number.
    #[must_use]
    pub fn give_up_waiting(&self) -> u64 {
        let Some(window) = &self.window else { return 0 };
        let unanswered = window.unanswered(self.sent + 1);
        for seq in &unanswered {
            self.context.ledger.excuse(self.index, seq - 1..=seq - 1);
        }
        unanswered.len() as u64
    }

    /// Closes the connection.
    pub async fn close(self) {
        if self.outstanding() == 0 {
            // What has failed was told before.
            let _ = self.channel.close().await;
            let _ = self.connection.close().await;
        }
    }

    /// Waits until all that was published is with the operating system.
    ///
    /// # Errors
    /// When the connection has failed.
    pub async fn flush(&self) -> Result<(), Error> {
        self.channel.flush().await
    }
}

/// The envelopes of a producer: one for each of its routing keys, as often as there are priorities.
fn envelopes(context: &Context, index: usize) -> Result<Vec<Envelope>, Error> {
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

/// What happens when the broker answers publishes.
fn on_confirm(
    context: Arc<Context>,
    index: usize,
    window: Arc<Window>,
    latency: Arc<Recorder>,
) -> impl FnMut(Confirmed) + Send + 'static {
    move |Confirmed { first, last, is_ack }| {
        let now_ns = now_ns();
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

/// Counts the mandatory messages that come back.
fn count_returns(context: &Arc<Context>, channel: &Channel) -> Result<(), Error> {
    let mut returns = channel.returns()?;
    let context = context.clone();
    tokio::spawn(async move {
        // An error is the channel's, which its producer reports.
        while let Ok(Some(returned)) = returns.next().await {
            if let Some(stamp) = Stamp::read(returned.message.body()) {
                context.ledger.excuse(stamp.producer.into(), stamp.number..=stamp.number);
            }
            context.counters.returned.add(1, now_ns());
        }
    });
    Ok(())
}

fn lost(error: io::Error) -> Error {
    Error::Lost(Arc::new(error))
}

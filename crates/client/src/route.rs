//! What a connection keeps of each of its channels: who waits for what.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use courser_codec::{Method, ShortStr, ShortString};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::batch::{ConfirmSink, DeliverySink};
use crate::confirm::Confirmation;
use crate::error::Error;
use crate::mailbox::Mailbox;
use crate::message::{DeliveryId, Received, Returned};

/// What a channel and everything made from it share.
pub(crate) struct ChannelState {
    pub number: u16,
    /// Why the channel is closed, once it is; set before the tasks that wait on it are woken.
    closed: OnceLock<Error>,
    /// Woken when no confirm is outstanding any more, and at the end.
    pub settled: Notify,
    /// What the program has said of the prefetch of the channel's consumers to come.
    pub prefetch: Mutex<Prefetch>,
    pub recovers: Recovers,
}

/// The recovers of a channel: with each, the server takes back all that it has delivered before its answer.
#[derive(Default)]
pub(crate) struct Recovers {
    asked: AtomicU64,
    answered: AtomicU64,
}

impl Recovers {
    pub fn ask(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
    }

    pub fn answer(&self) {
        self.answered.fetch_add(1, Ordering::AcqRel);
    }

    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Acquire)
    }

    /// Whether the server does not know this delivery any more, or won't when it hears of it.
    pub fn has_taken_back(&self, id: DeliveryId) -> bool {
        id.recovers < self.asked.load(Ordering::Acquire)
    }
}

/// How many messages the next consumer of a channel may have unacknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// Any number: the program has said nothing, and nor has this crate.
    Unset,
    /// What this crate has set for a consumer with a buffer.
    Default,
    /// What the program has set; 0 is any number.
    Own(u16),
}

impl ChannelState {
    pub fn new(number: u16) -> Self {
        Self {
            number,
            closed: OnceLock::new(),
            settled: Notify::new(),
            prefetch: Mutex::new(Prefetch::Unset),
            recovers: Recovers::default(),
        }
    }

    /// Sets why the channel is closed; only the first reason counts.
    pub fn set_closed(&self, error: &Error) {
        let _ = self.closed.set(error.clone());
    }

    /// The error of everything that is tried on a closed channel.
    pub fn check_open(&self) -> Result<(), Error> {
        self.closed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Why the channel is closed, for a caller whose answer will not come.
    pub fn error(&self) -> Error {
        self.closed.get().cloned().unwrap_or_else(|| {
            Error::lost(std::io::Error::other("the answer was dropped with the connection"))
        })
    }
}

/// A channel, seen from the connection.
pub(crate) struct Route {
    pub state: Arc<ChannelState>,
    /// Who waits for the channel to be open.
    pub opening: Option<oneshot::Sender<()>>,
    /// Requests under way, in the order in which the server answers them.
    pub waiting: VecDeque<Waiting>,
    pub confirms: Confirms,
    pub consumers: HashMap<ShortString, Consuming>,
    /// Consumers that this channel has had.
    consumers_made: u64,
    pub returns: Option<Arc<Mailbox<Returned>>>,
    /// Whether the server takes publishes on this channel.
    pub is_flowing: bool,
}

/// A request, and who waits for its answer.
pub(crate) struct Waiting {
    /// Class and method of the answer.
    pub expects: (u16, u16),
    pub answer: oneshot::Sender<Reply>,
    pub purpose: Purpose,
}

/// What the answer to a request means for the channel, whether or not the program still waits for it.
pub(crate) enum Purpose {
    /// Nothing more.
    Other,
    /// A message comes, which goes back to its queue if the program has given up and it can be given back.
    Get { gives_back: bool },
    /// A consumer ends.
    Cancel(ConsumerKey),
    /// All that came before is back in its queue.
    Recover,
}

/// Which consumer of a channel: its tag, which another one may have later, and a number, which none has again.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerKey {
    pub tag: ShortString,
    number: u64,
}

/// A consumer that the server knows of, or is asked for.
pub(crate) struct Consuming {
    number: u64,
    pub receiver: Receiver,
}

/// An answer, made one's own.
#[derive(Debug)]
pub(crate) enum Reply {
    Done,
    Queue {
        name: ShortString,
        message_count: u32,
        consumer_count: u32,
    },
    Count(u32),
    /// The answer to a get, with the number of messages that are left.
    Message(Option<Box<(Received, u32)>>),
}

impl Reply {
    pub fn from_method(method: &Method<'_>) -> Self {
        match *method {
            Method::QueueDeclareOk(ok) => Self::Queue {
                name: ok.queue.into(),
                message_count: ok.message_count,
                consumer_count: ok.consumer_count,
            },
            Method::QueuePurgeOk(ok) => Self::Count(ok.message_count),
            Method::QueueDeleteOk(ok) => Self::Count(ok.message_count),
            Method::BasicGetEmpty(_) => Self::Message(None),
            _ => Self::Done,
        }
    }
}

/// Who gets a consumer's deliveries.
#[derive(Clone)]
pub(crate) enum Receiver {
    /// A [`Consumer`](crate::Consumer).
    Stream { mailbox: Arc<Mailbox<Received>>, auto_ack: bool },
    /// A handler of the batch interface.
    Batches(Arc<DeliverySink>),
    /// None any more; these deliveries are given back to the queue once the server sends no more, unless they count as
    /// acknowledged.
    Gone { left: Option<Vec<DeliveryId>> },
}

impl Receiver {
    /// Nothing more will come. What has come can be taken and acknowledged.
    pub fn end(&self, error: Option<Error>) {
        match self {
            Self::Stream { mailbox, .. } => mailbox.end(error),
            Self::Batches(sink) => sink.end(error),
            Self::Gone { .. } => {}
        }
    }

    /// The channel is gone, and with it all that is not acknowledged: that is back in its queue.
    pub fn end_with_channel(&self, error: Option<Error>) {
        if let Self::Stream { mailbox, auto_ack: false } = self {
            drop(mailbox.take_all());
        }
        self.end(error);
    }
}

/// Publishes without an answer.
#[derive(Default)]
pub(crate) struct Confirms {
    /// Who waits, by the number of the publish, ascending; taken out of the middle when confirmed out of order.
    pub futures: VecDeque<(u64, Option<oneshot::Sender<Confirmation>>)>,
    pub sink: Option<Arc<ConfirmSink>>,
    /// Publishes refused since the program last asked.
    pub nacked: u64,
}

impl Confirms {
    /// Answers those who wait for the publishes from `first` to `last`.
    pub fn resolve(&mut self, first: u64, last: u64, confirmation: Confirmation) {
        if confirmation == Confirmation::Nack {
            self.nacked += last - first + 1;
        }
        let from = self.futures.partition_point(|(seq, _)| *seq < first);
        let in_range = self.futures.iter_mut().skip(from).take_while(|(seq, _)| *seq <= last);
        for (_, future) in in_range {
            if let Some(future) = future.take() {
                // It fails if the program has dropped the future; then it does not matter.
                let _ = future.send(confirmation);
            }
        }
        while self.futures.front().is_some_and(|(_, future)| future.is_none()) {
            self.futures.pop_front();
        }
    }
}

impl Route {
    pub fn new(state: Arc<ChannelState>, opening: oneshot::Sender<()>) -> Self {
        Self {
            state,
            opening: Some(opening),
            waiting: VecDeque::new(),
            confirms: Confirms::default(),
            consumers: HashMap::new(),
            consumers_made: 0,
            returns: None,
            is_flowing: true,
        }
    }

    /// Remembers who gets a consumer's deliveries: under this tag, or one that is made up when it is empty.
    ///
    /// # Errors
    /// When another consumer of the channel has the tag.
    pub fn add_consumer(
        &mut self,
        wanted: ShortString,
        receiver: Receiver,
    ) -> Result<ConsumerKey, Error> {
        let is_taken = |tag: &ShortString| self.consumers.contains_key(tag.as_bytes());
        if is_taken(&wanted) {
            return Err(Error::ConsumerTagInUse { consumer_tag: wanted.to_string() });
        }
        let mut tag = wanted;
        let mut number = self.consumers_made + 1;
        if tag.is_empty() {
            loop {
                tag = ShortStr::cut(&format!("c{number}")).into();
                if !is_taken(&tag) {
                    break;
                }
                number += 1;
            }
        }
        self.consumers_made = number;
        self.consumers.insert(tag.clone(), Consuming { number, receiver });
        Ok(ConsumerKey { tag, number })
    }

    /// Who gets the deliveries with this tag.
    pub fn receiver(&mut self, tag: ShortStr<'_>) -> Option<&mut Receiver> {
        self.consumers.get_mut(tag.as_bytes()).map(|consuming| &mut consuming.receiver)
    }

    /// Who gets a consumer's deliveries, while the server may send some.
    pub fn receiver_of(&mut self, key: &ConsumerKey) -> Option<&mut Receiver> {
        let consuming = self.consumers.get_mut(key.tag.as_bytes())?;
        (consuming.number == key.number).then_some(&mut consuming.receiver)
    }

    /// The server sends this consumer nothing more.
    pub fn remove_consumer(&mut self, key: &ConsumerKey) -> Option<Receiver> {
        self.receiver_of(key)?;
        self.consumers.remove(key.tag.as_bytes()).map(|consuming| consuming.receiver)
    }

    /// The channel is closed. Everything that waits gets `error`; consumers end without one if this side has closed it
    /// on purpose.
    pub fn close(self, error: &Error) {
        self.state.set_closed(error);
        let for_streams = (!is_on_purpose(error)).then(|| error.clone());
        for consuming in self.consumers.values() {
            consuming.receiver.end_with_channel(for_streams.clone());
        }
        if let Some(returns) = &self.returns {
            returns.end(for_streams);
        }
        if let Some(sink) = &self.confirms.sink {
            sink.end();
        }
        self.state.settled.notify_waiters();
        // The senders of answers and confirms go with `self`, which wakes those who wait.
    }
}

/// Whether this side has closed channel or connection on purpose.
fn is_on_purpose(error: &Error) -> bool {
    error.close_reason().is_some_and(|reason| {
        reason.by == courser_connection::ClosedBy::Local
            && reason.code == courser_codec::reply_code::REPLY_SUCCESS
    })
}

//! A queue: the messages that wait in it, its consumers, and how the two meet.
//!
//! Everything that changes a queue happens in one short section under its lock. At the end of each
//! section either nothing is waiting, or no consumer can take it, or a timer goes on ([`serve`]):
//! consumers that can take no more leave the ring, and what gives them credit or room again puts
//! them back and feeds them.

mod amounts;
mod backlog;
mod bounds;
mod capacity;
mod carry;
mod commits;
mod consumer_table;
mod consumers;
mod contents;
mod counting;
mod dead;
mod deletion;
mod effective_settings;
mod expiry;
mod feed;
mod handed_out;
mod handle;
mod lease;
mod line;
mod logged;
mod look;
mod message_notes;
mod overdue;
mod packed;
mod pause;
mod peek;
mod poll;
mod priority;
mod ready;
mod reconfigure;
mod restored;
mod retry;
mod returning;
mod returns;
mod serve;
mod settle;
mod single_active;
mod sizes;
mod source;
mod starved;
mod subscription;
mod unfit;
mod unnoted;
mod unread;
mod untold;
mod walk;

pub use amounts::Amount;
pub(crate) use backlog::{FAILED, REDELIVERED, SPILLED};
pub use bounds::{Bounds, Overflow};
pub(crate) use carry::{CameBack, Returns};
pub(crate) use consumers::{Consumer, ConsumerStanding};
pub use contents::QueueContents;
pub(crate) use dead::Letter;
pub(crate) use deletion::{BeforeDeletion, PURGED_WITHOUT_WAITING};
pub use effective_settings::{DeadLetterTo, EffectiveSettings};
pub(crate) use expiry::has_expiration;
pub(crate) use handle::Handle;
pub(crate) use logged::{Entries, Entry};
pub(crate) use look::Look;
pub(crate) use peek::{Peeked, Seen};
pub(crate) use poll::{Poll, Polled, Poller, Taking};
pub(crate) use priority::{Ranks, priority_of};
pub(crate) use restored::Rereader;
pub use retry::{DelayedRetry, DelayedStatus, Retried};
pub(crate) use returning::{Lots, SETTLED_AT_ONCE};
pub(crate) use settle::{Freed, Outcome, Settled};
pub(crate) use subscription::{Departure, NewConsumer};
pub use unread::Unread;
pub(crate) use unread::is_too_early;
pub(crate) use walk::Cursor;

use crate::arguments::{self, QueueType};
use crate::counts::{self, QueueCounts, VhostCounts};
use crate::direct_reply::is_reply_name;
use crate::exchange::Sources;
use crate::kept_reader::KeptReader;
use crate::log_end::LogEnd;
use crate::memory::{Charge, Memory, Use, queue_bytes};
use crate::policy::{Counting, QueuePolicies};
use crate::routing::Namespace;
use crate::routing::deduplication::Deduplication;
use crate::stream::Stream;
use crate::timers::{Timed, Timer, Timers};
use capacity::Capacity;
use commits::Copied;
use consumers::Consumers;
use courser_codec::FieldTable;
use courser_codec::ShortString;
use courser_store::blocking::Lock;
use dead::Dying;
use expiry::Expiry;
use handed_out::HandedOut;
use lease::Lease;
use look::LastCounts;
use message_notes::MessageNotes;
use ready::Ready;
use retry::Delayed;
use returning::Returning;
use single_active::SingleActive;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use unread::Unreadable;

/// Identifies a connection, to know whose exclusive queue this is.
pub type ConnectionId = u64;

/// What a queue was declared with.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// Survives a restart of the broker.
    pub durable: bool,
    /// The connection that alone may use it, and with which it goes.
    pub exclusive_owner: Option<ConnectionId>,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// The arguments as declared, known and unknown.
    pub arguments: FieldTable,
}

/// A queue of a vhost.
#[derive(Debug)]
pub struct Queue {
    /// Unique among all queues and exchanges of the broker.
    pub(crate) id: u64,
    /// Its name in its vhost.
    pub name: ShortString,
    /// What it was declared with.
    pub settings: QueueSettings,
    /// The exchanges that it is bound to.
    pub(crate) sources: Sources,
    /// Where the log ends with its definition, if it was made since the start: it survives once that is durable.
    pub(crate) defined: LogEnd,
    /// Where it is, as long as the broker runs.
    namespace: Weak<dyn Namespace>,
    vhost_counts: Arc<VhostCounts>,
    timers: Arc<Timers>,
    /// For what may outlive it.
    pub(crate) handle: Handle,
    /// What it has as a stream, if it is one.
    stream: Option<Box<Stream>>,
    deduplication: Option<Arc<Deduplication>>,
    /// Since when clients can use it, in milliseconds since 1970.
    usable_ms: AtomicU64,
    /// It is a stream, or holds no two messages of the same.
    takes_specially: bool,
    is_quorum: bool,
    /// Its type, as messages are counted by it.
    counted_as: u8,
    /// What it takes to match it with policies.
    pub(crate) matched: Counting,
    state: Lock<State>,
    /// Held while its dead letters are posted. Locked before any queue's state.
    posting: Lock<()>,
    /// Its messages need a stamp.
    stamps: AtomicBool,
    /// There are to be copies of what is delivered.
    traced: AtomicBool,
    /// There if its log has copies on other machines.
    copied: Option<Copied>,
    /// Clients get nothing from it for now.
    paused: AtomicBool,
    /// It refuses messages that it has no room for.
    refuses: AtomicBool,
    backlog: AtomicUsize,
    last_counts: LastCounts,
    consumed: AtomicU64,
    active_consumers: AtomicUsize,
    /// Publishers that wait until consumers have caught up.
    waiting_publishers: AtomicUsize,
    /// How often a client could not be given a message, as the content header is too long for it.
    unfit: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// What the queue uses without its messages.
    charge: Charge,
    ready: Ready,
    /// Reads what waits in the store; there only while something waits.
    reader: KeptReader,
    /// Armed while something is kept that has been read ahead.
    read_ahead: Timer,
    consumers: Consumers,
    capacity: Capacity,
    unacked: HandedOut,
    /// Which of them are on the way to their places.
    returning: Returning,
    had_consumer: bool,
    /// What it does that not every queue does.
    traits: Option<Arc<EffectiveSettings>>,
    policies: QueuePolicies,
    lease: Lease,
    dying: Dying,
    delayed: Delayed,
    expiry: Expiry,
    /// Armed while another section has to follow ([`Queue::finish`]).
    serving: Timer,
    /// There while something can't be read.
    unread: Option<Box<Unreadable>>,
    /// What is known of some messages besides their places.
    notes: Option<Box<MessageNotes>>,
    /// Of some the log is to know that they have come back, or how often.
    has_returned: bool,
    /// There once a message has come.
    counts: Option<Box<QueueCounts>>,
    deleted: bool,
}

/// What a queue holds, as `queue.declare-ok` reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// Messages that wait for a consumer.
    pub ready: usize,
    /// Messages delivered and not acknowledged.
    pub unacked: usize,
    /// Messages that have come back and wait for their next try.
    pub delayed: DelayedStatus,
    /// Consumers, blocked ones included.
    pub consumers: usize,
}

impl QueueStatus {
    /// All messages in it.
    pub fn messages(&self) -> usize {
        self.ready + self.unacked + self.delayed.messages
    }
}

impl QueueSettings {
    /// Whether the queue and its persistent messages survive a restart.
    pub fn survives(&self) -> bool {
        self.durable && self.exclusive_owner.is_none()
    }
}

/// What a queue has to know of where it is.
pub(crate) struct Home<'a> {
    pub namespace: Weak<dyn Namespace>,
    pub vhost_counts: Arc<VhostCounts>,
    pub timers: Arc<Timers>,
    pub memory: &'a Arc<Memory>,
    /// The log has copies on other machines.
    pub is_copied: bool,
}

impl Queue {
    pub(crate) fn new(
        id: u64,
        name: ShortString,
        settings: QueueSettings,
        mut policies: QueuePolicies,
        home: Home<'_>,
    ) -> Arc<Self> {
        let Home { namespace, vhost_counts, timers, memory, is_copied } = home;
        let traits = EffectiveSettings::with(&policies, &settings.arguments);
        let ranks = arguments::ranks(&settings.arguments);
        let ready = Ready::new(ranks, memory.charge(Use::Places, 0));
        let single = arguments::single_active(&settings.arguments).map(SingleActive::new);
        let consumers = Consumers::new(single, memory.charge(Use::Channels, 0));
        let queue_type = QueueType::of(&settings.arguments);
        let is_stream = queue_type == QueueType::Stream;
        let stream = is_stream
            .then(|| Box::new(Stream::new(id, traits.as_deref(), memory.charge(Use::Places, 0))));
        let notes = MessageNotes::of(&settings.arguments, memory.charge(Use::Places, 0));
        let remembered = memory.charge(Use::Deduplication, 0);
        let deduplication = match notes {
            Some(_) => None,
            None => Deduplication::of(&settings.arguments, remembered),
        };
        let used_by = match is_reply_name(name.as_bytes()) {
            true => Use::Channels,
            false => Use::Definitions,
        };
        let charge = memory.charge(used_by, queue_bytes(&name, &settings.arguments));
        let unacked = HandedOut::new(memory.charge(Use::Sessions, 0), is_copied);
        let queue = Arc::new_cyclic(|me| Queue {
            usable_ms: AtomicU64::new(timers.now_ms()),
            id,
            counted_as: match is_reply_name(name.as_bytes()) {
                true => counts::VOLATILE,
                false => counts::place_of(queue_type),
            },
            name,
            settings,
            sources: Sources::default(),
            defined: LogEnd::default(),
            namespace,
            vhost_counts,
            timers,
            handle: Handle::new(me),
            stream,
            deduplication,
            takes_specially: is_stream || notes.is_some(),
            is_quorum: queue_type == QueueType::Quorum,
            matched: Counting::begin(std::mem::take(&mut policies.took)),
            state: Lock::new(State {
                charge,
                ready,
                reader: KeptReader::new(memory),
                consumers,
                traits,
                policies,
                notes,
                unacked,
                dying: Dying::new(memory.charge(Use::Places, 0)),
                delayed: Delayed::new(memory.charge(Use::Retries, 0)),
                ..State::default()
            }),
            posting: Lock::new(()),
            stamps: AtomicBool::new(false),
            traced: AtomicBool::new(false),
            copied: is_copied.then(Copied::default),
            paused: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            backlog: AtomicUsize::new(0),
            last_counts: LastCounts::default(),
            consumed: AtomicU64::new(0),
            active_consumers: AtomicUsize::new(0),
            waiting_publishers: AtomicUsize::new(0),
            unfit: AtomicU64::new(0),
        });
        queue.settle_in();
        // What comes back with a restart may have grown too old meanwhile.
        if let Some(stream) = queue.stream() {
            stream.watch_age(Some(0), &queue.timers, queue.timed());
        }
        queue
    }

    /// There if it drops what it remembers to have had.
    pub(crate) fn deduplication(&self) -> Option<Arc<Deduplication>> {
        self.deduplication.clone()
    }

    /// Whether it drops a message while there is one of the same.
    pub(crate) fn holds_no_two(&self) -> bool {
        self.takes_specially && self.stream.is_none()
    }

    /// Itself, for a timer.
    fn timed(&self) -> Weak<dyn Timed> {
        self.handle.downgrade()
    }

    /// What time it is, in milliseconds since 1970.
    #[inline]
    pub(crate) fn now_ms(&self) -> u64 {
        self.timers.now_ms()
    }

    /// What it has as a stream, if it is one.
    #[inline]
    pub(crate) fn stream(&self) -> Option<&Stream> {
        self.stream.as_deref()
    }

    /// Whether there are to be copies of what is delivered.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.traced.load(Ordering::Relaxed)
    }

    pub(crate) fn set_traced(&self, on: bool) {
        self.traced.store(on, Ordering::Relaxed);
    }

    /// Messages waiting, read without the lock: a hint for pacing publishers.
    pub fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }

    /// Messages ever handed to consumers, read without the lock.
    pub fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Consumers, read without the lock.
    pub fn consumer_count(&self) -> usize {
        self.active_consumers.load(Ordering::Relaxed)
    }

    /// Notes a publisher that waits for consumers. Returns whether it is the only one.
    pub(crate) fn add_waiting_publisher(&self) -> bool {
        self.waiting_publishers.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Takes one back. Returns whether it was the only one.
    pub(crate) fn remove_waiting_publisher(&self) -> bool {
        self.waiting_publishers.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

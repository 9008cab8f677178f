//! Publishers that are faster than what takes their messages: they are not read for a while.

use super::Session;
use crate::broker::Broker;
use crate::queue::Queue;
use courser_store::Store;
use courser_store::critical;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long consumers are waited for, for each message that was published, on one queue: its publishers bring 10,000 messages a second
/// in any case. Of several queues whose publishers wait, each has its share.
const WAIT_PER_MESSAGE: Duration = Duration::from_micros(100);
/// Consumers that take less than this fraction of what a publisher brings are slow for reasons of their own.
const SLOW_CONSUMERS_FRACTION: u64 = 16;
/// Messages that may wait in any queue, however many queues there are whose publishers wait.
const BACKLOG_MIN: usize = 32;

/// A publisher is ahead, of the consumers of a queue or of the store, and should give them time.
#[derive(Debug)]
pub struct Pace(With);

enum With {
    Consumers(Ahead),
    Store(Arc<dyn Store>, Until),
}

/// How far the store has to come.
#[derive(Clone, Copy)]
enum Until {
    /// It is not behind.
    NotBehind,
    /// No append may block.
    NoneMayBlock,
}

impl Until {
    fn is_ahead_of(self, store: &dyn Store) -> bool {
        match self {
            Until::NotBehind => store.is_behind(),
            Until::NoneMayBlock => store.may_block(),
        }
    }

    fn pace(self, store: &Arc<dyn Store>) -> Option<Pace> {
        self.is_ahead_of(&**store).then(|| Pace(With::Store(Arc::clone(store), self)))
    }
}

/// What is read next of a client and may be appended to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAppend {
    /// A message that is persistent.
    Persistent,
    /// Another message.
    Transient,
    /// What settles deliveries, or commits a transaction.
    Settlement,
}

impl std::fmt::Debug for With {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            With::Consumers(_) => "Consumers",
            With::Store(..) => "Store",
        })
    }
}

impl Pace {
    /// Whether it is the store that needs time.
    pub fn is_for_store(&self) -> bool {
        matches!(self.0, With::Store(..))
    }

    /// Asked about every millisecond, with how long the publisher has waited: whether it has to wait on.
    pub fn wait_on(&self, waited: Duration) -> bool {
        critical::assert_outside("a publisher waits");
        match &self.0 {
            With::Consumers(ahead) => ahead.wait_on(waited),
            With::Store(store, until) => until.is_ahead_of(&**store),
        }
    }
}

/// Waits for the consumers of a queue.
struct Ahead {
    broker: Arc<Broker>,
    queue: Arc<Queue>,
    /// How many messages were published into the queue at once.
    published: u32,
    consumers_are_slow: bool,
}

impl Ahead {
    fn new(broker: &Arc<Broker>, behind: Behind, consumers_are_slow: bool) -> Self {
        let Behind { queue, published } = behind;
        if queue.add_waiting_publisher() {
            broker.queues_behind.fetch_add(1, Relaxed);
        }
        Ahead { broker: Arc::clone(broker), queue, published, consumers_are_slow }
    }

    /// The publisher goes on when the backlog is worked off. Otherwise when it has given consumers time for what it has published, of
    /// which slow ones need none: waiting for them would only hold the publisher up.
    fn wait_on(&self, waited: Duration) -> bool {
        let queues = u32::try_from(self.broker.queues_behind.load(Relaxed)).unwrap_or(u32::MAX);
        let enough = WAIT_PER_MESSAGE.saturating_mul(self.published.saturating_mul(queues));
        !self.consumers_are_slow
            && waited < enough
            && self.queue.consumer_count() > 0
            && self.queue.backlog() > self.broker.backlog_share() / 2
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if self.queue.remove_waiting_publisher() {
            self.broker.queues_behind.fetch_sub(1, Relaxed);
        }
    }
}

impl Broker {
    /// Messages that may wait in a queue with consumers before its publishers do: the queues whose publishers wait share what
    /// one alone may have.
    pub(super) fn backlog_share(&self) -> usize {
        let alone = self.limits.pace_backlog;
        let share = alone / self.queues_behind.load(Relaxed).max(1);
        share.max(BACKLOG_MIN.min(alone))
    }
}

/// A queue whose backlog has grown too long, and how many messages of this batch went into it.
#[derive(Debug)]
pub(super) struct Behind {
    queue: Arc<Queue>,
    published: u32,
}

/// How the consumers of a queue keep up with one publisher while it is ahead of them.
#[derive(Debug, Default)]
struct Watched {
    /// The number of the queue.
    queue: u64,
    /// Messages that it has brought since then, and that consumers had taken before.
    published: u64,
    consumed_before: u64,
    are_slow: bool,
}

impl Watched {
    /// Whether consumers are too slow to be waited for, as the last messages have shown, of which there are as many as `window`.
    fn are_slow(&mut self, behind: &Behind, window: u64) -> bool {
        let consumed = behind.queue.consumed();
        if self.queue != behind.queue.id {
            let queue = behind.queue.id;
            *self = Watched { queue, consumed_before: consumed, ..Watched::default() };
            return false;
        }
        self.published += u64::from(behind.published);
        if self.published >= window {
            let progress = consumed.saturating_sub(self.consumed_before);
            self.are_slow = progress * SLOW_CONSUMERS_FRACTION < self.published;
            (self.published, self.consumed_before) = (0, consumed);
        }
        self.are_slow
    }
}

/// What a session notes of its publishes to know when to read no more of them for a while.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// Whose consumers this batch has shown to be behind, and whether they have kept up before.
    behind: Option<Behind>,
    watched: Watched,
    /// This batch has put messages into the log, and the last one had.
    pub is_logging: bool,
    pub has_logged: bool,
    /// Something was published in this batch.
    pub has_published: bool,
    /// The last batch that published something was taken in while publishers should have waited.
    pub published_in_alarm: bool,
    /// When its turn is at the end of the alarm that holds it back.
    pub alarm_turn: Option<u64>,
}

impl Session {
    /// Looks how long the backlog of a queue is into which messages were just published.
    pub(super) fn note_backlog(&mut self, queue: &Arc<Queue>, published: usize) {
        // Most queues are short.
        if queue.backlog() <= BACKLOG_MIN.min(self.broker.limits.pace_backlog)
            || queue.backlog() <= self.broker.backlog_share()
            || queue.consumer_count() == 0
        {
            return;
        }
        let published = u32::try_from(published).unwrap_or(u32::MAX);
        match &mut self.pacing.behind {
            Some(behind) if Arc::ptr_eq(&behind.queue, queue) => {
                behind.published = behind.published.saturating_add(published);
            }
            other => *other = Some(Behind { queue: Arc::clone(queue), published }),
        }
    }

    /// With which consumers to keep pace before the client is read again.
    pub(super) fn pace_with_consumers(&mut self) -> Option<Pace> {
        let behind = self.pacing.behind.take()?;
        let window = self.broker.limits.pace_backlog as u64;
        let are_slow = self.pacing.watched.are_slow(&behind, window);
        Some(Pace(With::Consumers(Ahead::new(&self.broker, behind, are_slow))))
    }

    /// Whether this connection has to wait for the end of an alarm, which wakes it, and the reason.
    /// An alarm holds back connections that publish in spite of it: one that only acknowledges is needed to end it.
    pub fn hold_back(&mut self) -> Option<&'static str> {
        if !self.pacing.published_in_alarm {
            return None;
        }
        let reason = self.broker.hold_back(&self.outbox, &mut self.pacing.alarm_turn);
        self.pacing.published_in_alarm = reason.is_some();
        reason
    }

    /// Whether so much waits for the disk that publishes are looked at before they are read.
    pub fn store_is_behind(&self) -> bool {
        self.shard.store.is_behind()
    }

    /// With whom to keep pace before that is read of a client whose last batch was none for the log: it may be the first of
    /// many clients, whose messages would fill what waits for the disk. Where a message is kept that is not persistent is not
    /// known yet, and acknowledgements make room: they wait only where the next append may block.
    pub fn pace_before(&self, next: NextAppend) -> Option<Pace> {
        let until = match next {
            NextAppend::Persistent => Until::NotBehind,
            NextAppend::Transient | NextAppend::Settlement => Until::NoneMayBlock,
        };
        until.pace(&self.shard.store)
    }

    /// With whom to keep pace before the client is read again. One whose last batch had persistent
    /// messages waits while the store has enough to write: its next append would block a thread that
    /// consumers, whose acknowledgements make room, need as well.
    pub fn pace_with_store(&self) -> Option<Pace> {
        if !self.pacing.has_logged {
            return None;
        }
        Until::NotBehind.pace(&self.shard.store)
    }
}

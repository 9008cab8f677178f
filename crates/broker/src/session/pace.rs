//! Publishers that are faster than what takes their messages: they are not read for a while.

use super::Session;
use crate::queue::Queue;
use courser_store::Store;
use std::sync::Arc;

/// Consumers that take less than this fraction of a publisher's batch in a millisecond are not
/// waited for.
const SLOW_CONSUMERS_FRACTION: u64 = 16;

/// A publisher is ahead, of the consumers of a queue or of the store, and should give them time.
#[derive(Debug)]
pub struct Pace(With);

enum With {
    Consumers { queue: Arc<Queue>, published: u64, consumed_before: u64, backlog_low: usize },
    Store(Arc<dyn Store>),
}

impl std::fmt::Debug for With {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            With::Consumers { .. } => "Consumers",
            With::Store(_) => "Store",
        })
    }
}

impl Pace {
    pub(super) fn with_consumers(queue: &Arc<Queue>, published: u64, backlog_low: usize) -> Self {
        let (queue, consumed_before) = (Arc::clone(queue), queue.consumed());
        Pace(With::Consumers { queue, published, consumed_before, backlog_low })
    }

    /// Asked about every millisecond: whether to wait on. The publisher goes on as soon as the
    /// backlog is worked off, or when consumers are far from keeping up with it: they are slow for
    /// reasons of their own, and waiting for them would only hold the publisher up.
    pub fn wait_on(&mut self) -> bool {
        match &mut self.0 {
            With::Consumers { queue, published, consumed_before, backlog_low } => {
                let consumed = queue.consumed();
                let progress = consumed - *consumed_before;
                *consumed_before = consumed;
                queue.backlog() > *backlog_low
                    && queue.consumer_count() > 0
                    && progress * SLOW_CONSUMERS_FRACTION >= *published
            }
            With::Store(store) => store.is_behind(),
        }
    }
}

/// What a session notes of its publishes to know when to read no more of them for a while.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// With whom the publisher should keep pace, as this batch has shown.
    pub pace: Option<Pace>,
    /// This batch has put messages into the log, and the last one had.
    pub is_logging: bool,
    pub has_logged: bool,
    /// Something was published in this batch.
    pub has_published: bool,
    /// The last batch that published something was taken in while publishers should have waited.
    pub published_in_alarm: bool,
}

impl Session {
    /// Whether this connection has to wait for the end of an alarm, which wakes it, and the reason.
    /// An alarm concerns whoever publishes in spite of it: who only acknowledges is needed to end it.
    pub fn hold_back(&mut self) -> Option<&'static str> {
        if !self.pacing.published_in_alarm {
            return None;
        }
        let reason = self.broker.hold_back(&self.outbox);
        self.pacing.published_in_alarm = reason.is_some();
        reason
    }

    /// With whom to keep pace before the client is read again. One whose last batch had persistent
    /// messages waits while the store has enough to write: its next append would block a thread that
    /// consumers, whose acknowledgements make room, need as well.
    pub fn pace_with_store(&self) -> Option<Pace> {
        let store = &self.shard.store;
        let is_ahead = self.pacing.has_logged && store.is_behind();
        is_ahead.then(|| Pace(With::Store(Arc::clone(store))))
    }
}

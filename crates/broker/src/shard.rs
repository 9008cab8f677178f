//! A shard: one log, and everything whose changes are in it.
//!
//! A vhost is on one shard with all that is in it, so no change has to be in two logs. A standalone
//! broker has one shard ([`ShardId::HOME`]) with all its vhosts; a broker may have more, each of which
//! is opened, restored, checkpointed, closed and removed by itself while the others run.

use crate::gate::Gate;
use crate::limits::Limits;
use crate::log_end::LogEnd;
use crate::memory::Memory;
use crate::persistence::gone::Gone;
use crate::removals::Removals;
use crate::timers::Timers;
use courser_store::blocking::Lock;
use courser_store::{Lsn, ShardId, Store};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A log, and what belongs to it. Vhosts know their shard; which vhosts are on it, the broker knows.
pub(crate) struct Shard {
    /// Which one it is.
    pub id: ShardId,
    /// Tells it from what was open under the same number before.
    pub instance: u64,
    /// Where its messages and changes are kept.
    pub store: Arc<dyn Store>,
    /// What is gone and not in the log, which had no room. Nothing is defined meanwhile, so this is no more than what was.
    pub unlogged: Lock<Gone>,
    /// Where the log ends that has all changes of definitions so far.
    pub defined: LogEnd,
    /// What is gone from its vhosts, and the log has yet to be told so.
    pub removals: Arc<Removals>,
    /// Held between the append of a change and its effect, in whichever order, to find a point in the log before which
    /// everything has taken effect, or behind everything that has.
    pub gate: Gate,
    /// What its queues and exchanges have to do at a certain time.
    pub timers: Arc<Timers>,
    /// The broker's books of what clients make it hold.
    pub memory: Arc<Memory>,
    /// Bytes of the longest content header that it keeps a message with.
    pub header_max_bytes: usize,
    /// Numbers by which the log knows queues and exchanges.
    next_id: AtomicU64,
    /// The broker does not know its vhosts any more.
    closed: AtomicBool,
}

impl Shard {
    /// A shard whose timers are among those that `timers` belongs to.
    pub fn new(
        id: ShardId,
        store: Arc<dyn Store>,
        timers: &Timers,
        memory: &Arc<Memory>,
        limits: &Limits,
    ) -> Arc<Self> {
        let timers = timers.of_another_shard();
        Arc::new(Shard {
            id,
            store,
            unlogged: Lock::default(),
            defined: LogEnd::default(),
            removals: Arc::default(),
            gate: Gate::new(),
            instance: timers.shard_instance(),
            timers: Arc::new(timers),
            memory: Arc::clone(memory),
            header_max_bytes: limits.kept_header_max_bytes(),
            next_id: AtomicU64::new(1),
            closed: AtomicBool::new(false),
        })
    }

    /// Whether another machine has a copy of the log, and may come to lead it.
    pub fn is_copied(&self) -> bool {
        self.store.deliverable() != Lsn::MAX
    }

    /// A number that nothing in this log has had before.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether it has been taken out of use.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The broker does not know its vhosts any more: it takes no further change.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Sees to it that a number that was given out before a restart is not given out again.
    pub fn reserve_id(&self, id: u64) {
        self.next_id.fetch_max(id.saturating_add(1), Ordering::Relaxed);
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard").field("id", &self.id).finish_non_exhaustive()
    }
}

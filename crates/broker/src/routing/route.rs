//! The queues that a message goes to, and what its way there asks for.

use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::queue::{Queue, has_expiration};
use crate::routing::Screen;
use crate::routing::deduplication::HeaderKeys;
use crate::shard::Shard;
use crate::stream::Stream;
use crate::work;
use courser_store::change::QUEUES_PER_RECORD_MAX;
use courser_store::{MessageRef, Store, StoreError};
use parking_lot::MutexGuard;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The queues that a message goes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Route {
    pub queues: Vec<Arc<Queue>>,
    /// The numbers of those that survive a restart.
    pub durable: Vec<u64>,
    /// The numbers of those that are streams, which keep all messages in the log.
    pub streams: Vec<u64>,
    /// Whether every message with the same exchange and routing key takes it, until the vhost's
    /// generation changes.
    pub by_key_alone: bool,
    /// One of the queues needs to know when a message was published.
    pub stamped: bool,
    /// One of the queues refuses messages that it has no room for.
    pub may_refuse: bool,
    /// It leads to a client that asked for a direct reply, or that no longer waits for it: the client
    /// that answers is not told.
    pub answers: bool,
    /// The exchange that it begins at, if clients publish to that.
    pub exchange: Option<Arc<Exchange>>,
    /// Exchanges on the way that keep the message, besides.
    pub keepers: Vec<Arc<Exchange>>,
    /// One of them sends it on later.
    pub delayed: bool,
    /// The exchanges and queues on the way that drop what they have had.
    pub screens: Vec<Screen>,
    /// One of the queues holds no two of the same.
    pub holds_no_two: bool,
    /// Copies of what takes it are traced.
    pub is_traced: bool,
    /// Messages take it each by itself: some of these drop what they have had, or keep it.
    pub is_apart: bool,
}

impl Route {
    /// Bytes that it uses itself.
    pub fn used_bytes(&self) -> usize {
        let numbers = self.durable.capacity() + self.streams.capacity() + self.queues.capacity();
        size_of::<Self>()
            + (numbers + self.keepers.capacity()) * size_of::<u64>()
            + self.screens.capacity() * size_of::<Screen>()
    }

    /// Whether a message on it would only go into the log to be refused: its only queue is full, and
    /// takes no dead letters.
    pub fn refuses_all(&self) -> bool {
        match &self.queues[..] {
            [queue] => self.may_refuse && queue.refuses_all(),
            _ => false,
        }
    }

    /// Whether a mandatory message has to be returned.
    pub fn is_nowhere(&self) -> bool {
        self.queues.is_empty() && !self.answers && !self.delayed
    }

    /// Whether no queue and no exchange on it takes a message.
    pub fn is_lost(&self) -> bool {
        self.queues.is_empty() && self.keepers.is_empty()
    }

    /// What is noted as the time of a publish that takes this way, and has this content header; 0 if
    /// it is not needed.
    #[inline]
    pub fn stamp(&self, header: &[u8], now_ms: impl FnOnce() -> u64) -> u64 {
        if self.stamped || has_expiration(header) { now_ms().max(1) } else { 0 }
    }

    /// Whether one of its queues would drop the message, as it holds one of the same. Called without the gate and without any lock.
    ///
    /// # Errors
    /// If the log has no room to be told what one of them has no more.
    pub fn holds_same(&self, message: &MessageRef<'_>, shard: &Shard) -> Result<bool, StoreError> {
        if !self.holds_no_two {
            return Ok(false);
        }
        let _gate = shard.gate.read();
        self.tell_untold(&*shard.store)?;
        let mut keys = HeaderKeys::of_content(message.header);
        Ok(self.queues.iter().any(|queue| queue.holds_one_with(&mut keys)))
    }

    /// Tells the log what its queues have no more, before others go there that may be the same. Called as [`Queue::tell_untold`].
    ///
    /// # Errors
    /// If it has no room for that, or the store has failed.
    pub fn tell_untold(&self, store: &dyn Store) -> Result<(), StoreError> {
        if !self.holds_no_two {
            return Ok(());
        }
        self.queues.iter().try_for_each(|queue| queue.tell_untold(store))
    }

    /// Leaves out queues.
    pub fn retain(&mut self, mut keep: impl FnMut(&Arc<Queue>) -> bool) {
        let mut gone = FxHashSet::default();
        work::count(self.queues.len());
        self.queues.retain(|queue| keep(queue) || !gone.insert(queue.id));
        if gone.is_empty() {
            return;
        }
        let left = |id: &u64| !gone.contains(id);
        self.durable.retain(left);
        self.streams.retain(left);
        self.screens.retain(|screen| !screen.is_queue || left(&screen.place));
    }

    /// Leaves out the exchanges that keep a copy of the message. In one that delays it the message itself waits.
    pub fn leave_out_copies(&mut self) {
        self.keepers.retain(|exchange| exchange.delay().is_some());
    }

    /// The numbers of the queues for which a message goes into the log.
    pub fn logged(&self, persistent: bool) -> &[u64] {
        if persistent { &self.durable } else { &self.streams }
    }

    /// How often the log holds such a message: for each of its queues, or for each stream and until
    /// all queues have it.
    pub fn holders(&self, persistent: bool) -> u32 {
        let holders = if persistent { self.queues.len() } else { self.streams.len() + 1 };
        holders as u32
    }

    /// The way to a queue of what an operator moves there, which is not dropped on it.
    pub fn to(queue: &Arc<Queue>) -> Self {
        let only = |is_one: bool| is_one.then_some(queue.id).into_iter().collect();
        Route {
            queues: vec![Arc::clone(queue)],
            durable: only(queue.settings.survives()),
            streams: only(queue.stream().is_some()),
            stamped: queue.wants_stamps(),
            may_refuse: queue.may_refuse(),
            holds_no_two: queue.holds_no_two(),
            ..Route::default()
        }
    }

    /// One copy for each queue, however many ways lead to it.
    pub fn finish(mut self) -> Result<Self, Fault> {
        self.unite_ways();
        let route = self.complete();
        if route.durable.len() > QUEUES_PER_RECORD_MAX {
            let queues = route.durable.len();
            return Err(Fault::new(506, format_args!("a message for {queues} durable queues")));
        }
        Ok(route)
    }

    /// The same of a message whose publisher can't be told any more that these are too many durable queues:
    /// it goes to as many as it can, and those are left out that were made last.
    pub fn finish_in_part(mut self) -> Self {
        self.unite_ways();
        let mut durable = 0;
        self.queues.retain(|queue| {
            durable += usize::from(queue.settings.survives());
            !queue.settings.survives() || durable <= QUEUES_PER_RECORD_MAX
        });
        self.complete()
    }

    fn unite_ways(&mut self) {
        if self.queues.len() > 1 {
            self.queues.sort_unstable_by_key(|queue| queue.id);
            self.queues.dedup_by_key(|queue| queue.id);
        }
    }

    /// Notes what its queues are like.
    fn complete(mut self) -> Self {
        let durable = self.queues.iter().filter(|queue| queue.settings.survives());
        self.durable = durable.map(|queue| queue.id).collect();
        self.stamped = self.queues.iter().any(|queue| queue.wants_stamps());
        let streams = self.queues.iter().filter(|queue| queue.stream().is_some());
        self.streams = streams.map(|queue| queue.id).collect();
        let screens = self.queues.iter().filter_map(|queue| {
            let (place, name, by) = (queue.id, queue.name.clone(), queue.deduplication()?);
            Some(Screen { place, name, is_queue: true, by })
        });
        self.screens.extend(screens);
        self.holds_no_two = self.queues.iter().any(|queue| queue.holds_no_two());
        self.is_apart = self.holds_no_two || !self.screens.is_empty() || !self.keepers.is_empty();
        self.may_refuse = self.queues.iter().any(|queue| queue.may_refuse());
        self
    }
}

/// Makes the order of appends to the log that of all streams of some routes, as long as the guards
/// live. Taken before the append, and kept until the streams have the messages.
pub(crate) fn lock_streams<'r>(routes: impl Iterator<Item = &'r Route>) -> Vec<MutexGuard<'r, ()>> {
    let with_streams = routes.filter(|route| !route.streams.is_empty());
    let mut streams: Vec<(u64, &Stream)> = with_streams
        .flat_map(|route| &route.queues)
        .filter_map(|queue| Some((queue.id, queue.stream()?)))
        .collect();
    streams.sort_unstable_by_key(|(id, _)| *id);
    streams.dedup_by_key(|(id, _)| *id);
    streams.into_iter().map(|(_, stream)| stream.lock_order()).collect()
}

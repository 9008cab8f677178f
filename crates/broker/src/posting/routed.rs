//! Messages whose ways are known, each its own: into the log together, and from there to the queues.
//! So go transactions, dead letters, what the broker publishes by itself, and publishes that take more
//! than the plain way. A client's plain publishes go in runs of one route instead ([`PublishRun`]),
//! without a look at each message.

use super::PublishRun;
use crate::exchange::Arrival;
use crate::gate;
use crate::queue::Queue;
use crate::routing::{Route, lock_streams};
use crate::wakes::Wakes;
use courser_store::{Location, Lsn, MessageRef, Position, Record, Store, StoreError, Sync};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// How often the log may have each message of an append: for its queues, and for all exchanges that remember it.
const COPIES_OF_EACH: u64 = 2;
/// Bytes of further copies of all messages of an append together: a message is there once for each exchange that delays it, and
/// all of an append is in memory at once.
const COPIES_BYTES_MAX: u64 = 64 << 20;

/// A message and its way.
pub(crate) struct Routed<'m> {
    /// The message as its queues get it.
    pub message: MessageRef<'m>,
    /// The message as exchanges on the way keep it.
    pub kept: MessageRef<'m>,
    pub route: &'m Route,
    /// It has `delivery-mode` 2.
    pub persistent: bool,
    /// A full queue may refuse it. Otherwise every queue takes it.
    pub refusable: bool,
    /// It has been delivered before, elsewhere.
    pub redelivered: bool,
}

impl<'m> Routed<'m> {
    /// Whether it goes into the log for the durable queues of its route.
    fn survives(&self) -> bool {
        self.persistent && !self.route.durable.is_empty()
    }

    /// Whether it goes into the log: to survive, or for the streams among its queues.
    fn is_logged(&self) -> bool {
        !self.route.logged(self.survives()).is_empty()
    }

    /// What makes it survive in its queues, if it does in any.
    fn record(&self) -> Option<Record<'m>> {
        let survives = self.survives();
        let (queues, holders) = (self.route.logged(survives), self.route.holders(survives));
        let record = Record::Message { queues, holders, message: self.message };
        (!queues.is_empty()).then_some(record)
    }

    /// The message, ready for its queues, but for its place.
    fn run(&self) -> PublishRun<'m> {
        let mut run = PublishRun::default();
        run.set_refusable(self.refusable);
        run.set_redelivered(self.redelivered);
        run.push(self.message);
        if self.refusable && self.route.refuses_all() {
            run.refuse_all();
        }
        run
    }

    /// The queues that `run`, which is this message, is put into.
    pub fn queues(&self, run: &PublishRun<'_>) -> &'m [Arc<Queue>] {
        if run.has_refused() { &[] } else { &self.route.queues }
    }

    fn arrivals(&self) -> Vec<Arrival<'m>> {
        Arrival::all(&self.route.keepers, &self.kept, self.persistent)
    }
}

/// Refuses messages of which the log would have too many copies.
fn refuse_copies(routed: &[Routed<'_>], arrivals: &[Vec<Arrival<'_>>]) -> Result<(), StoreError> {
    let stored = |message: &MessageRef<'_>| message.stored_len() as u64;
    let kept = arrivals.iter().flatten().map(Arrival::logged_bytes).sum::<u64>();
    let copied = kept
        + routed.iter().filter(|one| one.is_logged()).map(|one| stored(&one.message)).sum::<u64>();
    let of_each = COPIES_OF_EACH * routed.iter().map(|one| stored(&one.kept)).sum::<u64>();
    match copied > of_each + COPIES_BYTES_MAX {
        true => Err(StoreError::TooLarge(copied)),
        false => Ok(()),
    }
}

/// Messages that are kept as far as they have to be, and in no queue yet.
pub(crate) struct Logged<'m> {
    /// Where the log ends with them; its beginning if there was nothing to log.
    pub lsn: Lsn,
    runs: std::vec::IntoIter<PublishRun<'m>>,
    arrivals: Vec<Vec<Arrival<'m>>>,
    /// The places of those arrivals that are in the log.
    locations: std::vec::IntoIter<Location>,
    /// What goes into a stream has its place by its place in the log.
    _order: Vec<MutexGuard<'m, ()>>,
}

impl<'m> Logged<'m> {
    /// Keeps messages that need not survive, and appends the others to the log, in one piece with
    /// `settled`: what is done with by that. Unless it is a message alone for one queue, nothing behind it
    /// needs room.
    /// Called with the shard's gate held and without any lock.
    ///
    /// # Errors
    /// If the store does not take them, or there would be too many copies of them; then nothing has happened.
    pub fn append<'s>(
        store: &dyn Store,
        routed: &[Routed<'m>],
        settled: impl IntoIterator<Item = Record<'s>>,
        sync: Sync,
    ) -> Result<Self, StoreError> {
        gate::assert_inside("messages are appended");
        let mut runs: Vec<PublishRun<'m>> = routed.iter().map(Routed::run).collect();
        let mut arrivals: Vec<Vec<Arrival<'m>>> = routed.iter().map(Routed::arrivals).collect();
        refuse_copies(routed, &arrivals)?;
        arrivals.iter_mut().try_for_each(|of_one| Arrival::keep_transient(of_one, store))?;
        let mut records: Vec<Record<'_>> = Vec::with_capacity(routed.len() + 1);
        let taken = routed.iter().zip(&runs).filter(|(one, run)| !one.queues(run).is_empty());
        records.extend(taken.filter_map(|(one, _)| one.record()));
        arrivals.iter().flatten().for_each(|arrival| arrival.add_records(&mut records));
        for record in settled {
            records.push(record);
        }
        let is_alone = records.is_empty() && runs.len() == 1 && arrivals.iter().all(Vec::is_empty);
        let mut transient = runs.iter_mut().zip(routed).filter(|(_, one)| !one.is_logged());
        let kept = transient.try_for_each(|(run, one)| match one.queues(run).len() {
            0 => Ok(()),
            // It is kept by its queue, if that has to.
            1 if is_alone => Ok(()),
            _ => run.keep_for_several(store),
        });
        let order = lock_streams(routed.iter().map(|one| one.route));
        let mut locations = Vec::new();
        let appended = kept.and_then(|()| match records.is_empty() {
            true => Ok(Lsn::default()),
            false => store.append(&records, sync, &mut locations),
        });
        drop(records);
        if appended.is_err() {
            runs.iter_mut().for_each(|run| run.let_go(store));
        }
        let lsn = appended?;
        let mut locations = locations.into_iter();
        for (run, one) in runs.iter_mut().zip(routed) {
            if !one.queues(run).is_empty() && one.is_logged() {
                run.set_locations(locations.by_ref().take(1).collect(), one.survives());
            }
        }
        Ok(Logged { lsn, runs: runs.into_iter(), arrivals, locations, _order: order })
    }

    /// The same for what the broker posts by itself, which has left its place by the time it comes to its queues: in no case anything
    /// behind it needs room.
    ///
    /// # Errors
    /// As [`Logged::append`].
    pub fn append_own<'s>(
        store: &dyn Store,
        routed: &[Routed<'m>],
        settled: Option<Record<'s>>,
    ) -> Result<Self, StoreError> {
        let mut logged = Self::append(store, routed, settled, Sync::Later)?;
        // One that is alone is not kept yet, and nothing has been appended.
        let runs = logged.runs.as_mut_slice().iter_mut().zip(routed);
        let mut not_logged =
            runs.filter(|(run, one)| !one.is_logged() && !one.queues(run).is_empty());
        not_logged.try_for_each(|(run, _)| run.keep_for_several(store))?;
        Ok(logged)
    }

    /// The next of the messages, ready for its queues. To be called for each, in order.
    pub fn next_run(&mut self) -> PublishRun<'m> {
        self.runs.next().unwrap_or_default()
    }

    /// Has exchanges on the way keep the messages. To be called when all of them are in their queues.
    pub fn keep(mut self, store: &dyn Store) {
        // One that lets go of a message at once must not be the last that holds it while others don't yet.
        let spilled: Vec<Position> =
            self.arrivals.iter().flatten().filter_map(Arrival::spilled).collect();
        spilled.iter().for_each(|position| store.hold(*position));
        for arrival in self.arrivals.into_iter().flatten() {
            arrival.admit_from(&mut self.locations);
        }
        store.release(&spilled);
    }

    /// Puts the messages into their queues, and has exchanges on the way keep them. Returns which of them
    /// a queue has refused.
    pub fn distribute(
        mut self,
        routed: &[Routed<'m>],
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Vec<bool> {
        let mut refused = Vec::with_capacity(routed.len());
        // They may come of a transaction, which is in the log though nothing of these is.
        let is_logged = self.lsn != Lsn::default();
        let bound_to = if is_logged { self.lsn } else { store.end() };
        for one in routed {
            let mut run = self.next_run();
            for queue in one.queues(&run) {
                queue.bind_to_commit(bound_to);
                // The store has failed, if anything, and its owner ends the broker.
                drop(queue.publish(&mut run, store, wakes));
            }
            run.let_go(store);
            refused.push(run.is_refused(0));
        }
        self.keep(store);
        refused
    }
}

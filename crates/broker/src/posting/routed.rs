//! Messages whose ways are known, each its own: into the log together, and from there to the queues.
//! So go transactions, dead letters and what the broker publishes by itself. A client's plain publishes
//! go in runs of one route instead ([`PublishRun`]), without a look at each message.

use super::PublishRun;
use crate::exchange::Arrival;
use crate::routing::{Route, lock_streams};
use crate::wakes::Wakes;
use courser_store::{Location, Lsn, MessageRef, Record, Store, StoreError, Sync};
use parking_lot::MutexGuard;

/// A message and its way.
pub(crate) struct Routed<'m> {
    /// The message as its queues get it.
    pub message: MessageRef<'m>,
    /// The message as exchanges on the way keep it.
    pub kept: MessageRef<'m>,
    pub route: &'m Route,
    /// It has `delivery-mode` 2.
    pub persistent: bool,
    /// Somebody hears of it when a queue refuses it for want of room; otherwise queues take it.
    pub refusable: bool,
}

impl<'m> Routed<'m> {
    /// Whether it goes into the log for the durable queues of its route.
    fn survives(&self) -> bool {
        self.persistent && !self.route.durable.is_empty()
    }

    /// What makes it survive in its queues, if it does in any.
    fn record(&self) -> Option<Record<'m>> {
        let survives = self.survives();
        let (queues, holders) = (self.route.logged(survives), self.route.holders(survives));
        let record = Record::Message { queues, holders, message: self.message };
        (!queues.is_empty()).then_some(record)
    }

    fn arrivals(&self) -> impl Iterator<Item = Arrival<'m>> {
        let keepers = self.route.keepers.iter();
        keepers.filter_map(|retention| retention.prepare(&self.kept, self.persistent))
    }
}

/// Messages that are in the log as far as they have to be, and in no queue yet.
pub(crate) struct Logged<'m> {
    /// Where the log ends with them; its beginning if there was nothing to log.
    pub lsn: Lsn,
    locations: std::vec::IntoIter<Location>,
    arrivals: Vec<Arrival<'m>>,
    /// What goes into a stream has its place by its place in the log.
    _order: Vec<MutexGuard<'m, ()>>,
}

impl<'m> Logged<'m> {
    /// Appends messages to the log, in one piece with `settled`: what is done with by that. Called with
    /// the shard's gate held and without any lock.
    ///
    /// # Errors
    /// If the store does not take them; then nothing has happened.
    pub fn append<'s>(
        store: &dyn Store,
        routed: &[Routed<'m>],
        settled: impl IntoIterator<Item = Record<'s>>,
        sync: Sync,
    ) -> Result<Self, StoreError> {
        let arrivals: Vec<Arrival<'m>> = routed.iter().flat_map(Routed::arrivals).collect();
        let mut records: Vec<Record<'_>> = Vec::with_capacity(routed.len() + 1);
        records.extend(routed.iter().filter_map(Routed::record));
        records.extend(arrivals.iter().filter_map(Arrival::record));
        for record in settled {
            records.push(record);
        }
        let order = lock_streams(routed.iter().map(|one| one.route));
        let (mut lsn, mut locations) = (Lsn::default(), Vec::new());
        if !records.is_empty() {
            lsn = store.append(&records, sync, &mut locations)?;
        }
        drop(records);
        Ok(Logged { lsn, locations: locations.into_iter(), arrivals, _order: order })
    }

    /// The next of the messages, ready for its queues. To be called for each, in order.
    pub fn run(&mut self, routed: &Routed<'m>) -> PublishRun<'m> {
        let mut run = PublishRun::default();
        run.set_refusable(routed.refusable);
        run.push(routed.message);
        let survives = routed.survives();
        if !routed.route.logged(survives).is_empty() {
            run.set_locations(self.locations.by_ref().take(1).collect(), survives);
        }
        run
    }

    /// Has exchanges on the way keep the messages. To be called when all of them are in their queues.
    ///
    /// # Errors
    /// If one can't be kept; the others are.
    pub fn keep(mut self) -> Result<(), StoreError> {
        let mut kept = Ok(());
        for arrival in self.arrivals {
            kept = kept.and(arrival.admit_from(&mut self.locations));
        }
        kept
    }

    /// Puts the messages into their queues, and has exchanges on the way keep them.
    pub fn distribute(mut self, routed: &[Routed<'m>], store: &dyn Store, wakes: &mut Wakes) {
        for one in routed {
            let mut run = self.run(one);
            for queue in &one.route.queues {
                // What can't be kept for want of room is transient, or the store has failed and its
                // owner ends the broker.
                drop(queue.publish(&mut run, store, wakes));
            }
            run.let_go(store);
        }
        drop(self.keep());
    }
}

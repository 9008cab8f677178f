//! Starting a broker on a fake disk, and making a checkpoint of it.

use crate::Client;
use courser_broker::{Broker, Limits, StateOfShard};
use courser_journal::testing::{FakeDisk, WatchedStore};
use courser_journal::{JournalStore, Options};
use courser_store::{MemoryGauge, ShardId, Store};
use std::path::Path;
use std::sync::Arc;

/// How a broker is started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The journal's.
    pub options: Options,
    /// Bytes of transient messages in memory from which on more of them go to the log.
    pub spill_bytes: u64,
    /// Messages may only be handed out once they are durable, as where other machines have copies of the log.
    pub has_copies: bool,
    /// For the names that the broker makes up.
    pub seed: u64,
    /// The time that it begins with.
    pub now_ms: u64,
}

impl Default for Start {
    /// Small segments, no threads, and nothing spilled.
    fn default() -> Self {
        let options = Options { segment_bytes: 64 << 10, threads: false, ..Options::default() };
        Start { options, spill_bytes: u64::MAX, has_copies: false, seed: 1, now_ms: 0 }
    }
}

impl Start {
    /// Opens the journal on `disk`, which was never damaged, and starts a broker with what is in it.
    pub fn on(self, disk: &FakeDisk) -> (Arc<JournalStore>, Arc<Broker>, Client) {
        let (store, _, broker, client) = self.watched_on(disk);
        (store, broker, client)
    }

    /// As [`Start::on`], and gives what stands between the journal and the broker.
    pub fn watched_on(
        self,
        disk: &FakeDisk,
    ) -> (Arc<JournalStore>, Arc<WatchedStore>, Arc<Broker>, Client) {
        let gauge = Arc::new(MemoryGauge::default());
        let (store, recovered, _) = JournalStore::open(
            Path::new("journal"),
            self.options,
            Arc::new(disk.clone()),
            Arc::clone(&gauge),
            self.spill_bytes,
            &mut |_| {},
        )
        .expect("a journal that was never damaged opens");
        let watched = Arc::new(WatchedStore::new(Arc::clone(&store) as Arc<dyn Store>));
        if self.has_copies {
            watched.have_copies();
        }
        let broker =
            Broker::new(Arc::clone(&watched) as _, gauge, Limits::default(), self.seed.into());
        broker.set_time(self.now_ms);
        broker.restore(recovered).expect("what was written can be read");
        let client = Client::new(&broker);
        (store, watched, broker, client)
    }
}

/// Makes a checkpoint. Returns whether that went well: one that fails leaves the one before.
pub fn checkpoint(store: &JournalStore, broker: &Arc<Broker>) -> bool {
    store.checkpoint(&state(broker)).is_ok()
}

/// The state of the shard that everything is on.
pub fn state(broker: &Arc<Broker>) -> StateOfShard {
    broker.state_of(ShardId::HOME).expect("always open")
}

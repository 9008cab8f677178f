//! A journal whose checkpoints begin when a test says so.

use courser_broker::{Broker, StateOfShard};
use courser_journal::testing::FakeDisk;
use courser_journal::{JournalStore, Options};
use courser_sim::state;
use courser_store::{Lsn, MemoryGauge, Position, Recovered, ShardState};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Opens the journal on `disk`.
pub fn open(disk: &FakeDisk) -> (Arc<JournalStore>, Recovered, Arc<MemoryGauge>) {
    let gauge = Arc::new(MemoryGauge::default());
    let options = Options { segment_bytes: 64 << 10, threads: false, ..Options::default() };
    let (disk, of_store) = (Arc::new(disk.clone()), Arc::clone(&gauge));
    let path = Path::new("journal");
    let opened = JournalStore::open(path, options, disk, of_store, u64::MAX, &mut |_| {});
    let (store, recovered, _) = opened.expect("a journal that was never damaged opens");
    (store, recovered, gauge)
}

/// Makes a checkpoint that was begun earlier. Returns whether that went well.
pub fn checkpoint_from(start: Lsn, store: &JournalStore, broker: &Arc<Broker>) -> bool {
    store.checkpoint(&Begun { start, state: state(broker) }).is_ok()
}

/// A state whose checkpoint was begun earlier.
pub struct Begun {
    pub start: Lsn,
    pub state: StateOfShard,
}

impl ShardState for Begun {
    fn start(&self) -> Lsn {
        self.start
    }

    fn for_each_live(&self, start: Lsn, each: &mut dyn FnMut(Position)) {
        self.state.for_each_live(start, each);
    }

    fn write(&self, start: Lsn, out: &mut dyn Write) -> io::Result<()> {
        self.state.write(start, out)
    }
}

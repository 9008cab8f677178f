//! A store at which a test can look while the broker uses it.

use courser_broker::{Broker, StateOfShard};
use courser_journal::testing::FakeDisk;
use courser_journal::{JournalStore, Options};
use courser_sim::state;
use courser_store::{
    Location, Log, Lsn, MemoryGauge, MessageRef, Messages, Position, Reader, Record, Recovered,
    ShardState, StoreError, Sync, Waiter,
};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// Done once, before something is appended.
type Call = Box<dyn FnOnce() + Send>;

/// A journal that calls somebody before it takes the next change.
pub struct Watched {
    journal: Arc<JournalStore>,
    before_append: Mutex<Option<Call>>,
}

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

impl Watched {
    pub fn new(journal: Arc<JournalStore>) -> Self {
        Watched { journal, before_append: Mutex::default() }
    }

    /// Has `call` called before the next change is appended.
    pub fn before_next_append(&self, call: impl FnOnce() + Send + 'static) {
        *self.before_append.lock().expect("nobody panics with it") = Some(Box::new(call));
    }
}

impl Log for Watched {
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        let call = self.before_append.lock().expect("nobody panics with it").take();
        call.into_iter().for_each(|call| call());
        self.journal.append(records, sync, locations)
    }

    fn durable(&self) -> Lsn {
        self.journal.durable()
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<(), StoreError> {
        let call = self.before_append.lock().expect("nobody panics with it").take();
        call.into_iter().for_each(|call| call());
        self.journal.settle(records, sync, positions)
    }

    fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        self.journal.when_durable(lsn, waiter);
    }

    fn end(&self) -> Lsn {
        self.journal.end()
    }

    fn failure(&self) -> Option<String> {
        self.journal.failure()
    }

    fn has_room(&self) -> bool {
        self.journal.has_room()
    }

    fn when_room(&self, waker: &Waker) {
        self.journal.when_room(waker);
    }
}

impl Messages for Watched {
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        self.journal.keep(messages, locations)
    }

    fn reader(&self) -> Box<dyn Reader> {
        self.journal.reader()
    }

    fn hold(&self, position: Position) {
        self.journal.hold(position);
    }

    fn release(&self, position: Position) {
        self.journal.release(position);
    }

    fn release_unlogged(&self, positions: &[Position]) {
        self.journal.release_unlogged(positions);
    }
}

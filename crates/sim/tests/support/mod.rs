//! A store at which a test can look while the broker uses it.

use courser_broker::Broker;
use courser_journal::testing::FakeDisk;
use courser_journal::{JournalStore, Lsn as JournalLsn, Options};
use courser_store::{
    Location, Lsn, MemoryGauge, MessageRef, Reader, Record, Recovered, Store, StoreError, Sync,
};
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
pub fn checkpoint_from(start: Lsn, store: &JournalStore, broker: &Broker) -> bool {
    let made = store.journal().checkpoint(
        JournalLsn(start.0),
        &mut |each| broker.for_each_live(start, &mut |position| each(JournalLsn(position))),
        &mut |out| broker.write_checkpoint(start, out),
    );
    made.is_ok()
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

impl Store for Watched {
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

    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        self.journal.keep(messages, locations)
    }

    fn durable(&self) -> Lsn {
        self.journal.durable()
    }

    fn when_durable(&self, lsn: Lsn, waker: &Waker) {
        self.journal.when_durable(lsn, waker);
    }

    fn reader(&self) -> Box<dyn Reader> {
        self.journal.reader()
    }

    fn hold(&self, position: u64) {
        self.journal.hold(position);
    }

    fn release(&self, position: u64) {
        self.journal.release(position);
    }

    fn release_unlogged(&self, positions: &[u64]) {
        self.journal.release_unlogged(positions);
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

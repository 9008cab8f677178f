//! A disk without room for anything.

use courser_journal::JournalStore;
use courser_journal::testing::FakeDisk;
use courser_store::{Log, Record, StoreError, Sync};

/// Takes all room that there is, the reserve for acknowledgements included: no change can be
/// appended until [`FakeDisk::set_capacity`] gives room or a checkpoint frees some.
///
/// Stops early when the disk fails.
pub fn use_up_all_room(disk: &FakeDisk, store: &JournalStore) {
    disk.set_capacity(disk.used_bytes());
    for size in [8000, 500, 100, 20, 0] {
        loop {
            let key = vec![0; size];
            match store.append(&[Record::Forgotten { key: &key }], Sync::Later, &mut Vec::new()) {
                Ok(_) => drop(store.journal().flush_once()),
                Err(StoreError::Full) => break,
                Err(_) => return,
            }
            store.journal().maintain_once();
        }
    }
}

//! The log's thread, which may sync between any two changes.

use super::{Running, World};
use courser_journal::JournalStore;
use courser_journal::testing::WatchedStore;
use std::sync::Arc;

impl World {
    /// Has the log synced in the middle of this step: when it has appended `appends` times and is about
    /// to do so again.
    pub(super) fn sync_after(&mut self, appends: u64) {
        let Running { store, watched, .. } = self.running();
        sync_before_next(watched, Arc::clone(store), appends);
    }
}

fn sync_before_next(watched: &Arc<WatchedStore>, store: Arc<JournalStore>, appends: u64) {
    let next = Arc::clone(watched);
    watched.before_next_append(move || match appends.checked_sub(1) {
        Some(rest) => sync_before_next(&next, store, rest),
        None => drop(store.journal().flush_once()),
    });
}

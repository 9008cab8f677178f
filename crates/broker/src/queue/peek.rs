//! Looking at what waits without a change to it.

use super::Queue;
use super::backlog::REDELIVERED;
use courser_store::{Location, MessageRef, Store, StoreError};

impl Queue {
    /// Calls `each` with the messages that wait behind `skip` others, `count` at most, and with
    /// whether they have been delivered before, until it has enough. Their places are taken under the
    /// lock; they are read without it, held in the meantime so that the store keeps them.
    pub(crate) fn peek(
        &self,
        skip: usize,
        count: usize,
        store: &dyn Store,
        each: &mut dyn FnMut(MessageRef<'_>, bool) -> bool,
    ) -> Result<(), StoreError> {
        let mut locations = {
            let state = self.state.lock();
            let locations = state.ready.first(skip, count);
            locations.iter().filter_map(Location::position).for_each(|at| store.hold(at));
            locations.into_iter()
        };
        let mut reader = store.reader();
        let (mut wants_more, mut read) = (true, Ok(()));
        for location in locations.by_ref() {
            if wants_more && read.is_ok() {
                let redelivered = location.marks() & REDELIVERED != 0;
                let message = match location.in_memory() {
                    Some(message) => Ok(message),
                    None => reader.read(&location),
                };
                match message {
                    Ok(message) => wants_more = each(message, redelivered),
                    // Whoever gets to it finds that out as well.
                    Err(StoreError::Lost(_)) => {}
                    Err(error) => read = Err(error),
                }
            }
            if let Some(position) = location.position() {
                store.release(position);
            }
        }
        read
    }
}

//! Reading a stream without a consumer, for operators.

use super::Stream;
use crate::outbox::Outbox;
use courser_store::{Location, MessageRef, Store, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

impl Stream {
    /// Calls `each` with the durable messages from `offset` on, until it has enough or there are no more
    /// for now. Returns the offset to go on from.
    pub fn read_from(
        &self,
        mut offset: u64,
        store: &dyn Store,
        each: &mut dyn FnMut(u64, &MessageRef<'_>) -> bool,
    ) -> Result<u64, StoreError> {
        let (mut places, mut reader) = (VecDeque::new(), store.reader());
        let durable = store.durable();
        loop {
            if places.is_empty() {
                offset = self.look_up(offset, &mut places);
            }
            let Some(place): Option<Location> = places.pop_front() else { return Ok(offset) };
            if !place.position().is_none_or(|position| position.is_before(durable)) {
                return Ok(offset);
            }
            if offset < self.first_offset() {
                // What was looked up has left in the meantime.
                places.clear();
                continue;
            }
            let message = match place.in_memory() {
                Some(message) => Ok(message),
                None => reader.read_while(&place, &|| offset >= self.first_offset()),
            };
            offset += 1;
            match message {
                Ok(message) if each(offset - 1, &message) => {}
                Ok(_) => return Ok(offset),
                // It must not stop those behind it.
                Err(StoreError::Lost(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Has `outbox` woken when there is something durable to read from `offset` on.
    pub fn wake_at(&self, offset: u64, reader: u64, outbox: &Arc<Outbox>, store: &dyn Store) {
        if self.sleep(reader, offset, outbox).is_some() {
            return;
        }
        let mut places = VecDeque::new();
        self.look_up(offset, &mut places);
        match places.front().and_then(Location::position) {
            Some(position) => {
                let waker = Waker::from(Arc::clone(outbox));
                store.when_durable(position.durable_at(), waker.into());
            }
            None => outbox.wake(),
        }
    }
}

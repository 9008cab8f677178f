//! Carrying a stream to another broker.

use super::Stream;
use courser_store::stream::StreamIndex;
use courser_store::{Location, MessageRef};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

impl Stream {
    /// Has a stream that is empty begin at an offset, as it does elsewhere.
    pub fn begin_at(&self, first_offset: u64) {
        let mut state = self.state.lock();
        state.index = StreamIndex::new(first_offset, state.settings.pages());
        self.first_offset.store(first_offset, Ordering::Release);
        self.next_offset.store(first_offset, Ordering::Release);
    }

    /// Takes in the next message, which the log has.
    pub fn take_in(&self, location: &Location, message: &MessageRef<'_>) {
        let mut state = self.state.lock();
        state.index.push(location, message.stored_len() as u64, message.published_ms);
        state.count_memory();
        self.next_offset.store(state.index.next_offset(), Ordering::Release);
    }

    /// The places of some messages from `offset` on, if there are any.
    pub fn places_from(&self, offset: u64) -> VecDeque<Location> {
        let mut places = VecDeque::new();
        self.look_up(offset, &mut places);
        places
    }
}

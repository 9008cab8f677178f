//! What channels and consumers use.

use super::{ChannelOut, OutboxState, Slot};
use crate::work;
use courser_codec::ShortString;

/// What a consumer uses here besides its slot, its tag not counted: it is found by that.
const CONSUMER_BYTES: usize = 96;
/// What a tag uses besides its bytes.
const TAG_BYTES: usize = 32;

impl ChannelOut {
    /// What an open channel uses here and in its session, with the address that it published to last.
    pub const NEW_BYTES: usize = 1280;

    /// What a consumer with this tag uses.
    pub fn consumer_bytes(tag: &ShortString) -> usize {
        size_of::<Option<Slot>>() + CONSUMER_BYTES + tag_bytes(tag)
    }

    /// Counts what it uses, after something has grown or shrunk.
    pub(super) fn count_memory(&mut self) {
        let slots = self.slots.capacity() * (size_of::<Option<Slot>>() + CONSUMER_BYTES);
        self.charge.set(Self::NEW_BYTES + slots + self.names_bytes);
        let waiting = self.starved.used_bytes();
        let tags = self.tag_places * size_of::<u64>();
        let deliveries = tags + self.times.used_bytes() + self.unacked.used_bytes();
        self.books_charge.set(waiting + deliveries);
    }

    /// Bytes that it and its consumers use.
    pub(super) fn held_bytes(&self) -> usize {
        self.charge.bytes()
    }
}

impl OutboxState {
    /// Whether its channels and their consumers use no more than this.
    pub(crate) fn holds_within(&mut self, bytes: usize) -> bool {
        let mut left = bytes;
        self.channels.iter_mut().all(|(_, channel)| {
            work::count(1);
            let held = channel.held_bytes();
            let fits = held <= left;
            left = left.saturating_sub(held);
            fits
        })
    }
}

pub(super) fn tag_bytes(tag: &ShortString) -> usize {
    tag.as_bytes().len() + TAG_BYTES
}

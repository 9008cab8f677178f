//! Messages that wait, by their places.

use crate::{Location, MessageRef, Position, StoreError};

/// Keeps messages that wait for a consumer or for an acknowledgement.
pub trait Messages: Send + Sync + 'static {
    /// Keeps `messages`, which need not survive a restart, in their order, and pushes one
    /// [`Location`] for each onto `locations`.
    ///
    /// # Errors
    /// Nothing is kept then.
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError>;

    /// Something to read messages with, one after the other.
    fn reader(&self) -> Box<dyn Reader>;

    /// One more queue holds the message at this position, which was kept for want of memory.
    fn hold(&self, position: Position);

    /// A queue is done with the messages at these positions; each queue that held one says so. Cheapest for those that
    /// follow each other in the log.
    fn release(&self, positions: &[Position]);

    /// As [`Messages::release`] for all of these, after an append that would have said so, and has
    /// failed for want of room: the store sees to it that what it holds becomes durable without them
    /// when there is room. Until then a crash brings them back.
    ///
    /// Called when their queues have them no more. Without positions, it is another change of what
    /// the broker holds that is in the same case.
    fn release_unlogged(&self, positions: &[Position]);
}

/// Reads messages from a store. Messages that lie behind each other are read cheapest in order.
pub trait Reader: Send + std::fmt::Debug {
    /// The message at `location`.
    ///
    /// # Errors
    /// When it can't be read: [`StoreError::Lost`] if others can.
    fn read<'a>(&'a mut self, location: &'a Location) -> Result<MessageRef<'a>, StoreError>;
}

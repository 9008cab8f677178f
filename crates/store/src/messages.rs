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

    /// Keeps one message as [`Messages::keep`] does, and gives its location.
    ///
    /// # Errors
    /// The message is not kept then.
    fn keep_one(&self, message: MessageRef<'_>) -> Result<Option<Location>, StoreError> {
        let mut kept = Vec::new();
        self.keep(&mut std::iter::once(message), &mut kept)?;
        Ok(kept.pop())
    }

    /// Keeps messages on the disk, if it ever does, while those in memory take so many bytes or more.
    fn spill_from(&self, bytes: u64);

    /// Something to read messages with, one after the other.
    fn reader(&self) -> Box<dyn Reader>;

    /// One more queue holds the message at this position, which was kept because memory was short.
    fn hold(&self, position: Position);

    /// A queue is done with the messages at these positions; each queue that held one says so. Cheapest for those that
    /// follow each other in the log.
    fn release(&self, positions: &[Position]);
}

/// Reads messages from a store. Messages that lie behind each other are read cheapest in order.
pub trait Reader: Send + std::fmt::Debug {
    /// The message at `location`.
    ///
    /// # Errors
    /// When it can't be read: [`StoreError::Lost`] if it never will be, [`StoreError::Unread`] if
    /// another try may succeed.
    fn read<'a>(&'a mut self, location: &'a Location) -> Result<MessageRef<'a>, StoreError> {
        self.read_while(location, &|| true)
    }

    /// The same for a message that others may let go of during the read. Where that has failed, `is_kept` says whether they have
    /// not: if they have, it is no trouble, and the error is [`StoreError::Lost`].
    ///
    /// # Errors
    /// As [`Reader::read`].
    fn read_while<'a>(
        &'a mut self,
        location: &'a Location,
        is_kept: &dyn Fn() -> bool,
    ) -> Result<MessageRef<'a>, StoreError>;

    /// Whether it reads the message at `location` without waiting for a disk.
    fn is_at_hand(&self, _location: &Location) -> bool {
        true
    }

    /// Bytes that it has read ahead, or keeps of the last message, until the next one is read or it goes.
    fn held_bytes(&self) -> usize {
        0
    }
}

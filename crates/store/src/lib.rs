//! Where waiting messages live, and what has to survive.
//!
//! A queue holds an index of 16-octet [`Location`]s; the octets of the messages are kept by a
//! [`Store`], as are the [`Record`]s of every change that has to survive a restart. This crate
//! defines that trait, the layout of records ([`record`]) and the in-memory store
//! ([`MemoryStore`]). It does not know what an exchange is: a queue is a number to it, a definition
//! a key and a value.

pub mod change;
pub mod chunk;
pub mod delayed;
pub mod gauge;
pub mod location;
pub mod memory;
pub mod record;
pub mod recovered;
pub mod stream;

pub use change::Record;
pub use gauge::MemoryGauge;
pub use location::Location;
pub use memory::MemoryStore;
pub use record::MessageRef;
pub use recovered::Recovered;

use std::task::Waker;

/// A position in the order of everything a store was asked to keep: the n-th octet ever appended.
///
/// A confirm hangs on one number: it may be sent when [`Store::durable`] has reached the LSN that
/// [`Store::append`] gave for the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// Why a store could not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// A message of more octets than a record can describe (4 GiB).
    #[error("a message of {0} octets is too large to be stored")]
    TooLarge(u64),
    /// There is no room on the disk for this, but what was kept before is safe.
    #[error("the disk of the broker's data folder is full")]
    Full,
    /// One message can't be read any more, because the disk has damaged it; all others can.
    #[error("a message is lost: {0}")]
    Lost(String),
    /// The store failed before and takes nothing more, because it can no longer promise to keep it.
    #[error("the store has failed: {0}")]
    Failed(String),
}

/// Whether somebody waits for a batch to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// A confirm or a reply hangs on it.
    Wanted,
    /// It is enough if it becomes durable with what comes later.
    Later,
}

/// Keeps messages that wait for a consumer or for an acknowledgement, and every change that has to
/// survive.
pub trait Store: Send + std::marker::Sync + 'static {
    /// Keeps `messages`, which need not survive a restart, in their order, and pushes one
    /// [`Location`] for each onto `locations`. On an error nothing is kept.
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError>;

    /// Appends a batch of changes that survive together or not at all, and pushes one [`Location`]
    /// for each [`Record::Message`] onto `locations`.
    ///
    /// Returns the LSN that [`Store::durable`] has to reach before the batch may be confirmed. On an
    /// error nothing is kept.
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError>;

    /// Everything up to here survives what this store promises to survive. Never goes back.
    fn durable(&self) -> Lsn;

    /// Wakes `waker` when [`Store::durable`] has reached `lsn`, or never will.
    fn when_durable(&self, lsn: Lsn, waker: &Waker);

    /// Something to read messages with, one after the other.
    fn reader(&self) -> Box<dyn Reader>;

    /// One more queue holds the message at this position, which was kept for want of memory.
    fn hold(&self, position: u64);

    /// A queue is done with the message at this position; one call for each queue that held it.
    fn release(&self, position: u64);

    /// As [`Store::release`] for all of these, after an append that would have said so, and has
    /// failed for want of room: the store sees to it that what it holds becomes durable without them
    /// when there is room. Until then a crash brings them back.
    ///
    /// Called when their queues have them no more. Without positions, it is another change of what
    /// the broker holds that is in the same case.
    fn release_unlogged(&self, positions: &[u64]);

    /// Appends records that say that messages are done with, and lets go of these, which are at
    /// `positions`. Done even without room, as [`Store::release_unlogged`] does it. Called when
    /// their queues have them no more.
    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[u64],
    ) -> Result<(), StoreError> {
        match self.append(records, sync, &mut Vec::new()) {
            Ok(_) => positions.iter().for_each(|position| self.release(*position)),
            Err(StoreError::Full) => self.release_unlogged(positions),
            Err(failed) => return Err(failed),
        }
        Ok(())
    }

    /// The end of everything appended so far.
    fn end(&self) -> Lsn;

    /// Why the store takes nothing more, once it has failed.
    fn failure(&self) -> Option<String>;

    /// Whether there is room for more messages; acknowledgements are taken even without.
    fn has_room(&self) -> bool;

    /// Wakes `waker` when [`Store::has_room`] again, or never will have.
    fn when_room(&self, waker: &Waker);
}

/// Reads messages from a store. Messages that lie behind each other are read cheapest in order.
pub trait Reader: Send + std::fmt::Debug {
    /// The message at `location`.
    fn read<'a>(&'a mut self, location: &'a Location) -> Result<MessageRef<'a>, StoreError>;
}

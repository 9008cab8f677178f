//! Where waiting messages live.
//!
//! A queue holds an index of 16-octet [`Location`]s; the octets of the messages are kept by a
//! [`Store`]. This crate defines that trait, the layout of a message record ([`record`]) and the
//! in-memory store ([`MemoryStore`]). It does not know what an exchange or a queue is.

pub mod chunk;
pub mod gauge;
pub mod memory;
pub mod record;

pub use chunk::Location;
pub use gauge::MemoryGauge;
pub use memory::MemoryStore;
pub use record::MessageRef;

/// A position in the order of everything a store was asked to keep: the n-th octet ever appended.
///
/// A confirm hangs on one number: it may be sent when [`Store::durable`] has reached the LSN that
/// [`Store::append`] gave for the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A message of more octets than a record can describe (4 GiB).
    #[error("a message of {0} octets is too large to be stored")]
    TooLarge(u64),
    /// The store failed before and takes nothing more, because it can no longer promise to keep it.
    #[error("the store has failed: {0}")]
    Failed(String),
}

/// Keeps messages that wait for a consumer or for an acknowledgement.
pub trait Store: Send + Sync + 'static {
    /// Keeps `messages` in their order and pushes one [`Location`] for each onto `locations`.
    ///
    /// Returns the LSN that [`Store::durable`] has to reach before any of them may be confirmed.
    /// On an error nothing was pushed and nothing is kept.
    fn append(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError>;

    /// Everything up to here survives what this store promises to survive. Never goes back.
    fn durable(&self) -> Lsn;

    /// The message at `location`, which stays readable while the location exists.
    fn read<'a>(&self, location: &'a Location) -> Result<MessageRef<'a>, StoreError>;
}

//! A journal that is one copy of a replicated log.
//!
//! The log of a group of machines is the journal itself: all copies have the same bytes at the same
//! positions. Consensus is made elsewhere: it says who leads, what an entry's term and index are, what
//! is committed, and what of a copy's tail has to go. This module keeps entries and votes.
//!
//! ```text
//! leader    Journal::append ─► gathered frames ─► Replica::place(id) ─► Entry ─► followers
//!                                                      │
//! follower  Replica::append(entries) ──────────────────┤
//!                                                      ▼
//!                    log buffer ─► log thread: pwrite, fdatasync ─► Events::synced(ticket)
//!
//! both      Replica::commit(index) ─► Journal::durable()       Replica::read(from, to) ─► entries
//! ```
//!
//! An *entry* is what was gathered since the last one: whole frames of the journal, and a closing frame
//! that names its index and term. Positions are the leader's choice; which segment an entry goes to
//! follows from its length alone, so every copy switches where the leader has switched. Each copy says
//! in the closing frames it writes how much of its own log was synced, which are the only bytes in
//! which copies differ: with them a start tells a torn tail from damage.
//!
//! *Durable*, on a copy, means committed: [`Journal::durable`](crate::Journal::durable) follows
//! [`Replica::commit`]. Segments are freed, and checkpoints made, of committed changes only. The tail
//! behind them may be cut, by [`Replica::cut`], and by nothing else. What is damaged of committed
//! entries is [written again](Replica::mend) from another copy. What is wrong with a copy besides is not repaired in place: it says that it
//! [must be rebuilt](ReplicaError::MustBeRebuilt), from a [`Bootstrap`] of another one.

mod adopt;
mod append;
mod applied;
mod aside;
mod bootstrap;
mod checkpointed;
mod chunk;
mod closed;
mod commit;
mod copy;
mod cut;
mod entries;
mod entry;
mod error;
mod install;
mod lead;
mod mend;
mod open;
mod outdated;
mod pages;
mod parts;
mod proofs;
mod read;
mod recover;
mod sent_segment;
mod shared;
mod state;

pub use adopt::{Adoption, is_copy};
pub use append::Room;
pub use bootstrap::Bootstrap;
pub use checkpointed::Checkpointed;
pub use chunk::Chunk;
pub use closed::Contents;
pub use copy::Replica;
pub use entry::{BadEntry, Entry, EntryId, EntryKind, NOTE_BYTES_MAX};
pub use error::{
    AdoptError, AppendEntryError, BootstrapError, CutError, PlaceError, ReadEntryError,
    ReplicaError,
};
pub use install::Installer;
pub use mend::{MendError, Piece};
pub use state::{MEMBERS_BYTES_MAX, Vote};

pub(crate) use applied::Applied;
pub(crate) use aside::Aside;
pub(crate) use closed::ClosedCopy;
pub(crate) use entry::{Base, RESERVED_LEN};
pub(crate) use lead::{Begun, Lead};
pub(crate) use recover::Copy as FoundCopy;
pub(crate) use shared::Shared;

use crate::Failure;

/// What all copies of a log have in common, drawn and settled once, when the group is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number of the group, which is the number of each of its journals.
    pub group: u64,
    /// Size of a usual segment.
    pub segment_bytes: u64,
}

/// Is told what happens in a copy. Calls come from the log thread, or from a thread that does its work,
/// and from threads that append: they are short, and don't call the [`Replica`].
pub trait Events: Send + Sync + 'static {
    /// Everything up to this ticket of [`Replica::written`] is on the disk.
    fn synced(&self, ticket: u64);

    /// Something was appended that waits for [`Replica::place`]. Said once; again after a `place` that
    /// has left nothing.
    fn gathered(&self);

    /// An answer waits for [`Replica::begin_proof`], and for what comes of it. Said once for each round.
    fn proof_wanted(&self);

    /// [`Replica::room_for`] has a new answer.
    fn room(&self);

    /// Entries that [`Replica::fetch`] was asked for were read.
    fn fetched(&self);

    /// The copy takes nothing any more.
    fn failed(&self, failure: &Failure);

    /// This leader's broker has made more changes than can be gathered: the lead has to end, so that the next one begins
    /// with what the log has. Nothing more is appended in this term.
    fn overrun(&self);
}

/// Hears nothing.
impl Events for () {
    fn synced(&self, _ticket: u64) {}
    fn gathered(&self) {}
    fn proof_wanted(&self) {}
    fn room(&self) {}
    fn fetched(&self) {}
    fn failed(&self, _failure: &Failure) {}
    fn overrun(&self) {}
}

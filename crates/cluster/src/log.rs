//! What a group needs from the log that holds its entries.

use crate::{Entry, EntryId, EntryKind};
use bytes::Bytes;
use courser_store::Lsn;

/// A node's copy of a group's log.
///
/// Everything up to [`ReplicaLog::last`] is on the disk when it is opened. What is committed never goes; what is not
/// may be cut off by [`ReplicaLog::append`].
pub trait ReplicaLog: 'static {
    /// Records that survive together. The default has none; with it, [`ReplicaLog::place`] places what has gathered in
    /// the log itself, if it gathers anything.
    type Batch: Default;

    /// What [`ReplicaLog::save_vote`] saved last.
    fn vote(&self) -> Vote;

    /// Has this saved instead. As an entry, it gets a ticket, see [`ReplicaLog::written`]: when that is synced it is on the disk.
    ///
    /// # Errors
    /// When the log has failed.
    fn save_vote(&mut self, vote: &Vote) -> Result<(), LogError>;

    /// The entry before the first one that can be read: [`EntryId::default`] in a log that has all.
    fn before_first(&self) -> EntryId;

    /// The last entry.
    fn last(&self) -> EntryId;

    /// The term of the entry at `index`, from [`ReplicaLog::before_first`] to [`ReplicaLog::last`].
    fn term(&self, index: u64) -> Option<u64>;

    /// Where the entry at `index` ends in the journal.
    fn end_of(&self, index: u64) -> Option<Lsn>;

    /// Whether this is a whole frame that says of itself what the entry says of it. Asked of what comes from others,
    /// before anything else is done with it.
    fn is_valid(&self, entry: &Entry) -> bool;

    /// Whether [`ReplicaLog::append`] finds room for these entries. Asked before it is promised to keep them; waits for
    /// no disk.
    fn room_for(&self, _entries: &[Entry]) -> Room {
        Room::Ready
    }

    /// Whether [`ReplicaLog::place_bare`] finds room. Asked before the engine makes an entry, which it takes back no more.
    fn has_room_for_bare(&self) -> bool {
        true
    }

    /// Has appends to what gathers wait, or go on: what has gathered can be placed to the last meanwhile. Nothing
    /// to be done where nothing gathers.
    fn pause(&mut self, _paused: bool) {}

    /// The greatest index that the log itself knows to be committed: at least what was known when its last entry was
    /// written. Asked once, after opening.
    ///
    /// That much is needed, for who has one change of members in its log has to know that the change before is committed:
    /// it would ask the wrong nodes for their votes.
    fn committed_hint(&self) -> u64;

    /// All entries of kind [`EntryKind::Members`] behind `index`. Asked once, after opening.
    ///
    /// # Errors
    /// When the log can't be read.
    fn members_after(&self, index: u64) -> Result<Vec<Entry>, LogError>;

    /// Entries from `from` on, before `to`, of at most `bytes_max` bytes together, but at least one. Those that are not
    /// written yet too. Waits for no disk: none if they have to be read first. The owner of the log calls
    /// [`Group::fetched`](crate::Group::fetched) when they are.
    ///
    /// # Errors
    /// When they can't be read.
    fn fetch(&self, from: u64, to: u64, bytes_max: u64) -> Result<Option<Vec<Entry>>, LogError>;

    /// A tick has passed. Nothing to be done where [`ReplicaLog::fetch`] keeps nothing.
    fn tick(&self) {}

    /// What an entry of kind [`EntryKind::Members`] was placed with.
    fn payload(&self, entry: &Entry) -> Bytes;

    /// The leader's way: chooses where `batch` goes and puts it there, behind [`ReplicaLog::last`], as `id`. None if there
    /// is nothing in it.
    ///
    /// # Errors
    /// Nothing is placed then.
    fn place(&mut self, id: EntryId, batch: &mut Self::Batch)
    -> Result<Option<Placed>, PlaceError>;

    /// The same for what the engine makes itself, when nothing has gathered any more. Finds room where batches find none.
    ///
    /// # Errors
    /// Nothing is placed then.
    fn place_bare(
        &mut self,
        id: EntryId,
        kind: EntryKind,
        payload: &[u8],
    ) -> Result<Placed, PlaceError>;

    /// The follower's way: puts frames where their leader has them. Entries that are there already stay; from the
    /// first on that contradicts what is there, the rest of the log is cut off before.
    ///
    /// # Errors
    /// When that would cut something committed, or fails. The log has failed then.
    fn append(&mut self, entries: &[Entry]) -> Result<(), LogError>;

    /// A ticket for everything that was placed, appended, cut or saved so far. Tickets never go back, also not when the log is
    /// cut.
    fn written(&self) -> u64;

    /// Everything up to this ticket is on the disk.
    fn synced(&self) -> u64;

    /// Wants everything to be written and synced before long. The owner of the log calls
    /// [`Group::synced`](crate::Group::synced) when that has happened.
    fn ask_sync(&mut self);

    /// Everything up to the entry at `index` is committed: it is durable, and is never cut off.
    ///
    /// # Errors
    /// When the log can't say where that is. It has failed then.
    fn commit(&mut self, index: u64) -> Result<(), LogError>;

    /// Everything up to the entry at `index` was applied: the engine does not read it again, and changes of members in it are
    /// saved. Said first after opening. What is behind it has to be found by another opening too.
    fn applied(&mut self, _index: u64) {}

    /// This node serves in `term` from now on: batches may come.
    fn lead(&mut self, term: u64);

    /// Begins a round in which the others are asked whether they still follow this node, if an answer waits for one. Returns
    /// the number of the round, by which [`ReplicaLog::proven`] knows it. None under a log that nothing is read from.
    fn begin_proof(&mut self) -> Option<u64> {
        None
    }

    /// A majority has followed this node after this round had begun.
    fn proven(&mut self, _round: u64) {}

    /// This node does not serve any more. What was not placed is gone, and who waits for something to be durable is
    /// told that it will not be. Called before anything of another leader is appended.
    fn follow(&mut self);
}

/// Whether there is room for entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is.
    Ready,
    /// It is being made: the owner of the log calls [`Group::room`](crate::Group::room) when it is.
    Coming,
    /// There is none.
    Full,
}

/// What a node has promised, and who takes part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// The newest term that it knows.
    pub term: u64,
    /// The node that it has voted for in that term; 0 if for none.
    pub voted_for: u64,
    /// The members: [`Members::encode`](crate::Members::encode).
    pub members: Vec<u8>,
    /// The entry that has made them so; 0 for those that the group was made with.
    pub members_index: u64,
}

/// Where something was placed.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Its frame.
    pub frame: Bytes,
    /// Where the frame begins.
    pub start: Lsn,
    /// Where it ends: it is committed when [`durable`](courser_store::Log::durable) has reached this.
    pub end: Lsn,
}

/// Why a log can't go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LogError(pub String);

/// Why something was not placed.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// There is no room.
    #[error("the log is full")]
    Full,
    /// The log has failed.
    #[error(transparent)]
    Failed(#[from] LogError),
}

//! A copy of a shard's journal as the log of a group.
//!
//! Batches do not come through here: the leader's broker appends them to [`JournalLog::serving`], which gives out positions at
//! once, and [`Group::propose`](crate::Group::propose) makes an entry of what has gathered.

use crate::{Entry, EntryId, EntryKind, LogError, PlaceError, Placed, ReplicaLog, Room, Vote};
use bytes::Bytes;
use courser_journal::replica::Replica;
use courser_journal::{Journal, replica};
use courser_store::Lsn;
use std::sync::Arc;

/// A journal that is one copy of a group's log.
pub struct JournalLog {
    replica: Arc<Replica>,
    serving: Option<Arc<Journal>>,
}

impl JournalLog {
    /// The log in an open copy.
    pub fn new(replica: impl Into<Arc<Replica>>) -> Self {
        JournalLog { replica: replica.into(), serving: None }
    }

    /// The copy.
    pub fn replica(&self) -> &Arc<Replica> {
        &self.replica
    }

    /// Where batches are appended, while this node serves.
    pub fn serving(&self) -> Option<&Arc<Journal>> {
        self.serving.as_ref()
    }
}

impl ReplicaLog for JournalLog {
    /// What was appended to [`JournalLog::serving`] since the last one.
    type Batch = ();

    fn vote(&self) -> Vote {
        let replica::Vote { term, voted_for, members, members_index } = self.replica.vote();
        Vote { term, voted_for, members, members_index }
    }

    fn save_vote(&mut self, vote: &Vote) -> Result<(), LogError> {
        let Vote { term, voted_for, members, members_index } = vote.clone();
        let vote = replica::Vote { term, voted_for, members, members_index };
        self.replica.queue_vote(&vote);
        self.replica.failed().map_or(Ok(()), |failure| Err(failed(failure)))
    }

    fn before_first(&self) -> EntryId {
        id_from(self.replica.first())
    }

    fn last(&self) -> EntryId {
        id_from(self.replica.last())
    }

    fn term(&self, index: u64) -> Option<u64> {
        self.replica.term(index)
    }

    fn end_of(&self, index: u64) -> Option<Lsn> {
        self.replica.end_of(index).ok()
    }

    fn is_valid(&self, entry: &Entry) -> bool {
        let group = self.replica.identity().group;
        let found = replica::Entry::parse(entry.frame.clone(), group);
        found.is_ok_and(|found| found == entry_into(entry))
    }

    fn committed_hint(&self) -> u64 {
        self.replica.committed_hint()
    }

    fn members_after(&self, index: u64) -> Result<Vec<Entry>, LogError> {
        let mut found = Vec::new();
        for noted in self.replica.notes_after(index) {
            let read = self.replica.read(noted, noted + 1, u64::MAX).map_err(failed)?;
            found.extend(read.into_iter().map(entry_from));
        }
        found.retain(|entry| entry.kind == EntryKind::Members);
        Ok(found)
    }

    fn fetch(&self, from: u64, to: u64, bytes_max: u64) -> Result<Option<Vec<Entry>>, LogError> {
        let fetched = self.replica.fetch(from, to, bytes_max).map_err(failed)?;
        Ok(fetched.map(|entries| entries.into_iter().map(entry_from).collect()))
    }

    fn tick(&self) {
        self.replica.tick();
    }

    fn payload(&self, entry: &Entry) -> Bytes {
        Bytes::copy_from_slice(entry_into(entry).note())
    }

    fn room_for(&self, entries: &[Entry]) -> Room {
        let entries: Vec<_> = entries.iter().map(entry_into).collect();
        match self.replica.room_for(&entries) {
            replica::Room::Ready => Room::Ready,
            replica::Room::Coming => Room::Coming,
            replica::Room::Full => Room::Full,
        }
    }

    fn has_room_for_bare(&self) -> bool {
        self.replica.has_room_for_note()
    }

    fn pause(&mut self, paused: bool) {
        self.replica.pause(paused);
    }

    fn place(&mut self, id: EntryId, _batch: &mut ()) -> Result<Option<Placed>, PlaceError> {
        let placed = self.replica.place(id_into(id)).map_err(place_error)?;
        Ok(placed.map(placed_from))
    }

    fn place_bare(
        &mut self,
        id: EntryId,
        kind: EntryKind,
        payload: &[u8],
    ) -> Result<Placed, PlaceError> {
        let placed = self.replica.place_note(id_into(id), kind_into(kind), payload);
        placed.map(placed_from).map_err(place_error)
    }

    fn append(&mut self, entries: &[Entry]) -> Result<(), LogError> {
        let entries: Vec<_> = entries.iter().map(entry_into).collect();
        // The group has asked `is_valid` of each.
        self.replica.append_checked(&entries).map_err(failed)
    }

    fn written(&self) -> u64 {
        self.replica.written()
    }

    fn synced(&self) -> u64 {
        self.replica.synced()
    }

    fn ask_sync(&mut self) {
        // Every entry wants to be synced.
    }

    fn commit(&mut self, index: u64) -> Result<(), LogError> {
        self.replica.commit(index).map_err(failed)
    }

    fn applied(&mut self, index: u64) {
        self.replica.applied(index);
    }

    fn lead(&mut self, term: u64) {
        self.serving = Some(Arc::new(self.replica.lead(term)));
    }

    fn begin_proof(&mut self) -> Option<u64> {
        self.replica.begin_proof()
    }

    fn proven(&mut self, round: u64) {
        self.replica.proven(round);
    }

    fn follow(&mut self) {
        self.serving = None;
        self.replica.follow();
    }
}

fn failed(error: impl std::fmt::Display) -> LogError {
    LogError(error.to_string())
}

fn place_error(error: replica::PlaceError) -> PlaceError {
    match error {
        replica::PlaceError::Full => PlaceError::Full,
        other => PlaceError::Failed(failed(other)),
    }
}

fn placed_from(entry: replica::Entry) -> Placed {
    Placed { start: entry.start(), end: entry.end(), frame: entry.frame }
}

fn id_from(id: replica::EntryId) -> EntryId {
    EntryId { term: id.term, index: id.index }
}

fn id_into(id: EntryId) -> replica::EntryId {
    replica::EntryId { term: id.term, index: id.index }
}

fn kind_into(kind: EntryKind) -> replica::EntryKind {
    match kind {
        EntryKind::Batch => replica::EntryKind::Batch,
        EntryKind::Start => replica::EntryKind::Start,
        EntryKind::Members => replica::EntryKind::Members,
    }
}

fn entry_from(entry: replica::Entry) -> Entry {
    let kind = match entry.kind {
        replica::EntryKind::Batch => EntryKind::Batch,
        replica::EntryKind::Start => EntryKind::Start,
        replica::EntryKind::Members => EntryKind::Members,
    };
    Entry { id: id_from(entry.id), kind, frame: entry.frame }
}

fn entry_into(entry: &Entry) -> replica::Entry {
    let kind = kind_into(entry.kind);
    replica::Entry { id: id_into(entry.id), kind, frame: entry.frame.clone() }
}

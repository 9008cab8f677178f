//! A [`ReplicaLog`] as the engine's storage.

use crate::{Entry, EntryKind, Members, ReplicaLog};
use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry as EngineEntry, EntryType, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// Marks entries whose data is a frame, and not what the engine has put there.
const FRAMED: &[u8] = b"f";

/// A log, with what the engine wants to know besides.
pub(crate) struct LogStorage<L> {
    pub log: L,
    /// The last entry that the engine has given out: a proposal is in the log before it knows of it.
    pub last: u64,
    /// Where to begin: term, vote, commit.
    pub begin: HardState,
    /// The members to begin with.
    pub members: Members,
    /// The entries that change members and are not in force yet, and what they were placed with.
    pub changes: BTreeMap<u64, Bytes>,
    /// Bytes of entries that may still be read for followers before the next tick.
    pub read_left: Cell<u64>,
    /// The entry that could not be read last, and for how many ticks it is not tried again: other nodes are asked for it
    /// meanwhile.
    pub unread: Cell<(u64, u32)>,
    /// Entries that followers lack and that are being read.
    pub awaited: RefCell<BTreeSet<u64>>,
    /// Those whose next entries are gone here.
    pub lacking: RefCell<BTreeSet<u64>>,
}

/// Ticks until an entry that can't be read is tried again.
const UNREAD_TICKS: u32 = 20;

impl<L: ReplicaLog> LogStorage<L> {
    /// A tick has passed.
    pub fn tick(&self, read_bytes: u64) {
        self.log.tick();
        self.read_left.set(read_bytes);
        let (index, ticks) = self.unread.get();
        self.unread.set((index, ticks.saturating_sub(1)));
    }

    /// Whether this is the entry that can't be read just now.
    fn rests(&self, index: u64) -> bool {
        let (unread, ticks) = self.unread.get();
        unread == index && ticks > 0
    }

    /// Entries without their frames.
    fn names(&self, low: u64, high: u64) -> raft::Result<Vec<EngineEntry>> {
        let name = |index| {
            let term = self.term(index)?;
            let is_change = self.changes.contains_key(&index);
            let kind =
                if is_change { EntryType::EntryConfChangeV2 } else { EntryType::EntryNormal };
            Ok(EngineEntry { term, index, entry_type: kind, ..EngineEntry::default() })
        };
        (low..high).map(name).collect()
    }
}

impl<L: ReplicaLog> Storage for LogStorage<L> {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let conf_state: ConfState = self.members.to_engine();
        Ok(RaftState { hard_state: self.begin.clone(), conf_state })
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<EngineEntry>> {
        if low <= self.log.before_first().index {
            return Err(StorageError::Compacted.into());
        }
        if high > self.last + 1 {
            return Err(StorageError::Unavailable.into());
        }
        if !context.can_async() {
            // Not for a follower: the engine looks for changes of members, or for what is committed.
            return self.names(low, high);
        }
        let left = self.read_left.get();
        if left == 0 || self.rests(low) {
            // The follower gets them after its next answer.
            return Err(StorageError::LogTemporarilyUnavailable.into());
        }
        let bytes_max = max_size.into().unwrap_or(u64::MAX).min(left);
        let fetched = self.log.fetch(low, high, bytes_max).map_err(|error| {
            // A checkpoint may have let go of it meanwhile.
            if low <= self.log.before_first().index {
                return StorageError::Compacted;
            }
            // What is not committed others may have otherwise, and are not asked for.
            if low > self.log.committed_hint() {
                return StorageError::Other(error.into());
            }
            if self.unread.replace((low, UNREAD_TICKS)).0 != low {
                tracing::warn!(%error, "a follower waits for an entry that can't be read here");
            }
            StorageError::LogTemporarilyUnavailable
        })?;
        let Some(read) = fetched else {
            self.awaited.borrow_mut().insert(low);
            return Err(StorageError::LogTemporarilyUnavailable.into());
        };
        let bytes: usize = read.iter().map(|entry| entry.frame.len()).sum();
        self.read_left.set(left.saturating_sub(bytes as u64));
        Ok(read.iter().map(to_engine).collect())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index < self.log.before_first().index {
            return Err(StorageError::Compacted.into());
        }
        Ok(self.log.term(index).ok_or(StorageError::Unavailable)?)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.log.before_first().index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last)
    }

    fn snapshot(&self, _request_index: u64, to: u64) -> raft::Result<Snapshot> {
        // A node that needs entries that are gone has to begin with a copy, which does not go through the engine.
        self.lacking.borrow_mut().insert(to);
        Err(StorageError::SnapshotTemporarilyUnavailable.into())
    }
}

/// The engine's word for an entry.
pub(crate) fn to_engine(entry: &Entry) -> EngineEntry {
    let entry_type = match entry.kind {
        EntryKind::Batch | EntryKind::Start => EntryType::EntryNormal,
        EntryKind::Members => EntryType::EntryConfChangeV2,
    };
    // The engine keeps this apart from a batch nowhere, but who reads a log does.
    let context = if entry.kind == EntryKind::Start { &b"s"[..] } else { FRAMED };
    EngineEntry {
        entry_type,
        term: entry.id.term,
        index: entry.id.index,
        data: entry.frame.clone(),
        context: Bytes::from_static(context),
        ..EngineEntry::default()
    }
}

/// The entry that the engine means, if it has its frame; none if the engine has made it.
pub(crate) fn from_engine(entry: &EngineEntry) -> Option<Entry> {
    let kind = match (entry.entry_type, &entry.context[..]) {
        (_, b"") => return None,
        (EntryType::EntryNormal, b"s") => EntryKind::Start,
        (EntryType::EntryNormal, _) => EntryKind::Batch,
        (EntryType::EntryConfChange | EntryType::EntryConfChangeV2, _) => EntryKind::Members,
    };
    let id = crate::EntryId { term: entry.term, index: entry.index };
    Some(Entry { id, kind, frame: entry.data.clone() })
}

/// The kind of an entry that the engine has made.
pub(crate) fn kind_of_made(entry: &EngineEntry) -> EntryKind {
    match entry.entry_type {
        EntryType::EntryNormal => EntryKind::Start,
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => EntryKind::Members,
    }
}

//! The file with what a copy must never forget and the log does not say: the vote, and a cut that was
//! begun.
//!
//! Two copies of one state, each in a page of its own, which are written and synced one after the
//! other. So one of them is always whole; and where one is not what was written, or can't be read, the
//! other one says the same, or what was true before a write that has never been reported as done.
//!
//! ```text
//!   0  8  "courserR"
//!   8  4  format version
//!  12  4  sum of the whole page, with zeros in the place of the sum
//!  16  8  how many states there were before this one
//!  24  8  number of the group
//!  32  8  size of a usual segment
//!  40  8  term            48  8  voted for          56  8  index of the members
//!  64  8  commit          72  8  synced: the log was synced up to here
//!  80  8  where a cut is being made, or zero
//!  88  4  1 once the log has begun, 2 if it was closed by intention
//!  92  4  bytes of the members
//!  96     members
//! ```

use super::Identity;
use crate::{
    Disk, DiskFile, Lsn, OpenMode,
    disk::{read_up_to, write_all},
    format::{VERSION, u32_at, u64_at},
    names,
};
use std::{io, path::Path, sync::Arc};

/// Bytes of [`Vote::members`], at most.
pub const MEMBERS_BYTES_MAX: usize = 7 << 10;

const MAGIC: &[u8; 8] = b"courserR";
const PAGE_LEN: usize = 8 << 10;
const MEMBERS_AT: usize = 96;
const BEGUN: u32 = 1;
const CLEAN: u32 = 2;

/// What consensus must not forget. Synced when [`Replica::save_vote`](super::Replica::save_vote)
/// returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// The latest term that was heard of.
    pub term: u64,
    /// The node that got the vote in it; 0 is none.
    pub voted_for: u64,
    /// Who the members are, in the words of consensus; at most [`MEMBERS_BYTES_MAX`].
    pub members: Vec<u8>,
    /// The entry that has made them members.
    pub members_index: u64,
}

/// All that is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub identity: Identity,
    pub vote: Vote,
    /// An index that was committed.
    pub commit: u64,
    /// The log was synced up to here, and was not cut before.
    pub synced: Lsn,
    /// A cut that was begun: nothing from here on is part of the log.
    pub cut: Option<Lsn>,
    /// There is a log.
    pub begun: bool,
    /// It was closed by intention.
    pub clean: bool,
}

impl State {
    pub fn new(identity: Identity, vote: Vote) -> Self {
        State { identity, vote, commit: 0, synced: Lsn(0), cut: None, begun: false, clean: false }
    }

    fn encode(&self, number: u64) -> Vec<u8> {
        let mut page = vec![0; PAGE_LEN];
        let members = &self.vote.members;
        page[..8].copy_from_slice(MAGIC);
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let numbers = [
            number,
            self.identity.group,
            self.identity.segment_bytes,
            self.vote.term,
            self.vote.voted_for,
            self.vote.members_index,
            self.commit,
            self.synced.0,
            self.cut.map_or(0, |cut| cut.0),
        ];
        for (index, number) in numbers.into_iter().enumerate() {
            page[16 + 8 * index..][..8].copy_from_slice(&number.to_le_bytes());
        }
        let flags = if self.begun { BEGUN } else { 0 } | if self.clean { CLEAN } else { 0 };
        page[88..92].copy_from_slice(&flags.to_le_bytes());
        page[92..96].copy_from_slice(&(members.len() as u32).to_le_bytes());
        page[MEMBERS_AT..MEMBERS_AT + members.len()].copy_from_slice(members);
        let sum = crc32c::crc32c(&page);
        page[12..16].copy_from_slice(&sum.to_le_bytes());
        page
    }

    /// Reads a page: its number and the state; none if it is not what was written.
    fn decode(page: &[u8]) -> Result<Option<(u64, Self)>, u32> {
        let sum = crc32c::crc32c_append(crc32c::crc32c(&page[..12]), &[0; 4]);
        let sum = crc32c::crc32c_append(sum, &page[16..]);
        if &page[..8] != MAGIC || sum != u32_at(page, 12) {
            return Ok(None);
        }
        let version = u32_at(page, 8);
        if version != VERSION {
            return Err(version);
        }
        let number = |index: usize| u64_at(page, 16 + 8 * index);
        let flags = u32_at(page, 88);
        let members = page[MEMBERS_AT..].get(..u32_at(page, 92) as usize);
        let state = members.map(|members| State {
            identity: Identity { group: number(1), segment_bytes: number(2) },
            vote: Vote {
                term: number(3),
                voted_for: number(4),
                members: members.to_vec(),
                members_index: number(5),
            },
            commit: number(6),
            synced: Lsn(number(7)),
            cut: Some(Lsn(number(8))).filter(|cut| cut.0 > 0),
            begun: flags & BEGUN != 0,
            clean: flags & CLEAN != 0,
        });
        Ok(state.map(|state| (number(0), state)))
    }
}

/// The open file.
pub struct StateFile {
    file: Arc<dyn DiskFile>,
    number: u64,
    pub state: State,
}

/// What is wrong with the file.
#[derive(Debug)]
pub enum StateError {
    /// There is none.
    Missing,
    /// Neither of the two copies is what was written.
    Lost,
    /// It is of another format version.
    Version(u32),
    Io(io::Error),
}

impl StateFile {
    /// Makes the file, durably: it is there as a whole or not at all.
    pub fn create(disk: &dyn Disk, dir: &Path, state: &State) -> io::Result<()> {
        let being_written = dir.join(names::REPLICA_BEING_WRITTEN);
        let file = disk.open(&being_written, OpenMode::Create)?;
        let page = state.encode(1);
        write_all(&*file, &page, 0)?;
        write_all(&*file, &page, PAGE_LEN as u64)?;
        file.sync_data()?;
        disk.rename(&being_written, &dir.join(names::REPLICA))?;
        disk.sync_dir(dir)
    }

    /// Reads what was written last, and makes both copies say it.
    pub fn open(disk: &dyn Disk, dir: &Path) -> Result<Self, StateError> {
        let file = open_file(disk, dir, OpenMode::Write)?;
        let (number, state) = read_newest(&*file)?;
        let mut opened = StateFile { file, number, state: state.clone() };
        // What was read may be in the kernel's memory only, and one copy may be torn.
        opened.write(state).map_err(StateError::Io)?;
        Ok(opened)
    }

    /// Reads what was written last, and changes nothing.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<State, StateError> {
        Ok(read_newest(&*open_file(disk, dir, OpenMode::Read)?)?.1)
    }

    /// Makes `state` durable.
    pub fn write(&mut self, state: State) -> io::Result<()> {
        let page = state.encode(self.number + 1);
        for slot in 0..2 {
            write_all(&*self.file, &page, slot * PAGE_LEN as u64)?;
            self.file.sync_data()?;
        }
        self.number += 1;
        self.state = state;
        Ok(())
    }
}

fn open_file(disk: &dyn Disk, dir: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, StateError> {
    disk.open(&dir.join(names::REPLICA), mode).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StateError::Missing,
        _ => StateError::Io(error),
    })
}

fn read_newest(file: &dyn DiskFile) -> Result<(u64, State), StateError> {
    let mut newest: Option<(u64, State)> = None;
    let mut unread = None;
    for slot in 0..2 {
        let mut page = vec![0; PAGE_LEN];
        match read_up_to(file, &mut page, slot * PAGE_LEN as u64) {
            Ok(PAGE_LEN) => {}
            Ok(_) => continue,
            // It counts as one that is not what was written.
            Err(error) => {
                unread = Some(error);
                continue;
            }
        }
        let Some(found) = State::decode(&page).map_err(StateError::Version)? else { continue };
        if newest.as_ref().is_none_or(|(number, _)| *number < found.0) {
            newest = Some(found);
        }
    }
    newest.ok_or_else(|| unread.map_or(StateError::Lost, StateError::Io))
}

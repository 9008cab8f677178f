//! Records that this copy can't read, and other copies may have.
//!
//! All copies have the same bytes at the same positions, as far as they are committed. So a record that the disk has changed
//! is asked for elsewhere, and written again in its place. Only when no copy has it is it lost.

use super::Replica;
use crate::{
    Journal, Lsn, OpenMode, ReadCache, ReadError,
    core::Core,
    disk::write_all,
    format::{self, RECORD_HEAD_LEN, record_is_valid, u32_at},
};
use std::{collections::BTreeSet, io};

/// Records that are known to be damaged at most; others are noted when these are whole again.
const DAMAGED_MAX: usize = 1024;

/// What is known of records that can't be read.
#[derive(Default)]
pub struct Damage {
    /// Other copies are to be asked for these.
    wanted: BTreeSet<Lsn>,
    /// Which of them was asked for last: those that no copy has now do not keep others waiting.
    asked: Option<Lsn>,
    /// No copy has these.
    lost: BTreeSet<Lsn>,
}

impl Damage {
    /// The next of those that are wanted.
    fn next(&mut self, most: usize) -> Vec<Lsn> {
        let behind = |position: &&Lsn| self.asked.is_none_or(|asked| **position > asked);
        let from = self.wanted.iter().filter(behind);
        let next: Vec<Lsn> =
            from.chain(&self.wanted).take(most.min(self.wanted.len())).copied().collect();
        self.asked = next.last().copied();
        next
    }
}

/// Why a record was not written again.
#[derive(Debug, thiserror::Error)]
pub enum MendError {
    /// What was brought is not the record of this position.
    #[error("it is not the record of position {0}")]
    Bad(Lsn),
    /// Whether the record is committed is not known here, so another one may take its place yet.
    #[error("position {0} is not committed")]
    Uncommitted(Lsn),
    /// The log has nothing at this position any more.
    #[error("position {0} is not in the log")]
    Gone(Lsn),
    /// The disk refuses it.
    #[error("it can't be written: {0}")]
    Write(#[from] io::Error),
}

impl Replica {
    /// Positions of records that a reader could not read, and that can't be read now: `most` of them, in turn. Other copies may
    /// have them: see [`Replica::record`].
    pub fn damaged(&self, most: usize) -> Vec<Lsn> {
        let next = self.shared().damage.lock().next(most);
        let (damaged, others): (Vec<Lsn>, Vec<Lsn>) = next.into_iter().partition(|position| {
            let mut cache = ReadCache::default();
            let found = self.journal.core.read(*position, &mut cache);
            matches!(found, Err(ReadError::Bad { .. } | ReadError::Io { .. }))
        });
        let mut damage = self.shared().damage.lock();
        damage.wanted.retain(|position| !others.contains(position));
        damaged
    }

    /// The record at a position, with its head, for a copy whose disk has damaged it; `None` if it is damaged here as well, or
    /// not kept any more.
    ///
    /// # Errors
    /// When it can't be said now: what is there may not be committed, or the disk can't be read.
    pub fn record(&self, position: Lsn) -> Result<Option<Vec<u8>>, MendError> {
        let core = &self.journal.core;
        if position >= core.durable() {
            return Err(MendError::Uncommitted(position));
        }
        match core.whole_record(position) {
            Ok(record) if position.plus(record.len() as u64) <= core.durable() => Ok(Some(record)),
            Ok(_) => Err(MendError::Uncommitted(position)),
            Err(ReadError::Bad { .. } | ReadError::Gone(_)) => Ok(None),
            Err(ReadError::Io { error, .. }) => Err(error.into()),
        }
    }

    /// Writes a record again that [`Replica::record`] of another copy has returned, and syncs it.
    ///
    /// # Errors
    /// Nothing has changed, unless the disk has failed meanwhile.
    pub fn mend(&self, position: Lsn, record: &[u8]) -> Result<(), MendError> {
        self.journal.core.mend(position, record)?;
        self.shared().damage.lock().wanted.remove(&position);
        Ok(())
    }

    /// No other copy has the record at this position: its readers are told that it is lost, if it is damaged here. What the
    /// system refuses to read is not: it may let itself be read again.
    pub fn give_up(&self, position: Lsn) {
        let found = self.journal.core.whole_record(position);
        let mut damage = self.shared().damage.lock();
        if !matches!(found, Err(ReadError::Io { .. })) {
            damage.wanted.remove(&position);
        }
        if matches!(found, Err(ReadError::Bad { .. })) {
            damage.lost.insert(position);
            if damage.lost.len() > DAMAGED_MAX {
                damage.lost.pop_first();
            }
        }
    }
}

impl Journal {
    /// Whether another copy of the log may have a record that can't be read here, which is noted then for
    /// [`Replica::damaged`].
    pub(crate) fn asks_others(&self, position: Lsn, error: &ReadError) -> bool {
        let Some(replica) = &self.core.replica else { return false };
        let mut damage = replica.damage.lock();
        if matches!(error, ReadError::Gone(_)) || damage.lost.contains(&position) {
            return false;
        }
        if damage.wanted.len() < DAMAGED_MAX {
            damage.wanted.insert(position);
        }
        true
    }
}

impl Core {
    /// The record at `position`, with its head.
    fn whole_record(&self, position: Lsn) -> Result<Vec<u8>, ReadError> {
        let mut cache = ReadCache::default();
        let octets = self.read(position, &mut cache)?;
        Ok(format::whole_record(octets, position, self.id))
    }

    fn mend(&self, position: Lsn, record: &[u8]) -> Result<(), MendError> {
        let (head, octets) =
            record.split_at_checked(RECORD_HEAD_LEN).ok_or(MendError::Bad(position))?;
        let is_whole = u32_at(head, 0) as usize == octets.len();
        if !is_whole || !record_is_valid(octets, u32_at(head, 4), position, self.id) {
            return Err(MendError::Bad(position));
        }
        let end = position.plus(record.len() as u64);
        if end > self.durable() {
            return Err(MendError::Uncommitted(position));
        }
        // While this is held, no segment becomes a spare file and then another segment.
        let _not_freed = self.upkeeping.lock();
        let segment = self.segments.find(position).ok_or(MendError::Gone(position))?;
        if end > segment.end() {
            return Err(MendError::Bad(position));
        }
        let file = self.disk.open(&segment.path(&self.dir), OpenMode::Write)?;
        write_all(&*file, record, position.0 - segment.start.0)?;
        Ok(file.sync_data()?)
    }
}

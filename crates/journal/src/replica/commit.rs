//! What is committed, and what waits for it: who was told that something is durable, checkpoints, and
//! the segments that nothing needs any more.

use super::{ReadEntryError, Shared, entry::Base, state::State};
use crate::{
    CheckpointError, EachLive, Failure, Lsn,
    core::Core,
    log::{ALONE, FOLLOWS},
    names,
};
use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Release},
    },
};

/// How many records are live, by the starts of their segments.
#[derive(Default)]
struct Counts {
    live: HashMap<u64, u64>,
    /// A position that is in no segment.
    missing: Option<Lsn>,
}

impl Core {
    /// See [`Replica::commit`](super::Replica::commit).
    pub fn commit(&self, index: u64) -> Result<(), ReadEntryError> {
        let Some(replica) = &self.replica else { return Ok(()) };
        let (before, last) = {
            let entries = replica.entries.lock();
            (entries.commit, entries.last.index)
        };
        let index = index.min(last);
        if index <= before {
            return Ok(());
        }
        let end = self.end_of(index)?;
        replica.entries.lock().commit = index;
        self.publish_durable(end);
        Ok(())
    }

    /// What is durable for the leader of this epoch: nothing, once another one leads.
    pub fn durable_for(&self, epoch: u64) -> Lsn {
        // In this order: what was committed under another leader was published after the change.
        let durable = self.durable();
        if self.has_epoch(epoch) { durable } else { Lsn(0) }
    }

    /// Whether the leader of this epoch may still append.
    pub fn has_epoch(&self, epoch: u64) -> bool {
        epoch == ALONE || self.replica.as_ref().is_none_or(|replica| replica.epoch() == epoch)
    }

    /// Why nothing that was appended in this epoch will be durable any more.
    pub fn deposed(&self, epoch: u64) -> Option<Failure> {
        (!self.has_epoch(epoch))
            .then(|| self.failure("this machine does not lead the log any more"))
    }

    /// Why the log lacks something that the leader of this epoch has done.
    fn refused(&self, epoch: u64) -> Option<Failure> {
        let is_refused = epoch != ALONE && self.log.lock().is_overrun();
        is_refused.then(|| self.failure("the log had no room for all that was done in this lead"))
    }

    /// Why nothing becomes durable while no consensus runs that could commit it.
    pub fn not_committed(&self) -> Failure {
        self.failure("the log is not committed, and no consensus runs that would commit it")
    }

    fn failure(&self, text: &'static str) -> Failure {
        let error = Arc::new(io::Error::other(text));
        Failure { action: "commit in", path: self.dir.clone(), error }
    }

    /// Whether nothing can be committed at present.
    pub fn is_stalled(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| replica.is_stalled())
    }

    /// Does something that only the leader of this epoch may do.
    pub fn while_leading(&self, epoch: u64, work: impl FnOnce()) {
        match self.replica.as_ref().filter(|_| epoch != ALONE) {
            Some(replica) => replica.while_leading(epoch, work),
            None => work(),
        }
    }

    /// Whether segments may be freed at all: not before it is known what is live in them, nor while
    /// they are sent to another node.
    pub fn may_free(&self) -> bool {
        let is_free =
            |replica: &Shared| replica.counted.load(Acquire) && replica.pins.lock().count == 0;
        self.replica.as_ref().is_none_or(|replica| is_free(replica))
    }

    /// Who appends: another number in each lead.
    pub fn epoch(&self) -> u64 {
        self.replica.as_ref().map_or(ALONE, |replica| replica.epoch())
    }

    /// Whether a release that was made when the log ended at `lsn` can't be undone by a crash. Waits for
    /// the log thread, but not for other machines.
    pub fn is_released_for_good(&self, lsn: Lsn) -> bool {
        match &self.replica {
            None => self.wait_durable(lsn, ALONE).is_ok(),
            Some(replica) => lsn <= self.durable().min(replica.synced()),
        }
    }

    /// Makes what a checkpoint that starts at `start` may contain durable on this machine, and returns
    /// where that ends. A leader's state has what is not committed yet; a follower's has not.
    pub fn make_durable_what_is_covered(
        &self,
        start: Lsn,
        epoch: u64,
    ) -> Result<Lsn, CheckpointError> {
        let Some(replica) = &self.replica else {
            let durable = self.end();
            self.wait_durable(durable, ALONE).map_err(CheckpointError::Failed)?;
            return Ok(durable);
        };
        let covered = if epoch == ALONE { self.durable() } else { self.end() };
        // Then the state may have what the log has not: what was refused, or gathered in a lead that is over.
        if let Some(failure) = self.refused(epoch).or_else(|| self.deposed(epoch)) {
            return Err(CheckpointError::Failed(failure));
        }
        if start > covered {
            return Err(CheckpointError::Uncommitted(start));
        }
        if epoch != ALONE && !self.options.threads && self.durable() < covered {
            return Err(CheckpointError::Uncommitted(covered));
        }
        self.wait_durable(covered, epoch).map_err(CheckpointError::Failed)?;
        // Where an entry ends, even if the state ends within it. Others may have it, and this machine not yet.
        let committed = self.durable();
        while replica.synced() < committed {
            if let Some(failure) = self.failed.get() {
                return Err(CheckpointError::Failed(failure.clone()));
            }
            self.flush_once();
        }
        Ok(committed)
    }

    /// The last entry that ends at `start` or before, for a checkpoint that starts there.
    pub fn entry_before(&self, start: Lsn) -> Result<Base, CheckpointError> {
        if let Some(base) = self.adopted.get() {
            return Ok(*base);
        }
        let found = self.last_ending_by(start);
        found.map_err(|error| CheckpointError::Write(io::Error::other(error.to_string())))
    }

    /// A checkpoint that starts behind the entry `base` counts: entries that only the one before the last
    /// needed can't be read any more, unless a copy is being sent, whose receiver goes on with them. A follower counts
    /// what is live by its own checkpoints alone: what the broker of a lead that has ended takes for dead may be in messages
    /// whose acknowledgement was cut.
    pub fn checkpoint_counts(
        &self,
        start: Lsn,
        base: Base,
        live: &mut dyn FnMut(EachLive<'_>),
        epoch: u64,
    ) {
        let Some(replica) = &self.replica else { return };
        let before = std::mem::replace(&mut *replica.latest_base.lock(), base);
        replica.damage.lock().needed_from = None;
        let mut pins = replica.pins.lock();
        pins.base = before;
        pins.trim(replica);
        drop(pins);
        if epoch == ALONE {
            // Of those from `start` on it stays unknown, and matters to nothing before the next checkpoint.
            let counts = self.counts(live);
            replica.while_leading(FOLLOWS, || self.take_counts(&counts, Some(start)));
        }
    }

    /// See [`Journal::count_live`](crate::Journal::count_live).
    pub fn count_live(&self, live: &mut dyn FnMut(EachLive<'_>), epoch: u64) -> Result<(), Lsn> {
        let counts = self.counts(live);
        if let Some(missing) = counts.missing {
            return Err(missing);
        }
        self.while_leading(epoch, || self.take_counts(&counts, None));
        Ok(())
    }

    fn counts(&self, live: &mut dyn FnMut(EachLive<'_>)) -> Counts {
        let mut counts = Counts::default();
        live(&mut |position| match self.segments.find(position) {
            Some(segment) => *counts.live.entry(segment.start.0).or_default() += 1,
            None => counts.missing = counts.missing.or(Some(position)),
        });
        counts
    }

    fn take_counts(&self, counts: &Counts, start: Option<Lsn>) {
        let Some(replica) = &self.replica else { return };
        let released_at = start.unwrap_or_else(|| self.durable());
        for segment in self.segments.all() {
            let count = counts.live.get(&segment.start.0).copied().unwrap_or(0);
            segment.set_live(count, released_at);
        }
        replica.counted.store(true, Release);
    }

    /// Makes a change of what is beside the log durable.
    pub fn save_state(&self, change: impl FnOnce(&mut State)) -> Result<(), Failure> {
        if let Some(failure) = self.failed.get() {
            return Err(failure.clone());
        }
        let Some(replica) = &self.replica else { return Ok(()) };
        let mut file = replica.state.lock();
        let mut state = file.state.clone();
        let (commit, synced) = {
            let entries = replica.entries.lock();
            let synced = replica.synced();
            // What is said to be committed has to be there at the next start.
            let is_there = entries.place(entries.commit).is_none_or(|place| place.end <= synced);
            (if is_there { entries.commit } else { state.commit }, synced)
        };
        state.commit = state.commit.max(commit);
        state.synced = synced;
        state.clean = false;
        change(&mut state);
        let written = file.write(state);
        drop(file);
        if let Err(error) = written {
            self.fail("write to", &self.dir.join(names::REPLICA), error);
        }
        self.failed.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Makes everything durable on this machine, and notes beside the log that it was closed.
    pub fn close_copy(&self) -> Result<(), Failure> {
        self.end_lead();
        self.wait_synced()?;
        self.save_state(|state| state.clean = true)
    }
}

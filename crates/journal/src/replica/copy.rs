//! An open copy of a replicated log.

use super::{
    AppendEntryError, Bootstrap, BootstrapError, Checkpointed, CutError, Entry, EntryId, EntryKind,
    Identity, PlaceError, ReadEntryError, Room, Shared, Vote,
};
use crate::{
    CheckpointDone, CheckpointError, EachLive, Failure, Journal, Lsn, OpenError, Pass, ReadCache,
    ReadError, Scrubbing, log::ALONE,
};
use courser_store::Noting;
use std::{io, sync::Arc};

/// An open copy of a replicated log. See [the module](super).
///
/// One thread drives it, which is that of consensus; what others may call says so. Dropping it closes
/// it, with errors ignored.
pub struct Replica {
    pub(super) journal: Journal,
}

impl Replica {
    pub(super) fn shared(&self) -> &Shared {
        match &self.journal.core.replica {
            Some(shared) => shared,
            None => unreachable!("a replica's journal is a copy of a replicated log"),
        }
    }

    /// Reads all of the copy that is committed: see [`Journal::scrub`].
    pub fn scrub(&self, by: &mut dyn Scrubbing) -> Pass {
        self.journal.scrub(by)
    }

    /// Estimate of the bytes that [`Replica::scrub`] reads.
    pub fn scrub_bytes(&self) -> u64 {
        self.journal.scrub_bytes()
    }

    /// What all copies of this log have in common.
    pub fn identity(&self) -> Identity {
        self.shared().identity
    }

    /// What a replay notes of the messages that it reads: as in its options.
    pub fn noting(&self) -> Option<&'static dyn Noting> {
        self.journal.core.options.noting
    }

    /// The vote that was saved last.
    pub fn vote(&self) -> Vote {
        self.shared().state.lock().state.vote.clone()
    }

    /// Makes a vote durable, and with it which entry is known to be committed. Blocks until
    /// all that was done before is synced too.
    ///
    /// # Errors
    /// When the copy has failed: whether the vote counts is not known until the next start.
    pub fn save_vote(&self, vote: &Vote) -> Result<(), Failure> {
        self.queue_vote(vote);
        self.journal.core.wait_synced()
    }

    /// Has the log thread make a vote durable, which is done when [`Replica::synced`] reaches what [`Replica::written`] is
    /// then. Of several, the last one counts.
    pub fn queue_vote(&self, vote: &Vote) {
        let core = &self.journal.core;
        let mut log = core.log.lock();
        log.vote = Some(vote.clone());
        log.ticket += 1;
        core.work.notify_one();
    }

    /// The entry before the first that can be read; of index 0 if there was none.
    pub fn first(&self) -> EntryId {
        self.shared().entries.lock().base
    }

    /// The last entry.
    pub fn last(&self) -> EntryId {
        self.shared().entries.lock().last
    }

    /// The term of an entry, from that of [`Replica::first`] on.
    pub fn term(&self, index: u64) -> Option<u64> {
        self.shared().entries.lock().term(index)
    }

    /// The greatest index that is known to be committed.
    pub fn committed(&self) -> u64 {
        self.shared().entries.lock().commit
    }

    /// After a start, the greatest index that was known to be committed before: nothing up to it can
    /// have changed.
    pub fn committed_hint(&self) -> u64 {
        let entries = self.shared().entries.lock();
        entries.commit.max(entries.commit_hint)
    }

    /// The entries behind `index` that are of leaders or members, or have a note.
    pub fn notes_after(&self, index: u64) -> Vec<u64> {
        self.shared().entries.lock().notes_after(index)
    }

    /// Entries from `from` to before `to`, as many as `max_bytes` allow, but at least one if there is
    /// any. From the buffer, where they are not written yet.
    ///
    /// # Errors
    /// When the first of them can't be read.
    pub fn read(&self, from: u64, to: u64, max_bytes: u64) -> Result<Vec<Entry>, ReadEntryError> {
        self.journal.core.read_entries(from, to, max_bytes)
    }

    /// As [`Replica::read`], without waiting for the disk. None if the first of them has to be read from there: a thread of its own
    /// does it, and [`Events::fetched`](super::Events::fetched) says when to ask again. Without threads it is done at once.
    ///
    /// # Errors
    /// When the first of them can't be read.
    pub fn fetch(
        &self,
        from: u64,
        to: u64,
        max_bytes: u64,
    ) -> Result<Option<Vec<Entry>>, ReadEntryError> {
        self.journal.core.fetch_entries(from, to, max_bytes)
    }

    /// A tick has passed: what was read for [`Replica::fetch`] and is not asked for does not take memory for ever.
    pub fn tick(&self) {
        self.shared().aside.tick();
    }

    /// Where an entry ends, from [`Replica::first`] on, whose end is where the next one begins or
    /// before.
    ///
    /// # Errors
    /// When it has to be looked up on the disk and that fails.
    pub fn end_of(&self, index: u64) -> Result<Lsn, ReadEntryError> {
        self.journal.core.end_of(index)
    }

    /// Appends entries that another machine has placed, ascending and without gaps. Those that are here
    /// already change nothing; what is here instead of one of them is cut first. All of it counts when it is synced.
    ///
    /// # Errors
    /// Those before the one that was refused are appended.
    pub fn append(&self, entries: &[Entry]) -> Result<(), AppendEntryError> {
        entries.iter().try_for_each(|entry| {
            Entry::parse(entry.frame.clone(), self.journal.core.id)?;
            self.journal.core.append_entry(entry)
        })
    }

    /// The same for entries that come from [`Entry::parse`]: their sums are not checked again.
    ///
    /// # Errors
    /// See [`Replica::append`].
    pub fn append_checked(&self, entries: &[Entry]) -> Result<(), AppendEntryError> {
        entries.iter().try_for_each(|entry| self.journal.core.append_entry(entry))
    }

    /// Whether [`Replica::append`] finds room for these entries, which follow each other.
    pub fn room_for(&self, entries: &[Entry]) -> Room {
        self.journal.core.room_for(entries, self.shared())
    }

    /// Cuts everything behind the entry `after` off, which is not committed. Blocks; when it returns, none of that can
    /// come back.
    ///
    /// # Errors
    /// Nothing is cut then, unless the copy has failed.
    pub fn cut(&self, after: u64) -> Result<(), CutError> {
        let core = &self.journal.core;
        core.cut(after)?;
        core.wait_synced().map_err(CutError::Failed)
    }

    /// The ticket of what was appended and placed so far; never goes back.
    pub fn written(&self) -> u64 {
        self.journal.core.log.lock().ticket
    }

    /// Everything up to this ticket is on the disk. [`Events::synced`](super::Events::synced) says when it changes.
    pub fn synced(&self) -> u64 {
        self.shared().synced_ticket()
    }

    /// Everything up to this entry is committed, if it is here. Durable is what is committed. Never goes
    /// back.
    ///
    /// # Errors
    /// When the entry's end has to be looked up on the disk and that fails.
    pub fn commit(&self, index: u64) -> Result<(), ReadEntryError> {
        self.journal.core.commit(index)
    }

    /// Takes the lead in a term, after everything before it was applied: what to append to. Works until
    /// [`Replica::follow`], and never again: what it has appended and is not committed by then may be
    /// lost, and is never called durable.
    pub fn lead(&self, term: u64) -> Journal {
        self.journal.core.begin_lead(term);
        self.journal.of_leader(term)
    }

    /// Gives the lead up. What was gathered and is not placed is gone.
    pub fn follow(&self) {
        self.journal.core.end_lead();
    }

    /// Begins a round in which the other machines are asked whether they still follow this one, if an answer waits for one:
    /// see [`Events::proof_wanted`](super::Events::proof_wanted). Returns the number of the round. Not to be called while one is
    /// under way.
    pub fn begin_proof(&self) -> Option<u64> {
        self.shared().proofs.begin()
    }

    /// A majority has followed this machine after this round had begun, and in the term in which it had.
    pub fn proven(&self, round: u64) {
        self.shared().proofs.publish(round);
    }

    /// Makes what was gathered the entry `id`, which is the next one, and hands it to the log thread.
    /// None if there is nothing. To be called after [`Events::gathered`](super::Events::gathered), and now and then for
    /// records that no thread waits for.
    ///
    /// # Errors
    /// Nothing is changed then.
    pub fn place(&self, id: EntryId) -> Result<Option<Entry>, PlaceError> {
        self.journal.core.place(id)
    }

    /// As [`Replica::place`], with a note, and even if there is nothing else; the first of a leader, or a
    /// change of the members.
    ///
    /// # Errors
    /// Nothing is changed then. [`PlaceError::Gathered`] if another entry has to be placed before.
    pub fn place_note(
        &self,
        id: EntryId,
        kind: EntryKind,
        note: &[u8],
    ) -> Result<Entry, PlaceError> {
        self.journal.core.place_note(id, kind, note)
    }

    /// Says that nothing can be committed, or can again: meanwhile there is no room, and who appends is
    /// refused rather than kept waiting when the buffer is full.
    pub fn stall(&self, stalled: bool) {
        self.shared().stall(stalled);
        let core = &self.journal.core;
        let log = core.log.lock();
        core.space.notify_all();
        drop(log);
        if !stalled {
            core.room_waiters.wake_up_to(Lsn(0), false);
        }
    }

    /// Has who appends wait, or go on: meanwhile what was gathered can be placed to the last, and a note
    /// behind it. Without threads, who appends is refused.
    pub fn pause(&self, paused: bool) {
        let core = &self.journal.core;
        core.log.lock().paused = paused;
        core.space.notify_all();
    }

    /// The last entry that the last checkpoint stands for as a whole: what it does not have is in entries
    /// behind this one.
    pub fn last_in_checkpoint(&self) -> EntryId {
        self.shared().latest_base.lock().id
    }

    /// The state that the last checkpoint stands for, or the one before if that can't be read. Records from its start on are to
    /// be applied: those of [`Replica::read_kept`] first. Any thread may ask, also for entries that are committed, which are
    /// never cut.
    ///
    /// # Errors
    /// When neither can be read: why not the last one.
    pub fn checkpointed(&self) -> Result<Checkpointed, OpenError> {
        self.journal.core.checkpointed()
    }

    /// Reads the entries that the last checkpoint stands for and this one does not, and [`Replica::read`] may not have any more:
    /// up to [`Replica::first`], if it is not behind that. Ends early if `visit` says so.
    ///
    /// # Errors
    /// When one can't be read, of which other copies are asked for what is damaged.
    pub fn read_kept(
        &self,
        behind: &Checkpointed,
        visit: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<(), ReadEntryError> {
        self.journal.core.read_kept(behind.base, visit)
    }

    /// As [`Journal::checkpoint`], of a state up to `start`, which is committed, as long as `go_on` says so: it is asked before
    /// each record that has to be read to find what can be given back. `live` may be called twice.
    ///
    /// # Errors
    /// The last one still holds then. [`CheckpointError::Unwanted`] if `go_on` has said no.
    pub fn checkpoint(
        &self,
        start: Lsn,
        go_on: &mut dyn FnMut() -> bool,
        live: &mut dyn FnMut(EachLive<'_>),
        write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<CheckpointDone, CheckpointError> {
        self.journal.core.checkpoint(&mut || start, live, write, ALONE, go_on)
    }

    /// Whether a checkpoint should be made now.
    pub fn wants_checkpoint(&self) -> bool {
        self.journal.wants_checkpoint()
    }

    /// As [`Journal::read`].
    ///
    /// # Errors
    /// Those of [`Journal::read`].
    pub fn read_record<'c>(
        &self,
        position: Lsn,
        cache: &'c mut ReadCache,
    ) -> Result<&'c [u8], ReadError> {
        self.journal.read(position, cache)
    }

    /// Everything that another machine needs to have a copy, up to what is committed and written here.
    /// While it is there, segments stay as they are.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn bootstrap(&self) -> Result<Bootstrap, BootstrapError> {
        Bootstrap::new(Arc::clone(&self.journal.core))
    }

    /// The end of what was appended.
    pub fn end(&self) -> Lsn {
        self.journal.end()
    }

    /// Everything before this is committed.
    pub fn durable(&self) -> Lsn {
        self.journal.durable()
    }

    /// What has failed, if something has.
    pub fn failed(&self) -> Option<&Failure> {
        self.journal.failed()
    }

    /// Makes everything durable that is here, and takes nothing more.
    ///
    /// # Errors
    /// When the copy has failed.
    pub fn close(&self) -> Result<(), Failure> {
        self.journal.close()
    }

    /// One round of the log thread, for copies without threads.
    pub fn flush_once(&self) -> bool {
        self.journal.flush_once()
    }

    /// One round of the maintenance thread, for copies without threads.
    pub fn maintain_once(&self) {
        self.journal.maintain_once();
    }
}

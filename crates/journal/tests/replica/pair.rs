//! Two copies, one of which leads now and then: all that consensus would do with them, without its
//! messages.

use crate::copy::Copy;
use courser_journal::{
    AppendError, AppendMode, Batch, CheckpointError,
    replica::{AppendEntryError, CutError, EntryId, EntryKind, PlaceError, Vote},
    testing::Faults,
};
use proptest::prelude::*;

/// Something that is done.
#[derive(Clone, Debug)]
pub enum Step {
    Lead(usize),
    Follow,
    Append { lens: Vec<usize>, fill: u8 },
    Place,
    Note(usize),
    Replicate(usize),
    Flush(usize),
    Commit(usize),
    Checkpoint { who: usize, back: usize },
    Maintain(usize),
    Vote(usize),
    Read { who: usize, from: u64 },
    Scrub(usize),
    Crash { who: usize, power: bool },
    Close(usize),
    Fault { who: usize, after: u64, kind: u8 },
}

pub fn step() -> impl Strategy<Value = Step> {
    let who = 0..2usize;
    let len = prop_oneof![8 => 0..300usize, 3 => 300..4000usize, 1 => 9000..30_000usize];
    prop_oneof![
        4 => who.clone().prop_map(Step::Lead),
        1 => Just(Step::Follow),
        20 => (prop::collection::vec(len, 1..4), any::<u8>())
            .prop_map(|(lens, fill)| Step::Append { lens, fill }),
        14 => Just(Step::Place),
        2 => (0..64usize).prop_map(Step::Note),
        14 => (1..5usize).prop_map(Step::Replicate),
        10 => who.clone().prop_map(Step::Flush),
        10 => (0..4usize).prop_map(Step::Commit),
        4 => (who.clone(), 0..3usize).prop_map(|(who, back)| Step::Checkpoint { who, back }),
        2 => who.clone().prop_map(Step::Maintain),
        2 => who.clone().prop_map(Step::Vote),
        4 => (who.clone(), 0..50u64).prop_map(|(who, from)| Step::Read { who, from }),
        2 => who.clone().prop_map(Step::Scrub),
        4 => (who.clone(), any::<bool>()).prop_map(|(who, power)| Step::Crash { who, power }),
        1 => who.clone().prop_map(Step::Close),
        3 => (who, 0..25u64, 0..4u8).prop_map(|(who, after, kind)| Step::Fault { who, after, kind }),
    ]
}

pub struct Pair {
    pub copies: [Copy; 2],
    pub leader: Option<usize>,
    pub term: u64,
}

impl Pair {
    pub fn new(seed: u64) -> Self {
        Pair { copies: [Copy::new("one", seed), Copy::new("two", !seed)], leader: None, term: 0 }
    }

    pub fn run(&mut self, step: Step) {
        match step {
            Step::Lead(who) => self.lead(who),
            Step::Follow => self.follow(),
            Step::Append { lens, fill } => self.append(&lens, fill),
            Step::Place => self.place(),
            Step::Note(len) => self.note(len),
            Step::Replicate(count) => self.replicate(count),
            Step::Flush(who) => self.copies[who].flush(),
            Step::Commit(behind) => self.commit(behind),
            Step::Checkpoint { who, back } => self.checkpoint(who, back),
            Step::Maintain(who) => self.copies[who].replica().maintain_once(),
            Step::Vote(who) => self.vote(who),
            Step::Read { who, from } => {
                let copy = &self.copies[who];
                copy.check(from, copy.entries.len() as u64 + 1);
            }
            Step::Scrub(who) => {
                let (_, found) = self.copies[who].scrub();
                // A disk that has lost its power gives nothing.
                assert!(found.iter().all(|damaged| damaged.error.is_some()), "{found:?}");
            }
            Step::Crash { who, power } => {
                self.depose(who);
                self.copies[who].crash(power);
            }
            Step::Close(who) => {
                self.depose(who);
                self.copies[who].close();
            }
            Step::Fault { who, after, kind } => {
                let after = Some(after);
                let faults = match kind {
                    0 => Faults { fail_write_after: after, ..Faults::default() },
                    1 => Faults { fail_sync_after: after, ..Faults::default() },
                    _ => Faults { power_off_after: after, ..Faults::default() },
                };
                self.copies[who].disk.set_faults(faults);
            }
        }
        for who in 0..2 {
            if self.copies[who].has_failed() {
                self.depose(who);
                self.copies[who].crash(true);
            }
        }
    }

    fn depose(&mut self, who: usize) {
        if self.leader == Some(who) {
            self.follow();
        }
    }

    fn follow(&mut self) {
        let Some(leader) = self.leader.take() else { return };
        let copy = &mut self.copies[leader];
        copy.replica().follow();
        let Some(lead) = copy.lead.take() else { return };
        let mut batch = Batch::new();
        batch.push(&[b"late"]);
        let late = lead.append(&mut batch, AppendMode::default());
        assert!(matches!(late, Err(AppendError::Deposed | AppendError::Failed(_))));
        assert_eq!(lead.durable().0, 0);
    }

    /// Takes the lead, with the first entry of a term; only one that has all that is committed.
    fn lead(&mut self, who: usize) {
        if self.copies[who].entries.len() < self.committed() {
            return;
        }
        self.follow();
        self.term += 1;
        let copy = &mut self.copies[who];
        let id = EntryId { term: self.term, index: copy.last().index + 1 };
        match copy.replica().place_note(id, EntryKind::Start, &[]) {
            Ok(entry) => copy.push(entry),
            Err(PlaceError::Failed(_)) => return,
            Err(error) => panic!("{error}"),
        }
        copy.lead = Some(copy.replica().lead(self.term));
        self.leader = Some(who);
    }

    fn append(&mut self, lens: &[usize], fill: u8) {
        let Some(leader) = self.leader else { return };
        let copy = &self.copies[leader];
        let lead = copy.lead.as_ref().unwrap();
        let mut batch = Batch::new();
        for len in lens {
            let mut bytes = vec![fill; *len];
            // Bytes that look like positions try to pass for frames.
            let end = lead.end().0;
            if fill.is_multiple_of(4) {
                for (index, chunk) in bytes.chunks_exact_mut(8).enumerate() {
                    chunk.copy_from_slice(&(end + 40 + 8 * index as u64).to_le_bytes());
                }
            }
            batch.push(&[&bytes]);
        }
        match lead.append(&mut batch, AppendMode { sync: true, reserve: false }) {
            Ok(_) | Err(AppendError::Full | AppendError::Failed(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn place(&mut self) {
        let Some(leader) = self.leader else { return };
        let copy = &mut self.copies[leader];
        let id = EntryId { term: self.term, index: copy.last().index + 1 };
        match copy.replica().place(id) {
            Ok(Some(entry)) => copy.push(entry),
            Ok(None) | Err(PlaceError::Failed(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn note(&mut self, len: usize) {
        let Some(leader) = self.leader else { return };
        let copy = &mut self.copies[leader];
        let id = EntryId { term: self.term, index: copy.last().index + 1 };
        let note = vec![7; len];
        match copy.replica().place_note(id, EntryKind::Members, &note) {
            Ok(entry) => {
                assert_eq!(entry.note(), note);
                copy.push(entry);
            }
            Err(PlaceError::Gathered | PlaceError::Failed(_) | PlaceError::Full) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends some entries to the other copy, from where both are the same.
    fn replicate(&mut self, count: usize) {
        let Some(leader) = self.leader else { return };
        let [one, two] = &mut self.copies;
        let (from, to) = if leader == 0 { (one, two) } else { (two, one) };
        let same = from.entries.iter().zip(&to.entries).take_while(|(a, b)| a.id == b.id).count();
        if (same as u64) < from.replica().first().index || same == from.entries.len() {
            return;
        }
        let sent =
            from.replica().read(same as u64 + 1, (same + 1 + count) as u64, 1 << 20).unwrap();
        for entry in sent {
            let index = entry.id.index as usize;
            assert_eq!(entry, from.entries[index - 1]);
            let cuts = to.entries.len() >= index;
            if cuts {
                to.begin_cut(index - 1);
            }
            match to.replica().append(std::slice::from_ref(&entry)) {
                Ok(()) => to.push(entry),
                Err(AppendEntryError::Failed(_) | AppendEntryError::Cut(CutError::Failed(_))) => {
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn committed(&self) -> usize {
        self.copies[0].committed.max(self.copies[1].committed)
    }

    /// Commits what is on both disks and the same, save the last `behind`.
    fn commit(&mut self, behind: usize) {
        let [one, two] = &self.copies;
        let both = one.synced.min(two.synced);
        let same = one.entries.iter().zip(&two.entries).take_while(|(a, b)| a.id == b.id).count();
        let index = both.min(same).saturating_sub(behind);
        if index <= self.committed() {
            return;
        }
        for copy in &mut self.copies {
            let replica = copy.replica.as_ref().unwrap();
            replica.commit(index as u64).unwrap();
            copy.committed = index;
            let end = copy.entries[index - 1].end();
            assert!(replica.durable() >= end);
            assert!(index == copy.entries.len() || replica.durable() <= copy.entries[index].end());
        }
    }

    /// A checkpoint of everything that is committed, or up to the middle of an entry.
    fn checkpoint(&mut self, who: usize, back: usize) {
        let copy = &mut self.copies[who];
        let Some(entry) = copy.committed.checked_sub(back + 1).map(|index| &copy.entries[index])
        else {
            return;
        };
        let mut start = entry.end();
        if back == 1 {
            // The first record of an entry is behind the start of its frame: the end of that frame is in
            // the middle of the entry.
            start = entry.start();
        }
        let state = vec![3; 100];
        let made = copy
            .replica()
            .checkpoint(start, &mut || true, &mut |_| {}, &mut |out| out.write_all(&state));
        match made {
            Ok(_) => {
                copy.base = copy.base.max(entry.id.index);
                assert!(copy.replica().first().index <= copy.base);
            }
            Err(CheckpointError::BadStart(_) | CheckpointError::Write(_)) => {}
            Err(CheckpointError::Failed(_)) if copy.has_failed() => {
                // It may count at the next start.
                copy.base = copy.base.max(entry.id.index);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn vote(&mut self, who: usize) {
        self.term += 1;
        let copy = &mut self.copies[who];
        let members = vec![self.term as u8; self.term as usize % 100];
        let vote = Vote { term: self.term, voted_for: who as u64 + 1, members, members_index: 1 };
        if self.term.is_multiple_of(2) {
            copy.replica().queue_vote(&vote);
            let ticket = copy.replica().written();
            copy.voting.push((ticket, vote));
        } else {
            copy.voting.push((u64::MAX, vote.clone()));
            if copy.replica().save_vote(&vote).is_ok() {
                (copy.vote, copy.voting) = (vote, Vec::new());
            }
        }
        self.follow();
    }
}

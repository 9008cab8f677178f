//! Carrying a queue to another broker: what it has, in its order, and taking that in there.

use super::backlog::{FAILED, REDELIVERED};
use super::logged::{Entries, Entry};
use super::returns::count_of;
use super::{Queue, State};
use courser_store::{Location, MessageRef};

/// The messages of a queue that are in the log.
pub(crate) struct Lines {
    /// In the order in which they would leave; of each priority by themselves.
    pub lines: Vec<Entries>,
    /// How many messages the queue has, wherever they are.
    pub messages: usize,
    /// How many of them are delivered and not acknowledged: these are not among the lines.
    pub unacked: usize,
}

/// How a message has come back to its queue, and how often unharmed where that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Returns {
    pub how: CameBack,
    pub unharmed: u64,
}

/// How a message has come back to its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CameBack {
    /// In no way that says that a client may have failed on it.
    Unharmed,
    /// A client may have failed on it, and the queue does not count that.
    Failed,
    /// So often.
    Counted(u64),
}

impl CameBack {
    /// As a record has it.
    pub fn code(self) -> u64 {
        match self {
            CameBack::Unharmed => 0,
            CameBack::Failed => u64::MAX,
            CameBack::Counted(count) => count,
        }
    }

    pub fn of_code(code: u64) -> Self {
        match code {
            0 => CameBack::Unharmed,
            u64::MAX => CameBack::Failed,
            count => CameBack::Counted(count),
        }
    }
}

impl Queue {
    /// What it has. Dead letters that have not arrived elsewhere are in it, and what waits for another try, as after a restart.
    pub(crate) fn lines(&self) -> Lines {
        let mut state = self.state.lock();
        state.return_passed_over();
        // While the vhost stands still, no timer has the rest of them return.
        while state.has_unclaimed() {
            self.return_unclaimed(&mut state);
        }
        let lines = state.lines_with(std::iter::empty());
        let messages = state.ready.len() + state.dying.len() + state.delayed.len();
        let unacked = state.unacked.len();
        drop(state);
        Lines {
            lines: lines.complete().map(|(_, line)| line.into_entries()).collect(),
            messages,
            unacked,
        }
    }

    /// How a message has come back; none if it never did.
    pub(crate) fn returns_of(&self, (position, marks, body): Entry) -> Option<Returns> {
        let location = Location::Log { position, body, marks };
        (marks & REDELIVERED != 0).then(|| {
            let state = self.state.lock();
            let how = match count_of(&location, state.notes.as_deref()) {
                0 if marks & FAILED != 0 => CameBack::Failed,
                0 => CameBack::Unharmed,
                count => CameBack::Counted(count),
            };
            let unharmed = state.notes.as_ref().map_or(0, |notes| notes.unharmed(&location));
            Returns { how, unharmed }
        })
    }

    /// Takes in a message at its end, as [`Queue::returns_of`] has told of it.
    pub(crate) fn take_in(
        &self,
        mut location: Location,
        message: &MessageRef<'_>,
        returned: Option<Returns>,
    ) {
        let mut state = self.state.lock();
        *location.marks_mut() |= match returned.map(|returned| returned.how) {
            None => 0,
            Some(CameBack::Unharmed) => REDELIVERED,
            Some(CameBack::Failed | CameBack::Counted(_)) => REDELIVERED | FAILED,
        };
        if let Some(Returns { how: CameBack::Counted(count), .. }) = returned {
            state.set_count(&mut location, count);
        }
        if let Some(Returns { unharmed: unharmed @ 1.., .. }) = returned {
            state.notes_mut().add_unharmed(&location, unharmed);
        }
        let State { ready, notes, .. } = &mut *state;
        if let Some(notes) = notes {
            // One that is there already was a dead letter on its way when it came, and is kept as well.
            notes.enter_beside(message, &location);
        }
        let rank = ready.rank(Some(*message));
        ready.push(location, rank, message.body.len());
        self.note_counts(&state);
    }

    /// Everything that it is to have has been taken in.
    pub(crate) fn has_arrived(&self) {
        // Whether something may expire is not known until its turn comes.
        self.watch_head(&mut self.state.lock());
    }
}

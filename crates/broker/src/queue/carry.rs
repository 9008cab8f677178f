//! Carrying a queue to another broker: what it has, in its order, and taking that in there.

use super::backlog::REDELIVERED;
use super::logged::{Entries, Entry, Logged};
use super::returns::count_of;
use super::{Queue, State};
use courser_store::{Location, MessageRef};
use std::sync::atomic::Ordering;

/// The messages of a queue that are in the log.
pub(crate) struct Lines {
    /// In the order in which they would leave; of each priority by themselves.
    pub lines: Vec<Entries>,
    /// How many messages the queue has, wherever they are.
    pub messages: usize,
    /// How many of them somebody has and has not acknowledged: these are not among the lines.
    pub unacked: usize,
}

impl Queue {
    /// What it has. Dead letters that have not arrived elsewhere are in it, as after a restart.
    pub(crate) fn lines(&self) -> Lines {
        let mut state = self.state.lock();
        state.return_passed_over();
        let lines = state.ready.lines_with(state.dying.logged());
        let lines: Vec<Entries> = lines.into_iter().map(Logged::into_entries).collect();
        let messages = state.ready.len() + state.dying.len();
        Lines { lines, messages, unacked: state.unacked.len() }
    }

    /// How often a message has come back, where that is counted, and 0 where it only did; none if it
    /// never did.
    pub(crate) fn returns_of(&self, (position, marks): Entry) -> Option<u64> {
        let location = Location::Log { position, marks };
        (marks & REDELIVERED != 0).then(|| count_of(&location, self.state.lock().notes.as_deref()))
    }

    /// Takes in a message at its end, as [`Queue::returns_of`] has told of it.
    pub(crate) fn take_in(
        &self,
        mut location: Location,
        message: &MessageRef<'_>,
        returns: Option<u64>,
    ) {
        let mut state = self.state.lock();
        if let Some(count) = returns {
            *location.marks_mut() |= REDELIVERED;
            if count > 0 {
                state.set_count(&mut location, count);
            }
        }
        let State { ready, notes, .. } = &mut *state;
        if let Some(notes) = notes {
            // One that is there already was a dead letter on its way when it came, and is kept as well.
            notes.enter_beside(message, &location);
        }
        let rank = ready.rank(Some(*message));
        ready.push(location, rank, message.body.len());
        self.backlog.store(state.ready.len(), Ordering::Relaxed);
    }

    /// Everything that it is to have has been taken in.
    pub(crate) fn has_arrived(&self) {
        // Whether something may expire, nobody knows until its turn comes.
        self.watch_head(&mut self.state.lock());
    }
}

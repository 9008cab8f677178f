//! What a queue may hand out already: in a cluster only what is committed, as the next leader may never have had the rest.
//!
//! A message that is not is handed out all the same: it gets its tag, counts for its consumer's limits, and stays in the
//! [outbox](crate::outbox) until it is. A broker whose log has no copies pays for none of this.

use super::backlog::SPILLED;
use super::settle::Settling;
use super::{Queue, State};
use courser_store::{Location, Lsn, Position, Store};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a queue has to know of commits where its log has copies on other machines.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// It delivers before that (`x-deliver-before-commit`).
    delivers_early: AtomicBool,
    /// Where the log ended with the last message that came by a transaction or from the broker itself. These wait in any
    /// case, and those that are not in the log with them.
    bound_to: AtomicU64,
}

/// How far the log is committed, as it was when a queue began to hand out.
pub(crate) struct Commits<'a> {
    pub store: &'a dyn Store,
    committed: Lsn,
    /// Messages that are in the log wait for it.
    all_wait: bool,
    bound_to: Lsn,
}

impl Commits<'_> {
    /// How far the log has to be committed until a message may be sent that is at `position` in it, or nowhere; its
    /// beginning if it may be at once.
    pub fn awaited_by(&self, position: Option<Position>) -> Lsn {
        // What is handed out one after the other waits together.
        if self.holds_back(position) { self.store.end() } else { Lsn::default() }
    }

    /// Whether such a message may not be seen yet.
    pub fn holds_back(&self, position: Option<Position>) -> bool {
        match position {
            Some(position) if position.is_before(self.committed) => false,
            Some(position) => self.all_wait || position.is_before(self.bound_to),
            None => self.bound_to > self.committed,
        }
    }
}

impl Queue {
    /// Notes whether it delivers before messages are committed.
    pub(super) fn deliver_early(&self, early: bool) {
        if let Some(copied) = &self.copied {
            copied.delivers_early.store(early, Ordering::Relaxed);
        }
    }

    /// Messages that are about to come, and end in the log at `lsn`, are delivered when they are committed, whatever
    /// policies say.
    pub(crate) fn bind_to_commit(&self, lsn: Lsn) {
        if let Some(copied) = &self.copied {
            copied.bound_to.fetch_max(lsn.0, Ordering::Relaxed);
        }
    }

    /// Tells the log that a message has come back, without a count: the next leader marks it as redelivered.
    pub(super) fn note_returned(
        &self,
        state: &mut State,
        location: &Location,
        settling: &mut Settling,
    ) {
        let is_in_log = self.copied.is_some() && self.settings.survives();
        let position = location.position().filter(|_| location.marks() & SPILLED == 0);
        if let Some(position) = position.filter(|_| is_in_log) {
            settling.returns.push((position, 0));
            state.has_returned = true;
        }
    }

    /// Tells the log, with what is settled, what has been handed out since the last time: the next leader marks it as
    /// redelivered.
    #[inline]
    pub(super) fn note_handed_out(&self, state: &mut State, settling: &mut Settling) {
        if self.copied.is_some() && self.settings.survives() {
            state.unacked.take_unnoted(&mut settling.returns);
        }
    }

    /// How far the log is committed; none if that does not matter.
    #[inline]
    pub(crate) fn commits<'a>(&self, store: &'a dyn Store) -> Option<Commits<'a>> {
        self.copied.as_ref().map(|copied| Commits {
            store,
            committed: store.deliverable(),
            all_wait: !copied.delivers_early.load(Ordering::Relaxed),
            bound_to: Lsn(copied.bound_to.load(Ordering::Relaxed)),
        })
    }
}

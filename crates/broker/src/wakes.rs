//! What is to be done once no lock is held: connections to wake, and dead letters to post.

use crate::counts::{Tally, VhostCounts};
use crate::outbox::Outbox;
use crate::queue::Queue;
use crate::trace::WaitingCopies;
use std::sync::Arc;

/// Room for so many connections is kept for the next batch.
const KEPT_WAKES: usize = 64;

/// Collects, while locks are held, what has to wait until none is.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    due: Vec<Arc<Outbox>>,
    /// Queues with letters that are not posted yet.
    lettered: Vec<Arc<Queue>>,
    posting: bool,
    /// Copies of what is traced, in vhosts where there are more of them than before.
    traced: Vec<Arc<WaitingCopies>>,
    /// There once something has been counted.
    tally: Option<Box<Tally>>,
}

impl Wakes {
    /// A batch has put something into `outbox`; its connection is woken once, at the batch's end.
    pub fn push(&mut self, outbox: &Arc<Outbox>) {
        self.due.push(Arc::clone(outbox));
    }

    /// A message has left `queue` for the dead-letter exchange: to be posted by
    /// `Shard::post_dead_letters` before the shard's gate is let go.
    pub fn push_lettered(&mut self, queue: &Arc<Queue>) {
        if self.lettered.last().is_none_or(|last| !Arc::ptr_eq(last, queue)) {
            self.lettered.push(Arc::clone(queue));
        }
    }

    /// Takes the queues whose letters are to be posted, if there are any. A caller that has taken some
    /// is posting until there are none.
    #[inline]
    pub fn take_lettered(&mut self) -> Option<Vec<Arc<Queue>>> {
        self.posting = !self.lettered.is_empty();
        self.posting.then(|| std::mem::take(&mut self.lettered))
    }

    /// There is a copy of a message that was delivered, or published: to be posted as letters are.
    pub fn push_traced(&mut self, copies: &Arc<WaitingCopies>) {
        if self.traced.last().is_none_or(|last| !Arc::ptr_eq(last, copies)) {
            self.traced.push(Arc::clone(copies));
        }
    }

    #[inline]
    pub fn has_traced(&self) -> bool {
        !self.traced.is_empty()
    }

    /// Takes those among which there are copies that are to be posted.
    #[inline]
    pub fn take_traced(&mut self) -> Vec<Arc<WaitingCopies>> {
        std::mem::take(&mut self.traced)
    }

    /// Where to count what happens in a vhost. It is added up when all connections are woken.
    #[inline]
    pub fn tally(&mut self, vhost: &Arc<VhostCounts>) -> &mut Tally {
        let tally = self.tally.get_or_insert_default();
        tally.turn_to(vhost);
        tally
    }

    /// Gives back the memory that an idle connection need not hold.
    pub fn release_memory(&mut self) {
        self.tally = None;
    }

    /// Whether letters are being posted: each may come to a queue with any number of messages that
    /// are to leave, and these must not all become letters in the same go.
    #[inline]
    pub fn is_posting(&self) -> bool {
        self.posting
    }

    /// Wakes all connections collected. Called without any lock held.
    pub fn wake_all(&mut self) {
        debug_assert!(self.lettered.is_empty(), "dead letters were left lying");
        debug_assert!(self.traced.is_empty(), "copies were left lying");
        for outbox in self.due.drain(..) {
            outbox.wake();
        }
        if self.due.capacity() > KEPT_WAKES {
            self.due = Vec::new();
        }
        if let Some(tally) = &mut self.tally {
            tally.add_up();
        }
    }
}

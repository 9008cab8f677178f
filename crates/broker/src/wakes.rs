//! What is to be done once no lock is held: connections to wake, and dead letters to post.

use crate::dead_letter::Letter;
use crate::outbox::Outbox;
use std::sync::Arc;

/// Collects, while locks are held, what has to wait until none is.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    due: Vec<Arc<Outbox>>,
    letters: Vec<Letter>,
    posting: bool,
}

impl Wakes {
    /// A batch has put something into `outbox`; its connection is woken once, at the batch's end.
    pub fn push(&mut self, outbox: &Arc<Outbox>) {
        self.due.push(Arc::clone(outbox));
    }

    /// A message has left its queue for the dead-letter exchange: to be posted by
    /// `Broker::post_dead_letters` before the broker's gate is let go.
    pub fn push_letter(&mut self, letter: Letter) {
        self.letters.push(letter);
    }

    /// Takes the letters to be posted, if there are any. Whoever has taken some is posting until there
    /// are none.
    #[inline]
    pub fn take_letters(&mut self) -> Option<Vec<Letter>> {
        self.posting = !self.letters.is_empty();
        self.posting.then(|| std::mem::take(&mut self.letters))
    }

    /// Whether letters are being posted: each may come to a queue with any number of messages that
    /// are to leave, and these must not all become letters in the same go.
    #[inline]
    pub fn is_posting(&self) -> bool {
        self.posting
    }

    /// Wakes all connections collected. Called without any lock held.
    pub fn wake_all(&mut self) {
        debug_assert!(self.letters.is_empty(), "dead letters were left lying");
        for outbox in self.due.drain(..) {
            outbox.wake();
        }
    }
}

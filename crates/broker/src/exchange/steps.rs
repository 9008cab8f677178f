//! How much work it may be to find the way of one message.

use crate::fault::Fault;
use crate::work;

/// What one message may take. Real ones take some ten for each of their keys and exchanges.
const STEPS_MAX: usize = 1 << 18;

/// The steps on the way of one message: keys that are looked up, and words that are compared with those of patterns. By CC and
/// BCC a message has very many keys, and each of them may have to be compared with very many patterns.
pub(crate) struct Steps {
    left: usize,
    is_over: bool,
}

impl Steps {
    /// As many as one message may take.
    pub fn of_one_message() -> Self {
        Self::at_most(STEPS_MAX)
    }

    /// So many.
    pub fn at_most(steps: usize) -> Self {
        Steps { left: steps, is_over: false }
    }

    /// Takes one: a key is looked up, or a word is compared with all that may follow a part of a pattern.
    #[inline]
    pub fn step(&mut self) -> bool {
        work::count(1);
        self.take(1)
    }

    /// Takes so many. Returns false once there are not enough left: the way ends there.
    #[inline]
    pub fn take(&mut self, steps: usize) -> bool {
        match self.left.checked_sub(steps) {
            Some(left) if !self.is_over => self.left = left,
            _ => self.is_over = true,
        }
        !self.is_over
    }

    /// Whether there were not enough.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Refuses a message for which there were not enough.
    pub fn check(&self) -> Result<(), Fault> {
        if !self.is_over {
            return Ok(());
        }
        let text = format_args!(
            "a message that takes more than {STEPS_MAX} steps to route: name fewer keys in CC and BCC, or use fewer patterns with '#'"
        );
        Err(Fault::new(506, text))
    }
}

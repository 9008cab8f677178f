//! How much work it may be to find the way of one message.

use crate::fault::Fault;
use crate::work;
use courser_codec::RawProperties;

/// What one message may take. Real ones take some ten for each of their keys and exchanges.
const STEPS_MAX: usize = 1 << 18;

/// The steps on the way of one message: keys that are looked up, words that are compared with those of patterns, headers that
/// exchanges look through and bindings ask for. By CC and BCC a message has very many keys, and each of them may have to be compared with very many patterns;
/// and it may have thousands of headers, or a very long one, which thousands of bindings ask for, or each of thousands of exchanges
/// looks through, or keeps a copy of.
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

    /// Takes one: a key or a header is looked up, or a word is compared with all that may follow a part of a pattern.
    #[inline]
    pub fn step(&mut self) -> bool {
        work::count(1);
        self.take(1)
    }

    /// What `look` finds; it takes as many as that counts.
    pub fn look<T>(&mut self, look: impl FnOnce() -> T) -> T {
        let before = work::steps();
        let found = look();
        self.take((work::steps() - before) as usize);
        found
    }

    /// Takes those of a copy of a message's properties. Returns as [`Steps::take`].
    pub fn copy(&mut self, properties: RawProperties<'_>) -> bool {
        self.look(|| work::count_read(properties.as_bytes().len()));
        !self.is_over
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
            "a message that takes more than {STEPS_MAX} steps to route: name fewer keys in CC and BCC, use fewer patterns with '#', or \
             bind fewer queues by the same headers"
        );
        Err(Fault::new(506, text))
    }
}

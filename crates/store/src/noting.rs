//! What is noted of messages beside their places, so that a start need not read them.

use crate::MessageRef;
use std::fmt;

/// Finds in a message what its queue has to know of it at a start. The owner of a log gives it to those that replay the log, who can't
/// read a message otherwise: a node that keeps a copy of the log makes checkpoints without a broker.
pub trait Noting: fmt::Debug + Send + Sync {
    /// What it says of its priority.
    fn priority(&self, message: &MessageRef<'_>) -> Option<u8>;
}

/// What a message says of its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// It was not looked at.
    Unknown,
    /// Nothing.
    Unsaid,
    /// This one.
    Is(u8),
}

/// Codes behind those of all numbers.
const UNSAID: u32 = 256;
const UNKNOWN: u32 = 257;

impl Priority {
    /// The number that stands for it in a checkpoint.
    pub(crate) fn coded(self) -> u32 {
        match self {
            Priority::Is(priority) => priority.into(),
            Priority::Unsaid => UNSAID,
            Priority::Unknown => UNKNOWN,
        }
    }

    /// What [`Priority::coded`] has given; none of another number.
    pub(crate) fn from_coded(coded: u32) -> Option<Self> {
        match coded {
            UNSAID => Some(Priority::Unsaid),
            UNKNOWN => Some(Priority::Unknown),
            priority => u8::try_from(priority).ok().map(Priority::Is),
        }
    }
}

impl From<Option<u8>> for Priority {
    fn from(said: Option<u8>) -> Self {
        said.map_or(Priority::Unsaid, Priority::Is)
    }
}

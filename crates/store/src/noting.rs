//! What is noted of messages beside their places, so that a start need not read them.

use crate::MessageRef;
use std::collections::HashMap;
use std::fmt;

/// Finds in a message what its queue has to know of it at a start. The owner of a log gives it to those that replay the log, who can't
/// read a message otherwise: a node that keeps a copy of the log makes checkpoints without a broker.
pub trait Noting: fmt::Debug + Send + Sync {
    /// What it says of its priority.
    fn priority(&self, message: &MessageRef<'_>) -> Option<u8>;

    /// Of the definition of a queue that holds no two messages of the same: its number, and by what [`Noting::key`] tells those of
    /// this queue apart.
    fn keeps_apart(&self, key: &[u8], value: &[u8]) -> Option<(u64, Box<[u8]>)>;

    /// What identifies a message among others.
    fn key(&self, by: &[u8], message: &MessageRef<'_>) -> Key;
}

/// What identifies a message in a queue that holds no two of the same: the same at each start, and on each node.
pub type Key = [u8; KEY_LEN];

/// Bytes of a key.
pub(crate) const KEY_LEN: usize = 16;

/// The key of a message that says nothing that identifies it.
pub const NO_KEY: Key = [0; KEY_LEN];

/// What a replay notes, by what was defined before.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    noting: Option<&'static dyn Noting>,
    /// The queues that hold no two messages of the same, and by what these are told apart.
    apart: HashMap<u64, Box<[u8]>>,
}

impl Notes {
    pub fn new(noting: Option<&'static dyn Noting>) -> Self {
        Notes { noting, ..Notes::default() }
    }

    pub fn define(&mut self, key: &[u8], value: &[u8]) {
        self.apart.extend(self.noting.and_then(|noting| noting.keeps_apart(key, value)));
    }

    pub fn drop_queue(&mut self, queue: u64) {
        self.apart.remove(&queue);
    }

    pub fn priority(&self, message: &MessageRef<'_>) -> Priority {
        let said = self.noting.map(|noting| noting.priority(message));
        said.map_or(Priority::Unknown, Priority::from)
    }

    /// The key of a message of this queue, if that has some.
    pub fn key(&self, queue: u64, message: &MessageRef<'_>) -> Option<Key> {
        Some(self.noting?.key(self.apart.get(&queue)?, message))
    }
}

/// What is to be noted is no part of a state.
impl PartialEq for Notes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
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

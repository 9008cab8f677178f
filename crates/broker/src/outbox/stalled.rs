//! What has more for a connection than its outbox has room for, in the order of turns.

use super::{ChannelOut, OutboxState};
use crate::queue::Queue;
use crate::work;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// Something that waits for its turn to put more into an outbox.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// A queue with messages for consumers of the connection.
    Queue(Arc<Queue>),
    /// The reader with this number, of a stream.
    Reader(u64),
    /// The consumers of this channel, which share its limit.
    Channel(u16),
}

impl Turn {
    /// Unlike that of any other.
    fn key(&self) -> (u8, u64) {
        match self {
            Turn::Queue(queue) => (0, queue.id),
            Turn::Reader(id) => (1, *id),
            Turn::Channel(number) => (2, u64::from(*number)),
        }
    }
}

/// Turns to come, the longest due first; each once.
#[derive(Debug, Default)]
pub struct Stalled {
    turns: VecDeque<Turn>,
    known: FxHashSet<(u8, u64)>,
}

impl Stalled {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Adds a turn behind all others, unless it is there already.
    pub(crate) fn push(&mut self, turn: Turn) {
        if self.known.insert(turn.key()) {
            self.turns.push_back(turn);
        }
    }

    /// Takes the turn that has been due longest.
    pub(crate) fn pop(&mut self) -> Option<Turn> {
        let turn = self.turns.pop_front()?;
        self.known.remove(&turn.key());
        Some(turn)
    }

    /// Adds turns behind all others.
    pub(crate) fn append(&mut self, later: Stalled) {
        later.turns.into_iter().for_each(|turn| self.push(turn));
    }
}

impl OutboxState {
    /// Remembers to give something its turn when this outbox has been drained, behind all else.
    pub(crate) fn stall(&mut self, turn: Turn) {
        self.stalled.push(turn);
    }

    /// Remembers turns that are due longer than all others.
    pub(crate) fn stall_first(&mut self, first: Stalled) {
        let later = std::mem::replace(&mut self.stalled, first);
        self.stalled.append(later);
    }

    /// Lets the queues of all consumers of a channel have their turns.
    pub(crate) fn resume_channel(&mut self, number: u16) {
        let OutboxState { channels, stalled, .. } = self;
        let consumers = channels.get(number).into_iter().flat_map(ChannelOut::consumers);
        for slot in consumers {
            work::count(1);
            stalled.push(Turn::Queue(Arc::clone(&slot.queue)));
        }
    }

    /// Lets consumers that wait for the limit of a whole channel have their turns, if there are any.
    #[inline]
    pub(crate) fn resume_starved(&mut self, number: u16) {
        if self.channel(number).is_some_and(|channel| channel.has_starved()) {
            self.stall(Turn::Channel(number));
        }
    }
}

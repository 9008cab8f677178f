//! What has more for a connection than its outbox has room for, in the order of turns.

use super::{ChannelOut, OutboxState};
use crate::queue::{Handle, Queue};
use crate::work;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Something that waits for its turn to put more into an outbox.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// A queue with messages for consumers of the connection. It is not kept for that once it is deleted.
    Queue(Handle),
    /// The reader with this number, of a stream.
    Reader(u64),
    /// The consumers of this channel, which share its limit.
    Channel(u16),
}

impl Turn {
    /// That of a queue.
    pub fn of(queue: &Queue) -> Self {
        Turn::Queue(queue.handle.clone())
    }

    /// Whether it is one of a queue that is gone.
    fn is_vain(&self) -> bool {
        matches!(self, Turn::Queue(queue) if queue.is_vain())
    }

    /// Unlike that of any other.
    fn key(&self) -> (u8, u64) {
        match self {
            Turn::Queue(queue) => (0, queue.key()),
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
            if self.turns.len() == self.turns.capacity() {
                self.make_room();
            }
            self.turns.push_back(turn);
        }
    }

    /// Makes room for as many turns again, once those of queues that are gone are forgotten: nothing else ends them while the
    /// client does not read, or acknowledge.
    #[cold]
    fn make_room(&mut self) {
        let Stalled { turns, known } = self;
        work::count(turns.len());
        turns.retain(|turn| !(turn.is_vain() && known.remove(&turn.key())));
        turns.reserve(turns.len());
    }

    /// Bytes that it uses, if all the queues are gone.
    pub(super) fn used_bytes(&self) -> usize {
        let each = size_of::<Turn>() + Handle::BYTES + 2 * size_of::<(u8, u64)>();
        self.turns.capacity() * each
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
        self.count_stalled();
    }

    /// Takes all turns.
    pub(super) fn take_stalled(&mut self) -> Stalled {
        let stalled = std::mem::take(&mut self.stalled);
        self.count_stalled();
        stalled
    }

    fn count_stalled(&mut self) {
        let used = self.stalled.used_bytes();
        if used != self.stalled_charge.bytes() {
            self.stalled_charge.set(used);
        }
    }

    /// Remembers turns that are due longer than all others.
    pub(crate) fn stall_first(&mut self, first: Stalled) {
        let later = std::mem::replace(&mut self.stalled, first);
        self.stalled.append(later);
        self.count_stalled();
    }

    /// Lets the queues of all consumers of a channel have their turns.
    pub(crate) fn resume_channel(&mut self, number: u16) {
        let OutboxState { channels, stalled, .. } = self;
        let consumers = channels.get(number).into_iter().flat_map(ChannelOut::consumers);
        for slot in consumers {
            work::count(1);
            stalled.push(Turn::of(&slot.queue));
        }
        self.count_stalled();
    }

    /// Lets consumers that wait for the limit of a whole channel have their turns, if there are any.
    #[inline]
    pub(crate) fn resume_starved(&mut self, number: u16) {
        if self.channel(number).is_some_and(|channel| channel.has_starved()) {
            self.stall(Turn::Channel(number));
        }
    }
}

//! What is on its way to all clients together has a share of memory. While that is used up, a connection that has something to
//! send gets nothing more, and what is large waits until others have been sent enough: slow readers hold back each other.

use super::{Outbox, OutboxState};
use courser_store::MessageRef;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// While memory is short, an outbox that has anything to send is full.
pub(super) const HIGH_WHILE_SHORT: usize = 1;

/// A message of no more bytes is given all the same to a connection that has nothing to send: all connections that there may be
/// take little by it.
const SMALL_BYTES: usize = 8 * 1024;

/// Whether the share is used up, and who waits for room in it.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    is_short: AtomicBool,
    /// The turns below this have come: who has one has been woken.
    come: AtomicU64,
    line: Mutex<Line>,
}

/// Connections that wait, by their turns: those that have waited longest are woken first.
#[derive(Debug, Default)]
struct Line {
    waiting: BTreeMap<u64, Arc<Outbox>>,
    next_turn: u64,
}

impl Shortage {
    /// Whether the share is used up.
    #[inline]
    pub fn is_there(&self) -> bool {
        self.is_short.load(Ordering::SeqCst)
    }

    /// What is on its way has grown or shrunk to `used` bytes, of which it may be `most`. The shortage ends well below its
    /// beginning, so that it does not flutter: each end wakes all that wait.
    pub fn note(&self, used: impl Fn() -> u64, most: u64) {
        let changes = match self.is_there() {
            true => used() < most / 4 * 3,
            false => used() >= most,
        };
        if changes {
            self.change(used, most);
        }
    }

    #[cold]
    fn change(&self, used: impl Fn() -> u64, most: u64) {
        let mut woken = BTreeMap::new();
        {
            let mut line = self.line.lock();
            if used() >= most {
                self.is_short.store(true, Ordering::SeqCst);
            }
            // Read again: what has shrunk just now may not have seen that it is to end this.
            if used() < most / 4 * 3 {
                self.is_short.store(false, Ordering::SeqCst);
                self.come.store(line.next_turn, Ordering::SeqCst);
                woken = std::mem::take(&mut line.waiting);
            }
        }
        for outbox in woken.into_values() {
            outbox.wake();
        }
    }

    /// Has a connection woken at the end of the shortage. Returns its turn, and none if that has ended just now.
    fn enter(&self, outbox: &Arc<Outbox>) -> Option<u64> {
        let mut line = self.line.lock();
        if !self.is_there() {
            return None;
        }
        let turn = line.next_turn;
        line.next_turn += 1;
        line.waiting.insert(turn, Arc::clone(outbox));
        Some(turn)
    }

    fn leave(&self, turn: u64) {
        let left = self.line.lock().waiting.remove(&turn);
        drop(left);
    }
}

/// Whether it takes so much of an outbox that it may have to wait.
fn is_large(message: &MessageRef<'_>) -> bool {
    let copied = if message.shares_body() { 0 } else { message.body.len() };
    message.header.len() + copied > SMALL_BYTES
}

impl Outbox {
    #[inline]
    fn is_short(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.shortage.is_there())
    }

    /// From how many bytes on it takes no more deliveries for now.
    #[inline]
    pub(crate) fn high_bytes(&self) -> usize {
        if self.is_short() { HIGH_WHILE_SHORT } else { self.high_bytes }
    }

    /// Whether a message that no consumer waits for has no room now.
    pub(crate) fn has_no_room_for(&self, message: &MessageRef<'_>) -> bool {
        self.is_short() && is_large(message)
    }

    /// Whether a message has to wait until there is room, as `high_bytes` says that there is little. Its connection is woken then.
    #[inline]
    pub(crate) fn defers(
        self: &Arc<Self>,
        state: &mut OutboxState,
        message: &MessageRef<'_>,
        high_bytes: usize,
    ) -> bool {
        high_bytes == HIGH_WHILE_SHORT && self.defers_while_short(state, message)
    }

    #[cold]
    fn defers_while_short(
        self: &Arc<Self>,
        state: &mut OutboxState,
        message: &MessageRef<'_>,
    ) -> bool {
        let Some(memory) = self.memory.as_ref().filter(|_| is_large(message)) else { return false };
        if state.turn.is_none() {
            state.turn = memory.shortage.enter(self);
        }
        state.turn.is_some()
    }

    /// It waits for room no more.
    pub(super) fn leave_line(&self, state: &mut OutboxState) {
        if let (Some(turn), Some(memory)) = (state.turn.take(), &self.memory) {
            memory.shortage.leave(turn);
        }
    }

    /// Takes note that its turn has come, if it has. Called by its task: another shortage may have begun since that was woken.
    pub(super) fn note_room(&self, state: &mut OutboxState) {
        if let (Some(turn), Some(memory)) = (state.turn, &self.memory)
            && turn < memory.shortage.come.load(Ordering::SeqCst)
        {
            state.turn = None;
        }
    }
}

impl OutboxState {
    /// Whether it takes no more deliveries until some have been sent, or there is room for what it waits for.
    #[inline]
    pub(super) fn is_full(&self, high_bytes: usize) -> bool {
        self.bytes() + self.ahead >= high_bytes
            || high_bytes == HIGH_WHILE_SHORT && self.turn.is_some()
    }
}

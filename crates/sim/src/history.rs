//! What the broker should hold: every change, with the position in the log behind it.

use std::collections::BTreeMap;

/// One change that survives.
#[derive(Clone, Debug)]
pub enum Op {
    /// A durable queue was declared.
    Declare(String),
    /// It was deleted.
    Delete(String),
    /// A persistent message was published to it.
    Publish(String, u64),
    /// It is done with a message.
    Settle(String, u64),
    /// A durable queue was bound to the fanout exchange.
    Bind(String),
    /// It was unbound from it.
    Unbind(String),
    /// A persistent message waits for its time, in milliseconds.
    Delay(u64, u64),
    /// It does not wait any more.
    Release(u64),
}

/// What survives: for each durable queue its messages in order, and whether it is bound; and what
/// waits for its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The queues by name.
    pub queues: BTreeMap<String, QueueState>,
    /// Messages that wait, by number, and when they are due.
    pub delayed: BTreeMap<u64, u64>,
}

/// What survives of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Numbers of the messages, oldest first.
    pub messages: Vec<u64>,
    /// Bound to the fanout exchange.
    pub bound: bool,
}

impl Op {
    fn is_topology(&self) -> bool {
        matches!(self, Op::Declare(_) | Op::Delete(_) | Op::Bind(_) | Op::Unbind(_))
    }
}

impl State {
    fn apply(&mut self, op: &Op) {
        match op {
            Op::Declare(queue) => drop(self.queues.entry(queue.clone()).or_default()),
            Op::Delete(queue) => drop(self.queues.remove(queue)),
            Op::Publish(queue, id) => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.messages.push(*id);
                }
            }
            Op::Settle(queue, id) => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.messages.retain(|other| other != id);
                }
            }
            Op::Bind(queue) => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.bound = true;
                }
            }
            Op::Delay(id, due_ms) => drop(self.delayed.insert(*id, *due_ms)),
            Op::Release(id) => drop(self.delayed.remove(id)),
            Op::Unbind(queue) => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.bound = false;
                }
            }
        }
    }
}

/// All changes since the last start.
#[derive(Debug, Default)]
pub struct History {
    start: State,
    now: State,
    /// Changes that became durable together, with the end of the log behind them.
    changes: Vec<(u64, Vec<Op>)>,
    /// Changes for which the log had no room, and no checkpoint stands.
    unlogged: Vec<Op>,
    /// A checkpoint that would have stood for them failed: whether it counts is not known.
    may_be_kept: bool,
}

impl History {
    /// Begins with what is there.
    pub fn new(start: State) -> Self {
        History { now: start.clone(), start, ..History::default() }
    }

    /// What is there now.
    pub fn now(&self) -> &State {
        &self.now
    }

    /// The end of the log behind the last change.
    pub fn end(&self) -> Option<u64> {
        self.changes.last().map(|(end, _)| *end)
    }

    /// Notes changes that the log holds together, in one batch that ends at `end`.
    pub fn note(&mut self, end: u64, ops: Vec<Op>) {
        ops.iter().for_each(|op| self.now.apply(op));
        let ops = self.in_the_order_of_the_log(ops);
        match self.changes.last_mut() {
            Some((last, together)) if *last == end => together.extend(ops),
            _ => self.changes.push((end, ops)),
        }
    }

    /// Changes of the topology for which there was no room go before the next ones.
    fn in_the_order_of_the_log(&mut self, ops: Vec<Op>) -> Vec<Op> {
        if !ops.iter().any(Op::is_topology) {
            return ops;
        }
        let (mut first, rest) = self.unlogged.drain(..).partition::<Vec<_>, _>(Op::is_topology);
        self.unlogged = rest;
        first.extend(ops);
        first
    }

    /// Whether none of these would change anything.
    pub fn has_all(&self, ops: &[Op]) -> bool {
        let mut state = self.now.clone();
        ops.iter().for_each(|op| state.apply(op));
        state == self.now
    }

    /// Whether there are changes that a crash takes back.
    pub fn has_unlogged(&self) -> bool {
        !self.unlogged.is_empty()
    }

    /// Notes changes for which the log had no room: a crash takes them back, each that would have
    /// been one.
    pub fn note_unlogged(&mut self, ops: Vec<Op>) {
        for op in ops {
            let before = self.now.clone();
            self.now.apply(&op);
            if self.now != before {
                self.unlogged.push(op);
            }
        }
    }

    /// A checkpoint was made, with the log ending at `end`; it stands for everything so far.
    pub fn checkpointed(&mut self, end: u64) {
        let ops = std::mem::take(&mut self.unlogged);
        if !ops.is_empty() {
            self.note(end, ops);
        }
    }

    /// A checkpoint was begun, and the store has failed.
    pub fn checkpoint_failed(&mut self) {
        self.may_be_kept = true;
    }

    /// Whether `found` is what was there at a moment not before `durable`, or what the first
    /// difference is.
    pub fn check(&self, durable: u64, found: &State) -> Result<(), String> {
        let mut state = self.start.clone();
        let mut allowed = Vec::new();
        let mut nearest = None;
        if self.changes.first().is_none_or(|(end, _)| *end > durable) {
            allowed.push(state.clone());
        }
        for (index, (end, ops)) in self.changes.iter().enumerate() {
            ops.iter().for_each(|op| state.apply(op));
            let next_is_durable =
                self.changes.get(index + 1).is_some_and(|(next, _)| *next <= durable);
            if !next_is_durable {
                allowed.push(state.clone());
                nearest.get_or_insert(*end);
            }
        }
        if self.may_be_kept {
            self.unlogged.iter().for_each(|op| state.apply(op));
            allowed.push(state);
        }
        if allowed.contains(found) {
            return Ok(());
        }
        let first = &allowed[0];
        Err(format!(
            "found {found:?}\nwhich is no moment from {durable} on ({} moments); the first of them \
             (end {nearest:?}) is {first:?}\nthe last is {:?}",
            allowed.len(),
            self.now,
        ))
    }
}

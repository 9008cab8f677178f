//! Which messages a queue has, as a start finds them.

use crate::change::{ascending, put_ascending, put_varint, take_varint};
use crate::noting::{KEY_LEN, Key};
use crate::{BodySize, Position, Priority};
use std::collections::{HashMap, HashSet};

/// A message of a queue, and what is known of it without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedMessage {
    /// Where it is in the log.
    pub position: Position,
    /// How large its body is.
    pub body: BodySize,
    /// What it says of its priority.
    pub priority: Priority,
}

/// The messages of one queue, in a few bytes each: they may be many millions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueueIndex {
    /// What the checkpoint says, in the queue's order, encoded as it was there.
    runs: Vec<Run>,
    /// Messages in `runs`.
    runs_len: usize,
    /// Messages from behind the checkpoint.
    newest: Vec<IndexedMessage>,
    /// Positions that are known to be settled, to be removed together.
    settled: HashSet<Position>,
    /// How often the messages at these positions have come back from consumers.
    pub(crate) returns: HashMap<Position, u64>,
    /// What identifies the messages at these positions, in a queue that holds no two of the same.
    pub(crate) keys: HashMap<Position, Key>,
}

/// Messages of a checkpoint.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    positions: Box<[u8]>,
    /// How large they are, [alike](put_alike) ones together. Empty if that is not known.
    sizes: Box<[u8]>,
    /// What they say of their priorities, likewise.
    priorities: Box<[u8]>,
}

impl Run {
    fn of(messages: &[IndexedMessage]) -> Self {
        let (mut positions, mut sizes, mut priorities) = (Vec::new(), Vec::new(), Vec::new());
        put_ascending(&mut positions, messages.iter().map(|message| message.position));
        put_sizes(&mut sizes, messages.iter().map(|message| message.body));
        put_priorities(&mut priorities, messages.iter().map(|message| message.priority));
        Run { positions: positions.into(), sizes: sizes.into(), priorities: priorities.into() }
    }

    fn messages(&self) -> impl Iterator<Item = IndexedMessage> {
        let positions = ascending(&self.positions).unwrap_or_default().into_iter();
        let sizes = numbers(&self.sizes, BodySize::UNKNOWN.coded());
        let priorities = numbers(&self.priorities, Priority::Unknown.coded());
        positions.zip(sizes).zip(priorities).map(|((position, size), priority)| IndexedMessage {
            position,
            body: BodySize::from_coded(size),
            priority: Priority::from_coded(priority).unwrap_or(Priority::Unknown),
        })
    }
}

/// Appends numbers: how often one comes in a row, and the number.
fn put_alike(out: &mut Vec<u8>, mut numbers: impl Iterator<Item = u32>) {
    let (mut times, mut number) = (1, numbers.next());
    while let Some(this) = number {
        let next = numbers.next();
        if next == number {
            times += 1;
            continue;
        }
        put_varint(out, times);
        put_varint(out, this.into());
        (times, number) = (1, next);
    }
}

/// Takes a number off the front, and how often it comes in a row; none if there is none.
fn take_alike(bytes: &mut &[u8]) -> Option<(u64, u32)> {
    let times = take_varint(bytes)?;
    let number = u32::try_from(take_varint(bytes)?).ok()?;
    (times > 0).then_some((times, number))
}

/// The numbers that [`put_alike`] has appended, and `otherwise` without end behind them.
fn numbers(mut bytes: &[u8], otherwise: u32) -> impl Iterator<Item = u32> {
    let (mut number, mut left) = (otherwise, 0);
    std::iter::from_fn(move || {
        if left == 0 {
            (left, number) = take_alike(&mut bytes).unwrap_or((u64::MAX, otherwise));
        }
        left -= 1;
        Some(number)
    })
}

/// How many numbers these are; none if they are malformed, or `is_good` denies one.
fn numbers_len(mut bytes: &[u8], is_good: impl Fn(u32) -> bool) -> Option<u64> {
    let mut len = 0u64;
    while !bytes.is_empty() {
        let (times, _) = take_alike(&mut bytes).filter(|(_, number)| is_good(*number))?;
        len = len.checked_add(times)?;
    }
    Some(len)
}

/// Appends the sizes of messages; nothing if none is known.
pub(crate) fn put_sizes(out: &mut Vec<u8>, sizes: impl Iterator<Item = BodySize> + Clone) {
    if sizes.clone().any(|size| size.bytes().is_some()) {
        put_alike(out, sizes.map(BodySize::coded));
    }
}

/// Appends what messages say of their priorities; nothing if that is not known of any.
pub(crate) fn put_priorities(out: &mut Vec<u8>, all: impl Iterator<Item = Priority> + Clone) {
    if all.clone().any(|priority| priority != Priority::Unknown) {
        put_alike(out, all.map(Priority::coded));
    }
}

/// Appends keys: the position of each as the difference to that before, and the key.
pub(crate) fn put_keys(out: &mut Vec<u8>, keys: &[(Position, Key)]) {
    let mut before = 0;
    for (position, key) in keys {
        put_varint(out, position.0.wrapping_sub(before));
        out.extend_from_slice(key);
        before = position.0;
    }
}

impl QueueIndex {
    pub(crate) fn push(&mut self, message: IndexedMessage, key: Option<Key>) {
        self.keys.extend(key.map(|key| (message.position, key)));
        self.newest.push(message);
    }

    /// Adds a run of a checkpoint; none if it is malformed.
    pub(crate) fn push_run(&mut self, encoded: &[u8]) -> Option<()> {
        self.runs_len += ascending(encoded)?.len();
        self.runs.push(Run { positions: encoded.into(), ..Run::default() });
        Some(())
    }

    /// The run that was added last, if it is followed by so many numbers: one for each of its messages.
    fn last_run_of(&mut self, len: u64) -> Option<&mut Run> {
        let run = self.runs.last_mut()?;
        (ascending(&run.positions)?.len() as u64 == len).then_some(run)
    }

    /// Adds the sizes of the messages of the run before; none if they are malformed.
    pub(crate) fn push_sizes(&mut self, encoded: &[u8]) -> Option<()> {
        let len = numbers_len(encoded, |_| true)?;
        self.last_run_of(len)?.sizes = encoded.into();
        Some(())
    }

    /// The same for what they say of their priorities.
    pub(crate) fn push_priorities(&mut self, encoded: &[u8]) -> Option<()> {
        let len = numbers_len(encoded, |coded| Priority::from_coded(coded).is_some())?;
        self.last_run_of(len)?.priorities = encoded.into();
        Some(())
    }

    /// Adds what identifies messages; none if it is malformed.
    pub(crate) fn push_keys(&mut self, mut encoded: &[u8]) -> Option<()> {
        let mut before = 0u64;
        while !encoded.is_empty() {
            before = before.wrapping_add(take_varint(&mut encoded)?);
            let (key, rest) = encoded.split_first_chunk::<KEY_LEN>()?;
            self.keys.insert(Position(before), *key);
            encoded = rest;
        }
        Some(())
    }

    pub(crate) fn settle(&mut self, positions: Vec<Position>) {
        if !self.returns.is_empty() || !self.keys.is_empty() {
            for position in &positions {
                self.returns.remove(position);
                self.keys.remove(position);
            }
        }
        self.settled.extend(positions);
        if self.settled.len() > 1024 && self.settled.len() * 2 > self.runs_len + self.newest.len() {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let settled = std::mem::take(&mut self.settled);
        let is_left = |message: &IndexedMessage| !settled.contains(&message.position);
        self.newest.retain(is_left);
        self.runs_len = 0;
        for run in &mut self.runs {
            let left: Vec<_> = run.messages().filter(is_left).collect();
            self.runs_len += left.len();
            *run = Run::of(&left);
        }
        self.runs.retain(|run| !run.positions.is_empty());
        self.sweep_returns();
    }

    /// Keeps the returns of what is left: a log may tell of them behind what was settled meanwhile.
    fn sweep_returns(&mut self) {
        if !self.returns.is_empty() {
            let mut all = std::mem::take(&mut self.returns);
            self.returns = self.positions().filter_map(|at| all.remove_entry(&at)).collect();
        }
    }

    /// How often the message at this position has come back, as far as the queue counts that; none if it is not known to
    /// have been handed out.
    pub fn returns(&self, position: Position) -> Option<u64> {
        self.returns.get(&position).copied()
    }

    /// What identifies the message at this position, in a queue that holds no two of the same; none if that is not known.
    pub fn key(&self, position: Position) -> Option<Key> {
        self.keys.get(&position).copied()
    }

    /// The positions of the messages that the queue still has, in its order.
    pub fn positions(&self) -> impl Iterator<Item = Position> {
        self.messages().map(|message| message.position)
    }

    /// The messages themselves. Checkpoints of earlier versions tell less of them.
    pub fn messages(&self) -> impl Iterator<Item = IndexedMessage> {
        let all = self.runs.iter().flat_map(Run::messages).chain(self.newest.iter().copied());
        all.filter(|message| !self.settled.contains(&message.position))
    }
}

//! Which messages a queue has, as a start finds them.

use crate::change::{ascending, put_ascending, put_varint, take_varint};
use crate::noting::{KEY_LEN, Key};
use crate::{BodySize, Position, Priority};
use std::collections::{BTreeMap, HashMap};

/// A message of a queue, and what is known of it without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedMessage {
    /// Where it is in the log.
    pub position: Position,
    /// How large its body is.
    pub body: BodySize,
    /// What it says of its priority.
    pub priority: Priority,
    /// How often it has come back from consumers, as far as the queue counts that; none if it is not known to have been handed out.
    pub returns: Option<u32>,
}

/// The messages of one queue, in a few bytes each: they may be many millions.
#[derive(Debug, Default)]
pub struct QueueIndex {
    /// The queue's first messages, in its order.
    runs: Vec<Run>,
    /// Messages in `runs`.
    runs_len: usize,
    /// Those behind them.
    newest: Vec<IndexedMessage>,
    /// What has become of messages meanwhile: a few of all, which are then told of it together.
    changes: BTreeMap<Position, Change>,
    /// What identifies the messages at these positions, in a queue that holds no two of the same.
    pub(crate) keys: HashMap<Position, Key>,
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Settled,
    /// It has come back so often.
    Returned(u32),
}

/// Messages of a run that is packed while a log is replayed, at most.
const RUN_MESSAGES: usize = 128;
/// A run with fewer is packed together with its neighbours.
const RUN_MESSAGES_MIN: usize = RUN_MESSAGES / 2;
/// Messages of which it is noted what has become of them, at least, and the part of all that they may be besides.
const CHANGES: usize = 1024;
const CHANGED_PART: usize = 16;

/// Messages whose positions ascend.
#[derive(Debug, Default)]
struct Run {
    first: Position,
    last: Position,
    len: usize,
    positions: Box<[u8]>,
    /// How large they are, [alike](put_alike) ones together. Empty if that is not known.
    sizes: Box<[u8]>,
    /// What they say of their priorities, likewise.
    priorities: Box<[u8]>,
    /// How often they have come back, and one more; 0 for those that are not known to have been handed out. Empty if that is all.
    returns: Box<[u8]>,
}

impl Run {
    /// Of such positions; none if they are malformed.
    fn at(encoded: &[u8]) -> Option<Self> {
        let positions = ascending(encoded)?;
        let (Some(first), Some(last)) = (positions.first().copied(), positions.last().copied())
        else {
            return Some(Run::default());
        };
        Some(Run { first, last, len: positions.len(), positions: encoded.into(), ..Run::default() })
    }

    fn of(messages: &[IndexedMessage]) -> Self {
        let (mut positions, mut sizes, mut priorities) = (Vec::new(), Vec::new(), Vec::new());
        put_ascending(&mut positions, messages.iter().map(|message| message.position));
        put_sizes(&mut sizes, messages.iter().map(|message| message.body));
        put_priorities(&mut priorities, messages.iter().map(|message| message.priority));
        let mut returns = Vec::new();
        if messages.iter().any(|message| message.returns.is_some()) {
            let coded = |returns: Option<u32>| returns.map_or(0, |count| count.saturating_add(1));
            put_alike(&mut returns, messages.iter().map(|message| coded(message.returns)));
        }
        Run {
            first: messages.first().map_or(Position(0), |message| message.position),
            last: messages.last().map_or(Position(0), |message| message.position),
            len: messages.len(),
            positions: positions.into(),
            sizes: sizes.into(),
            priorities: priorities.into(),
            returns: returns.into(),
        }
    }

    fn messages(&self) -> impl Iterator<Item = IndexedMessage> {
        let positions = ascending(&self.positions).unwrap_or_default().into_iter();
        let sizes = numbers(&self.sizes, BodySize::UNKNOWN.coded());
        let priorities = numbers(&self.priorities, Priority::Unknown.coded());
        let returns = numbers(&self.returns, 0);
        let rest = sizes.zip(priorities).zip(returns);
        positions.zip(rest).map(|(position, ((size, priority), returns))| IndexedMessage {
            position,
            body: BodySize::from_coded(size),
            priority: Priority::from_coded(priority).unwrap_or(Priority::Unknown),
            returns: returns.checked_sub(1),
        })
    }

    /// Whether something has become of one of them.
    fn has_changed(&self, changes: &BTreeMap<Position, Change>) -> bool {
        changes.range(self.first..=self.last).next().is_some()
    }
}

/// The message as it is now; none if it is settled.
fn changed(
    changes: &BTreeMap<Position, Change>,
    message: IndexedMessage,
) -> Option<IndexedMessage> {
    match changes.get(&message.position) {
        None => Some(message),
        Some(Change::Settled) => None,
        // Two threads may append in another order than they counted, but the count never falls.
        Some(Change::Returned(count)) => {
            Some(IndexedMessage { returns: message.returns.max(Some(*count)), ..message })
        }
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
        if self.newest.len() == RUN_MESSAGES {
            let newest = std::mem::take(&mut self.newest);
            self.runs_len += newest.len();
            self.runs.push(Run::of(&newest));
        }
    }

    /// Adds a run of a checkpoint; none if it is malformed.
    pub(crate) fn push_run(&mut self, encoded: &[u8]) -> Option<()> {
        let run = Run::at(encoded)?;
        self.runs_len += run.len;
        self.runs.push(run);
        Some(())
    }

    /// The run that was added last, if it has as many messages.
    fn last_run_of(&mut self, len: u64) -> Option<&mut Run> {
        self.runs.last_mut().filter(|run| run.len as u64 == len)
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
        for position in positions {
            self.keys.remove(&position);
            self.changes.insert(position, Change::Settled);
        }
        self.change_if_many();
    }

    /// A message has come back so often. A log may tell of it behind what was settled meanwhile.
    pub(crate) fn returned(&mut self, position: Position, count: u64) {
        let count = u32::try_from(count).unwrap_or(u32::MAX - 1);
        match self.changes.entry(position).or_insert(Change::Returned(count)) {
            Change::Settled => {}
            Change::Returned(known) => *known = count.max(*known),
        }
        self.change_if_many();
    }

    fn change_if_many(&mut self) {
        let all = self.runs_len + self.newest.len();
        if self.changes.len() > CHANGES + all / CHANGED_PART {
            self.change();
        }
    }

    /// Does to the messages what is noted.
    fn change(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        let runs = std::mem::take(&mut self.runs);
        self.runs_len = 0;
        let mut left = Vec::new();
        for run in runs {
            let is_changed = run.has_changed(&changes);
            let goes_on = left.last().is_none_or(|last: &IndexedMessage| last.position < run.first);
            if !goes_on || !is_changed && run.len >= RUN_MESSAGES_MIN {
                self.pack(&mut left);
            }
            if !is_changed && run.len >= RUN_MESSAGES_MIN {
                self.runs_len += run.len;
                self.runs.push(run);
                continue;
            }
            for message in run.messages().filter_map(|message| changed(&changes, message)) {
                left.push(message);
                if left.len() == RUN_MESSAGES {
                    self.pack(&mut left);
                }
            }
        }
        self.pack(&mut left);
        let newest = self.newest.iter().filter_map(|message| changed(&changes, *message));
        self.newest = newest.collect();
    }

    /// Packs these messages as one run.
    fn pack(&mut self, messages: &mut Vec<IndexedMessage>) {
        if !messages.is_empty() {
            self.runs_len += messages.len();
            self.runs.push(Run::of(messages));
            messages.clear();
        }
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
        let packed = self.runs.iter().flat_map(move |run| {
            // In most runs of a long queue nothing has changed.
            let has_changed = run.has_changed(&self.changes);
            run.messages().filter_map(move |message| match has_changed {
                true => changed(&self.changes, message),
                false => Some(message),
            })
        });
        let newest = self.newest.iter().filter_map(|message| changed(&self.changes, *message));
        packed.chain(newest)
    }
}

impl PartialEq for QueueIndex {
    fn eq(&self, other: &Self) -> bool {
        self.messages().eq(other.messages()) && self.keys == other.keys
    }
}

impl Eq for QueueIndex {}

//! What is left of a log: definitions, and which messages each queue still has.

use crate::change::{Replayed, ascending, put_ascending, put_varint, take_varint};
use crate::delayed::{DelayedIndex, PairCoder, checked_pairs};
use crate::stream::StreamIndex;
use crate::{BodySize, Position};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

/// What a restart finds. Built from a checkpoint and the records behind it.
#[derive(Debug, Default, PartialEq)]
pub struct Recovered {
    /// Definitions by key.
    pub definitions: BTreeMap<Vec<u8>, Vec<u8>>,
    /// For each queue, the positions of its messages in the log.
    pub queues: HashMap<u64, QueueIndex>,
    /// For each number of [`Record::Delayed`](crate::Record::Delayed), what waits for its time.
    pub delayed: HashMap<u64, DelayedIndex>,
    /// For each stream, what it has.
    pub streams: HashMap<u64, StreamIndex>,
}

/// The messages of one queue, in a few bytes each: they may be many millions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueueIndex {
    /// What the checkpoint says, in the queue's order, encoded as it was there.
    runs: Vec<Run>,
    /// Messages in `runs`.
    runs_len: usize,
    /// Messages from behind the checkpoint, and how large they are.
    newest: Vec<(Position, BodySize)>,
    /// Positions that are known to be settled, to be removed together.
    settled: HashSet<Position>,
    /// How often the messages at these positions have come back from consumers.
    returns: HashMap<Position, u64>,
}

/// Messages of a checkpoint.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    positions: Box<[u8]>,
    /// How large they are: how often a size comes in a row, and the size. Empty if that is not known.
    sizes: Box<[u8]>,
}

impl Run {
    fn messages(&self) -> impl Iterator<Item = (Position, BodySize)> {
        let positions = ascending(&self.positions).unwrap_or_default().into_iter();
        let mut sizes = &*self.sizes;
        let (mut size, mut left) = (BodySize::UNKNOWN, 0);
        positions.map(move |position| {
            if left == 0 {
                (left, size) = take_size(&mut sizes).unwrap_or((u64::MAX, BodySize::UNKNOWN));
            }
            left -= 1;
            (position, size)
        })
    }
}

/// Takes a size off the front, and how often it comes in a row; none if there is none.
fn take_size(sizes: &mut &[u8]) -> Option<(u64, BodySize)> {
    let times = take_varint(sizes)?;
    let size = u32::try_from(take_varint(sizes)?).ok()?;
    (times > 0).then_some((times, BodySize::from_coded(size)))
}

/// Appends the sizes of messages as [`Run`] has them; nothing if none is known.
fn put_sizes(out: &mut Vec<u8>, messages: &[(Position, BodySize)]) {
    if messages.iter().all(|(_, size)| size.bytes().is_none()) {
        return;
    }
    for same in messages.chunk_by(|one, next| one.1 == next.1) {
        put_varint(out, same.len() as u64);
        put_varint(out, same[0].1.coded().into());
    }
}

/// How many messages these are the sizes of; none if they are malformed.
fn sizes_len(mut sizes: &[u8]) -> Option<u64> {
    let mut len = 0u64;
    while !sizes.is_empty() {
        len = len.checked_add(take_size(&mut sizes)?.0)?;
    }
    Some(len)
}

impl QueueIndex {
    fn push(&mut self, position: Position, body: BodySize) {
        self.newest.push((position, body));
    }

    /// Adds a run of a checkpoint; none if it is malformed.
    fn push_run(&mut self, encoded: &[u8]) -> Option<()> {
        self.runs_len += ascending(encoded)?.len();
        self.runs.push(Run { positions: encoded.into(), sizes: Box::default() });
        Some(())
    }

    /// Adds the sizes of the messages of the run before; none if they are malformed.
    fn push_sizes(&mut self, encoded: &[u8]) -> Option<()> {
        let run = self.runs.last_mut()?;
        let len = ascending(&run.positions)?.len() as u64;
        run.sizes = encoded.into();
        (sizes_len(encoded)? == len).then_some(())
    }

    fn settle(&mut self, positions: Vec<Position>) {
        if !self.returns.is_empty() {
            for position in &positions {
                self.returns.remove(position);
            }
        }
        self.settled.extend(positions);
        if self.settled.len() > 1024 && self.settled.len() * 2 > self.runs_len + self.newest.len() {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let settled = std::mem::take(&mut self.settled);
        let is_left = |position: &Position| !settled.contains(position);
        self.newest.retain(|(position, _)| is_left(position));
        self.runs_len = 0;
        for run in &mut self.runs {
            let left: Vec<_> = run.messages().filter(|(position, _)| is_left(position)).collect();
            self.runs_len += left.len();
            let (mut positions, mut sizes) = (Vec::new(), Vec::new());
            put_ascending(&mut positions, left.iter().map(|(position, _)| *position));
            put_sizes(&mut sizes, &left);
            *run = Run { positions: positions.into(), sizes: sizes.into() };
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

    /// The positions of the messages that the queue still has, in its order.
    pub fn positions(&self) -> impl Iterator<Item = Position> {
        self.messages().map(|(position, _)| position)
    }

    /// The same, with the size of each body, which checkpoints of earlier versions do not tell.
    pub fn messages(&self) -> impl Iterator<Item = (Position, BodySize)> {
        let all = self.runs.iter().flat_map(Run::messages).chain(self.newest.iter().copied());
        all.filter(|(position, _)| !self.settled.contains(position))
    }
}

impl Recovered {
    /// Applies the record at `position`, in the order of the log.
    pub fn apply(&mut self, position: Position, record: Replayed<'_>) {
        match record {
            Replayed::Message { queues, size_bytes, body, published_ms } => {
                for queue in queues {
                    match self.streams.get_mut(&queue) {
                        Some(stream) => stream.replay(position, size_bytes, published_ms),
                        None => self.queues.entry(queue).or_default().push(position, body),
                    }
                }
            }
            Replayed::Settled { queue, positions } => {
                if let Some(index) = self.queues.get_mut(&queue) {
                    index.settle(positions);
                } else if let Some(index) = self.delayed.get_mut(&queue) {
                    index.settle(positions);
                }
            }
            Replayed::Returned { queue, returns } => {
                if let Some(index) = self.queues.get_mut(&queue) {
                    for (position, count) in returns {
                        match count {
                            0 => _ = index.returns.entry(position).or_default(),
                            _ => _ = index.returns.insert(position, count),
                        }
                    }
                }
            }
            Replayed::Dropped { queue } => {
                self.queues.remove(&queue);
                self.streams.remove(&queue);
                self.delayed.remove(&queue);
            }
            Replayed::Delayed { queue, due_ms } => {
                self.delayed.entry(queue).or_default().push(position, due_ms);
            }
            Replayed::Defined { key, value } => {
                self.definitions.insert(key.to_vec(), value.to_vec());
            }
            Replayed::Forgotten { key } => {
                self.definitions.remove(key);
            }
            Replayed::Spilled => {}
            Replayed::Stream { queue, first_offset, pages } => {
                let stream = self.streams.entry(queue).or_default();
                stream.set_limits(pages);
                stream.trim(first_offset);
            }
        }
    }

    /// Calls `each` with the position of every message, once for each queue that has it.
    pub fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        self.queues.values().for_each(|index| index.positions().for_each(&mut *each));
        let delayed = self.delayed.values().flat_map(DelayedIndex::pairs);
        delayed.for_each(|(position, _)| each(position));
        self.streams.values().for_each(|stream| stream.for_each_position(each));
    }

    /// Writes all of it as a checkpoint, for a node that keeps a log and serves no client from it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = CheckpointWriter::new(out);
        self.definitions.iter().try_for_each(|(key, value)| writer.definition(key, value))?;
        for (queue, index) in &self.queues {
            let messages: Vec<(Position, BodySize)> = index.messages().collect();
            // In the queue's order, which may go back where a run begins.
            for ascending in messages.chunk_by(|before, next| before.0 < next.0) {
                for run in ascending.chunks(RUN_POSITIONS) {
                    writer.messages(*queue, run)?;
                }
            }
            if !index.returns.is_empty() {
                let returns = index.returns.iter().map(|(position, count)| (*position, *count));
                writer.returns(*queue, returns)?;
            }
        }
        for (queue, index) in &self.delayed {
            let pairs: Vec<(Position, u64)> = index.pairs().collect();
            for run in pairs.chunks(RUN_POSITIONS) {
                writer.delayed(*queue, run.iter().copied())?;
            }
        }
        for (queue, stream) in &self.streams {
            let (mut piece, mut next) = (Vec::new(), Some(0));
            while let Some(offset) = next {
                piece.clear();
                next = stream.encode_piece(offset, &mut piece);
                writer.stream(*queue, &piece)?;
            }
        }
        Ok(())
    }

    /// Reads a checkpoint that [`CheckpointWriter`] wrote; none if it is malformed.
    pub fn from_checkpoint(mut bytes: &[u8]) -> Option<Self> {
        let mut recovered = Recovered::default();
        while let Some((kind, rest)) = bytes.split_first() {
            bytes = rest;
            let first = take_part(&mut bytes)?;
            let second = take_part(&mut bytes)?;
            if *kind == DEFINITION {
                recovered.definitions.insert(first.to_vec(), second.to_vec());
            } else if *kind == QUEUE {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                recovered.queues.entry(queue).or_default().push_run(second)?;
            } else if *kind == SIZES {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                recovered.queues.get_mut(&queue)?.push_sizes(second)?;
            } else if *kind == RETURNED {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                let index = recovered.queues.entry(queue).or_default();
                index.returns.extend(checked_pairs(second)?);
            } else if *kind == DELAYED {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                recovered.delayed.entry(queue).or_default().push_run(second)?;
            } else if *kind == STREAM {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                recovered.streams.entry(queue).or_default().add_piece(second)?;
            } else {
                return None;
            }
        }
        Some(recovered)
    }
}

/// Positions that are written together.
const RUN_POSITIONS: usize = 4096;

const DEFINITION: u8 = 1;
const QUEUE: u8 = 2;
const SIZES: u8 = 3;
const DELAYED: u8 = 24;
const STREAM: u8 = 16;
const RETURNED: u8 = 32;

fn take_part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(bytes)?).ok()?;
    let (part, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(part)
}

/// Writes a checkpoint: definitions and the messages of queues, in any order.
pub struct CheckpointWriter<'w> {
    out: &'w mut dyn Write,
    scratch: Vec<u8>,
}

impl<'w> CheckpointWriter<'w> {
    /// A writer to `out`.
    pub fn new(out: &'w mut dyn Write) -> Self {
        CheckpointWriter { out, scratch: Vec::new() }
    }

    /// Adds a definition.
    pub fn definition(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.entry(DEFINITION, key, value)
    }

    /// Adds the ascending positions of messages of a queue. What is added for the same queue later
    /// comes after them in the queue, so that a long one can be written piece by piece.
    pub fn queue(&mut self, queue: u64, positions: &[Position]) -> io::Result<()> {
        self.encoded(QUEUE, queue, |out| put_ascending(out, positions.iter().copied()))
    }

    /// The same of messages whose bodies have these sizes, as far as that is known.
    pub fn messages(&mut self, queue: u64, messages: &[(Position, BodySize)]) -> io::Result<()> {
        let positions = messages.iter().map(|(position, _)| *position);
        self.encoded(QUEUE, queue, |out| put_ascending(out, positions))?;
        if messages.iter().all(|(_, size)| size.bytes().is_none()) {
            return Ok(());
        }
        self.encoded(SIZES, queue, |out| put_sizes(out, messages))
    }

    /// Adds an entry of a queue that `put` writes.
    fn encoded(&mut self, kind: u8, queue: u64, put: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut encoded = std::mem::take(&mut self.scratch);
        encoded.clear();
        put(&mut encoded);
        let written = self.entry(kind, &queue.to_le_bytes(), &encoded);
        self.scratch = encoded;
        written
    }

    /// Adds messages that wait for their time: the position and the time of each.
    pub fn delayed(
        &mut self,
        queue: u64,
        pairs: impl Iterator<Item = (Position, u64)>,
    ) -> io::Result<()> {
        self.pairs(DELAYED, queue, pairs)
    }

    /// Adds how often messages of a queue have come back: the position and the count of each.
    pub fn returns(
        &mut self,
        queue: u64,
        pairs: impl Iterator<Item = (Position, u64)>,
    ) -> io::Result<()> {
        self.pairs(RETURNED, queue, pairs)
    }

    fn pairs(
        &mut self,
        kind: u8,
        queue: u64,
        pairs: impl Iterator<Item = (Position, u64)>,
    ) -> io::Result<()> {
        let mut encoded = std::mem::take(&mut self.scratch);
        encoded.clear();
        let mut coder = PairCoder::default();
        pairs.for_each(|(position, number)| coder.put(&mut encoded, position, number));
        let written = self.entry(kind, &queue.to_le_bytes(), &encoded);
        self.scratch = encoded;
        written
    }

    /// Adds a piece of a stream, which [`StreamIndex::encode_piece`] has written.
    pub fn stream(&mut self, queue: u64, encoded: &[u8]) -> io::Result<()> {
        self.entry(STREAM, &queue.to_le_bytes(), encoded)
    }

    fn entry(&mut self, kind: u8, first: &[u8], second: &[u8]) -> io::Result<()> {
        let mut head = vec![kind];
        put_varint(&mut head, first.len() as u64);
        head.extend_from_slice(first);
        put_varint(&mut head, second.len() as u64);
        self.out.write_all(&head)?;
        self.out.write_all(second)
    }
}

//! What is left of a log: definitions, and which messages each queue still has.

use crate::change::{Replayed, put_ascending, put_varint, take_varint};
use crate::delayed::{DelayedIndex, PairCoder, checked_pairs};
use crate::noting::{Key, Notes, Noting};
pub use crate::queue_index::{IndexedMessage, QueueIndex};
use crate::queue_index::{put_keys, put_priorities, put_sizes};
use crate::stream::StreamIndex;
use crate::{BodySize, Position, Priority};
use std::collections::{BTreeMap, HashMap};
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
    notes: Notes,
}

impl Recovered {
    /// The same, noting this of the messages that are applied.
    #[must_use]
    pub fn noting(mut self, noting: Option<&'static dyn Noting>) -> Self {
        self.notes = Notes::new(noting);
        self.definitions.iter().for_each(|(key, value)| self.notes.define(key, value));
        self
    }

    /// Applies the record at `position`, in the order of the log.
    pub fn apply(&mut self, position: Position, record: Replayed<'_>) {
        match record {
            Replayed::Message { queues, size_bytes, message } => {
                let (priority, body) =
                    (self.notes.priority(&message), BodySize::of(message.body.len()));
                let indexed = IndexedMessage { position, body, priority, returns: None };
                for queue in queues {
                    match self.streams.get_mut(&queue) {
                        Some(stream) => stream.replay(position, size_bytes, message.published_ms),
                        None => {
                            let key = self.notes.key(queue, &message);
                            self.queues.entry(queue).or_default().push(indexed, key);
                        }
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
                    returns
                        .into_iter()
                        .for_each(|(position, count)| index.returned(position, count));
                }
            }
            Replayed::Dropped { queue } => {
                self.queues.remove(&queue);
                self.streams.remove(&queue);
                self.delayed.remove(&queue);
                self.notes.drop_queue(queue);
            }
            Replayed::Delayed { queue, due_ms } => {
                self.delayed.entry(queue).or_default().push(position, due_ms);
            }
            Replayed::Defined { key, value } => {
                self.notes.define(key, value);
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
            // In the queue's order, which may go back where a run begins.
            let mut run: Vec<IndexedMessage> = Vec::new();
            for message in index.messages() {
                let goes_on = run.last().is_none_or(|last| last.position < message.position);
                if !goes_on || run.len() == RUN_POSITIONS {
                    writer.run(*queue, &run)?;
                    run.clear();
                }
                run.push(message);
            }
            writer.run(*queue, &run)?;
            let mut keys: Vec<_> = index.keys.iter().map(|(at, key)| (*at, *key)).collect();
            keys.sort_unstable();
            for run in keys.chunks(RUN_POSITIONS) {
                writer.keys(*queue, run)?;
            }
        }
        for (queue, index) in &self.delayed {
            let mut pairs = index.pairs().peekable();
            while pairs.peek().is_some() {
                writer.delayed(*queue, pairs.by_ref().take(RUN_POSITIONS))?;
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
            } else if *kind == PRIORITIES {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                recovered.queues.get_mut(&queue)?.push_priorities(second)?;
            } else if *kind == KEYS {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                recovered.queues.entry(queue).or_default().push_keys(second)?;
            } else if *kind == RETURNED {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                let index = recovered.queues.entry(queue).or_default();
                let returns = checked_pairs(second)?.into_iter();
                returns.for_each(|(position, count)| index.returned(position, count));
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
const PRIORITIES: u8 = 4;
const KEYS: u8 = 5;
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

    /// The same of messages whose bodies have these sizes, and which say this of their priorities, as far as that is known.
    pub fn messages(
        &mut self,
        queue: u64,
        messages: &[(Position, BodySize)],
        priority: Priority,
    ) -> io::Result<()> {
        let messages = messages.iter();
        self.indexed(
            queue,
            messages.map(|&(position, body)| IndexedMessage {
                position,
                body,
                priority,
                returns: None,
            }),
        )
    }

    /// Adds messages whose positions ascend, and what has come back of them.
    fn run(&mut self, queue: u64, messages: &[IndexedMessage]) -> io::Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        self.indexed(queue, messages.iter().copied())?;
        let count = |message: &IndexedMessage| Some((message.position, message.returns?.into()));
        let mut returns = messages.iter().filter_map(count).peekable();
        if returns.peek().is_some() {
            self.returns(queue, returns)?;
        }
        Ok(())
    }

    fn indexed(
        &mut self,
        queue: u64,
        messages: impl Iterator<Item = IndexedMessage> + Clone,
    ) -> io::Result<()> {
        let positions = messages.clone().map(|message| message.position);
        self.encoded(QUEUE, queue, |out| put_ascending(out, positions))?;
        let sizes = messages.clone().map(|message| message.body);
        self.encoded(SIZES, queue, |out| put_sizes(out, sizes))?;
        let priorities = messages.map(|message| message.priority);
        self.encoded(PRIORITIES, queue, |out| put_priorities(out, priorities))
    }

    /// Adds what identifies messages of a queue that holds no two of the same, by their positions.
    pub fn keys(&mut self, queue: u64, keys: &[(Position, Key)]) -> io::Result<()> {
        self.encoded(KEYS, queue, |out| put_keys(out, keys))
    }

    /// Adds an entry of a queue that `put` writes. One that says nothing of the messages before it is left out.
    fn encoded(&mut self, kind: u8, queue: u64, put: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut encoded = std::mem::take(&mut self.scratch);
        encoded.clear();
        put(&mut encoded);
        let is_wanted = kind == QUEUE || !encoded.is_empty();
        let written = is_wanted.then(|| self.entry(kind, &queue.to_le_bytes(), &encoded));
        self.scratch = encoded;
        written.unwrap_or(Ok(()))
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

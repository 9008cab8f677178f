//! What is left of a log: definitions, and which messages each queue still has.

use crate::change::{Replayed, ascending, put_ascending, put_varint, take_varint};
use std::collections::{BTreeMap, HashMap};

/// What a restart finds. Built from a checkpoint and the records behind it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Definitions by key.
    pub definitions: BTreeMap<Vec<u8>, Vec<u8>>,
    /// For each queue, the positions of its messages in the log, ascending.
    pub queues: HashMap<u64, QueueIndex>,
}

/// The messages of one queue.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueueIndex {
    positions: Vec<u64>,
    /// How many of `positions` are known to be settled, to be removed together.
    settled: std::collections::HashSet<u64>,
}

impl QueueIndex {
    fn push(&mut self, position: u64) {
        self.positions.push(position);
    }

    fn settle(&mut self, positions: Vec<u64>) {
        self.settled.extend(positions);
        if self.settled.len() > 1024 && self.settled.len() * 2 > self.positions.len() {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let settled = std::mem::take(&mut self.settled);
        self.positions.retain(|position| !settled.contains(position));
    }

    /// The positions of the messages that the queue still has, ascending.
    pub fn into_positions(mut self) -> Vec<u64> {
        if !self.settled.is_empty() {
            self.sweep();
        }
        self.positions
    }
}

impl Recovered {
    /// Applies the record at `position`, in the order of the log.
    pub fn apply(&mut self, position: u64, record: Replayed<'_>) {
        match record {
            Replayed::Message { queues } => {
                for queue in queues {
                    self.queues.entry(queue).or_default().push(position);
                }
            }
            Replayed::Settled { queue, positions } => {
                if let Some(index) = self.queues.get_mut(&queue) {
                    index.settle(positions);
                }
            }
            Replayed::Dropped { queue } => {
                self.queues.remove(&queue);
            }
            Replayed::Defined { key, value } => {
                self.definitions.insert(key.to_vec(), value.to_vec());
            }
            Replayed::Forgotten { key } => {
                self.definitions.remove(key);
            }
            Replayed::Spilled => {}
        }
    }

    /// Calls `each` with the position of every message, once for each queue that has it.
    pub fn for_each_position(&self, each: &mut dyn FnMut(u64)) {
        for index in self.queues.values() {
            let live = index.positions.iter().filter(|at| !index.settled.contains(*at));
            live.copied().for_each(&mut *each);
        }
    }

    /// Reads a checkpoint that [`CheckpointWriter`] wrote; none if it is malformed.
    pub fn from_checkpoint(mut octets: &[u8]) -> Option<Self> {
        let mut recovered = Recovered::default();
        while let Some((kind, rest)) = octets.split_first() {
            octets = rest;
            let first = take_part(&mut octets)?;
            let second = take_part(&mut octets)?;
            if *kind == DEFINITION {
                recovered.definitions.insert(first.to_vec(), second.to_vec());
            } else if *kind == QUEUE {
                let queue = u64::from_le_bytes(first.try_into().ok()?);
                let positions = ascending(second)?;
                let index = QueueIndex { positions, ..QueueIndex::default() };
                recovered.queues.insert(queue, index);
            } else {
                return None;
            }
        }
        Some(recovered)
    }
}

const DEFINITION: u8 = 1;
const QUEUE: u8 = 2;

fn take_part<'a>(octets: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(octets)?).ok()?;
    let (part, rest) = octets.split_at_checked(len)?;
    *octets = rest;
    Some(part)
}

/// Writes a checkpoint: definitions and the messages of queues, in any order.
#[derive(Debug)]
pub struct CheckpointWriter<'w> {
    out: &'w mut Vec<u8>,
    scratch: Vec<u8>,
}

impl<'w> CheckpointWriter<'w> {
    /// A writer onto the end of `out`.
    pub fn new(out: &'w mut Vec<u8>) -> Self {
        CheckpointWriter { out, scratch: Vec::new() }
    }

    /// Adds a definition.
    pub fn definition(&mut self, key: &[u8], value: &[u8]) {
        self.entry(DEFINITION, key, value);
    }

    /// Adds a queue with the ascending positions of its messages.
    pub fn queue(&mut self, queue: u64, positions: &[u64]) {
        let mut encoded = std::mem::take(&mut self.scratch);
        encoded.clear();
        put_ascending(&mut encoded, positions);
        self.entry(QUEUE, &queue.to_le_bytes(), &encoded);
        self.scratch = encoded;
    }

    fn entry(&mut self, kind: u8, first: &[u8], second: &[u8]) {
        self.out.push(kind);
        for part in [first, second] {
            put_varint(self.out, part.len() as u64);
            self.out.extend_from_slice(part);
        }
    }
}

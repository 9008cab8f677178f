//! Messages that wait for their time: where they are, and when they are due, in a few bytes each.

use crate::Position;
use crate::change::{put_varint, take_varint};
use std::collections::HashSet;

/// Writes pairs of a position in the log and a time or another number, or reads them back: each as the differences to
/// the one before, as varints, the lowest bit of which is the sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCoder {
    position: u64,
    due_ms: u64,
}

impl PairCoder {
    /// Appends a pair.
    pub fn put(&mut self, out: &mut Vec<u8>, position: Position, due_ms: u64) {
        put_difference(out, &mut self.position, position.0);
        put_difference(out, &mut self.due_ms, due_ms);
    }

    /// Takes a pair off the front; none if there is none.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Option<(Position, u64)> {
        take_difference(bytes, &mut self.position)?;
        take_difference(bytes, &mut self.due_ms)?;
        Some((Position(self.position), self.due_ms))
    }
}

fn put_difference(out: &mut Vec<u8>, before: &mut u64, number: u64) {
    let difference = number.wrapping_sub(*before).cast_signed();
    put_varint(out, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
    *before = number;
}

fn take_difference(bytes: &mut &[u8], number: &mut u64) -> Option<()> {
    let coded = take_varint(bytes)?;
    let difference = (coded >> 1) ^ (coded & 1).wrapping_neg();
    *number = number.wrapping_add(difference);
    Some(())
}

/// All pairs of a run; none if it is malformed.
pub fn checked_pairs(mut run: &[u8]) -> Option<Vec<(Position, u64)>> {
    let (mut coder, mut pairs) = (PairCoder::default(), Vec::new());
    while !run.is_empty() {
        pairs.push(coder.take(&mut run)?);
    }
    Some(pairs)
}

/// The pairs of a whole run; ends at what is malformed.
fn decoded(mut run: &[u8]) -> impl Iterator<Item = (Position, u64)> {
    let mut coder = PairCoder::default();
    std::iter::from_fn(move || coder.take(&mut run))
}

/// Pairs in a run that is packed while a log is replayed.
const RUN_PAIRS: usize = 1024;
/// Pairs that are known to be settled before they are removed, at least, and the part of all that they may be besides.
const SETTLED: usize = 1024;
const SETTLED_PART: usize = 16;

/// The messages that a restart finds waiting for their time in one place.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DelayedIndex {
    runs: Vec<Box<[u8]>>,
    /// Pairs in `runs`.
    runs_len: usize,
    newest: Vec<(Position, u64)>,
    /// Positions that are known to be settled, to be removed together.
    settled: HashSet<Position>,
}

impl DelayedIndex {
    pub(crate) fn push(&mut self, position: Position, due_ms: u64) {
        self.newest.push((position, due_ms));
        if self.newest.len() == RUN_PAIRS {
            let newest = std::mem::take(&mut self.newest);
            self.push_pairs(newest.into_iter());
        }
    }

    /// Adds a run of a checkpoint; none if it is malformed.
    pub(crate) fn push_run(&mut self, run: &[u8]) -> Option<()> {
        let mut rest = run;
        let mut coder = PairCoder::default();
        while !rest.is_empty() {
            coder.take(&mut rest)?;
            self.runs_len += 1;
        }
        self.runs.push(run.into());
        Some(())
    }

    pub(crate) fn settle(&mut self, positions: Vec<Position>) {
        self.settled.extend(positions);
        let all = self.runs_len + self.newest.len();
        if self.settled.len() > SETTLED + all / SETTLED_PART {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let settled = std::mem::take(&mut self.settled);
        let is_left = |(position, _): &(Position, u64)| !settled.contains(position);
        self.newest.retain(is_left);
        self.runs_len = 0;
        let mut left = Vec::new();
        for run in std::mem::take(&mut self.runs) {
            for pair in decoded(&run).filter(is_left) {
                left.push(pair);
                if left.len() == RUN_PAIRS {
                    self.push_pairs(left.drain(..));
                }
            }
        }
        self.push_pairs(left.into_iter());
    }

    fn push_pairs(&mut self, pairs: impl Iterator<Item = (Position, u64)>) {
        let (mut run, mut coder) = (Vec::new(), PairCoder::default());
        for (position, due_ms) in pairs {
            coder.put(&mut run, position, due_ms);
            self.runs_len += 1;
        }
        if !run.is_empty() {
            self.runs.push(run.into());
        }
    }

    /// The position of each message, and when it is due, in milliseconds since 1970.
    pub fn pairs(&self) -> impl Iterator<Item = (Position, u64)> {
        let all = self.runs.iter().flat_map(|run| decoded(run)).chain(self.newest.iter().copied());
        all.filter(|(position, _)| !self.settled.contains(position))
    }
}

//! Messages by the time at which they are due: a wheel within wheels.
//!
//! What is due soon lies in a map by time. The rest lies in buckets, of 256 ms for what is due
//! within a minute, of a minute for what is due within hours, of hours for all else; a bucket whose
//! time has come is poured out into the next finer ones. So a message is touched a few times at
//! most however long it waits, and costs a few bytes as long as it lies in a bucket.
//!
//! Messages due at the same time leave in the order in which they came: a message joins a coarse
//! bucket that covers its time, even if a finer one would do, as those before it may lie there.

use super::bucket::{Bucket, Entry, Packed};
use crate::memory::Charge;
use crate::persistence::gone::HoldsPlaces;
use courser_store::{Location, Position};
use imbl::OrdMap;
use std::collections::BTreeMap;

/// The span of a bucket on each level, as a power of two of milliseconds.
const SPAN_BITS: [u32; 3] = [8, 16, 24];

#[derive(Debug, Default)]
pub(super) struct Wheel {
    /// Due before `open_until_ms`. A checkpoint shares it.
    soon: OrdMap<DueKey, Location>,
    open_until_ms: u64,
    next_number: u64,
    /// By the time at which they begin, in spans.
    levels: [BTreeMap<u64, Bucket>; 3],
    len: usize,
    /// How many of them are in the log.
    in_log: usize,
    /// What is in all buckets.
    buckets_bytes: usize,
    charge: Charge,
}

/// When a message is due, and a number in the order in which they came.
pub(super) type DueKey = (u64, u64);

/// What a message that is due soon uses: a place in a tree whose nodes are half full.
const SOON_BYTES: usize = 3 * size_of::<(DueKey, Location)>();
/// What a bucket uses besides what is in it: a place in a tree whose nodes are half full, and what the allocator adds to a few bytes.
const BUCKET_BYTES: usize = 2 * size_of::<(u64, Bucket)>() + 32;
/// A tree begins with a node that uses as much as so many places in it.
const FIRST_PLACES: usize = 6;
/// Memory is counted anew when it has changed by so much, or by an eighth.
const COUNTED_BYTES: usize = 4096;

/// What is in the log of all messages in a wheel, most of it shared with that.
#[derive(Debug)]
pub(super) struct Logged {
    soon: OrdMap<DueKey, Location>,
    buckets: Vec<Packed>,
}

impl Wheel {
    /// An empty one. What it uses is counted by `charge`.
    pub fn new(charge: Charge) -> Self {
        Wheel { charge, ..Wheel::default() }
    }

    fn count_memory(&mut self) {
        let places = |len| if len == 0 { 0 } else { FIRST_PLACES.max(len) };
        let buckets: usize = self.levels.iter().map(|level| places(level.len())).sum();
        let trees = places(self.soon.len()) * SOON_BYTES + buckets * BUCKET_BYTES;
        let used = trees + self.buckets_bytes;
        if used.abs_diff(self.charge.bytes()) >= COUNTED_BYTES.min(used / 8) {
            self.charge.set(used);
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether any message has to be read from the log.
    pub fn has_logged(&self) -> bool {
        self.in_log > 0
    }

    /// Adds a message. `now_ms` decides only how it is kept.
    pub fn insert(&mut self, due_ms: u64, location: Location, now_ms: u64) {
        self.len += 1;
        self.in_log += usize::from(location.in_memory().is_none());
        self.place(due_ms, location, now_ms);
        self.count_memory();
    }

    fn place(&mut self, due_ms: u64, location: Location, now_ms: u64) {
        let delay_ms = due_ms.saturating_sub(now_ms);
        let finest = match due_ms < self.open_until_ms {
            true => None,
            false => {
                Some((1..3).rev().find(|level| delay_ms >> SPAN_BITS[*level] != 0).unwrap_or(0))
            }
        };
        let covers =
            |level: &usize| self.levels[*level].contains_key(&(due_ms >> SPAN_BITS[*level]));
        let Some(level) = (0..SPAN_BITS.len()).rev().find(covers).max(finest) else {
            self.soon.insert((due_ms, self.next_number), location);
            self.next_number += 1;
            return;
        };
        let bucket = self.levels[level].entry(due_ms >> SPAN_BITS[level]).or_default();
        let before = bucket.heap_bytes();
        bucket.push(due_ms, location);
        self.buckets_bytes += bucket.heap_bytes() - before;
    }

    /// Pours out the buckets whose time has come, `most` messages at most. Returns whether all are.
    pub fn advance(&mut self, now_ms: u64, most: usize) -> bool {
        let is_open = self.pour_out(now_ms, most);
        self.count_memory();
        is_open
    }

    fn pour_out(&mut self, now_ms: u64, most: usize) -> bool {
        let mut left = most;
        // From the coarsest on: what is poured out may have to be poured out again.
        for level in (0..SPAN_BITS.len()).rev() {
            while let Some(first) = self.levels[level].first_entry() {
                let begins_ms = first.key() << SPAN_BITS[level];
                if begins_ms > now_ms {
                    break;
                }
                if left == 0 {
                    return false;
                }
                let key = *first.key();
                let mut bucket = first.remove();
                self.buckets_bytes -= bucket.heap_bytes();
                if level == 0 {
                    self.open_until_ms = self.open_until_ms.max(begins_ms + (1 << SPAN_BITS[0]));
                }
                while let Some((due_ms, location)) = bucket.pop() {
                    // Seen from the beginning of the bucket, so that it ends up on a finer level.
                    self.place(due_ms, location, begins_ms.max(now_ms));
                    left -= 1;
                    if left == 0 {
                        self.buckets_bytes += bucket.heap_bytes();
                        self.levels[level].insert(key, bucket);
                        break;
                    }
                }
            }
            if self.levels[level].is_empty() {
                // An empty tree keeps a node.
                self.levels[level] = BTreeMap::new();
            }
        }
        true
    }

    /// The messages that are due longest, `most` of them at most. All buckets whose time has come must
    /// have been poured out.
    pub fn due(&self, now_ms: u64, most: usize) -> Vec<(DueKey, Location)> {
        let due = self.soon.range(..=(now_ms, u64::MAX)).take(most);
        due.map(|(key, location)| (*key, location.clone())).collect()
    }

    /// Takes out a message that was due, if it is still there.
    pub fn remove(&mut self, key: &DueKey) -> Option<Location> {
        let location = self.soon.remove(key)?;
        if self.soon.is_empty() {
            // An empty tree keeps a node.
            self.soon = OrdMap::new();
        }
        self.len -= 1;
        self.in_log -= usize::from(location.in_memory().is_none());
        self.count_memory();
        Some(location)
    }

    /// Makes a message that was due wait until `until_ms`, if it is still there.
    pub fn put_off(&mut self, key: &DueKey, until_ms: u64) {
        if let Some(location) = self.soon.remove(key) {
            self.place(until_ms, location, until_ms);
            self.count_memory();
        }
    }

    /// When there is something to do: a message to go, or a bucket to pour out.
    pub fn next_ms(&self) -> Option<u64> {
        let soon = self.soon.get_min().map(|((due_ms, _), _)| *due_ms);
        let buckets =
            self.levels.iter().zip(SPAN_BITS).filter_map(|(buckets, bits)| {
                buckets.first_key_value().map(|(key, _)| *key << bits)
            });
        buckets.chain(soon).min()
    }

    /// What is in the log of all that waits. Those that are due at the same time are in the order in
    /// which they came: what came first lies where it is finest.
    pub fn logged(&self) -> Logged {
        let buckets = self.levels.iter().flat_map(BTreeMap::values).map(Bucket::logged);
        Logged { soon: self.soon.clone(), buckets: buckets.collect() }
    }
}

impl HoldsPlaces for Wheel {
    fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        self.logged().into_entries().for_each(|(position, ..)| each(position));
    }
}

impl Logged {
    /// The position, time and marks of every message.
    pub fn into_entries(self) -> impl Iterator<Item = Entry> + Send {
        let soon = self.soon.into_iter().filter_map(|((due_ms, _), location)| {
            Some((location.position()?, due_ms, location.marks()))
        });
        soon.chain(self.buckets.into_iter().flatten())
    }
}

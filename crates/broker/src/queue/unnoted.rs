//! What the log has yet to be told of what was handed out, so that the next leader marks it as redelivered.
//!
//! It is told with the next settlement, in the same append: that names what was handed out before and is still with a
//! client. What has come since the last one is not known to the next leader.

use super::backlog::{REDELIVERED, SPILLED};
use courser_store::{Location, Lsn, Position};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// The numbers of messages that were handed out, and of some that have come back since.
#[derive(Debug, Default)]
pub(super) struct Unnoted(VecDeque<u64>);

/// Fewer are not worth sweeping.
const SWEEP_MIN: usize = 64;

/// So many fit one append beside what is settled.
const TOLD_AT_ONCE: usize = 4096;

impl Unnoted {
    /// A message is handed out, beside those in `locations`. What has been so before the log knows of, and what is
    /// there because memory was short the next leader does not have.
    #[cold]
    pub fn add(
        &mut self,
        sequence: u64,
        location: &Location,
        locations: &FxHashMap<u64, Location>,
    ) {
        if location.position().is_none() || location.marks() & (REDELIVERED | SPILLED) != 0 {
            return;
        }
        if self.0.len() >= SWEEP_MIN.max(2 * locations.len()) {
            self.0.retain(|sequence| locations.contains_key(sequence));
        }
        self.0.push_back(sequence);
    }

    /// Adds to `returns` the positions of those that are still in `locations`, some at a time. Of what has come back meanwhile
    /// the log knows.
    pub fn take(
        &mut self,
        locations: &FxHashMap<u64, Location>,
        returns: &mut Vec<(Position, u64)>,
    ) {
        let some = self.0.drain(..self.0.len().min(TOLD_AT_ONCE));
        let left = some.filter_map(|sequence| locations.get(&sequence));
        let left = left.filter(|location| location.marks() & REDELIVERED == 0);
        let positions = left.filter_map(Location::position);
        returns.extend(positions.map(|position| (position, 0)));
    }

    /// The same for a checkpoint, which has what came back already: of all that are before `end`, but for these numbers, whose messages
    /// no client has had.
    pub fn all_below<'a>(
        end: Lsn,
        locations: impl Iterator<Item = (u64, &'a Location)>,
        without: impl Iterator<Item = u64>,
    ) -> Vec<(Position, u64)> {
        let without: FxHashSet<u64> = without.collect();
        let never = |(number, one): &(u64, &Location)| {
            one.marks() & (REDELIVERED | SPILLED) == 0 && !without.contains(number)
        };
        let positions = locations.filter(never).filter_map(|(_, one)| one.position());
        positions.filter(|position| position.is_before(end)).map(|position| (position, 0)).collect()
    }
}

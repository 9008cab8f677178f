//! How fast a counter of every queue grows, for lists that are sorted by that.
//!
//! Whoever asks for such a list has the counter of all queues noted, at most once a second; the rate is
//! what has been added since it was noted before. While nobody asks, nothing is noted.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Counters that are noted at the same time; the one that was asked for least recently gives way.
const COLUMNS_MAX: usize = 4;
/// The least time between two notes of a counter.
const GAP_MS: u64 = 1_000;
/// The time after which a note says nothing any more about now.
const STALE_MS: u64 = 5 * 60_000;

/// What was noted of counters.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    columns: Mutex<Vec<Column>>,
}

#[derive(Debug)]
struct Column {
    name: String,
    used_ms: u64,
    /// The older first; two at most.
    notes: Vec<Arc<Note>>,
}

/// The counter of each queue at one moment, by the queue's number.
#[derive(Debug, Default)]
struct Note {
    at_ms: u64,
    counts: HashMap<u64, u64>,
}

/// A look at all queues.
#[derive(Debug)]
pub(crate) struct Sweep {
    now_ms: u64,
    before: Option<Arc<Note>>,
    /// What is noted, if it is time for that.
    noted: Option<HashMap<u64, u64>>,
}

impl Sweeps {
    /// Begins to look at a counter of about `len` queues.
    pub fn begin(&self, name: &str, now_ms: u64, len: usize) -> Sweep {
        let mut columns = self.columns.lock();
        // What nobody has asked for in all this time is of no use.
        columns.retain(|column| column.used_ms + STALE_MS >= now_ms);
        let column = columns.iter_mut().find(|column| column.name == name);
        let notes = column.map_or(&[][..], |column| {
            column.used_ms = now_ms;
            &column.notes
        });
        let is_usable =
            |note: &&Arc<Note>| (GAP_MS..=STALE_MS).contains(&now_ms.saturating_sub(note.at_ms));
        let before = notes.iter().rev().find(is_usable).cloned();
        let is_due = notes.last().is_none_or(|last| now_ms.abs_diff(last.at_ms) >= GAP_MS);
        Sweep { now_ms, before, noted: is_due.then(|| HashMap::with_capacity(len)) }
    }

    /// Keeps what a look at all queues has noted.
    pub fn end(&self, name: &str, sweep: Sweep) {
        let Some(counts) = sweep.noted else { return };
        let mut columns = self.columns.lock();
        let at = columns.iter().position(|column| column.name == name).unwrap_or_else(|| {
            if columns.len() >= COLUMNS_MAX {
                let oldest = columns.iter().enumerate().min_by_key(|(_, column)| column.used_ms);
                let oldest = oldest.map_or(0, |(at, _)| at);
                columns.swap_remove(oldest);
            }
            let (name, used_ms) = (name.to_owned(), sweep.now_ms);
            columns.push(Column { name, used_ms, notes: Vec::new() });
            columns.len() - 1
        });
        let notes = &mut columns[at].notes;
        if notes.len() >= 2 {
            notes.remove(0);
        }
        notes.push(Arc::new(Note { at_ms: sweep.now_ms, counts }));
    }
}

impl Sweep {
    /// How fast the counter of a queue grows, in thousandths a second.
    pub fn rate(&mut self, queue: u64, count: u64) -> i64 {
        if let Some(noted) = &mut self.noted {
            noted.insert(queue, count);
        }
        let Some(before) = &self.before else { return 0 };
        let Some(then) = before.counts.get(&queue) else { return 0 };
        let elapsed_ms = self.now_ms.saturating_sub(before.at_ms).max(1);
        let added = i128::from(count) - i128::from(*then);
        i64::try_from(added * 1_000_000 / i128::from(elapsed_ms)).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(sweeps: &Sweeps, now_ms: u64, counts: &[u64]) -> Vec<i64> {
        let mut sweep = sweeps.begin("publish", now_ms, counts.len());
        let counts = counts.iter().enumerate();
        let rates = counts.map(|(queue, count)| sweep.rate(queue as u64, *count)).collect();
        sweeps.end("publish", sweep);
        rates
    }

    #[test]
    fn the_rate_is_what_was_added_since_somebody_looked() {
        let sweeps = Sweeps::default();
        assert_eq!(rates(&sweeps, 10_000, &[5, 100]), [0, 0]);
        assert_eq!(rates(&sweeps, 12_000, &[5, 300, 9]), [0, 100_000, 0]);
        assert_eq!(rates(&sweeps, 13_000, &[0, 300, 9]), [-5_000, 0, 0]);
    }

    #[test]
    fn two_who_ask_at_once_see_the_same_rate() {
        let sweeps = Sweeps::default();
        rates(&sweeps, 10_000, &[0]);
        assert_eq!(rates(&sweeps, 12_000, &[20]), [10_000]);
        assert_eq!(rates(&sweeps, 12_000, &[20]), [10_000]);
    }

    #[test]
    fn what_was_noted_long_ago_says_nothing() {
        let sweeps = Sweeps::default();
        rates(&sweeps, 10_000, &[0]);
        assert_eq!(rates(&sweeps, 10_000 + STALE_MS + 1, &[900]), [0]);
    }

    #[test]
    fn there_is_a_bound_to_what_is_noted() {
        let sweeps = Sweeps::default();
        for nth in 0..COLUMNS_MAX as u64 + 3 {
            let name = format!("column {nth}");
            let mut sweep = sweeps.begin(&name, nth, 1);
            sweep.rate(1, 1);
            sweeps.end(&name, sweep);
        }
        let columns = sweeps.columns.lock();
        assert_eq!(columns.len(), COLUMNS_MAX);
        assert!(columns.iter().all(|column| column.name != "column 0"));
    }
}

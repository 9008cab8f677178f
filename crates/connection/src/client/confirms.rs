//! Publisher confirms: numbers given to publishes, and which of them the server has answered.

use std::collections::BTreeMap;

/// The publishes of a channel in confirm mode. Numbers start at 1.
///
/// Servers confirm out of order and fold many confirms into one; here every publish is resolved once. Memory grows with
/// the runs of publishes that were confirmed ahead of an older one, of which there are no more than unconfirmed ones.
#[derive(Debug)]
pub(crate) struct Confirms {
    last_published: u64,
    /// The oldest publish without an answer; all before it are resolved.
    oldest_open: u64,
    /// Resolved runs above `oldest_open`, first to last, with a gap between any two.
    resolved_ahead: BTreeMap<u64, u64>,
    /// Publishes in these.
    ahead: u64,
}

/// A confirm that reaches up to a publish, and of which a part was told already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolving {
    pub channel: u16,
    up_to: u64,
    pub is_ack: bool,
}

impl Resolving {
    pub fn new(channel: u16, up_to: u64, is_ack: bool) -> Self {
        Self { channel, up_to, is_ack }
    }
}

impl Default for Confirms {
    fn default() -> Self {
        Self { last_published: 0, oldest_open: 1, resolved_ahead: BTreeMap::new(), ahead: 0 }
    }
}

impl Confirms {
    /// Counts a publish and gives its number.
    #[inline]
    pub fn publish(&mut self) -> u64 {
        self.last_published += 1;
        self.last_published
    }

    /// Counts `count` publishes and gives the number of the first one.
    pub fn publish_many(&mut self, count: u64) -> u64 {
        let first = self.last_published + 1;
        self.last_published += count;
        first
    }

    /// Number of publishes without an answer.
    pub fn open_count(&self) -> u64 {
        self.last_published + 1 - self.oldest_open - self.ahead
    }

    /// The publish with this number is answered. `false` when it was before, or was never made.
    pub fn resolve_one(&mut self, seq: u64) -> bool {
        if seq < self.oldest_open || seq > self.last_published {
            return false;
        }
        if seq == self.oldest_open {
            self.oldest_open += 1;
            self.join_oldest();
            return true;
        }
        let before =
            self.resolved_ahead.range(..=seq).next_back().map(|(&first, &last)| (first, last));
        if before.is_some_and(|(_, last)| seq <= last) {
            return false;
        }
        let last = self.resolved_ahead.remove(&(seq + 1)).unwrap_or(seq);
        let first = before.filter(|&(_, last)| last + 1 == seq).map_or(seq, |(first, _)| first);
        self.resolved_ahead.insert(first, last);
        self.ahead += 1;
        true
    }

    /// The next run of publishes that a confirm with `multiple` answers; call it again until there is none.
    pub fn resolve_run(&mut self, resolving: &Resolving) -> Option<(u64, u64)> {
        // Number 0 means all that there are.
        let up_to = match resolving.up_to {
            0 => self.last_published,
            up_to => up_to.min(self.last_published),
        };
        let first = self.oldest_open;
        if first > up_to {
            return None;
        }
        let next_resolved =
            self.resolved_ahead.first_key_value().map_or(u64::MAX, |(&first, _)| first);
        let last = up_to.min(next_resolved - 1);
        self.oldest_open = last + 1;
        self.join_oldest();
        Some((first, last))
    }

    /// Moves on over a run that was resolved ahead.
    fn join_oldest(&mut self) {
        if let Some((&first, &last)) = self.resolved_ahead.first_key_value()
            && first == self.oldest_open
        {
            self.oldest_open = last + 1;
            self.resolved_ahead.remove(&first);
            self.ahead -= last - first + 1;
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the test tells the time")]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn confirms_with_gaps_are_counted_in_a_moment() {
        const COUNT: u64 = 200_000;
        let mut confirms = Confirms::default();
        confirms.publish_many(COUNT);
        let started = Instant::now();
        for (nth, seq) in (2..=COUNT).step_by(2).enumerate() {
            assert!(confirms.resolve_one(seq));
            assert_eq!(confirms.open_count(), COUNT - nth as u64 - 1);
            assert!(started.elapsed() < Duration::from_secs(60), "{nth} of {COUNT}");
        }
        let half = Resolving::new(1, COUNT / 2, true);
        while confirms.resolve_run(&half).is_some() {}
        assert_eq!(confirms.open_count(), COUNT / 4);
        for seq in (1..=COUNT).step_by(2) {
            assert_eq!(confirms.resolve_one(seq), seq > COUNT / 2);
        }
        assert_eq!((confirms.open_count(), confirms.ahead), (0, 0));
    }
}

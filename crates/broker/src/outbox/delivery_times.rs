//! When the deliveries of a channel went out: once a second, which was the first one then. So the age
//! of any of them is known to a second, at next to no cost for each.

use std::collections::VecDeque;

/// How long deliveries count as made at the same time.
const STEP_MS: u64 = 1000;
/// Moments that are kept; when there are more, every other one is given up.
const MOMENTS_MAX: usize = 128;

/// From which tag on deliveries were made when, in ascending order.
#[derive(Debug, Default)]
pub(crate) struct DeliveryTimes {
    moments: VecDeque<(u64, u64)>,
    /// When the next one has to be noted.
    due_ms: u64,
}

impl DeliveryTimes {
    /// Whether the delivery that is just being made has to be noted.
    #[inline]
    pub fn is_due(&self, now_ms: u64) -> bool {
        now_ms >= self.due_ms
    }

    /// Notes that the delivery with this tag, and those behind it, are made now. `oldest` is the tag of
    /// the oldest that may be asked for.
    #[cold]
    pub fn note(&mut self, tag: u64, now_ms: u64, oldest: Option<u64>) {
        self.due_ms = now_ms + STEP_MS;
        let oldest = oldest.unwrap_or(tag);
        while self.moments.get(1).is_some_and(|(from, _)| *from <= oldest) {
            self.moments.pop_front();
        }
        if self.moments.front().is_some_and(|_| oldest == tag) {
            self.moments.clear();
        }
        if self.moments.len() >= MOMENTS_MAX {
            let mut keeps = false;
            self.moments.retain(|_| {
                keeps = !keeps;
                keeps
            });
        }
        self.moments.push_back((tag, now_ms));
    }

    /// Bytes that it uses beyond itself.
    pub fn used_bytes(&self) -> usize {
        self.moments.capacity() * size_of::<(u64, u64)>()
    }

    /// When the delivery with this tag was made, in milliseconds since 1970.
    pub fn of(&self, tag: u64) -> Option<u64> {
        let behind = self.moments.partition_point(|(from, _)| *from <= tag);
        self.moments.get(behind.checked_sub(1)?).map(|(_, at_ms)| *at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_as_old_as_the_first_of_its_second() {
        let mut times = DeliveryTimes::default();
        assert_eq!(times.of(1), None);
        for (tag, now_ms) in [(1, 5_000), (2, 5_400), (3, 6_100), (4, 6_200)] {
            if times.is_due(now_ms) {
                times.note(tag, now_ms, Some(1));
            }
        }
        let known: Vec<_> = (1..=4).map(|tag| times.of(tag)).collect();
        assert_eq!(known, [Some(5_000), Some(5_000), Some(6_100), Some(6_100)]);
    }

    #[test]
    fn what_cannot_be_asked_for_is_forgotten() {
        let mut times = DeliveryTimes::default();
        for tag in 1..1000 {
            times.note(tag, tag * STEP_MS, Some(tag.saturating_sub(3).max(1)));
        }
        assert!(times.moments.len() <= 5, "{:?}", times.moments);
        assert_eq!(times.of(999), Some(999 * STEP_MS));
    }

    #[test]
    fn there_is_a_bound_to_what_is_kept_and_ages_are_never_too_small() {
        let mut times = DeliveryTimes::default();
        for tag in 1..10_000 {
            times.note(tag, tag * STEP_MS, Some(1));
        }
        assert!(times.moments.len() <= MOMENTS_MAX);
        for tag in [1, 77, 5_000, 9_999] {
            assert!(times.of(tag).expect("it is known") <= tag * STEP_MS);
        }
        assert_eq!(times.of(1), Some(STEP_MS));
    }
}

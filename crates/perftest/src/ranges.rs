//! Sets of numbers that come mostly in order: ranges instead of single numbers.

use std::ops::RangeInclusive;

/// A set of numbers, kept as ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// First and last number of each range, in the order of arrival; a range that continues the last one is joined to it.
    ranges: Vec<(u64, u64)>,
    is_sorted: bool,
}

impl Ranges {
    /// Adds numbers.
    pub fn add(&mut self, numbers: RangeInclusive<u64>) {
        let (first, last) = numbers.into_inner();
        match self.ranges.last_mut() {
            Some(range) if range.1 + 1 == first => range.1 = last,
            _ => {
                self.is_sorted = false;
                self.ranges.push((first, last));
            }
        }
    }

    /// How many numbers were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Makes ready for [`Ranges::contains`].
    pub fn sort(&mut self) {
        self.ranges.sort_unstable();
        self.is_sorted = true;
    }

    /// Whether this number was added. [`Ranges::sort`] comes first.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        debug_assert!(self.is_sorted || self.ranges.is_empty());
        let behind = self.ranges.partition_point(|range| range.0 <= number);
        behind > 0 && self.ranges[behind - 1].1 >= number
    }
}

//! Bindings of one destination that differ in nothing but their arguments. Most exchanges have one
//! of a kind; a headers exchange has thousands, which are not to be compared one by one.

use super::shrink;
use crate::arguments::{digest, same_table};
use crate::work;
use courser_codec::FieldTable;
use rustc_hash::FxHashMap;

/// So many are found by comparing them all.
const FEW: usize = 16;

/// The arguments of each.
#[derive(Default)]
pub(super) struct Variants {
    tables: Vec<FieldTable>,
    /// Where the tables with a digest are, once there are more than a few.
    places: Option<Box<FxHashMap<u64, Vec<usize>>>>,
}

impl Variants {
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub fn contains(&self, arguments: &FieldTable) -> bool {
        self.position(arguments).is_some()
    }

    pub fn iter(&self) -> impl Iterator<Item = &FieldTable> {
        self.tables.iter()
    }

    pub fn get(&self, place: usize) -> Option<&FieldTable> {
        self.tables.get(place)
    }

    /// Some of the first `before` tables, `limit` at most, and where these begin. They are the last ones: a table that takes
    /// the place of another one comes from behind.
    pub fn some(&self, before: usize, limit: usize) -> (usize, Vec<FieldTable>) {
        let before = before.min(self.tables.len());
        let first = before.saturating_sub(limit);
        work::count(before - first);
        (first, self.tables[first..before].to_vec())
    }

    pub fn into_tables(self) -> Vec<FieldTable> {
        self.tables
    }

    /// Adds arguments that are not there yet.
    pub fn push(&mut self, arguments: FieldTable) {
        if let Some(places) = &mut self.places {
            places.entry(digest(&arguments)).or_default().push(self.tables.len());
        }
        self.tables.push(arguments);
        if self.places.is_none() && self.tables.len() > FEW {
            let mut places = FxHashMap::<u64, Vec<usize>>::default();
            for (at, table) in self.tables.iter().enumerate() {
                places.entry(digest(table)).or_default().push(at);
            }
            self.places = Some(Box::new(places));
        }
    }

    /// Takes out the arguments that are the same, as they were added.
    pub fn remove(&mut self, arguments: &FieldTable) -> Option<FieldTable> {
        let at = self.position(arguments)?;
        let last = self.tables.len() - 1;
        if let Some(places) = &mut self.places {
            let of_last = digest(&self.tables[last]);
            let of_removed = digest(arguments);
            if let Some(known) = places.get_mut(&of_removed) {
                known.retain(|place| *place != at);
                if known.is_empty() {
                    places.remove(&of_removed);
                }
            }
            // The last one takes the place that becomes free.
            let moved = places.get_mut(&of_last).into_iter().flatten();
            moved.filter(|place| **place == last).for_each(|place| *place = at);
        }
        let removed = self.tables.swap_remove(at);
        match &mut self.places {
            Some(places) if self.tables.len() > FEW / 2 => shrink(places),
            places => *places = None,
        }
        if self.tables.capacity() > FEW && self.tables.len() < self.tables.capacity() / 4 {
            self.tables.shrink_to(2 * self.tables.len());
        }
        Some(removed)
    }

    fn position(&self, arguments: &FieldTable) -> Option<usize> {
        let is_it = |at: &usize| same_table(&self.tables[*at], arguments);
        match &self.places {
            None => (0..self.tables.len()).inspect(|_| work::count(1)).find(is_it),
            Some(places) => places
                .get(&digest(arguments))?
                .iter()
                .copied()
                .inspect(|_| work::count(1))
                .find(is_it),
        }
    }
}

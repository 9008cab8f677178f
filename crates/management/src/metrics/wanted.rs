//! Lists of which not all is wanted.

use super::table::Pages;
use parking_lot::Mutex;
use std::sync::Arc;

/// A list with a question that is asked once of each item, as it may take long: a page goes through its lists for each
/// metric.
pub(crate) struct Wanted<L, V> {
    list: L,
    is_wanted: Box<dyn Fn(&V) -> bool + Send + Sync>,
    /// What is known already, by rank.
    known: Mutex<Vec<bool>>,
}

impl<L, V> Wanted<L, V> {
    pub fn new(list: L, is_wanted: impl Fn(&V) -> bool + Send + Sync + 'static) -> Self {
        Wanted { list, is_wanted: Box::new(is_wanted), known: Mutex::default() }
    }
}

impl<L: Pages<V> + Sync, V> Pages<V> for Arc<Wanted<L, V>> {
    const SOME: usize = L::SOME;

    fn some(&self, rank: usize, limit: usize) -> (usize, Vec<V>) {
        let (looked_at, mut items) = self.list.some(rank, limit);
        let mut known = self.known.lock();
        let mut rank = rank;
        items.retain(|item| {
            if rank == known.len() {
                known.push((self.is_wanted)(item));
            }
            rank += 1;
            // Lists are read from their beginning, and do not change.
            known.get(rank - 1).copied().unwrap_or_default()
        });
        (looked_at, items)
    }
}

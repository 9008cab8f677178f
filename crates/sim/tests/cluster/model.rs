//! What must hold for clients, whichever node serves them.

use std::collections::BTreeSet;

/// What clients were told, and have done.
#[derive(Default)]
pub struct Model {
    published: u64,
    confirmed: BTreeSet<u64>,
    /// A consumer was done with it, and may have been heard.
    acknowledged: BTreeSet<u64>,
    /// That is durable.
    settled: BTreeSet<u64>,
    terms: BTreeSet<u64>,
}

impl Model {
    /// The number of the next message.
    pub fn next(&mut self) -> u64 {
        self.published += 1;
        self.published
    }

    pub fn confirms(&mut self, id: u64) {
        self.confirmed.insert(id);
    }

    pub fn acknowledges(&mut self, id: u64) {
        self.acknowledged.insert(id);
    }

    pub fn settles(&mut self, id: u64) {
        self.settled.insert(id);
    }

    pub fn has_confirmed(&self) -> bool {
        !self.confirmed.is_empty()
    }

    pub fn confirmed(&self) -> usize {
        self.confirmed.len()
    }

    pub fn settled(&self) -> usize {
        self.settled.len()
    }

    pub fn terms(&self) -> usize {
        self.terms.len()
    }

    /// A node begins to serve in a term, with these messages in the queue.
    pub fn serves(&mut self, term: u64, found: &[u64]) {
        assert!(self.terms.insert(term), "two brokers serve in term {term}");
        let ascending = found.is_sorted_by(|before, next| before < next);
        assert!(ascending, "term {term}: not in the order of publishing, or twice: {found:?}");
        let found: BTreeSet<u64> = found.iter().copied().collect();
        let lost: Vec<_> = self
            .confirmed
            .iter()
            .filter(|id| !found.contains(id) && !self.acknowledged.contains(id))
            .collect();
        assert!(lost.is_empty(), "term {term}: confirmed, and lost: {lost:?}");
        let back: Vec<_> = found.intersection(&self.settled).collect();
        assert!(back.is_empty(), "term {term}: acknowledged for good, and back: {back:?}");
    }
}

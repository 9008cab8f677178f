//! What must hold for clients, whichever node serves them.

use crate::linear::{History, Question};
use std::collections::BTreeSet;

/// What clients were told, and have done.
#[derive(Default)]
pub struct Model {
    published: u64,
    confirmed: BTreeSet<u64>,
    /// A consumer has had it.
    delivered: BTreeSet<u64>,
    /// A consumer was done with it, and may have been heard.
    acknowledged: BTreeSet<u64>,
    /// That is durable.
    settled: BTreeSet<u64>,
    terms: BTreeSet<u64>,
    /// Those that were confirmed, in that order.
    in_order: Vec<u64>,
    /// What was asked, and answered.
    pub questions: History,
}

impl Model {
    /// The number of the next message.
    pub fn next(&mut self) -> u64 {
        self.published += 1;
        self.published
    }

    pub fn confirms(&mut self, id: u64) {
        if self.confirmed.insert(id) {
            self.in_order.push(id);
        }
    }

    /// A question of whether anything is there for a consumer.
    pub fn asks_for_message(&self) -> Question {
        Question::Empty { confirmed: self.in_order.len() }
    }

    /// A question is answered with this method, by a broker of which a consumer still has these messages.
    pub fn answers(&mut self, question: Question, answer: &str, held: &BTreeSet<u64>) {
        match question {
            Question::Queue(asked, _) => self.questions.answers(asked, answer),
            Question::IsThere(_) => {}
            Question::Empty { confirmed } => {
                assert_eq!(answer, "basic.get-empty");
                let left = self.in_order[..confirmed].iter();
                let is_there = |id: &&u64| !self.acknowledged.contains(*id) && !held.contains(*id);
                let left: Vec<_> = left.filter(is_there).collect();
                assert!(left.is_empty(), "nothing is there, it is said, and this was: {left:?}");
                self.questions.count_empty();
            }
        }
    }

    pub fn delivers(&mut self, id: u64) {
        self.delivered.insert(id);
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

    /// Messages that were delivered and not acknowledged.
    pub fn delivered(&self) -> usize {
        self.delivered.difference(&self.acknowledged).count()
    }

    pub fn settled(&self) -> usize {
        self.settled.len()
    }

    pub fn terms(&self) -> usize {
        self.terms.len()
    }

    /// Whether another node has served in a later term: one that was paused when it was elected does not know.
    pub fn is_over(&self, term: u64) -> bool {
        self.terms.last().is_some_and(|last| *last > term)
    }

    /// A node begins to serve in a term, with these messages in the queue.
    pub fn serves(&mut self, term: u64, found: &[u64]) {
        assert!(self.terms.insert(term), "two brokers serve in term {term}");
        let ascending = found.is_sorted_by(|before, next| before < next);
        assert!(ascending, "term {term}: not in the order of publishing, or twice: {found:?}");
        if self.is_over(term) {
            return;
        }
        let found: BTreeSet<u64> = found.iter().copied().collect();
        let is_lost = |id: &&u64| !found.contains(id) && !self.acknowledged.contains(id);
        let lost: Vec<_> = self.confirmed.iter().filter(is_lost).collect();
        assert!(lost.is_empty(), "term {term}: confirmed, and lost: {lost:?}");
        let lost: Vec<_> = self.delivered.iter().filter(is_lost).collect();
        assert!(lost.is_empty(), "term {term}: delivered, and not committed: {lost:?}");
        let back: Vec<_> = found.intersection(&self.settled).collect();
        assert!(back.is_empty(), "term {term}: acknowledged for good, and back: {back:?}");
    }
}

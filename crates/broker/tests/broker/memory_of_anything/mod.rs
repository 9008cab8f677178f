//! Whatever clients make very many of, in any mixture: it counts by no less than what the allocator has given out for it, and when
//! all but one of each have gone, what is left takes no more than counts.
//!
//! What is made together is drawn at random, but always the same. `COURSER_MEMORY_CASES` has it draw so many others.

mod clients;
mod definitions;
mod messages;
mod scene;

use crate::support::allocated_bytes;
use clients::{Channels, Connections, Consumers, StreamReaders};
use definitions::{Bindings, Exchanges, Exclusive, Queues};
use messages::{DeadLetters, Delayed, InTransaction, Remembered, Routed, Unacknowledged, Waiting};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use scene::Scene;
use std::ops::Range;

/// Allocated besides what counts, whatever there is: room for a few of everything.
const SPARE: i64 = 65_536;
/// The same for each queue that shares what there is many of: a queue counts from its beginning for what it needs at first, and some
/// of that comes later.
const SPARE_OF_QUEUE: i64 = 1024;
/// How many there are of each.
const MANY: usize = 3000;

/// Mixtures that are drawn.
const CASES: u32 = 8;

/// Something that there may be very many of.
trait Many {
    /// Those with these numbers come.
    fn add(&mut self, scene: &mut Scene, range: Range<usize>);
    /// As many go.
    fn remove(&mut self, scene: &mut Scene, range: Range<usize>);
    /// Its clients have looked at what they were sent, and are idle.
    fn rest(&mut self) {}
    /// Bytes of these that have a bound of their own instead.
    fn bounded_bytes(&self) -> i64 {
        0
    }
}

/// How it is called, and a number that chooses among arguments, types and ways to go.
#[derive(Clone, Copy, Debug)]
struct Named {
    id: usize,
    choice: usize,
}

impl Named {
    fn name(self) -> String {
        format!("many{}", self.id)
    }

    fn nth(self, nth: usize) -> String {
        format!("many{} {nth}", self.id)
    }

    /// How many queues share what there is many of.
    fn shared_by(self) -> usize {
        [1, 2, 100][self.choice % 3]
    }

    fn queues(self) -> impl Iterator<Item = String> {
        (0..self.shared_by()).map(move |nth| self.queue(nth))
    }

    /// The queue that one of them is in.
    fn queue(self, nth: usize) -> String {
        format!("queue{} {}", self.id, nth % self.shared_by())
    }
}

/// Each kind, how many choices there are for it, and what makes what it needs first.
type Kind = (&'static str, usize, fn(Named, &mut Scene) -> Box<dyn Many>);
const KINDS: [Kind; 15] = [
    ("queues", 40, |named, _| Box::new(Queues(named))),
    ("exclusive queues", 1, |named, _| Box::new(Exclusive(named))),
    ("exchanges", 8, |named, _| Box::new(Exchanges(named))),
    ("bindings", 24, |named, scene| Box::new(Bindings::new(named, scene))),
    ("channels", 2, |named, scene| Box::new(Channels::new(named, scene))),
    ("connections", 2, |named, scene| Box::new(Connections::new(named, scene))),
    ("consumers", 24, |named, scene| Box::new(Consumers::new(named, scene))),
    ("stream readers", 1, |named, scene| Box::new(StreamReaders::new(named, scene))),
    ("waiting", 24, |named, scene| Box::new(Waiting::new(named, scene))),
    ("unacknowledged", 48, |named, scene| Box::new(Unacknowledged::new(named, scene))),
    ("delayed", 28, |named, scene| Box::new(Delayed::new(named, scene))),
    ("in a transaction", 1, |named, scene| Box::new(InTransaction::new(named, scene))),
    ("routed", 1, |named, scene| Box::new(Routed::new(named, scene))),
    ("remembered", 3, |named, scene| Box::new(Remembered::new(named, scene))),
    ("dead letters", 1, |named, scene| Box::new(DeadLetters::new(named, scene))),
];

/// What is allocated and not counted.
fn uncounted(scene: &mut Scene, all: &mut [(String, Box<dyn Many>)]) -> i64 {
    scene.rest();
    all.iter_mut().for_each(|(_, many)| many.rest());
    let bounded: i64 = all.iter().map(|(_, many)| many.bounded_bytes()).sum();
    allocated_bytes() - scene.counted_bytes() - bounded
}

/// Makes very many of each, and all but one of each go, twice. Says what does not count.
fn check(kinds: &[(usize, usize)]) -> Vec<String> {
    let (mut scene, mut all, mut spare) = (Scene::new(), Vec::new(), SPARE);
    for (id, (kind, choice)) in kinds.iter().enumerate() {
        let (name, choices, new) = KINDS[*kind];
        let named = Named { id, choice: choice % choices };
        spare += SPARE_OF_QUEUE * named.shared_by() as i64;
        all.push((format!("{name} ({})", named.choice), new(named, &mut scene)));
    }
    for (_, many) in &mut all {
        many.add(&mut scene, 0..1);
    }
    let mut failed = Vec::with_capacity(100);
    let before = uncounted(&mut scene, &mut all);
    for time in 1..=2 {
        for at in 0..all.len() {
            let without = uncounted(&mut scene, &mut all);
            all[at].1.add(&mut scene, 1..MANY);
            let more = uncounted(&mut scene, &mut all) - without;
            if more > spare {
                failed.push(format!("{}, time {time}: {more} bytes more", all[at].0));
            }
        }
        for (_, many) in all.iter_mut().rev() {
            many.remove(&mut scene, 1..MANY);
        }
        let left = uncounted(&mut scene, &mut all) - before;
        if left > spare {
            let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
            failed.push(format!("{}, time {time}: {left} bytes are left", names.join(" and ")));
        }
    }
    failed
}

#[test]
fn each_thing_of_which_there_are_many_counts_by_what_it_takes() {
    let mut failed = Vec::new();
    for (kind, (_, choices, _)) in KINDS.iter().enumerate() {
        // Coprime with the numbers that a choice is divided by, so that some of all come.
        (0..*choices).step_by(5).for_each(|choice| failed.extend(check(&[(kind, choice)])));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn whatever_there_is_many_of_counts_by_what_it_takes() {
    let cases = std::env::var("COURSER_MEMORY_CASES").ok().and_then(|cases| cases.parse().ok());
    // What failed says which kinds they were: to find smaller mixtures takes longer than to look.
    let (failure_persistence, max_shrink_iters) = (None, 0);
    let config = Config { failure_persistence, max_shrink_iters, ..Config::default() };
    let mut runner = match cases {
        None => {
            let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            TestRunner::new_with_rng(Config { cases: CASES, ..config }, rng)
        }
        Some(cases) => TestRunner::new(Config { cases, ..config }),
    };
    let mixture = prop::collection::vec((0..KINDS.len(), 0..64_usize), 2..=3);
    let done = runner.run(&mixture, |kinds| {
        let failed = check(&kinds);
        prop_assert!(failed.is_empty(), "{}", failed.join("\n"));
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}

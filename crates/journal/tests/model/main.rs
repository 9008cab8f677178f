//! Random histories of a journal on a disk that crashes and fails, held against a model.
//!
//! `COURSER_JOURNAL_SECONDS` says how long (default 10), `COURSER_JOURNAL_SEED` runs one history
//! again, and prints it.

mod owner;
mod world;

use std::{
    env, panic,
    time::{Duration, Instant},
};
use world::World;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

fn run(seed: u64, verbose: bool) {
    let mut world = World::new(seed, verbose);
    for _ in 0..world.lives() {
        world.live();
    }
    world.finish();
}

#[test]
fn what_was_durable_survives_and_nothing_else_appears() {
    if let Some(seed) = number("COURSER_JOURNAL_SEED") {
        return run(seed, true);
    }
    let until =
        Instant::now() + Duration::from_secs(number("COURSER_JOURNAL_SECONDS").unwrap_or(10));
    let first = number("COURSER_JOURNAL_FIRST_SEED").unwrap_or(0);
    let mut seed = first;
    while Instant::now() < until {
        if let Err(panic) = panic::catch_unwind(|| run(seed, false)) {
            eprintln!("run again with COURSER_JOURNAL_SEED={seed}");
            panic::resume_unwind(panic);
        }
        seed += 1;
    }
    println!("{} histories", seed - first);
    assert!(seed - first > 50, "the machine is too slow for this test");
}

//! Random histories of a broker that crashes, against a model.
//!
//! `COURSER_SIM_SEED=N` runs one seed and tells what happens; `COURSER_SIM_SECONDS=N` (5 without)
//! says how long to go through seeds.

use courser_sim::World;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn a_restarted_broker_holds_what_it_held_at_a_moment_not_before_the_last_durable_one() {
    if let Some(seed) = number("COURSER_SIM_SEED") {
        World::new(seed, true).run();
        return;
    }
    let seconds = Duration::from_secs(number("COURSER_SIM_SECONDS").unwrap_or(5));
    let start = Instant::now();
    let mut seed = 0;
    while start.elapsed() < seconds || seed < 200 {
        let lived = catch_unwind(AssertUnwindSafe(|| World::new(seed, false).run()));
        assert!(lived.is_ok(), "seed {seed} fails; look at it with COURSER_SIM_SEED={seed}");
        seed += 1;
    }
    println!("{seed} histories");
}

//! Random histories of a journal on a disk that crashes and fails, held against a model.
//!
//! `COURSER_JOURNAL_SECONDS` says for how long (default 8) each test looks for a history that goes
//! wrong, `COURSER_JOURNAL_SEED` runs one history again and prints it.

mod once;
mod owner;
mod steps;
mod world;

use courser_journal::testing::{FailsOnce, Faults};
use std::{
    env,
    panic::{self, AssertUnwindSafe, RefUnwindSafe},
    time::{Duration, Instant},
};
use world::World;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// Runs what the seeds from 0 on say until the time is up, or what one seed says.
fn run_for_a_while(run: impl Fn(u64) + RefUnwindSafe) {
    if let Some(seed) = number("COURSER_JOURNAL_SEED") {
        return run(seed);
    }
    let seconds = number("COURSER_JOURNAL_SECONDS").unwrap_or(8);
    let until = Instant::now() + Duration::from_secs(seconds);
    let first = number("COURSER_JOURNAL_FIRST_SEED").unwrap_or(0);
    let mut seed = first;
    while Instant::now() < until {
        if let Err(panic) = panic::catch_unwind(|| run(seed)) {
            eprintln!("run again with COURSER_JOURNAL_SEED={seed}");
            panic::resume_unwind(panic);
        }
        seed += 1;
    }
    println!("{} seeds", seed - first);
}

/// A few lives, with faults and crashes at random.
fn live(seed: u64) {
    let mut world = World::new(seed, number("COURSER_JOURNAL_SEED").is_some());
    for _ in 0..world.lives() {
        world.live();
    }
    world.finish();
}

/// One life, with the power going at each of its operations on the disk in turn.
fn sweep(seed: u64) {
    for crash_at in 0.. {
        let mut world = World::new(seed, false);
        let crashed = panic::catch_unwind(AssertUnwindSafe(|| {
            let crashed = world.live_until(crash_at);
            world.finish();
            crashed
        }));
        match crashed {
            Ok(true) => {}
            Ok(false) => return,
            Err(panic) => {
                eprintln!("the power went at operation {crash_at}");
                panic::resume_unwind(panic);
            }
        }
    }
}

/// Two lives in which each operation on the disk in turn fails once: as on a bad sector, as on a full disk, and as
/// what is forbidden.
fn sweep_of_faults(seed: u64) {
    let change = |fail_change| Faults { fail_change, ..Faults::default() };
    let look = |fail_look| Faults { fail_look, ..Faults::default() };
    let kinds: [(fn(_) -> Faults, _, _); 4] =
        [(change, 5, true), (change, 28, false), (look, 5, true), (look, 13, false)];
    for (faults, os_error, power_goes) in kinds {
        for after in 0.. {
            let mut world = World::once(seed, after, number("COURSER_JOURNAL_SEED").is_some());
            let lived = panic::catch_unwind(AssertUnwindSafe(|| {
                let fault = faults(Some(FailsOnce { after, os_error }));
                let failed = world.live_with(fault, power_goes);
                world.finish();
                failed
            }));
            match lived {
                Ok(true) => {}
                Ok(false) => break,
                Err(panic) => {
                    eprintln!("operation {after} failed with {os_error}");
                    panic::resume_unwind(panic);
                }
            }
        }
    }
}

#[test]
fn what_was_durable_survives_and_nothing_else_appears() {
    run_for_a_while(live);
}

#[test]
fn the_power_may_go_at_every_operation() {
    run_for_a_while(sweep);
}

#[test]
fn every_operation_of_the_disk_may_fail_once() {
    run_for_a_while(sweep_of_faults);
}

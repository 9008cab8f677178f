//! Features in pairs and triples: a broker whose queues have any two, and any three, of all features
//! together does what a model says, whatever its clients do.
//!
//! The rows of a covering array say which features are on; for each row random operations run on a
//! virtual clock, and after each of them broker and model agree on what waits where and in which order,
//! who has what, and who was sent what.
//!
//! `COURSER_SIM_SECONDS=N` goes on through seeds for so long; without it each row runs with a few.
//! `COURSER_SIM_ROW=N COURSER_SIM_SEED=N` runs one row with one seed and tells what happens, after
//! leaving out what is not needed to fail. Rows are those of the triples.

mod array;
mod broker;
mod contents;
mod features;
mod model;
mod operation;
mod shrink;
mod topology;
mod wire;
mod world;

use courser_journal::testing::Rng;
use features::Features;
use operation::Operation;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use world::World;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// The operations of a seed, which are others for each row.
fn operations(features: &Features, row: usize, seed: u64) -> Vec<Operation> {
    operation::draw(features, &mut Rng::new(seed << 16 | row as u64))
}

/// Runs operations, and says what is wrong.
fn run(
    features: &Features,
    seed: u64,
    operations: &[Operation],
    verbose: bool,
) -> Result<(), String> {
    let lived =
        catch_unwind(AssertUnwindSafe(|| World::new(features, seed, verbose)?.run(operations)));
    lived.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned())).unwrap_or_default())
    })
}

/// Runs the smallest failing part of a row with a seed, telling what happens.
fn tell(features: &Features, row: usize, seed: u64) {
    let all = operations(features, row, seed);
    println!("row {row}: {features}");
    let needed = match run(features, seed, &all, false) {
        Ok(()) => all,
        Err(why) => {
            // What is left of it may fail otherwise.
            println!("with all operations: {why}");
            shrink::shrink(all, |fewer| run(features, seed, fewer, false).is_err())
        }
    };
    if let Err(why) = run(features, seed, &needed, true) {
        panic!("{why}");
    }
}

#[test]
fn features_that_meet_keep_what_each_promises() {
    let rows = Features::rows();
    if let Some(row) = number("COURSER_SIM_ROW") {
        return tell(&rows[row as usize], row as usize, number("COURSER_SIM_SEED").unwrap_or(0));
    }
    let start = Instant::now();
    let seconds = number("COURSER_SIM_SECONDS").map(Duration::from_secs);
    let mut failures = Vec::new();
    let (mut seed, mut runs) = (number("COURSER_SIM_SEED").unwrap_or(0), 0);
    loop {
        for (row, features) in rows.iter().enumerate() {
            if seconds.is_some_and(|seconds| runs >= rows.len() && start.elapsed() >= seconds) {
                break;
            }
            if let Err(why) = run(features, seed, &operations(features, row, seed), false) {
                println!(
                    "row {row}, {features}\n  COURSER_SIM_ROW={row} COURSER_SIM_SEED={seed}: {why}"
                );
                failures.push((row, seed));
            }
            runs += 1;
        }
        seed += 1;
        if seconds.is_none_or(|seconds| start.elapsed() >= seconds) {
            break;
        }
    }
    println!("{runs} runs of {} rows, {:?}", rows.len(), start.elapsed());
    assert!(failures.is_empty(), "{} of {runs} runs fail", failures.len());
}

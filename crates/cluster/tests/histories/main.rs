//! Seeded histories of a group: clients publish and acknowledge while nodes crash, lose power, are cut off, taken in and
//! thrown out. What must hold is in `model`.
//!
//! `COURSER_HISTORIES=10000` runs that many; `COURSER_HISTORY=17` runs one.

mod allocated;
mod copy;
mod directed;
mod log;
mod model;
mod rounds;
mod world;

use copy::Copy;
use courser_cluster::JournalLog;
use log::TestLog;
use std::env;
use world::World;

/// Histories of each kind in an ordinary run.
const HISTORIES: u64 = 150;
const STEPS: usize = 2500;

fn seeds() -> Vec<u64> {
    let number = |name| env::var(name).ok().map(|number| number.parse().expect("a number"));
    if let Some(seed) = number("COURSER_HISTORY") {
        return vec![seed];
    }
    (0..number("COURSER_HISTORIES").unwrap_or(HISTORIES)).collect()
}

/// Runs histories, and says which one failed.
fn run<C: Copy>(kind: &str, founders: usize, others: usize, changes: bool) {
    let (mut confirmed, mut terms) = (0, 0);
    for seed in seeds() {
        let told = Told(kind, seed);
        let mut world = World::<C>::new(seed, founders, others);
        for _ in 0..STEPS {
            step(&mut world, changes);
        }
        world.settle();
        confirmed += world.model.confirmed();
        terms += world.model.terms();
        std::mem::forget(told);
    }
    let histories = seeds().len();
    println!("{kind}: {histories} histories, {confirmed} confirms, {terms} terms");
    assert!(confirmed > 20 * histories && terms > 2 * histories, "hardly anything has happened");
}

/// Names the history when it panics.
struct Told<'a>(&'a str, u64);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        eprintln!("history {} of kind '{}' (COURSER_HISTORY={})", self.1, self.0, self.1);
    }
}

fn step<C: Copy>(world: &mut World<C>, changes: bool) {
    let at = world.rng.below(world.nodes.len() as u64) as usize;
    match world.rng.below(1000) {
        0..350 => (0..1 + world.rng.below(6)).for_each(|_| world.deliver()),
        350..550 => world.tick(at),
        550..750 => world.flush(at),
        750..880 => {
            let leader = world.leader().filter(|_| !world.rng.one_in(4)).unwrap_or(at);
            world.publish(leader);
        }
        880..900 => world.ask_all_for_proofs(),
        900..930 => world.lose_packet(),
        930..940 => world.damage(),
        940..945 => world.crash(at, false),
        945..948 => world.crash(at, true),
        948..950 => world.crash_after_sync(at),
        950..955 => world.lose_power_soon(at),
        955..970 => world.start(at),
        970..974 => world.isolate(at),
        974..978 => world.cut_link(),
        978..985 => world.heal(),
        985 => (0..world.nodes.len()).for_each(|at| world.crash(at, true)),
        986..989 => (0..world.nodes.len()).for_each(|at| world.start(at)),
        989..991 => world.quiet_spell(),
        991 => world.pause(world.leader().unwrap_or(at)),
        992..995 => {
            let leader = world.leader().unwrap_or(at);
            world.transfer(leader);
        }
        _ if changes => {
            let leader = world.leader().unwrap_or(at);
            world.change_members(leader);
        }
        _ => {
            let leader = world.leader().unwrap_or(at);
            world.give_up_lead(leader);
        }
    }
}

#[test]
fn a_node_by_itself_loses_nothing_that_was_confirmed() {
    run::<TestLog>("one", 1, 0, false);
}

#[test]
fn three_nodes_lose_nothing_that_was_confirmed() {
    run::<TestLog>("three", 3, 0, false);
}

#[test]
fn five_nodes_lose_nothing_that_was_confirmed() {
    run::<TestLog>("five", 5, 0, false);
}

#[test]
fn members_come_and_go_without_loss() {
    run::<TestLog>("members", 3, 3, true);
}

#[test]
fn a_history_happens_again_in_the_same_way() {
    let run = || {
        let mut world = World::<TestLog>::new(7, 3, 2);
        (0..STEPS).for_each(|_| step(&mut world, true));
        let groups = world.nodes.iter().map(|node| node.group.as_ref());
        let ends: Vec<_> =
            groups.map(|group| group.map(|group| (group.term(), group.committed()))).collect();
        (ends, world.rng.number())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_journal_by_itself_loses_nothing_that_was_confirmed() {
    run::<JournalLog>("one journal", 1, 0, false);
}

#[test]
fn three_journals_lose_nothing_that_was_confirmed() {
    run::<JournalLog>("three journals", 3, 0, false);
}

#[test]
fn journals_of_members_that_come_and_go_lose_nothing() {
    run::<JournalLog>("journals of members", 3, 2, true);
}

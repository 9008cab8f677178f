//! Brokers on a replicated log: what was confirmed is served by whoever leads next.
//!
//! `COURSER_HISTORIES=10000` runs that many seeded histories; `COURSER_HISTORY=17` runs one.

mod model;
mod node;
mod world;

use std::env;
use world::World;

const HISTORIES: u64 = 60;
const STEPS: usize = 1500;

/// Quiet rounds until somebody serves.
fn elect(world: &mut World) -> usize {
    for _ in 0..200 {
        world.quiet_round();
        if let Some(leader) = world.leader() {
            return leader;
        }
    }
    panic!("nobody serves");
}

#[test]
fn what_was_confirmed_is_served_by_the_next_leader() {
    let mut world = World::new(1, 3);
    let first = elect(&mut world);
    (0..20).for_each(|_| world.publish(first));
    world.take(first);
    (0..10).for_each(|_| world.quiet_round());
    assert!(world.model.confirmed() > 15, "confirmed: {}", world.model.confirmed());
    assert_eq!(world.model.settled(), 1);
    world.crash(first, true);
    let second = elect(&mut world);
    assert_ne!(first, second);
    assert_eq!(world.model.terms(), 2);
    world.publish(second);
    let before = world.model.confirmed();
    (0..10).for_each(|_| world.quiet_round());
    assert!(world.model.confirmed() > before, "the second leader confirms nothing");
    world.settle();
}

#[test]
fn a_leader_without_a_majority_confirms_nothing() {
    let mut world = World::new(2, 3);
    let first = elect(&mut world);
    (0..5).for_each(|_| world.quiet_round());
    let before = world.model.confirmed();
    world.isolate(first);
    world.publish(first);
    // Synced on one node, which is heard by nobody.
    (0..3).for_each(|_| world.flush(first));
    for _ in 0..60 {
        world.quiet_round();
        world.publish(first);
    }
    let leader = world.leader().expect("the others go on");
    assert_ne!(leader, first);
    assert_eq!(world.model.confirmed(), before);
    world.heal();
    world.settle();
    assert_eq!(world.model.confirmed(), before, "a deposed broker has confirmed something");
}

#[test]
fn histories_of_three_brokers_lose_nothing() {
    let number = |name| env::var(name).ok().map(|number| number.parse().expect("a number"));
    let seeds: Vec<u64> = match number("COURSER_HISTORY") {
        Some(seed) => vec![seed],
        None => (0..number("COURSER_HISTORIES").unwrap_or(HISTORIES)).collect(),
    };
    let (mut confirmed, mut settled, mut terms) = (0, 0, 0);
    for seed in &seeds {
        let told = Told(*seed);
        let mut world = World::new(*seed, 3);
        (0..STEPS).for_each(|_| step(&mut world));
        world.settle();
        confirmed += world.model.confirmed();
        settled += world.model.settled();
        terms += world.model.terms();
        std::mem::forget(told);
    }
    println!("{} histories, {confirmed} confirms, {settled} settled, {terms} terms", seeds.len());
    let enough = 10 * seeds.len();
    assert!(
        confirmed > enough && settled > seeds.len() && terms > 2 * seeds.len(),
        "hardly anything has happened"
    );
}

/// Names the history when it panics.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("history {} (COURSER_HISTORY={})", self.0, self.0);
    }
}

fn step(world: &mut World) {
    let at = world.rng.below(world.nodes.len() as u64) as usize;
    let leader = world.leader().filter(|_| !world.rng.one_in(4)).unwrap_or(at);
    match world.rng.below(1000) {
        0..350 => (0..1 + world.rng.below(6)).for_each(|_| world.deliver()),
        350..500 => world.turn(at, true),
        500..680 => world.flush(at),
        680..780 => world.publish(leader),
        780..860 => world.take(leader),
        860..890 => world.lose_packet(),
        890..896 => world.crash(at, false),
        896..899 => world.crash(at, true),
        899..905 => world.lose_power_soon(at),
        905..925 => world.start(at),
        925..930 => world.isolate(at),
        930..940 => world.heal(),
        940..950 => world.checkpoint(at),
        950..955 => (0..30).for_each(|_| world.quiet_round()),
        955 => (0..world.nodes.len()).for_each(|at| world.crash(at, true)),
        956..960 => (0..world.nodes.len()).for_each(|at| world.start(at)),
        _ => world.turn(at, true),
    }
}

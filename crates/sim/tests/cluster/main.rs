//! Brokers on a replicated log: what was confirmed is served by the next leader.
//!
//! `COURSER_HISTORIES=10000` runs that many seeded histories; `COURSER_HISTORY=17` runs one.

mod copies;
mod current;
mod full;
mod linear;
mod model;
mod node;
mod paused;
mod slow;
mod threads;
mod world;

use std::env;
use world::World;

const HISTORIES: u64 = 60;
const STEPS: usize = 1500;

/// Quiet rounds until a node serves.
fn elect(world: &mut World) -> usize {
    for _ in 0..200 {
        world.quiet_round();
        if let Some(leader) = world.leader() {
            return leader;
        }
    }
    panic!("no node serves");
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
    // Synced on one node, which no other node hears.
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
fn a_leader_without_a_majority_delivers_what_was_committed_before() {
    let mut world = World::new(2, 3);
    let first = elect(&mut world);
    world.publish(first);
    (0..10).for_each(|_| world.quiet_round());
    world.get(first, false);
    let before = world.model.delivered();
    assert_eq!(before, 1);
    world.isolate(first);
    world.publish(first);
    for _ in 0..60 {
        world.get(first, false);
        world.quiet_round();
    }
    assert_ne!(world.leader(), Some(first));
    world.heal();
    world.settle();
    // Some of the first batch, and none of the second: what had been taken is in the queue again.
    assert!((before..=4).contains(&world.model.delivered()), "{}", world.model.delivered());
}

#[test]
fn a_follower_without_room_stays_and_catches_up_later() {
    let mut world = World::new(6, 3);
    let leader = elect(&mut world);
    let full = (leader + 1) % 3;
    world.fill_disk(full);
    for _ in 0..100 {
        world.publish(leader);
        world.quiet_round();
    }
    assert_eq!(world.model.terms(), 1);
    assert!(world.committed(full) < world.committed(leader), "the disk was not full");
    world.crash(full, false);
    world.start(full);
    (0..10).for_each(|_| world.quiet_round());
    world.nodes[full].disk.set_capacity(u64::MAX);
    world.settle();
    assert_eq!(world.copies, 0);
}

#[test]
fn a_leader_that_commits_nothing_has_no_room_until_it_does() {
    let mut world = World::new(7, 3);
    let leader = elect(&mut world);
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    others.iter().for_each(|at| world.fill_disk(*at));
    for _ in 0..100 {
        world.publish(leader);
        world.quiet_round();
    }
    let has_room =
        |world: &mut World| world.nodes[leader].serving().expect("it leads").store.has_room();
    assert!(!has_room(&mut world), "publishers are held back");
    others.iter().for_each(|at| world.nodes[*at].disk.set_capacity(u64::MAX));
    world.settle();
    (0..30).for_each(|_| world.quiet_round());
    assert!(has_room(&mut world));
}

fn followers(leader: usize) -> impl Iterator<Item = usize> {
    (0..3).filter(move |at| *at != leader)
}

#[test]
fn a_lead_that_is_taken_again_counts_nothing_of_the_tail_that_was_lost() {
    let mut world = World::new(8, 3);
    let first = elect(&mut world);
    let uncommitted = |world: &World| {
        let running = world.nodes[first].running.as_ref().expect("it runs");
        running.driver.group().uncommitted_bytes()
    };
    world.isolate(first);
    for _ in 0..40 {
        world.publish(first);
        world.turn(first, true);
        world.flush(first);
    }
    let lost = uncommitted(&world);
    assert!(lost > 4000, "{lost} bytes are lost");
    let mut second = first;
    for _ in 0..200 {
        world.quiet_round();
        second = world.leader().unwrap_or(second);
    }
    assert_ne!(second, first);
    world.settle();
    world.transfer(second, first);
    (0..20).for_each(|_| world.quiet_round());
    assert_eq!(world.leader(), Some(first));
    let before = world.committed(first);
    // Some of it goes to the broker of the lead before, which takes nothing.
    (0..6).for_each(|_| world.publish(first));
    (0..10).for_each(|_| world.quiet_round());
    assert!(world.committed(first) > before, "nothing was published");
    assert_eq!(uncommitted(&world), 0);
}

#[test]
fn histories_of_three_brokers_lose_nothing() {
    let number = |name| env::var(name).ok().map(|number| number.parse().expect("a number"));
    let seeds: Vec<u64> = match number("COURSER_HISTORY") {
        Some(seed) => vec![seed],
        None => (0..number("COURSER_HISTORIES").unwrap_or(HISTORIES)).collect(),
    };
    let (mut confirmed, mut settled, mut delivered, mut terms, mut copies) = (0, 0, 0, 0, 0);
    let (mut answers, mut empty) = (0, 0);
    for seed in &seeds {
        let told = Told(*seed);
        let mut world = World::new(*seed, 3);
        (0..STEPS).for_each(|_| step(&mut world));
        world.settle();
        world.model.questions.check();
        answers += world.model.questions.told;
        empty += world.model.questions.empty;
        confirmed += world.model.confirmed();
        settled += world.model.settled();
        delivered += world.model.delivered();
        terms += world.model.terms();
        copies += world.copies;
        std::mem::forget(told);
    }
    println!(
        "{} histories, {confirmed} confirms, {settled} settled, {delivered} only delivered, {terms} terms, {copies} copies, {answers} answers of queues, {empty} of none",
        seeds.len()
    );
    let enough = 10 * seeds.len();
    assert!(
        confirmed > enough
            && settled > seeds.len()
            && delivered > seeds.len()
            && terms > 2 * seeds.len()
            && copies > seeds.len() / 10
            && answers > 3 * seeds.len()
            && empty >= seeds.len() / 4,
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
        500..650 => world.flush(at),
        650..665 => world.ask(at),
        665..680 => world.ask(leader),
        680..780 => world.publish(leader),
        780..860 => {
            let for_good = !world.rng.one_in(3);
            world.get(leader, for_good);
        }
        860..890 => world.lose_packet(),
        890..896 => world.crash(at, false),
        896..899 => world.crash(at, true),
        899..905 => world.lose_power_soon(at),
        905..925 => world.start(at),
        925..930 => world.isolate(at),
        930..940 => world.heal(),
        940..943 => world.checkpoint(at),
        943..946 => world.checkpoint(leader),
        946 if world.rng.one_in(2) => world.pause_for_a_while(leader),
        946 => world.pause(leader),
        947..950 => world.wake(at),
        960..985 => world.copy(at),
        950..953 => (0..30).for_each(|_| world.quiet_round()),
        953..955 => (0..30).for_each(|_| {
            world.quiet_round();
            (0..3).for_each(|_| world.take(leader));
            world.ask(leader);
        }),
        955 => (0..world.nodes.len()).for_each(|at| world.crash(at, true)),
        956..960 => (0..world.nodes.len()).for_each(|at| world.start(at)),
        985..988 => world.fill_disk(at),
        988..994 => world.free_disk(at),
        _ => world.turn(at, true),
    }
}

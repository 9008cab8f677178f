//! Brokers on a replicated log: what was confirmed is served by whoever leads next.
//!
//! `COURSER_HISTORIES=10000` runs that many seeded histories; `COURSER_HISTORY=17` runs one.

mod copies;
mod full;
mod model;
mod node;
mod slow;
mod threads;
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

/// A leader whose followers have no room, and which has gathered as much as messages may.
fn led_without_room(seed: u64) -> (World, usize) {
    let mut world = World::new(seed, 3);
    let leader = elect(&mut world);
    world.serving(leader).declare("deleted").expect("there is room");
    for _ in 0..10 {
        world.publish(leader);
        world.quiet_round();
    }
    assert_eq!(world.answers(leader), ["queue.declare-ok"; 2]);
    followers(leader).for_each(|at| world.fill_disk(at));
    for _ in 0..150 {
        world.publish(leader);
        world.quiet_round();
    }
    assert!(!world.serving(leader).store.has_room());
    (world, leader)
}

fn followers(leader: usize) -> impl Iterator<Item = usize> {
    (0..3).filter(move |at| *at != leader)
}

#[test]
fn a_leader_without_room_answers_nothing_that_the_next_one_does_not_know() {
    let (mut world, first) = led_without_room(9);
    let settled = world.model.settled();
    (0..3).for_each(|_| world.take(first));
    world.serving(first).delete("deleted").expect("it is gathered");
    (0..5).for_each(|_| world.quiet_round());
    assert!(world.answers(first).is_empty(), "no majority knows that it is deleted");
    assert_eq!(world.model.settled(), settled, "no majority knows what is acknowledged");

    followers(first).for_each(|at| world.nodes[at].disk.set_capacity(u64::MAX));
    world.settle();
    (0..30).for_each(|_| world.quiet_round());
    assert_eq!(world.leader(), Some(first), "it has waited");
    assert_eq!(world.answers(first), ["queue.delete-ok"]);
    assert_eq!(world.model.settled(), settled + 3);
    world.crash(first, true);
    let second = elect(&mut world);
    assert!(!world.serving(second).has_queue("deleted"));
}

#[test]
fn a_leader_that_can_not_gather_what_was_done_gives_up_the_lead_and_what_was_not_committed() {
    let (mut world, first) = led_without_room(10);
    let term = world.leader_term();
    let mut name = String::new();
    for number in 0.. {
        assert!(number < 1000, "nothing limits what is gathered");
        name = format!("{number:0>200}");
        if world.serving(first).declare(&name).is_err() {
            break;
        }
    }
    world.take(first);
    assert_eq!(world.leader(), None, "its broker has what the log has not");
    followers(first).for_each(|at| world.nodes[at].disk.set_capacity(u64::MAX));
    world.settle();
    assert!(world.leader_term() > term);
    let next = elect(&mut world);
    assert!(!world.serving(next).has_queue(&name));
    world.serving(next).declare(&name).expect("there is room");
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
    let (mut confirmed, mut settled, mut terms, mut copies) = (0, 0, 0, 0);
    for seed in &seeds {
        let told = Told(*seed);
        let mut world = World::new(*seed, 3);
        (0..STEPS).for_each(|_| step(&mut world));
        world.settle();
        confirmed += world.model.confirmed();
        settled += world.model.settled();
        terms += world.model.terms();
        copies += world.copies;
        std::mem::forget(told);
    }
    println!(
        "{} histories, {confirmed} confirms, {settled} settled, {terms} terms, {copies} copies",
        seeds.len()
    );
    let enough = 10 * seeds.len();
    assert!(
        confirmed > enough
            && settled > seeds.len()
            && terms > 2 * seeds.len()
            && copies > seeds.len() / 10,
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
        940..946 => world.checkpoint(at),
        946..950 => world.checkpoint(leader),
        960..985 => world.copy(at),
        950..955 => (0..30).for_each(|_| world.quiet_round()),
        955 => (0..world.nodes.len()).for_each(|at| world.crash(at, true)),
        956..960 => (0..world.nodes.len()).for_each(|at| world.start(at)),
        985..988 => world.fill_disk(at),
        988..994 => world.free_disk(at),
        _ => world.turn(at, true),
    }
}

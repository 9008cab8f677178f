//! Answers of a leader that another node has deposed: it may have been paused, and not have noticed.

use crate::linear::Question;
use crate::node::QUEUE;
use crate::{elect, world::World};

/// Three nodes of which one has led since before the others have elected one of them, made a queue, deleted another one, and
/// confirmed a message; it is still paused.
fn deposed_while_paused(seed: u64) -> (World, usize, usize) {
    let mut world = World::new(seed, 3);
    let first = elect(&mut world);
    world.serving(first).declare("deleted").expect("there is room");
    world.settle();
    world.pause(first);
    let mut second = first;
    for _ in 0..100 {
        world.quiet_round();
        let others: Vec<usize> = (0..3).filter(|at| *at != first).collect();
        second =
            others.into_iter().find(|at| world.nodes[*at].serving().is_some()).unwrap_or(first);
        if second != first {
            break;
        }
    }
    assert_ne!(second, first, "the others elect one of them");
    world.serving(second).declare("made").expect("there is room");
    world.serving(second).delete("deleted").expect("there is room");
    let before = world.model.confirmed();
    (0..5).for_each(|_| world.publish(second));
    (0..10).for_each(|_| world.quiet_round());
    assert!(world.model.confirmed() > before);
    assert_eq!(world.answers(second), ["queue.declare-ok", "queue.delete-ok"]);
    (world, first, second)
}

fn questions(world: &World) -> [Question; 3] {
    let is_there = |name: &str| Question::IsThere(name.into());
    [is_there("made"), is_there("deleted"), world.model.asks_for_message()]
}

/// What the brokers of a node have answered since this was last asked.
fn told(world: &mut World, at: usize) -> Vec<&'static str> {
    let running = world.nodes[at].running.as_mut().expect("it runs");
    let brokers = running.serving.iter_mut().chain(&mut running.deposed);
    brokers.flat_map(|broker| std::mem::take(&mut broker.told)).collect()
}

#[test]
fn a_leader_that_was_paused_answers_nothing_from_before() {
    for (seed, at) in (20..29).zip([0, 1, 2].into_iter().cycle()) {
        let (mut world, first, second) = deposed_while_paused(seed);
        let question = questions(&world)[at].clone();
        world.ask_this(first, question.clone());
        world.wake(first);
        assert!(told(&mut world, first).is_empty(), "history {seed}: {question:?}");
        for _ in 0..30 {
            world.quiet_round();
            assert!(told(&mut world, first).is_empty(), "history {seed}: {question:?}");
        }
        assert_eq!(world.leader(), Some(second), "history {seed}");
        let asks = !matches!(question, Question::Empty { .. });
        world.ask_this(second, question);
        (0..3).for_each(|_| world.quiet_round());
        let answers = told(&mut world, second);
        assert_eq!(answers, [["queue.declare-ok"], ["channel.close"]][at % 2][..usize::from(asks)]);
    }
}

#[test]
fn a_leader_that_is_cut_off_answers_nothing_and_one_that_is_not_does() {
    let mut world = World::new(30, 3);
    let leader = elect(&mut world);
    (0..5).for_each(|_| world.quiet_round());
    for (name, answer) in [(QUEUE, "queue.declare-ok"), ("none", "channel.close")] {
        world.ask_this(leader, Question::IsThere(name.into()));
        assert!(told(&mut world, leader).is_empty(), "no other node has said that it follows");
        (0..2).for_each(|_| world.quiet_round());
        assert_eq!(told(&mut world, leader), [answer]);
    }

    world.isolate(leader);
    world.ask_this(leader, Question::IsThere(QUEUE.into()));
    (0..60).for_each(|_| world.quiet_round());
    assert!(told(&mut world, leader).is_empty());
    world.heal();
    world.settle();
    assert!(told(&mut world, leader).is_empty());
}

#[test]
fn an_answer_waits_until_a_majority_has_what_it_tells_of() {
    for seed in 31..35 {
        let mut world = World::new(seed, 3);
        let leader = elect(&mut world);
        (0..5).for_each(|_| world.quiet_round());
        let (question, answer) = match seed % 2 {
            0 => {
                world.publish(leader);
                (0..5).for_each(|_| world.quiet_round());
                (0..5).for_each(|_| world.take(leader));
                (world.model.asks_for_message(), "basic.get-empty")
            }
            _ => {
                world.serving(leader).declare("new").expect("there is room");
                (Question::IsThere("new".into()), "queue.declare-ok")
            }
        };
        told(&mut world, leader);
        world.ask_this(leader, question);
        // They hear each other, and no disk has what is told of.
        for _ in 0..10 {
            world.round_without_disks();
            assert!(told(&mut world, leader).is_empty(), "what it tells of may be lost");
        }
        (0..3).for_each(|_| world.quiet_round());
        assert_eq!(told(&mut world, leader), [answer], "history {seed}");
    }
}

#[test]
fn a_lost_packet_delays_an_answer_until_the_next_heartbeats() {
    let mut world = World::new(32, 3);
    let leader = elect(&mut world);
    (0..5).for_each(|_| world.quiet_round());
    world.ask_this(leader, Question::IsThere(QUEUE.into()));
    world.turn(leader, false);
    world.lose_packets();
    assert!(told(&mut world, leader).is_empty());
    (0..20).for_each(|_| world.quiet_round());
    assert_eq!(told(&mut world, leader), ["queue.declare-ok"]);
}

//! Rounds in which the others are asked whether they still follow.

use crate::allocated::kept_by;
use crate::directed::led_on;
use crate::world::World as AnyWorld;
use bytes::{Buf, Bytes};
use courser_cluster::{Change, JournalLog, NodeId, Options, Packet};

type World = AnyWorld<JournalLog>;

/// The numbers that stand for kinds of packets.
const APPEND: u8 = 1;
const APPEND_RESPONSE: u8 = 2;
const HEARTBEAT: u8 = 5;
const HEARTBEAT_RESPONSE: u8 = 6;

/// The packets of a kind to a node.
fn of_kind(said: &[Bytes], kind: u8, to: NodeId) -> Vec<Bytes> {
    let is_it = |bytes: &&Bytes| bytes[0] == kind && (&bytes[2..]).get_u64_le() == to.0;
    said.iter().filter(is_it).cloned().collect()
}

/// Time passes for the leader, up to its next heartbeat.
fn heartbeat(world: &mut World, leader: usize) {
    (0..Options::new(NodeId(1)).heartbeat_ticks).for_each(|_| world.tick(leader));
}

/// A follower has got what its disk has not synced. A hundred rounds end meanwhile, and must have the leader send it
/// nothing; a heartbeat has it try once.
fn rounds_beside_a_slow_follower(probes: bool) {
    let (mut world, leader) = led_on::<JournalLog>(0);
    let slow = (leader + 1) % 3;
    let slow_id = world.nodes[slow].id;
    // So its answers are needed for each round.
    world.cut_off((leader + 2) % 3);
    if probes {
        world.with(leader, |group| {
            group.unreachable(slow_id);
            Ok(())
        });
    }
    // More than may be on the way.
    (0..20).for_each(|_| world.publish(leader));
    let sent = of_kind(&world.deliver_all(), APPEND, slow_id).len();
    assert_eq!(sent, if probes { 1 } else { 4 });

    let mut said = Vec::new();
    for _ in 0..100 {
        let round = world.ask_for_proof(leader);
        said.extend(world.deliver_all());
        assert!(round.is_some() && world.proven(leader) == round);
    }
    assert_eq!(of_kind(&said, APPEND, slow_id).len(), 0, "appends that a hundred rounds have sent");
    let round = world.ask_for_proof(leader);
    heartbeat(&mut world, leader);
    let said = world.deliver_all();
    assert_eq!(of_kind(&said, APPEND, slow_id).len(), 1, "a packet may have been lost");
    assert_eq!(world.proven(leader), round);
    world.settle();
}

#[test]
fn rounds_send_a_follower_nothing_that_has_not_answered_a_probe() {
    rounds_beside_a_slow_follower(true);
}

#[test]
fn rounds_send_a_follower_nothing_that_has_all_that_may_be_on_the_way() {
    rounds_beside_a_slow_follower(false);
}

#[test]
fn a_round_is_asked_for_again_with_the_next_heartbeat() {
    let (mut world, leader) = led_on::<JournalLog>(0);
    world.cut_off(leader);
    let round = world.ask_for_proof(leader);
    world.deliver_all();
    world.heal();
    assert_ne!(world.proven(leader), round, "nothing has come to the others");
    heartbeat(&mut world, leader);
    world.deliver_all();
    assert_eq!(world.proven(leader), round);
}

/// Brings a leader that is cut off answers that were given before. Returns the round that it asked for, and what is proven.
fn round_with(world: &mut World, leader: usize, answers: &[Bytes]) -> [Option<u64>; 2] {
    world.cut_off(leader);
    let round = world.ask_for_proof(leader);
    for bytes in answers {
        let packet = Packet::decode(bytes.clone()).expect("it was said before");
        world.with(leader, |group| group.step(packet));
    }
    world.heal();
    [round, world.proven(leader)]
}

#[test]
fn an_answer_counts_for_the_round_and_the_term_that_it_was_given_in() {
    let (mut world, leader) = led_on::<JournalLog>(0);
    let id = world.nodes[leader].id;
    world.ask_for_proof(leader);
    let answers = of_kind(&world.deliver_all(), HEARTBEAT_RESPONSE, id);
    assert!(answers.len() == 2 && world.proven(leader) == Some(1));
    assert_eq!(round_with(&mut world, leader, &answers), [Some(2), Some(1)]);

    world.crash(leader, false);
    world.settle();
    let other = world.leader().expect("a settled group has a leader");
    world.hand_over_lead(other, leader);
    (0..8).for_each(|_| world.round());
    assert_eq!(world.leader(), Some(leader));
    // A process counts from 1: these are answers to a round of the same number, in an earlier term.
    assert_eq!(round_with(&mut world, leader, &answers), [Some(1), Some(0)]);
}

#[test]
fn a_round_is_over_when_both_majorities_of_a_joint_configuration_have_answered() {
    for old_ones_answer in [true, false] {
        let (mut world, leader) = led_on::<JournalLog>(3);
        let changes = [4, 5, 6].map(|node| Change::AddVoter(NodeId(node)));
        let gone = [1, 2, 3].map(|node| Change::Remove(NodeId(node)));
        world.change(leader, &[changes, gone].concat());
        let is_joint = |world: &World| {
            world.nodes[leader].group.as_ref().is_some_and(|group| group.members().is_joint())
        };
        while !is_joint(&world) {
            world.round();
        }
        let silent = if old_ones_answer { 3..6 } else { 0..3 };
        silent.filter(|at| *at != leader).for_each(|at| world.cut_off(at));
        let round = world.ask_for_proof(leader);
        world.deliver_all();
        assert!(round.is_some() && world.proven(leader) != round, "{old_ones_answer}");
        world.heal();
        heartbeat(&mut world, leader);
        world.deliver_all();
        assert_eq!(world.proven(leader), round, "{old_ones_answer}");
    }
}

/// One round, which is proven without time or a disk.
fn whole_round(world: &mut World, leader: usize) -> Vec<Bytes> {
    let round = world.ask_for_proof(leader);
    let said = world.deliver_all();
    assert!(round.is_some() && world.proven(leader) == round);
    said
}

#[test]
fn followers_whose_disks_stand_still_keep_nothing_of_the_rounds_that_they_answer() {
    let (mut world, leader) = led_on::<JournalLog>(0);
    world.publish(leader);
    (0..200).for_each(|_| _ = whole_round(&mut world, leader));
    let kept = kept_by(|| (0..2000).for_each(|_| _ = whole_round(&mut world, leader)));
    assert!(kept < 16 << 10, "{kept} bytes are held after two thousand rounds more");
    world.settle();
}

/// Who leads, as a node knows.
fn leader_of(world: &World, at: usize) -> Option<NodeId> {
    world.nodes[at].group.as_ref().and_then(|group| group.leader())
}

#[test]
fn a_follower_that_is_asked_in_rounds_has_heard_its_leader() {
    let (mut world, leader) = led_on::<JournalLog>(0);
    let id = world.nodes[leader].id;
    for _ in 0..5 * Options::new(NodeId(1)).election_ticks {
        for at in (0..3).filter(|at| *at != leader) {
            world.tick(at);
            assert_eq!(leader_of(&world, at), Some(id), "it wants to lead");
        }
        whole_round(&mut world, leader);
    }
}

/// What a node says to packets that came before.
fn said_to(world: &mut World, at: usize, packets: &[Bytes]) -> Vec<Bytes> {
    let others = (0..3).filter(|other| *other != at).collect::<Vec<_>>();
    others.iter().for_each(|other| world.cut_off(*other));
    world.deliver_all();
    for bytes in packets {
        let packet = Packet::decode(bytes.clone()).expect("it was said before");
        world.with(at, |group| group.step(packet));
    }
    let said = world.deliver_all();
    world.heal();
    said
}

#[test]
fn a_follower_that_does_not_know_its_leader_learns_of_it_in_a_round() {
    let (mut world, leader) = led_on::<JournalLog>(0);
    let (at, id) = ((leader + 1) % 3, world.nodes[leader].id);
    let asked = of_kind(&whole_round(&mut world, leader), HEARTBEAT, world.nodes[at].id);
    world.crash(at, false);
    world.start(at);
    assert_eq!(leader_of(&world, at), None);
    let said = said_to(&mut world, at, &asked);
    assert_eq!(leader_of(&world, at), Some(id));
    assert_eq!(of_kind(&said, HEARTBEAT_RESPONSE, id).len(), 1);
}

#[test]
fn who_follows_a_newer_leader_says_so_to_one_that_asks_in_a_round() {
    let (mut world, leader) = led_on::<JournalLog>(0);
    let (at, id) = ((leader + 1) % 3, world.nodes[leader].id);
    let asked = of_kind(&whole_round(&mut world, leader), HEARTBEAT, world.nodes[at].id);
    let next = (leader + 2) % 3;
    world.hand_over_lead(leader, next);
    (0..8).for_each(|_| world.round());
    assert_eq!(world.leader(), Some(next));
    let said = said_to(&mut world, at, &asked);
    assert_eq!(of_kind(&said, HEARTBEAT_RESPONSE, id).len(), 0, "it does not follow any more");
    assert_eq!(of_kind(&said, APPEND_RESPONSE, id).len(), 1, "the old leader is told nothing");

    // The same node in a newer term: it leads again, and asks in the number of before.
    world.hand_over_lead(next, leader);
    (0..8).for_each(|_| world.round());
    assert_eq!(world.leader(), Some(leader));
    let said = said_to(&mut world, at, &asked);
    assert_eq!(of_kind(&said, HEARTBEAT_RESPONSE, id).len(), 0, "that lead is over");
    assert_eq!(of_kind(&said, APPEND_RESPONSE, id).len(), 1);
}

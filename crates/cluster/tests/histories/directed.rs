//! Cases that every history should come across, but need not.

use crate::copy::Copy;
use crate::log::TestLog;
use crate::world::World as AnyWorld;

use courser_cluster::{Change, EntryId, JournalLog, NodeId, Options, ProposeError, ReplicaLog};
use courser_journal::{AppendError, AppendMode, Batch};

type World = AnyWorld<TestLog>;

/// Three founders, of which one leads, and `others`.
fn led(others: usize) -> (World, usize) {
    led_on(others)
}

pub fn led_on<C: Copy>(others: usize) -> (AnyWorld<C>, usize) {
    let mut world = AnyWorld::new(1, 3, others);
    world.settle();
    let leader = world.leader().expect("a settled group has a leader");
    (world, leader)
}

#[test]
fn a_leader_that_hears_from_no_node_stops_serving() {
    let (mut world, leader) = led(0);
    world.cut_off(leader);
    let ticks = 2 * Options::new(NodeId(1)).election_ticks;
    (0..=ticks).for_each(|_| world.tick(leader));
    assert_eq!(world.serving(leader), None);
}

#[test]
fn a_leader_without_a_majority_confirms_nothing() {
    let (mut world, leader) = led(0);
    world.cut_off(leader);
    let before = world.model.confirmed();
    (0..5).for_each(|_| world.publish(leader));
    (0..5).for_each(|_| world.flush(leader));
    assert_eq!(world.model.confirmed(), before);
}

#[test]
fn a_deposed_leader_gives_up_what_no_majority_has() {
    let (mut world, leader) = led(0);
    world.cut_off(leader);
    (0..5).for_each(|_| world.publish(leader));
    world.flush(leader);
    let last = |world: &World| world.nodes[leader].group.as_ref().map(|group| group.log().last());
    let alone = last(&world);
    (0..60).for_each(|_| world.round());
    assert_ne!(world.leader(), Some(leader));
    world.settle();
    assert!(last(&world) != alone && world.model.terms() >= 2);
}

#[test]
fn a_leader_that_is_removed_stops_leading_and_the_rest_goes_on() {
    let (mut world, leader) = led(0);
    let node = world.nodes[leader].id;
    world.change(leader, &[Change::Remove(node)]);
    (0..100).for_each(|_| world.round());
    let next = world.leader().expect("two nodes are left, and both are there");
    assert_ne!(next, leader);
    let members = world.nodes[next].group.as_ref().map(|group| group.members().clone());
    assert!(members.is_some_and(|members| !members.contains(node) && members.voters.len() == 2));
}

#[test]
fn a_majority_is_exchanged_for_another() {
    let (mut world, leader) = led(3);
    let changes = [4, 5, 6].map(|node| Change::AddVoter(NodeId(node)));
    let gone = [1, 2, 3].map(|node| Change::Remove(NodeId(node)));
    world.change(leader, &[changes, gone].concat());
    (0..120).for_each(|_| world.round());
    let next = world.leader().expect("the new ones lead themselves");
    let members = world.nodes[next].group.as_ref().map(|group| group.members().clone());
    let members = members.expect("it runs");
    assert_eq!((members.voters, members.voters_outgoing), ([4, 5, 6].map(NodeId).to_vec(), vec![]));
}

#[test]
fn changes_that_make_no_sense_are_refused() {
    let (mut world, leader) = led(1);
    for changes in [
        &[][..],
        &[Change::AddVoter(NodeId(0))],
        &[Change::Remove(NodeId(1)), Change::Remove(NodeId(2)), Change::Remove(NodeId(3))],
        &[Change::AddLearner(NodeId(4)), Change::Remove(NodeId(4))],
    ] {
        let group = world.nodes[leader].group.as_mut().expect("it runs");
        let refused = group.change_members(group.members_index(), changes);
        assert!(matches!(refused, Err(ProposeError::BadChange(_))), "{changes:?}: {refused:?}");
    }
}

#[test]
fn a_change_is_refused_that_was_decided_on_by_members_before_the_last_change() {
    let (mut world, leader) = led(2);
    let add = |node| [Change::AddLearner(NodeId(node))];
    let since =
        |world: &World| world.nodes[leader].group.as_ref().expect("it runs").members_index();
    let before = since(&world);
    world.change(leader, &add(4));
    (0..20).for_each(|_| world.round());
    let now = since(&world);
    assert_ne!(now, before);
    let group = world.nodes[leader].group.as_mut().expect("it runs");
    let refused = group.change_members(before, &add(5));
    assert!(matches!(refused, Err(ProposeError::ChangeUnderWay)), "{refused:?}");
    assert!(!group.members().contains(NodeId(5)));
    group.change_members(now, &add(5)).expect("nothing has changed since");
}

#[test]
fn the_lead_is_handed_over_without_an_election_timeout() {
    let (mut world, leader) = led(0);
    let to = (leader + 1) % 3;
    world.hand_over_lead(leader, to);
    (0..8).for_each(|_| world.round());
    assert_eq!(world.leader(), Some(to));
}

#[test]
fn a_leader_takes_no_more_than_may_wait_for_a_majority() {
    let (mut world, leader) = led(0);
    world.cut_off(leader);
    let group = world.nodes[leader].group.as_mut().expect("it runs");
    let mut taken = 0;
    while group.propose(&mut vec![0; 1 << 20]).is_ok() {
        taken += 1;
        assert!(taken < 1000, "nothing limits what waits");
    }
    let bound = Options::new(NodeId(1)).uncommitted_bytes;
    assert!(group.uncommitted_bytes() > bound && group.uncommitted_bytes() < bound + (2 << 20));
}

#[test]
fn a_journal_that_is_paused_gathers_nothing_before_what_is_placed() {
    let (mut world, leader) = led_on::<JournalLog>(0);
    let log = world.nodes[leader].group.as_mut().expect("it runs").log_mut();
    let serving = log.serving().cloned().expect("it serves");
    let append = || {
        let mut batch = Batch::new();
        batch.push(&[b"gathered"]);
        serving.append(&mut batch, AppendMode { sync: true, reserve: false }).map(drop)
    };
    log.pause(true);
    // With threads, it would wait.
    assert!(matches!(append(), Err(AppendError::Full)));
    let next = |log: &JournalLog| EntryId { index: log.last().index + 1, ..log.last() };
    assert!(log.place(next(log), &mut ()).expect("a good disk").is_none());
    log.pause(false);
    append().expect("there is room");
    assert!(log.place(next(log), &mut ()).expect("a good disk").is_some());
}

#[test]
fn a_node_that_stops_before_it_applies_a_change_of_members_knows_them_when_it_starts() {
    stops_before_it_applies::<TestLog>();
    stops_before_it_applies::<JournalLog>();
}

fn stops_before_it_applies<C: Copy>() {
    let (mut world, leader) = led_on::<C>(1);
    let behind = (leader + 1) % 3;
    let change = Change::AddLearner(NodeId(4));
    world.change(leader, &[change]);
    (0..3).for_each(|_| world.round_with_syncs_of(|at| at != behind));
    world.publish(leader);
    (0..3).for_each(|_| world.round_with_syncs_of(|at| at != behind));
    let learners = |world: &AnyWorld<C>| {
        world.nodes[behind].group.as_ref().map(|group| group.members().learners.clone())
    };
    assert_eq!(learners(&world), Some(vec![]));
    world.crash_after_sync(behind);
    world.start(behind);
    assert_eq!(learners(&world), Some(vec![NodeId(4)]));
}

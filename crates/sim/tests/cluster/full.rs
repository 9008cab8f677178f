//! Nodes whose disks are full.

use crate::{elect, world::World};

#[test]
fn disks_that_fill_together_have_room_again_when_all_is_consumed() {
    for seed in 20..24 {
        let mut world = World::new(seed, 3);
        let leader = elect(&mut world);
        (0..10).for_each(|_| world.living_round());
        for node in &world.nodes {
            // Some segments, beside what is kept ready.
            node.disk.set_capacity(node.disk.used_bytes() + (200 << 10));
        }
        for _ in 0..200 {
            world.publish(leader);
            world.living_round();
        }
        assert!(!world.serving(leader).store.has_room(), "history {seed}");
        for _ in 0..600 {
            world.take(leader);
            world.living_round();
        }
        assert!(world.serving(leader).store.has_room(), "history {seed}: nothing was freed");
        let before = world.model.confirmed();
        (0..10).for_each(|_| {
            world.publish(leader);
            world.living_round();
        });
        assert!(world.model.confirmed() > before, "history {seed}: nothing is confirmed any more");
    }
}

#[test]
fn a_node_without_room_for_the_first_entry_of_a_leader_does_not_lead() {
    let mut world = World::new(30, 3);
    let leader = elect(&mut world);
    (0..10).for_each(|_| world.quiet_round());
    (0..3).for_each(|at| world.fill_disk(at));
    // To the last byte of the last segment.
    for number in 0..600 {
        if world.leader() == Some(leader) {
            let _ = world.serving(leader).declare(&format!("{number:0>200}"));
        }
        world.quiet_round();
    }
    for _ in 0..40 {
        if let Some(leader) = world.leader() {
            world.crash(leader, false);
        }
        (0..30).for_each(|_| world.quiet_round());
        (0..3).for_each(|at| world.start(at));
    }
    world.settle();
    let leader = elect(&mut world);
    world.serving(leader).declare("there is room").expect("there is room");
}

#[test]
fn a_checkpoint_without_room_stands_for_no_entry_that_is_not_applied() {
    let mut world = World::new(31, 3);
    let leader = elect(&mut world);
    let full = (leader + 1) % 3;
    (0..10).for_each(|_| world.quiet_round());
    world.fill_disk(full);
    for _ in 0..200 {
        if !world.replica(full).has_room() {
            break;
        }
        world.publish(leader);
        world.quiet_round();
    }
    assert!(!world.replica(full).has_room());
    for _ in 0..5 {
        world.publish(leader);
        world.round_without_disk(full);
    }
    let replica = world.replica(full);
    let (committed, applied) = (replica.committed(), replica.applicable());
    assert!(applied < committed, "all {committed} are applied");

    world.checkpoint(full);
    assert!(world.replica(full).last_in_checkpoint().index <= applied);
    world.crash(leader, false);
    for _ in 0..60 {
        // It wants to lead, and reads what it has not applied.
        world.turn(full, true);
    }
    world.settle();
    assert!(world.replica(full).applicable() > committed);
}

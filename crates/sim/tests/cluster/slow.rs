//! Nodes whose disks take their time: a group does not wait for them.

use crate::{elect, world::World};
use courser_journal::testing::Faults;

/// A leader that was cut off, with a tail that no other has and that is on its disk; and the next leader.
fn deposed_with_a_tail(seed: u64) -> (World, usize, usize) {
    let mut world = World::new(seed, 3);
    let first = elect(&mut world);
    world.isolate(first);
    for _ in 0..10 {
        world.publish(first);
        world.turn(first, true);
        world.flush(first);
    }
    let mut second = first;
    for _ in 0..200 {
        world.quiet_round();
        second = world.leader().unwrap_or(second);
    }
    assert_ne!(second, first);
    world.heal();
    (world, first, second)
}

#[test]
fn a_tail_is_cut_without_a_disk_and_counts_when_the_disk_has_it() {
    for seed in 40..60 {
        let power_too = seed % 2 == 0;
        let (mut world, first, second) = deposed_with_a_tail(seed);
        let tail = world.replica(first).last();
        // Whatever the group does to the disk itself fails.
        let off = Faults { power_off_after: Some(0), ..Faults::default() };
        world.nodes[first].disk.set_faults(off);
        for _ in 0..50 {
            world.publish(second);
            world.round_without_disk(first);
        }
        assert_eq!(world.leader(), Some(second), "history {seed}");
        let is_running = world.nodes[first].running.is_some();
        assert!(is_running, "history {seed}: its group has waited for the disk");
        world.nodes[first].disk.set_faults(Faults::default());
        if world.replica(first).term(tail.index) == Some(tail.term) {
            // The new term was heard of before the entries came, and is saved before the cut.
            world.flush(first);
        }
        let replica = world.replica(first);
        assert_ne!(replica.term(tail.index), Some(tail.term), "the tail is there");
        assert!(replica.synced() < replica.written());
        assert!(replica.applicable() < tail.index, "what is on no disk is applied");

        world.crash(first, power_too);
        world.start(first);
        assert_eq!(world.replica(first).last(), tail, "the disk knew of nothing");
        world.settle();
        assert_ne!(world.replica(first).term(tail.index), Some(tail.term));
    }
}

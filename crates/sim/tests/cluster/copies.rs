//! Nodes that are brought a copy of the log.

use crate::world::World;
use crate::{elect, followers};

/// Publishes so much, and makes checkpoints, that entries are let go of that a node lacks which is away.
fn go_on_without(world: &mut World, leader: usize) {
    for _ in 0..6 {
        for _ in 0..12 {
            world.publish(leader);
            world.take(leader);
            world.quiet_round();
        }
        (0..5).for_each(|_| world.quiet_round());
        world.checkpoint(leader);
    }
}

#[test]
fn a_node_that_was_away_for_long_is_brought_a_copy_and_may_lead() {
    let mut world = World::new(3, 3);
    let leader = elect(&mut world);
    let away = (leader + 1) % 3;
    world.crash(away, false);
    go_on_without(&mut world, leader);
    let term = world.leader_term();
    world.start(away);
    world.settle();
    assert_eq!(world.copies, 1);
    assert_eq!(world.leader_term(), term, "the leader need not give up its lead for it");
    world.crash((leader + 2) % 3, false);
    world.transfer(leader, away);
    (0..40).for_each(|_| world.quiet_round());
    assert_eq!(world.leader(), Some(away), "it has all that was committed");
}

#[test]
fn a_copy_that_was_broken_off_is_taken_again_from_the_same_leader() {
    for pieces in 1..6 {
        let mut world = World::new(3, 3);
        let leader = elect(&mut world);
        let away = (leader + 1) % 3;
        world.crash(away, false);
        go_on_without(&mut world, leader);
        let term = world.leader_term();
        world.start(away);
        while !world.nodes[away].lacks {
            world.quiet_round();
        }
        // The first begins it.
        (0..=pieces).for_each(|_| world.copy(away));
        assert!(world.nodes[away].copying.is_some(), "{pieces} are not all");
        world.crash(away, pieces % 2 == 0);
        world.start(away);
        assert!(world.nodes[away].lacks, "what it had is gone");
        world.settle();
        assert_eq!((world.copies, world.leader_term()), (1, term), "after {pieces}");
    }
}

/// A node of three that is brought a copy, of which it has some pieces; who leads, and the third.
fn in_the_middle_of_a_copy(pieces: usize) -> (World, usize, usize, usize) {
    let mut world = World::new(3, 3);
    let leader = elect(&mut world);
    let (copying, third) = ((leader + 1) % 3, (leader + 2) % 3);
    world.crash(copying, false);
    go_on_without(&mut world, leader);
    world.start(copying);
    while !world.nodes[copying].lacks {
        world.quiet_round();
    }
    (0..=pieces).for_each(|_| world.copy(copying));
    assert!(world.nodes[copying].copying.is_some(), "{pieces} are not all");
    (world, copying, leader, third)
}

#[test]
fn two_of_three_serve_again_when_one_is_lost_while_another_is_brought_a_copy() {
    for pieces in 1..6 {
        for is_leader_lost in [true, false] {
            let (mut world, copying, leader, third) = in_the_middle_of_a_copy(pieces);
            let confirmed = world.model.confirmed();
            world.crash(if is_leader_lost { leader } else { third }, true);
            world.crash(copying, pieces % 2 == 0);
            for _ in 0..40 {
                world.quiet_round();
            }
            assert_eq!(world.leader(), None, "one of three is no majority");
            world.start(copying);
            let next = elect(&mut world);
            assert_eq!(world.copies, 1);
            world.publish(next);
            (0..5).for_each(|_| world.quiet_round());
            assert!(world.model.confirmed() > confirmed);
        }
    }
}

#[test]
fn two_of_three_serve_again_when_one_of_them_lacks_what_is_gone() {
    let mut world = World::new(3, 3);
    let leader = elect(&mut world);
    let (away, third) = ((leader + 1) % 3, (leader + 2) % 3);
    world.crash(away, false);
    go_on_without(&mut world, leader);
    world.crash(third, true);
    for _ in 0..40 {
        world.quiet_round();
    }
    assert_eq!(world.leader(), None, "one of three is no majority");
    world.start(away);
    elect(&mut world);
    assert_eq!(world.copies, 1);
    world.start(third);
    world.settle();
}

#[test]
fn two_of_three_serve_again_when_one_of_them_has_a_long_end_of_its_own() {
    let mut world = World::new(13, 3);
    let first = elect(&mut world);
    let others: Vec<usize> = followers(first).collect();
    world.isolate(first);
    for _ in 0..200 {
        world.publish_short(first);
        world.flush(first);
    }
    let own = world.last(first);
    world.crash(first, false);
    world.heal();
    let leader = elect(&mut world);
    for _ in 0..3 {
        for _ in 0..6 {
            world.publish(leader);
            world.quiet_round();
        }
        (0..5).for_each(|_| world.quiet_round());
        world.checkpoint(leader);
    }
    assert!(world.last(leader) < own, "{own} is not behind {}", world.last(leader));
    let third = others.into_iter().find(|at| *at != leader).expect("three nodes");
    world.crash(third, false);
    for _ in 0..40 {
        world.quiet_round();
    }
    assert_eq!(world.leader(), None, "one of three is no majority");
    world.start(first);
    elect(&mut world);
    assert_eq!(world.copies, 1);
    world.start(third);
    world.settle();
}

#[test]
fn a_damaged_copy_is_replaced_by_one_of_a_later_term() {
    let mut world = World::new(4, 3);
    let leader = elect(&mut world);
    for _ in 0..20 {
        world.publish(leader);
        world.quiet_round();
    }
    let damaged = (leader + 1) % 3;
    let term = world.leader_term();
    world.crash(damaged, false);
    world.damage(damaged);
    world.start(damaged);
    assert!(world.nodes[damaged].lacks, "the damage is seen");
    world.settle();
    assert_eq!(world.copies, 1);
    assert!(world.leader_term() > term, "the leader may have counted on what is lost");
    let before = world.model.confirmed();
    let leader = elect(&mut world);
    // Some to the broker of the first term, which is not served any more.
    (0..10).for_each(|_| world.publish(leader));
    (0..10).for_each(|_| world.quiet_round());
    assert!(world.model.confirmed() > before);
}

#[test]
fn a_copy_that_may_lack_what_the_node_has_acknowledged_is_refused() {
    let mut world = World::new(5, 3);
    let leader = elect(&mut world);
    let other = (leader + 1) % 3;
    let running = world.nodes[leader].running.as_mut().expect("it leads");
    let mut stale = running.driver.copy(None).expect("it leads");
    for _ in 0..5 {
        world.publish(leader);
        world.quiet_round();
    }
    world.crash(other, false);
    let head = stale.next_chunk().expect("a good disk").expect("the first");
    let mut sink = world.nodes[other].sink().expect("a good disk");
    assert!(sink.chunk(&head).is_err(), "it ends before this node's log does");
    drop((sink, stale));

    // What a node with damage has acknowledged in this term is not known.
    let running = world.nodes[leader].running.as_mut().expect("it leads");
    let mut same_term = running.driver.copy(None).expect("it leads");
    world.damage(other);
    let head = same_term.next_chunk().expect("a good disk").expect("the first");
    let mut sink = world.nodes[other].sink().expect("the damage can be mended");
    assert!(sink.needs_term_above().is_some());
    assert!(sink.chunk(&head).is_err(), "the leader may count on what is lost");
}

#[test]
fn the_term_of_a_leader_that_does_not_serve_yet_says_nothing_of_its_copy() {
    let mut world = World::new(11, 3);
    let first = elect(&mut world);
    for _ in 0..5 {
        world.publish(first);
        world.quiet_round();
    }
    // The last of it is committed, and the followers are not told.
    world.crash(first, true);
    while world.leads().is_none() {
        world.quiet_round();
    }
    let next = world.leads().expect("it leads");
    assert_eq!(world.leader(), None, "nothing of its own is committed");
    let running = world.nodes[next].running.as_mut().expect("it leads");
    let mut source = running.driver.copy(None).expect("it leads");
    let other = followers(first).find(|at| *at != next).expect("the third");
    world.crash(other, false);
    let head = source.next_chunk().expect("a good disk").expect("the first");
    let mut sink = world.nodes[other].sink().expect("a good disk");
    assert!(sink.chunk(&head).is_err(), "it ends before this node's log does");
}

#[test]
fn a_copy_that_there_is_no_room_for_is_said_to_lack_it_and_is_taken_when_there_is() {
    let (mut world, copying, _, _) = in_the_middle_of_a_copy(1);
    let at_first = world.nodes[copying].disk.used_bytes();
    world.nodes[copying].disk.set_capacity(at_first + (8 << 10));
    let mut taken = world.nodes[copying].copying.take().expect("it is in the middle");
    let refused = loop {
        let chunk = taken.source.next_chunk().expect("a good disk").expect("not all of it");
        if let Err(error) = taken.sink.chunk(&chunk) {
            break error;
        }
    };
    assert!(refused.lacks_room(), "{refused}");
    drop(taken);
    assert!(world.nodes[copying].disk.used_bytes() <= at_first, "others lack what it has taken");
    world.settle();
    assert_eq!(world.copies, 1);
}

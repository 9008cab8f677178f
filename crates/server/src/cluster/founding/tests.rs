use super::super::testing::{HOME, ONE, Three};
use super::next_change;
use courser_cluster::{Change, MEMBERS_MAX, Members, NodeId};
use std::ops::Range;
use std::sync::Arc;

#[test]
fn a_group_adds_before_it_removes_unless_it_is_full() {
    let of = |ids: Range<u64>| Members::founders(&ids.map(NodeId).collect::<Vec<_>>());
    let next = |group: Range<u64>, home: Range<u64>| next_change(&of(group), &of(home), NodeId(3));
    let most = MEMBERS_MAX as u64;
    assert_eq!(next(0..3, 1..4), Some(Change::AddLearner(NodeId(3))));
    assert_eq!(next(0..4, 1..4), Some(Change::Remove(NodeId(0))));
    assert_eq!(next(1..4, 1..4), None);
    assert_eq!(next(0..most, 1..most + 1), Some(Change::Remove(NodeId(0))));
    assert_eq!(next(1..most, 1..most + 1), Some(Change::AddLearner(NodeId(most))));
    assert_eq!(next(3..5, 4..5), None, "it leads itself");
}

/// Checks that the leader of a group proposes nothing while it knows home's members as they were before: as `change` makes them,
/// which is also told which node leads nothing.
async fn nothing_is_proposed(change: impl Fn(&mut Members, NodeId)) {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    for leader in [(home + 1) % 3, home] {
        three.move_lead(ONE, leader).await;
        let node = &three.nodes[leader].inner;
        let member = node.groups.get(ONE).and_then(|group| group.member()).expect("it leads");
        let mut old = node.members.status_of_member().expect("it is in the cluster");
        change(&mut old.members, three.nodes[(home + 2) % 3].inner.folder.node());
        let members = Arc::clone(&node.members);
        let following = move || members.follow_members(&member, &old);
        let proposed = tokio::task::spawn_blocking(following).await.expect("no panic");
        assert!(proposed.is_none(), "{proposed:?}");
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_a_node_has_not_heard_of_stays_in_the_group_that_the_node_leads() {
    nothing_is_proposed(|old, third| old.voters.retain(|node| *node != third)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_whose_removal_a_leader_has_not_heard_is_not_added_to_its_group_again() {
    nothing_is_proposed(|old, _| old.learners.push(NodeId(1))).await;
}

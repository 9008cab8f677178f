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

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_a_node_has_not_heard_of_stays_in_the_group_that_the_node_leads() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    for leader in [(home + 1) % 3, home] {
        three.move_lead(ONE, leader).await;
        let node = &three.nodes[leader].inner;
        let member = node.groups.get(ONE).and_then(|group| group.member()).expect("it leads");
        // What the node knew before the third one was added.
        let mut old = node.members.status_of_member().expect("it is in the cluster");
        let third = three.nodes[(home + 2) % 3].inner.folder.node();
        old.members.voters.retain(|node| *node != third);
        let members = Arc::clone(&node.members);
        let following = move || members.follow_members(&member, &old);
        let proposed = tokio::task::spawn_blocking(following).await.expect("no panic");
        assert!(proposed.is_none(), "{proposed:?}");
    }
    three.stop().await;
}

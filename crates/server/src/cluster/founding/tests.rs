use super::super::testing::{HOME, ONE, Three};
use std::sync::Arc;

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

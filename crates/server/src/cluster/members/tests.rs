//! Members that are connected and take no part, and nodes that are added when it does not fit.

use super::super::front::Serves;
use super::super::testing::{HOME, ONE, Three, wait_until};
use courser_cluster::GroupNumber;
use courser_management::{Cluster, ClusterError};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Asks on a thread where that may block.
async fn asked<T: Send + 'static>(
    three: &Three,
    node: usize,
    question: impl FnOnce(&dyn Cluster) -> T + Send + 'static,
) -> T {
    ask(three, node, question).await.expect("no panic")
}

/// The same, without waiting for the answer.
fn ask<T: Send + 'static>(
    three: &Three,
    node: usize,
    question: impl FnOnce(&dyn Cluster) -> T + Send + 'static,
) -> JoinHandle<T> {
    let members = Arc::clone(&three.nodes[node].inner.members);
    tokio::task::spawn_blocking(move || question(&*members))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_part_of_a_group_does_not_run_counts_for_no_majority() {
    let three = Three::start().await;
    three.leader(ONE).await;
    for number in [HOME, ONE] {
        let leader = three.leader(HOME).await;
        let (idle, other) = ((leader + 1) % 3, (leader + 2) % 3);
        three.move_lead(number, leader).await;
        let critical = async |node: usize| asked(&three, node, |it| it.is_quorum_critical()).await;
        for node in [leader, other] {
            wait_until("all take part", async || !critical(node).await).await;
        }
        // As while it is brought a copy of the log.
        let group = three.nodes[idle].inner.groups.get(number).expect("it is there");
        let member = group.set_member(None);
        for node in [leader, other] {
            wait_until("it is missed", async || critical(node).await).await;
        }
        check_refusals(&three, (leader, other), number).await;
        group.set_member(member);
        for node in [leader, other] {
            wait_until("it takes part", async || !critical(node).await).await;
        }
    }
    three.stop().await;
}

/// Nothing is done that would leave the others without a majority.
async fn check_refusals(three: &Three, (leader, other): (usize, usize), number: GroupNumber) {
    let name = three.nodes[other].name();
    let removed = asked(three, leader, move |it| it.remove(&name)).await;
    let Err(ClusterError::Refused(why)) = removed else { panic!("{removed:?}") };
    assert!(why.contains(&format!("group {number} has no majority")), "{why}");
    let name = three.nodes[other].name();
    let drained = asked(three, leader, move |it| it.drain(&name, 1, 0)).await;
    assert!(matches!(drained, Err(ClusterError::Unavailable(_))), "{drained:?}");
    let status = asked(three, leader, |it| it.status()).await;
    if number == HOME {
        assert_eq!(status["voters_connected"], 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_added_again_before_it_has_left_takes_part_as_before() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let gone = (home + 1) % 3;
    three.move_lead(ONE, gone).await;
    let node = &three.nodes[gone];
    let (members, group) = (&node.inner.members, node.inner.groups.get(ONE).expect("it leads"));
    // It leads the group and does not hand it over, so that the group does not remove it.
    let serves = group.serves();
    group.set_serves(Serves::Nobody);
    let name = node.name();
    let removing = ask(&three, home, move |it| it.remove(&name));
    wait_until("it knows that it leaves", async || members.is_leaving()).await;
    assert!(members.reluctance().is_some());

    let address = node.address();
    asked(&three, home, move |it| it.add(&address)).await.expect("added again");
    let removed = removing.await.expect("no panic");
    let Err(ClusterError::Refused(why)) = removed else { panic!("{removed:?}") };
    assert!(why.contains("is a member again"), "{why}");
    wait_until("it would lead", async || members.reluctance().is_none()).await;
    group.set_serves(serves);
    three.stop().await;
}

//! Members that are connected and take no part.

use super::super::testing::{HOME, ONE, Three, wait_until};
use courser_cluster::GroupNumber;
use courser_management::{Cluster, ClusterError};
use std::sync::Arc;

/// Asks on a thread where that may block.
async fn asked<T: Send + 'static>(
    three: &Three,
    node: usize,
    question: impl FnOnce(&dyn Cluster) -> T + Send + 'static,
) -> T {
    let members = Arc::clone(&three.nodes[node].inner.members);
    tokio::task::spawn_blocking(move || question(&*members)).await.expect("no panic")
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

//! Nodes that are removed from a cluster with several groups.

use crate::cluster::Three;
use crate::cluster_groups::{GROUPS, leaders};
use crate::cluster_members::remove;
use crate::support::{PATIENCE, wait_until};
use courser::{Inherited, Node};
use std::collections::BTreeSet;

async fn start() -> Three {
    let three = Three::start_with(|config| config.cluster.groups = GROUPS).await;
    wait_until("leads on all three nodes", async || {
        leaders(&three).is_some_and(|all| all.into_iter().collect::<BTreeSet<_>>().len() == 3)
    })
    .await;
    three
}

/// Those that neither are gone nor lead home.
fn others(three: &Three, leader: usize) -> Vec<usize> {
    (0..3).filter(|index| *index != leader && three.nodes[*index].is_some()).collect()
}

/// Removes a node by the API of another one. While the lead moves it is refused.
async fn removed(three: &Three, by: usize, name: &str) {
    wait_until("the removal", async || remove(three.node(by), name).await == 204).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_removed_down_to_the_last_leave_all_groups_to_it() {
    let mut three = start().await;
    for _ in 0..2 {
        let leader = three.wait_for_leader().await;
        let gone = others(&three, leader)[0];
        let name = three.node(gone).name();
        removed(&three, leader, &name).await;
        // It has no part in any group any more when that is answered.
        for group in three.node(leader).status()["groups"].as_array().expect("groups") {
            let voters = group["voters"].as_array().expect("voters");
            assert!(!voters.iter().any(|voter| *voter == name.as_str()), "{group}");
        }
        let removed = three.nodes[gone].take().expect("a node");
        assert!(removed.failed().await.reason.contains("was removed from cluster 'test'"));
        removed.stop().await.expect("a clean stop");
        wait_until("leaders among those that are left", async || {
            leaders(&three).is_some_and(|all| !all.contains(&name))
        })
        .await;
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_which_there_is_no_majority_is_not_removed_but_one_that_is_lost_is() {
    let mut three = start().await;
    let leader = three.wait_for_leader().await;
    let [lost, needed] = others(&three, leader)[..] else { panic!("two others") };
    let (lost_name, needed_name) = (three.node(lost).name(), three.node(needed).name());
    three.nodes[lost].take().expect("a node").stop().await.expect("a clean stop");
    wait_until("the loss is noticed", async || {
        leaders(&three).is_some_and(|all| !all.contains(&lost_name))
            && remove(three.node(leader), &needed_name).await == 400
    })
    .await;
    removed(&three, leader, &lost_name).await;
    wait_until("leaders among those that are left", async || {
        leaders(&three).is_some_and(|all| !all.contains(&lost_name))
    })
    .await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_needs_a_copy_learns_that_it_was_removed() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let gone = (leader + 1) % 3;
    let name = three.node(gone).name();
    three.nodes[gone].take().expect("a node").stop().await.expect("a clean stop");
    removed(&three, leader, &name).await;
    // As if the node had been stopped while it took a copy.
    let mark = three.configs[gone].data_dir.join("group/being-installed");
    std::fs::write(mark, "").expect("a folder of its own");

    let back = Node::start_on(three.configs[gone].clone(), Inherited::default()).await;
    let back = back.expect("a node");
    let ended = tokio::time::timeout(PATIENCE, back.failed()).await.expect("it ends");
    assert!(ended.reason.contains("was removed from cluster 'test'"), "{}", ended.reason);
    back.stop().await.expect("a clean stop");
    three.stop().await;
}

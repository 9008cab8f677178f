//! Nodes that are removed from a cluster with several groups.

use crate::cluster::Three;
use crate::cluster_groups::{GROUPS, leaders};
use crate::cluster_members::remove;
use crate::support::wait_until;
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

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_removed_down_to_the_last_leave_all_groups_to_it() {
    let mut three = start().await;
    for _ in 0..2 {
        let leader = three.wait_for_leader().await;
        let gone = others(&three, leader)[0];
        let name = three.node(gone).name();
        assert_eq!(remove(three.node(leader), &name).await, 204);
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
    assert_eq!(remove(three.node(leader), &lost_name).await, 204);
    assert!(leaders(&three).is_some_and(|all| !all.contains(&lost_name)));
    three.stop().await;
}

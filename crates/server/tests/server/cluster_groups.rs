//! A cluster with several groups, as nodes in this process.

use crate::cluster::{Three, get};
use crate::support::wait_until;
use courser::HttpListen;
use serde_json::Value;
use std::collections::BTreeSet;

const GROUPS: u16 = 4;

/// Who leads each group, home included, if all nodes say the same.
fn leaders(three: &Three) -> Option<Vec<String>> {
    let of = |status: &Value| {
        let others = status["groups"].as_array().cloned().unwrap_or_default();
        let all = std::iter::once(status["leader"].clone())
            .chain(others.iter().map(|group| group["leader"].clone()));
        all.map(|leader| leader.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    };
    let mut all = three.running().map(|node| of(&node.status()));
    let first = all.next()??;
    let is_same = all.all(|other| other.as_ref() == Some(&first));
    (is_same && first.len() == usize::from(GROUPS)).then_some(first)
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_founded_and_their_leads_are_spread_over_all_nodes() {
    let mut three = Three::start_with(|config| {
        config.cluster.groups = GROUPS;
        config.metrics.listen = HttpListen::At(vec![([127, 0, 0, 1], 0).into()]);
    })
    .await;
    wait_until("leads on all three nodes", async || {
        leaders(&three).is_some_and(|all| all.into_iter().collect::<BTreeSet<_>>().len() == 3)
    })
    .await;
    // Whoever leads home is lost: the groups that it led are led by others, and home knows them still.
    let home = three.wait_for_leader().await;
    let lost = three.nodes[home].take().expect("a node");
    let name = lost.name();
    lost.stop().await.expect("a clean stop");
    wait_until("leaders among those that are left", async || {
        leaders(&three).is_some_and(|all| !all.contains(&name))
    })
    .await;
    let node = three.running().next().expect("a node");
    let (status, metrics) = get(node.addresses().metrics[0], "/metrics").await;
    assert_eq!(status, 200);
    assert!(metrics.contains("courser_cluster_group_has_leader{group=\"3\"} 1"), "{metrics}");
    three.stop().await;
}

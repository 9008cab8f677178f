//! A cluster with several groups, as nodes in this process.

use crate::cluster::{Three, free_addresses, get, node_config};
use crate::cluster_members::remove;
use crate::support::wait_until;
use courser::{HttpListen, Inherited, Node};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;

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

/// The names of those that vote in each group besides home, as whoever leads it says.
fn voters(three: &Three) -> Vec<BTreeSet<String>> {
    let said = three.running().map(|node| (node.name(), node.status()));
    let mut all = vec![BTreeSet::new(); usize::from(GROUPS)];
    for (name, status) in said {
        for group in status["groups"].as_array().into_iter().flatten() {
            if group["leader"] == name {
                let names = group["voters"].as_array().into_iter().flatten();
                let number = group["group"].as_u64().expect("a number") as usize;
                all[number] = names.filter_map(|name| Some(name.as_str()?.to_owned())).collect();
            }
        }
    }
    all.split_off(1)
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_added_or_removed_is_so_in_all_groups() {
    let mut three = Three::start_with(|config| config.cluster.groups = GROUPS).await;
    wait_until("all groups", async || leaders(&three).is_some()).await;
    let leader = three.wait_for_leader().await;
    let (folder, address) = (tempfile::tempdir().expect("a folder"), free_addresses(1)[0]);
    let home: SocketAddr = three.node(leader).address().parse().expect("an address");
    let config = node_config(&folder, "d", address, &[home, address]);
    let fourth = Node::start_on(config, Inherited::default()).await.expect("a node");
    let adding = async || three.node(leader).add(&address.to_string()).await.is_ok();
    wait_until("the node is added", adding).await;
    three.nodes.push(Some(fourth));
    let all = names(&["a", "b", "c", "d"]);
    wait_until("four voters in each group", async || {
        voters(&three).iter().all(|voters| *voters == all)
    })
    .await;
    let gone = (leader + 1) % 3;
    let name = three.node(gone).name();
    wait_until("the removal", async || remove(three.node(leader), &name).await == 204).await;
    let removed = three.nodes[gone].take().expect("a node");
    assert!(removed.failed().await.reason.contains("was removed from cluster 'test'"));
    removed.stop().await.expect("a clean stop");
    let left: BTreeSet<String> = all.into_iter().filter(|one| *one != name).collect();
    wait_until("three voters in each group", async || {
        voters(&three).iter().all(|voters| *voters == left)
    })
    .await;
    three.stop().await;
}

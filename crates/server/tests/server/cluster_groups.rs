//! A cluster with several groups, as nodes in this process.

use crate::cluster::{Three, get, node_config};
use crate::cluster_members::remove;
use crate::support::{free_addresses, wait_until};
use courser::{HttpListen, Inherited, Node};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const GROUPS: u16 = 4;

/// Who leads each group, home included, if all nodes say the same.
pub(crate) fn leaders(three: &Three) -> Option<Vec<String>> {
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
    // The leader of home is lost: the groups that it led are led by others, and home knows them still.
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

/// The names of those that vote in each group besides home, as its leader says.
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

/// As the administrator, in a request of its own. The status is 0 where there is no answer.
async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\
         authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut answer = String::new();
    // A node that ceases to lead may end it without an answer.
    let _ended = stream.read_to_string(&mut answer).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let json = body.find(['{', '[']).zip(body.rfind(['}', ']']));
    let body = json.and_then(|(first, last)| serde_json::from_str(&body[first..=last]).ok());
    (status.unwrap_or_default(), body.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_of_any_node_answers_for_all_groups() {
    let three = Three::start_with(|config| {
        config.cluster.groups = GROUPS;
        config.metrics.listen = HttpListen::At(vec![([127, 0, 0, 1], 0).into()]);
    })
    .await;
    wait_until("leads on all three nodes", async || {
        leaders(&three).is_some_and(|all| all.into_iter().collect::<BTreeSet<_>>().len() == 3)
    })
    .await;
    let http = |node: usize| three.node(node).addresses().http[0];
    for group in 0..GROUPS {
        let (vhost, body) = (format!("/api/vhosts/v{group}"), format!("{{\"group\":{group}}}"));
        wait_until("the vhost is there", async || {
            matches!(ask(http(0), "PUT", &vhost, &body).await.0, 201 | 204)
        })
        .await;
        for node in 0..3 {
            let queue = format!("/api/queues/v{group}/q{node}");
            wait_until("the queue is there", async || {
                matches!(ask(http(node), "PUT", &queue, r#"{"durable":true}"#).await.0, 201 | 204)
            })
            .await;
            let message = r#"{"routing_key":"ROUTED","properties":{"delivery_mode":2},"payload":"x","payload_encoding":"string"}"#;
            let message = message.replace("ROUTED", &format!("q{node}"));
            let publish = format!("/api/exchanges/v{group}//publish");
            wait_until("the message is there", async || {
                ask(http((node + 1) % 3), "POST", &publish, &message).await.1["routed"] == true
            })
            .await;
        }
    }
    // A lead may move at any time: then a group is left out for a while, and a message may have been published twice.
    for node in 0..3 {
        wait_until("all groups are in the answers", async || {
            let page = ask(http(node), "GET", "/api/queues?page=2&page_size=5&sort=name", "").await;
            let queues = ask(http(node), "GET", "/api/queues", "").await.1;
            let messages = |queue: &Value| queue["messages"].as_u64();
            let all: u64 = queues.as_array().into_iter().flatten().filter_map(messages).sum();
            let overview = ask(http(node), "GET", "/api/overview", "").await.1;
            page.0 == 200
                && page.1["total_count"] == 12
                && all >= 12
                && overview["queue_totals"]["messages"] == all
        })
        .await;
    }
    wait_until("each queue is counted on one node", async || {
        let mut counted = 0;
        for node in three.running() {
            let (_, page) = get(node.addresses().metrics[0], "/metrics").await;
            let row = page.lines().find_map(|line| line.strip_prefix("rabbitmq_queues "));
            counted += row.map_or(0, |row| row.parse::<usize>().expect("a number"));
        }
        counted == 12
    })
    .await;
    three.stop().await;
}

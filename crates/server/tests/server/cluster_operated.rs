//! What an operator of a cluster sees and does by `courser ctl` and over HTTP.

use crate::cluster::{Three, connect, get, node_config};
use crate::support::{PATIENCE, Process, free_addresses, output, wait_until};
use courser::{Config, Inherited, Node, StartError};
use courser_client::{Connection, Error, QueueOptions};
use serde_json::{Value, json};
use std::process::Output;

/// What `courser ctl` says, by the socket of a node.
pub(crate) async fn ctl(config: &Config, arguments: &'static [&'static str]) -> Output {
    let mut command = Process::command();
    command.arg("ctl").arg("--data-dir").arg(&config.data_dir).args(arguments);
    tokio::task::spawn_blocking(move || output(&mut command)).await.expect("no panic")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// Whether no process listens at an address.
fn is_refused(address: std::net::SocketAddr) -> bool {
    let connected = std::net::TcpStream::connect(address);
    connected.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[tokio::test(flavor = "multi_thread")]
async fn ctl_tells_how_many_clients_a_node_that_is_drained_still_has() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    // Drain by name is of the one that leads: it gives that up first.
    let mut to = (leader + 1) % 3;
    let named: [&[&str]; 3] = [
        &["cluster", "drain", "a", "--group", "1", "--pause-ms", "700"],
        &["cluster", "drain", "b", "--group", "1", "--pause-ms", "700"],
        &["cluster", "drain", "c", "--group", "1", "--pause-ms", "700"],
    ];
    let resumed: [&[&str]; 3] =
        [&["cluster", "resume", "a"], &["cluster", "resume", "b"], &["cluster", "resume", "c"]];
    let mut connections = Vec::new();
    for _ in 0..3 {
        connections.push(connect(three.node(to)).await);
    }
    for _ in 0..2 {
        let drained = ctl(&three.configs[to], named[to]).await;
        let (out, progress) = (text(&drained.stdout), text(&drained.stderr));
        assert!(drained.status.success(), "{out}{progress}");
        assert!(out.contains("can be stopped"), "{out}");
        // The second time there is nothing left to do.
        assert_eq!(progress.contains("still has"), !connections.is_empty(), "{progress}");
        connections.retain(|connection| connection.is_open());
        assert!(connections.is_empty());
    }
    let status = ctl(&three.configs[to], &["cluster", "status"]).await;
    let name = three.node(to).name();
    assert!(text(&status.stdout).contains(&format!("node {name} is drained")), "{status:?}");
    let amqp = three.node(to).addresses().amqp[0];
    wait_until("it listens no more for AMQP", async || is_refused(amqp)).await;
    assert!(ctl(&three.configs[to], resumed[to]).await.status.success());
    wait_until("the node listens again", async || !is_refused(amqp)).await;
    drop(connect(three.node(to)).await);

    to = three.wait_for_leader().await;
    let drained = ctl(&three.configs[to], named[to]).await;
    assert!(drained.status.success(), "{drained:?}");
    assert_ne!(three.wait_for_leader().await, to);
    let unknown = ctl(&three.configs[to], &["cluster", "drain", "d"]).await;
    assert_eq!(unknown.status.code(), Some(65), "{unknown:?}");
    assert!(text(&unknown.stderr).contains("no node 'd'"), "{unknown:?}");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_is_taken_back_is_not_begun_anew_by_who_waits_for_it() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let to = (leader + 1) % 3;
    let config = &three.configs[to];
    let drain: [&[&str]; 3] = [
        &["cluster", "drain", "a", "--group", "1", "--pause-ms", "5000"],
        &["cluster", "drain", "b", "--group", "1", "--pause-ms", "5000"],
        &["cluster", "drain", "c", "--group", "1", "--pause-ms", "5000"],
    ];
    let resume: [&[&str]; 3] =
        [&["cluster", "resume", "a"], &["cluster", "resume", "b"], &["cluster", "resume", "c"]];
    let transfer: [&[&str]; 3] = [
        &["cluster", "transfer-leader", "a"],
        &["cluster", "transfer-leader", "b"],
        &["cluster", "transfer-leader", "c"],
    ];
    let mut connections = Vec::new();
    for _ in 0..5 {
        connections.push(connect(three.node(to)).await);
    }
    let (drained, resumed) = tokio::join!(ctl(config, drain[to]), async {
        wait_until("it is drained", async || three.node(to).status()["draining"] == true).await;
        // No node that would be cut off at once leads by order of an operator.
        let unwanted = ctl(config, transfer[to]).await;
        assert_eq!(unwanted.status.code(), Some(69), "{unwanted:?}");
        assert!(text(&unwanted.stderr).contains("is drained"), "{unwanted:?}");
        ctl(config, resume[to]).await
    });
    assert!(resumed.status.success(), "{resumed:?}");
    assert_eq!(drained.status.code(), Some(69), "{drained:?}");
    assert!(text(&drained.stderr).contains("is not drained any more"), "{drained:?}");
    assert_eq!(three.node(to).status()["draining"], false);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_which_there_is_no_majority_is_not_drained() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let stopped = three.nodes[(leader + 1) % 3].take().expect("a node");
    stopped.stop().await.expect("a clean stop");
    let (one, other) = (three.wait_for_leader().await, (leader + 2) % 3);
    let named: [&[&str]; 3] =
        [&["cluster", "drain", "a"], &["cluster", "drain", "b"], &["cluster", "drain", "c"]];
    wait_until("it is known that the node is away", async || {
        three.node(one).status()["voters_connected"] == 2
    })
    .await;
    let refused = ctl(&three.configs[one], named[other]).await;
    assert_eq!(refused.status.code(), Some(69), "{refused:?}");
    assert!(text(&refused.stderr).contains("has no majority"), "{refused:?}");
    assert_eq!(three.node(other).status()["draining"], false);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_not_added_again() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let address: &'static str = three.node(leader).address().leak();
    let arguments: &'static [&'static str] = Vec::leak(vec!["cluster", "add", address]);
    let added = ctl(&three.configs[leader], arguments).await;
    let said = text(&added.stdout);
    assert!(added.status.success() && said.contains("is a member already"), "{said}");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_and_the_status_of_a_queue_look_at_every_member() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let connection = connect(three.node(leader)).await;
    let channel = connection.open_channel().await.expect("a channel");
    let options = courser_client::QueueOptions::durable().with("x-queue-type", "quorum");
    channel.queue_declare("q", options).await.expect("a queue");
    for node in three.running() {
        let http = node.addresses().http[0];
        for check in ["alarms", "local-alarms"] {
            let path = format!("/api/health/checks/{check}");
            let (status, body) = get(http, &path).await;
            assert_eq!((status, &*body), (200, r#"{"status":"ok"}"#), "{check}");
        }
    }
    for config in &three.configs {
        assert!(ctl(config, &["check_alarms"]).await.status.success());
        assert!(ctl(config, &["check_local_alarms"]).await.status.success());
    }
    let gone = (leader + 1) % 3;
    three.nodes[gone].take().expect("a node").stop().await.expect("a clean stop");
    let http = three.node(leader).addresses().http[0];
    let name = |index: usize| format!("courser@{}", ["a", "b", "c"][index]);
    let expected = |index: usize| {
        let state = match index {
            _ if index == leader => "leader",
            _ if index == gone => "nodedown",
            _ => "follower",
        };
        json!({ "Node Name": name(index), "Raft State": state, "Membership": "voter" })
    };
    wait_until("the member is away", async || {
        let (status, body) = get(http, "/api/queues/quorum/%2F/q/status").await;
        assert_eq!(status, 200, "{body}");
        let found: Vec<Value> = serde_json::from_str(&body).expect("a list");
        found.len() == 3 && (0..3).all(|index| found.contains(&expected(index)))
    })
    .await;
    // One that does not answer has no alarm.
    assert_eq!(get(http, "/api/health/checks/alarms").await.0, 200);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_does_not_start_under_another_name() {
    let mut three = Three::start().await;
    let stopped = three.nodes[0].take().expect("a node");
    stopped.stop().await.expect("a clean stop");
    let mut config = three.configs[0].clone();
    config.cluster.node_name = "z".into();
    let renamed = Node::start_on(config, Inherited::default()).await.map(drop);
    let Err(error @ StartError::Folder(_)) = renamed else { panic!("{renamed:?}") };
    assert!(error.to_string().contains("node 'a', not of 'z'"), "{error}");
    let again = Node::start_on(three.configs[0].clone(), Inherited::default()).await;
    three.nodes[0] = Some(again.expect("it starts under its own"));
    three.wait_for_leader().await;
    three.stop().await;
}

/// Why the connection to a node ends.
async fn end_of(connection: &Connection) -> String {
    let closed = tokio::time::timeout(PATIENCE, connection.closed()).await.expect("it ends");
    let Error::ConnectionClosed(why) = closed else { panic!("{closed}") };
    assert_eq!(why.code, 320, "{}", why.text);
    why.text.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_whether_the_leader_has_changed_or_the_node_stops() {
    let transfer: [&[&str]; 3] = [
        &["cluster", "transfer-leader", "a"],
        &["cluster", "transfer-leader", "b"],
        &["cluster", "transfer-leader", "c"],
    ];
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let client = connect(three.node(leader)).await;
    let moved = ctl(&three.configs[leader], transfer[(leader + 1) % 3]).await;
    assert!(moved.status.success(), "{moved:?}");
    assert_eq!(end_of(&client).await, "CONNECTION_FORCED - the leader of the vhost has changed");
    three.stop().await;

    let folder = tempfile::tempdir().expect("a folder");
    let config = node_config(&folder, "a", free_addresses(1)[0], &[]);
    let alone = Node::start_on(config, Inherited::default()).await.expect("a node");
    let client = connect(&alone).await;
    let (told, stopped) = tokio::join!(end_of(&client), alone.stop());
    stopped.expect("a clean stop");
    let shutdown = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";
    assert_eq!(told, shutdown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_tells_which_members_have_it_and_which_of_them_are_there() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let node = three.node(leader);
    let (http, name) = (node.addresses().http[0], node.name());
    let connection = connect(node).await;
    let quorum = QueueOptions::durable().with("x-queue-type", "quorum");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", quorum).await.expect("a queue");
    let queue = async || {
        let said = get(http, "/api/queues/%2F/q?columns=leader,members,online").await.1;
        serde_json::from_str::<Value>(&said).expect("JSON")
    };
    let all = json!(["courser@a", "courser@b", "courser@c"]);
    let named = |list: &Value| {
        let mut names: Vec<Value> = list.as_array().cloned().unwrap_or_default();
        names.sort_by_key(Value::to_string);
        Value::Array(names)
    };
    wait_until("all are there", async || named(&queue().await["online"]) == all).await;
    let said = queue().await;
    assert_eq!(
        (&said["leader"], named(&said["members"])),
        (&json!(format!("courser@{name}")), all)
    );

    let other = three.nodes[(leader + 1) % 3].take().expect("a node");
    let gone = json!(format!("courser@{}", other.name()));
    other.stop().await.expect("a clean stop");
    wait_until("one is missed", async || {
        let said = queue().await;
        let online = said["online"].as_array().cloned().unwrap_or_default();
        online.len() == 2
            && !online.contains(&gone)
            && said["members"].as_array().unwrap().len() == 3
    })
    .await;
    let listed = ctl(&three.configs[leader], &["list_queues", "name", "leader", "online"]).await;
    let listed = text(&listed.stdout);
    assert!(listed.contains(&format!("courser@{name}")), "{listed}");
    assert!(!listed.contains(gone.as_str().expect("a name")), "{listed}");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_the_cluster_has_the_version_of_each_member_and_whether_its_disk_has_room() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let version = env!("CARGO_PKG_VERSION");
    let is_known = |member: &Value| member["version"] == version && member["room"] == true;
    wait_until("all have said it", async || {
        let status = three.node(leader).status();
        status["members"].as_array().is_some_and(|all| all.len() == 3 && all.iter().all(is_known))
    })
    .await;
    let status = ctl(&three.configs[leader], &["cluster", "status"]).await;
    let lines = text(&status.stdout).lines();
    let with_version = lines.filter(|line| line.ends_with(&format!(", version {version}")));
    assert_eq!(with_version.count(), 3, "{status:?}");
    three.stop().await;
}

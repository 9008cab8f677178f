//! Three nodes in this process, and what clients and operators see of them.

use crate::support::{Client, HeldDisk, PATIENCE, config_in, free_addresses, wait_until};
use courser::{
    Cluster, Config, HttpListen, Inherited, Management, Node, Server, StartError, Surroundings,
};
use courser_client::{Connection, Outgoing, QueueOptions};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

pub(crate) struct Three {
    pub(crate) nodes: Vec<Option<Node>>,
    pub(crate) configs: Vec<Config>,
    _folders: Vec<TempDir>,
}

pub(crate) fn node_config(
    folder: &TempDir,
    name: &str,
    listen: SocketAddr,
    join: &[SocketAddr],
) -> Config {
    let mut config = config_in(folder);
    config.cluster = Cluster {
        name: "test".into(),
        node_name: name.into(),
        listen: listen.to_string(),
        join: join.iter().map(SocketAddr::to_string).collect(),
        secret: "what all nodes of this test know".into(),
        ..Cluster::default()
    };
    config.journal.segment_bytes = 1 << 20;
    config.management = Management {
        listen: HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]),
        ..Management::default()
    };
    config
}

impl Three {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl Fn(&mut Config)) -> Self {
        Self::start_at(&free_addresses(3), change).await
    }

    pub(crate) async fn start_at(addresses: &[SocketAddr], change: impl Fn(&mut Config)) -> Self {
        Self::start_within(addresses, &Surroundings::default(), change).await
    }

    /// With the journals' usual settings, on a disk of a test, which all nodes share.
    pub(crate) async fn start_on(disk: &HeldDisk) -> Self {
        let disk = Some(Arc::new(disk.clone()) as _);
        let surroundings = Surroundings { disk, ..Surroundings::default() };
        let usual = Config::default().journal;
        let change = |config: &mut Config| config.journal = usual.clone();
        Self::start_within(&free_addresses(3), &surroundings, change).await
    }

    async fn start_within(
        addresses: &[SocketAddr],
        surroundings: &Surroundings,
        change: impl Fn(&mut Config),
    ) -> Self {
        let folders: Vec<TempDir> =
            (0..3).map(|_| tempfile::tempdir().expect("a folder")).collect();
        let with = ["a", "b", "c"].iter().zip(addresses).zip(&folders);
        let mut configs: Vec<Config> = with
            .map(|((name, listen), folder)| node_config(folder, name, *listen, addresses))
            .collect();
        configs.iter_mut().for_each(change);
        let mut nodes = Vec::new();
        for config in &configs {
            let node = Node::start_within(config.clone(), surroundings.clone()).await;
            nodes.push(Some(node.expect("a node")));
        }
        let three = Three { nodes, configs, _folders: folders };
        three.wait_for_leader().await;
        three
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flatten()
    }

    /// Waits for a leader that runs and that all know, and gives its place.
    pub(crate) async fn wait_for_leader(&self) -> usize {
        let mut statuses = Vec::new();
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                statuses = self.running().map(Node::status).collect();
                if let Some(leader) = self.leader_of_all(&statuses) {
                    return leader;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        if let Ok(leader) = found.await {
            return leader;
        }
        let mut ended = Vec::new();
        for node in self.running() {
            let reason = tokio::time::timeout(Duration::ZERO, node.failed()).await;
            ended.push(reason.ok().map(|failed| failed.reason));
        }
        panic!("no leader that all know: {statuses:#?}\nended: {ended:#?}")
    }

    fn leader_of_all(&self, statuses: &[serde_json::Value]) -> Option<usize> {
        let named = &statuses.first()?["leader"];
        let leads = |node: &Option<Node>| node.as_ref().is_some_and(|node| node.name() == *named);
        let known = statuses.iter().all(|status| status["leader"] == *named);
        self.nodes.iter().position(leads).filter(|_| known)
    }

    pub(crate) fn node(&self, index: usize) -> &Node {
        self.nodes[index].as_ref().expect("a node that runs")
    }

    pub(crate) async fn stop(self) {
        for node in self.nodes.into_iter().flatten() {
            node.stop().await.expect("a clean stop");
        }
    }
}

pub(crate) async fn connect(node: &Node) -> Connection {
    let uri = format!("amqp://{}", node.addresses().amqp[0]);
    tokio::time::timeout(PATIENCE, async {
        loop {
            if let Ok(connection) = Connection::open(&uri).await {
                return connection;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("a connection")
}

/// What is answered to a request.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    try_get(address, path).await.expect("an answer")
}

/// Nothing if the connection ends without an answer, as it may where a node ceases to lead.
pub(crate) async fn try_get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    // guest:guest
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("a listener");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_confirmed_through_one_node_is_served_by_the_others_when_the_leader_is_gone() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let follower = (leader + 1) % 3;
    let connection = connect(three.node(follower)).await;
    let channel = connection.open_channel().await.expect("a channel");
    let durable = QueueOptions::durable();
    channel.queue_declare("orders", durable).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    for number in 0..20u8 {
        let body = [number];
        let message = Outgoing::new(&body).persistent();
        let confirm = channel.publish("", "orders", message).await.expect("published");
        assert!(confirm.await.expect("a confirm").is_ack());
    }
    drop(connection);

    let gone = three.nodes[leader].take().expect("the leader");
    gone.stop().await.expect("a clean stop");
    let next = three.wait_for_leader().await;
    assert_ne!(next, leader);
    let other = (0..3).find(|one| *one != leader && *one != follower).expect("one");
    let connection = connect(three.node(other)).await;
    let channel = connection.open_channel().await.expect("a channel");
    for number in 0..20u8 {
        let message = channel.get("orders", true).await.expect("a queue").expect("a message");
        assert_eq!(message.body(), [number]);
    }
    drop(connection);

    // It comes back as the one that it was.
    let config = three.configs[leader].clone();
    let back = Node::start_on(config, Inherited::default()).await.expect("a node");
    three.nodes[leader] = Some(back);
    three.wait_for_leader().await;
    three.stop().await;
}

/// Publishes more than the log keeps, all the time, until it is told to end or the connection does.
/// Counts the rounds.
async fn publish_until(
    uri: &str,
    ending: &watch::Receiver<bool>,
    rounds: &AtomicUsize,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let connection = Connection::open(uri).await?;
    let channel = connection.open_channel().await?;
    channel.queue_declare("busy", QueueOptions::durable()).await?;
    channel.confirm_select().await?;
    let body = [0; 64 << 10];
    while !*ending.borrow() {
        let mut confirms = Vec::new();
        for _ in 0..16 {
            let message = Outgoing::new(&body).persistent();
            confirms.push(channel.publish("", "busy", message).await?);
        }
        for confirm in confirms {
            assert!(confirm.await?.is_ack());
        }
        channel.queue_purge("busy").await?;
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_catches_up_while_others_publish_as_much_as_they_can() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let follower = (leader + 1) % 3;
    let name = three.node(follower).name();
    let uri = format!("amqp://{}", three.node(leader).addresses().amqp[0]);
    let (ends, ending) = watch::channel(false);
    let rounds = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rounds);
    let publishing = tokio::spawn(async move {
        // On a busy machine another node may come to lead: then it connects anew, as clients do.
        while !*ending.borrow() && publish_until(&uri, &ending, &counted).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let gone = three.nodes[follower].take().expect("a follower");
    gone.stop().await.expect("a clean stop");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let config = three.configs[follower].clone();
    let back = Node::start_on(config, Inherited::default()).await.expect("a node");
    three.nodes[follower] = Some(back);
    wait_until("a follower that lacks next to nothing", async || {
        let mut statuses = three.running().map(|node| (node.name(), node.status()));
        let leader = statuses.find(|(name, status)| status["leader"] == **name);
        let Some((_, status)) = leader else { return false };
        let mut members = status["members"].as_array().expect("members").iter();
        let found = members.find(|one| one["name"] == *name).expect("the follower");
        rounds.load(Ordering::Relaxed) > 0
            && found["connected"] == true
            && found["lag_entries"].as_u64().is_some_and(|lag| lag < 20)
    })
    .await;
    ends.send_replace(true);
    publishing.await.expect("a publisher");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_answers_over_http() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    wait_until("a leader that serves", async || {
        get(three.node(leader).addresses().http[0], "/api/overview").await.0 == 200
    })
    .await;
    for node in three.running() {
        let address = node.addresses().http[0];
        assert_eq!(get(address, "/health/live").await.0, 200);
        assert_eq!(get(address, "/health/ready").await.0, 200);
        let (status, body) = get(address, "/api/cluster").await;
        assert_eq!(status, 200, "{body}");
        let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["members"].as_array().map(Vec::len), Some(3));
        // Each sees the two others sooner or later, and then none of them is needed.
        wait_until("a majority without this node", async || {
            get(address, "/api/health/checks/node-is-quorum-critical").await.0 == 200
        })
        .await;
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_alone_of_three_serves_no_client_and_says_so() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let left = (leader + 1) % 3;
    for index in (0..3).filter(|index| *index != left) {
        let node = three.nodes[index].take().expect("a node");
        node.stop().await.expect("a clean stop");
    }
    let address = three.node(left).addresses().http[0];
    // It may have been handed the lead, which it has until it misses the others.
    wait_until("it serves no client", async || {
        let is_503 =
            async |path| try_get(address, path).await.is_some_and(|(status, _)| status == 503);
        is_503("/api/health/checks/node-is-quorum-critical").await
            && is_503("/api/overview").await
            && is_503("/health/ready").await
    })
    .await;
    assert_eq!(get(address, "/health/live").await.0, 200);
    three.stop().await;
}

#[tokio::test]
async fn the_folder_of_a_node_is_refused_to_a_broker_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_addresses(1)[0];
    let config = node_config(&folder, "a", address, &[address]);
    let node = Node::start_on(config.clone(), Inherited::default()).await.expect("a node");
    node.stop().await.expect("a clean stop");
    let alone = Server::start(config_in(&folder)).await.map(drop);
    assert!(matches!(alone, Err(StartError::Folder(_))), "{alone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_alone_in_its_cluster_takes_another_one_in() {
    let (folder, other_folder) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let addresses = free_addresses(2);
    let config = node_config(&folder, "a", addresses[0], &[]);
    let first = Node::start_on(config, Inherited::default()).await.expect("a node");
    let mut client = Client::connect(first.addresses().amqp[0]).await;
    client.declare("kept").await;
    let config = node_config(&other_folder, "b", addresses[1], &addresses);
    let second = Node::start_on(config, Inherited::default()).await.expect("a node");
    wait_until("the node is added", async || {
        let adding = first.add(&addresses[1].to_string()).await;
        adding.is_ok()
    })
    .await;
    wait_until("both vote", async || {
        second.status()["members"].as_array().is_some_and(|members| {
            members.len() == 2 && members.iter().all(|member| member["role"] != "learner")
        })
    })
    .await;
    second.stop().await.expect("a clean stop");
    first.stop().await.expect("a clean stop");
}

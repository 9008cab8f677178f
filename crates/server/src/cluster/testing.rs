//! For tests: three nodes in this process with two groups, to be looked at from inside.

#[path = "../../tests/server/support/ports.rs"]
mod ports;

use super::front::{Front, Serves};
use super::opening::Opening;
use super::passing::pass;
use super::redirect::{Newcomer, serve_replayed};
use super::watched::Watched;
use crate::driver::{self, ClientStream, Shared};
use crate::places::Place;
use crate::service::Service;
use crate::storage::Disk;
use crate::{Cluster, Config, HttpListen, Inherited, Management, Metrics, Node, Surroundings};
use courser_broker::admin::Admin;
use courser_cluster::{GroupNumber, NodeId};
use ports::free_addresses;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// Longer than anything takes, also on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const HOME: GroupNumber = GroupNumber::HOME;
pub(super) const ONE: GroupNumber = GroupNumber(1);

pub(super) struct Three {
    pub nodes: Vec<Node>,
    _folders: Vec<TempDir>,
}

pub(super) async fn wait_until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}

fn config_in(folder: &TempDir, name: &str, listen: SocketAddr, join: &[SocketAddr]) -> Config {
    let anywhere = || vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let mut config = Config {
        listen: anywhere(),
        data_dir: folder.path().join("data"),
        management: Management { listen: HttpListen::At(anywhere()), ..Management::default() },
        metrics: Metrics { listen: HttpListen::none(), ..Metrics::default() },
        cluster: Cluster {
            name: "test".into(),
            node_name: name.into(),
            listen: listen.to_string(),
            join: join.iter().map(SocketAddr::to_string).collect(),
            secret: "what all nodes of this test know".into(),
            groups: 2,
            ..Cluster::default()
        },
        ..Config::default()
    };
    config.journal.segment_bytes = 1 << 20;
    config
}

/// Starts a node that waits for another one to form a cluster with, which does not come.
pub(super) async fn start_waiting() -> (Node, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let addresses = free_addresses(2);
    let config = config_in(&folder, "a", addresses[0], &addresses[1..]);
    (Node::start_on(config, Inherited::default()).await.expect("a node"), folder)
}

/// Starts a node without others, which may find a data folder.
pub(super) async fn start_alone(folder: &TempDir, name: &str) -> Node {
    let config = config_in(folder, name, free_addresses(1)[0], &[]);
    Node::start_on(config, Inherited::default()).await.expect("a node")
}

/// Starts a node without others, on a disk of its own.
pub(super) async fn start_alone_on(disk: Arc<dyn Disk>, folder: &TempDir) -> Node {
    let config = config_in(folder, "a", free_addresses(1)[0], &[]);
    // What is not on the disk goes there.
    std::fs::create_dir(&config.data_dir).expect("a folder");
    let surroundings = Surroundings { disk: Some(disk), ..Surroundings::default() };
    Node::start_within(config, surroundings).await.expect("a node")
}

impl Three {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With other settings than the usual ones.
    pub async fn start_with(change: impl Fn(&mut Config)) -> Self {
        let addresses = free_addresses(3);
        let (mut nodes, mut folders) = (Vec::new(), Vec::new());
        for (name, listen) in ["a", "b", "c"].iter().zip(&addresses) {
            let folder = tempfile::tempdir().expect("a folder");
            let mut config = config_in(&folder, name, *listen, &addresses);
            change(&mut config);
            folders.push(folder);
            let node = Node::start_on(config, Inherited::default()).await.expect("a node");
            node.inner.members.spread.is_off.store(true, Ordering::Relaxed);
            nodes.push(node);
        }
        Three { nodes, _folders: folders }
    }

    /// Starts another node named "d", which is to be added.
    pub async fn start_fourth(&self) -> (Node, TempDir) {
        self.start_fourth_within(Surroundings::default()).await
    }

    /// The same, on a disk of its own.
    pub async fn start_fourth_on(&self, disk: Arc<dyn Disk>) -> (Node, TempDir) {
        let disk = Some(disk);
        self.start_fourth_within(Surroundings { disk, ..Surroundings::default() }).await
    }

    async fn start_fourth_within(&self, surroundings: Surroundings) -> (Node, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let listen = free_addresses(1)[0];
        let join: Vec<SocketAddr> =
            self.nodes.iter().map(|node| node.address().parse().expect("an address")).collect();
        let config = config_in(&folder, "d", listen, &join);
        // What is not on the disk goes there.
        std::fs::create_dir(&config.data_dir).expect("a folder");
        let node = Node::start_within(config, surroundings).await.expect("a node");
        node.inner.members.spread.is_off.store(true, Ordering::Relaxed);
        (node, folder)
    }

    /// Which node serves a group, when all nodes know it.
    pub async fn leader(&self, number: GroupNumber) -> usize {
        let mut found = None;
        wait_until("a group that is served", async || {
            let groups = self.nodes.iter().map(|node| node.inner.groups.get(number));
            let Some(groups) = groups.collect::<Option<Vec<_>>>() else { return false };
            found = groups.iter().position(|group| matches!(group.serves(), Serves::Here(_)));
            let leader = found.map(|index| self.id(index));
            let known = groups.iter().zip(&self.nodes);
            leader.is_some()
                && known
                    .map(|(group, node)| group.leader(node.inner.folder.node()))
                    .all(|one| one == leader)
        })
        .await;
        found.expect("found above")
    }

    fn id(&self, node: usize) -> NodeId {
        self.nodes[node].inner.folder.node()
    }

    pub fn front(&self, node: usize) -> &Arc<Front> {
        &self.nodes[node].inner.front
    }

    pub async fn service(&self, number: GroupNumber) -> Arc<Service> {
        let node = self.leader(number).await;
        let group = self.nodes[node].inner.groups.get(number).expect("it is led");
        let Serves::Here(service) = group.serves() else { panic!("the lead has moved") };
        service
    }

    pub async fn admin(&self, number: GroupNumber) -> Admin {
        self.service(number).await.shared.broker.admin()
    }

    /// Has another node lead a group.
    pub async fn move_lead(&self, number: GroupNumber, to: usize) {
        let to_id = self.id(to);
        wait_until("the lead has moved", async || {
            let from = self.leader(number).await;
            if from == to {
                return true;
            }
            let group = self.nodes[from].inner.groups.get(number).expect("it is led");
            let member = group.member().expect("it leads");
            let moving = tokio::task::spawn_blocking(move || member.transfer_to(to_id));
            // One that lags behind can't yet.
            let _ = moving.await.expect("no panic");
            tokio::time::sleep(Duration::from_millis(100)).await;
            false
        })
        .await;
    }

    /// Waits as an operator's answer does.
    pub async fn spread(&self) {
        self.front(self.leader(HOME).await).spread_definitions().await;
    }

    pub async fn stop(self) {
        for node in self.nodes {
            node.stop().await.expect("a clean stop");
        }
    }
}

/// Passes a client on to a node until one of them ends.
pub(crate) async fn pass_on<S: ClientStream, T: ClientStream>(
    client: &mut S,
    node: &mut T,
    place: &mut Place,
    is_web_socket: bool,
    send_timeout: Option<Duration>,
) {
    let opening = if is_web_socket { Opening::of_web_socket() } else { Opening::of_amqp() };
    drop(pass(client, node, place, opening, send_timeout).await);
}

/// Has a broker log a client in, which another one serves after a while that this is asked for.
pub(crate) async fn serve_elsewhere(
    stream: Box<dyn ClientStream>,
    client: Newcomer,
    (home, stopping_home): (Arc<Shared>, watch::Receiver<bool>),
    (there, stopping): (Arc<Shared>, watch::Receiver<bool>),
    deciding: Duration,
) {
    let Newcomer { peer, place, name } = client;
    let (watched, redirected) = Watched::new(stream, move |_| {
        Box::pin(async move {
            tokio::time::sleep(deciding).await;
            Some(())
        })
    });
    let place =
        driver::serve(watched, peer.clone(), place, name.clone(), home, stopping_home).await;
    if let Ok(redirected) = redirected.await {
        let client = Newcomer { peer, place, name };
        serve_replayed(redirected.stream, redirected.said, client, there, stopping).await;
    }
}

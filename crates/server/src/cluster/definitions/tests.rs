//! Three nodes in this process with two groups, and what the other group has of home's definitions.

use super::*;
use crate::{Cluster, Config, HttpListen, Inherited, Management, Metrics, Node, StartError};
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::admin::Admin;
use courser_cluster::NodeId;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use tempfile::TempDir;

/// Longer than anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const HOME: GroupNumber = GroupNumber::HOME;
const ONE: GroupNumber = GroupNumber(1);

struct Three {
    nodes: Vec<Node>,
    _folders: Vec<TempDir>,
}

async fn wait_until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}

fn config_in(folder: &TempDir, name: &str, listen: SocketAddr, join: &[SocketAddr]) -> Config {
    let mut config = Config {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        data_dir: folder.path().join("data"),
        management: Management { listen: HttpListen::none(), ..Management::default() },
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

impl Three {
    async fn start() -> Self {
        loop {
            if let Some(three) = Self::try_start().await {
                return three;
            }
        }
    }

    /// Nothing if an address that was free is somebody else's by now.
    async fn try_start() -> Option<Self> {
        let bound: Vec<_> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let addresses: Vec<_> =
            bound.iter().map(|one| one.local_addr().expect("an address")).collect();
        drop(bound);
        let (mut nodes, mut folders) = (Vec::new(), Vec::new());
        for (name, listen) in ["a", "b", "c"].iter().zip(&addresses) {
            let folder = tempfile::tempdir().expect("a folder");
            let config = config_in(&folder, name, *listen, &addresses);
            folders.push(folder);
            match Node::start_on(config, Inherited::default()).await {
                Ok(node) => nodes.push(node),
                Err(StartError::ClusterListen { error, .. })
                    if error.kind() == ErrorKind::AddrInUse =>
                {
                    return None;
                }
                Err(error) => panic!("no node: {error}"),
            }
        }
        Some(Three { nodes, _folders: folders })
    }

    /// Which node serves a group, when all nodes know it.
    async fn leader(&self, number: GroupNumber) -> usize {
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

    fn front(&self, node: usize) -> &Arc<Front> {
        &self.nodes[node].inner.front
    }

    async fn admin(&self, number: GroupNumber) -> Admin {
        let node = self.leader(number).await;
        let group = self.nodes[node].inner.groups.get(number).expect("it is led");
        let Serves::Here(service) = group.serves() else { panic!("the lead has moved") };
        service.shared.broker.admin()
    }

    /// Has another node lead a group.
    async fn move_lead(&self, number: GroupNumber, to: usize) {
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
    async fn spread(&self) {
        self.front(self.leader(HOME).await).spread_definitions().await;
    }

    async fn stop(self) {
        for node in self.nodes {
            node.stop().await.expect("a clean stop");
        }
    }
}

fn put_user(home: &Admin, name: &str) {
    let password = PasswordHash::quick(b"secret").expect("a hash");
    home.put_user(User::new(name, password)).expect("a user");
}

fn is_served(group: &Admin, name: &str) -> bool {
    group.vhost(name).is_some_and(|vhost| vhost.group == ONE.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_has_what_an_operator_has_changed_when_it_is_answered() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    let other = (leader + 1) % 3;
    three.leader(ONE).await;
    // By way of another node, and at home's own.
    for node in [other, leader] {
        three.move_lead(ONE, node).await;
        let (home, group) = (three.admin(HOME).await, three.admin(ONE).await);
        let vhost = format!("v{node}");
        home.change_vhost(&vhost, |settings| settings.group = ONE.0).expect("a vhost");
        put_user(&home, "u");
        home.set_permission("u", &vhost, Permission::all()).expect("a permission");
        // More than a question's answer could have before there were definitions.
        for nth in 0..30 {
            let value = format!("\"{}\"", "x".repeat(60_000));
            home.set_global_parameter(&format!("p{nth}"), &value).expect("a parameter");
        }
        let version = home.definitions_version();
        three.spread().await;
        assert!(group.adopted_version() >= version, "the answer waits for it");
        assert!(is_served(&group, &vhost));
        assert_eq!(group.accounts().permission("u", &vhost), Some(Permission::all()));
        assert!(three.front(node).wait_for_version(ONE, version).await.is_ok());
        home.delete_user("u").expect("deleted");
        three.spread().await;
        assert!(group.accounts().user("u").is_none());
        // What is not written anywhere yet, nobody can have.
        let later = home.definitions_version().plus(1 << 40);
        assert!(three.front(node).wait_for_version(ONE, later).await.is_err());
        assert!(three.front((node + 1) % 3).wait_for_version(ONE, version).await.is_err());
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_follows_home_by_itself_also_when_leads_move() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    three.move_lead(ONE, (leader + 1) % 3).await;
    let home = three.admin(HOME).await;
    home.change_vhost("v", |settings| settings.group = ONE.0).expect("a vhost");
    let group = three.admin(ONE).await;
    wait_until("the vhost is there", async || is_served(&group, "v")).await;
    assert!(group.vhost("/").is_none(), "that is at home");
    let before = group.adopted_version();
    drop(group);

    three.move_lead(ONE, (leader + 2) % 3).await;
    let group = three.admin(ONE).await;
    // It serves only after it has asked home.
    assert!(is_served(&group, "v") && group.adopted_version() >= before);
    drop((group, home));

    three.move_lead(HOME, (leader + 1) % 3).await;
    let home = three.admin(HOME).await;
    assert!(home.definitions_version() >= before);
    home.change_vhost("w", |settings| settings.group = ONE.0).expect("a vhost");
    home.delete_vhost("v").expect("deleted");
    let group = three.admin(ONE).await;
    wait_until("the other one is there", async || {
        is_served(&group, "w") && group.vhost("v").is_none()
    })
    .await;
    drop((group, home));
    three.stop().await;
}

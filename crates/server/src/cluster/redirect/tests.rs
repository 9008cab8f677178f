//! Three nodes in this process with two groups, and clients of vhosts in both.

use super::super::drain::Pace;
use super::*;
use crate::accounts::let_guest_into;
use crate::service::Service;
use crate::{Cluster, Config, HttpListen, Inherited, Management, Metrics, Node, StartError};
use courser_client::{Connection, Error, Options, Outgoing, QueueOptions};
use courser_connection::Credentials;
use futures_util::{Sink, Stream as _};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Longer than anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const ONE: GroupNumber = GroupNumber(1);
/// A vhost in home, and one in the other group.
const VHOSTS: [(&str, GroupNumber); 2] = [("at-home", GroupNumber::HOME), ("away", ONE)];

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

impl Three {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With a vhost in each group.
    async fn start_with(change: impl Fn(&mut Config)) -> Self {
        let three = loop {
            if let Some(three) = Self::try_start(&change).await {
                break three;
            }
        };
        for (vhost, group) in VHOSTS {
            three.place(vhost, group).await;
        }
        three
    }

    /// Nothing if an address that was free is somebody else's by now.
    async fn try_start(change: &impl Fn(&mut Config)) -> Option<Self> {
        let bound: Vec<_> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let addresses: Vec<_> =
            bound.iter().map(|one| one.local_addr().expect("an address")).collect();
        drop(bound);
        let (mut nodes, mut folders) = (Vec::new(), Vec::new());
        for (name, listen) in ["a", "b", "c"].iter().zip(&addresses) {
            let folder = tempfile::tempdir().expect("a folder");
            let mut config = config_in(&folder, name, *listen, &addresses);
            change(&mut config);
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

    fn front(&self, index: usize) -> &Arc<Front> {
        &self.nodes[index].inner.front
    }

    /// The broker of a group, and which node has it, when all nodes know.
    async fn leader(&self, number: GroupNumber) -> (usize, Arc<Service>) {
        let mut found = None;
        wait_until("a group that is served", async || {
            let groups = self.nodes.iter().map(|node| node.inner.groups.get(number));
            let serves: Option<Vec<_>> =
                groups.map(|group| group.map(|group| group.serves())).collect();
            let Some(serves) = serves else { return false };
            let here = serves.iter().enumerate().find_map(|(index, serves)| match serves {
                Serves::Here(service) => Some((index, Arc::clone(service))),
                _ => None,
            });
            let Some((index, service)) = here else { return false };
            let leader = self.nodes[index].inner.folder.node();
            let is_known = |serves: &Serves| match serves {
                Serves::Nobody => false,
                Serves::There(node) => *node == leader,
                Serves::Here(_) => true,
            };
            let all_know = serves.iter().all(is_known);
            found = Some((index, service));
            all_know
        })
        .await;
        found.expect("a leader")
    }

    /// Has a vhost be in a group.
    async fn place(&self, vhost: &str, number: GroupNumber) {
        let (_, home) = self.leader(GroupNumber::HOME).await;
        let admin = home.shared.broker.admin();
        match admin.vhost(vhost) {
            None => drop(
                admin.change_vhost(vhost, |settings| settings.group = number.0).expect("a vhost"),
            ),
            Some(_) => admin.set_vhost_group(vhost, number.0).expect("a vhost"),
        }
        let_guest_into(&home.shared.broker, vhost).expect("a permission");
        admin.durable().await.expect("a log");
        wait_until("the other group knows", async || {
            let (_, service) = self.leader(ONE).await;
            let definitions = admin.definitions_of_group(ONE.0).expect("a snapshot");
            let broker = Arc::clone(&service.shared.broker);
            let adopting = move || broker.admin().adopt_definitions(definitions).is_ok();
            let adopted = tokio::task::spawn_blocking(adopting).await.expect("no panic");
            adopted && service.shared.broker.vhost(vhost).is_some() == (number == ONE)
        })
        .await;
    }

    /// Has a node lead a group.
    async fn move_lead(&self, number: GroupNumber, to: usize) {
        let (from, service) = self.leader(number).await;
        drop(service);
        let node = self.nodes[to].inner.folder.node();
        if from != to {
            let group = self.nodes[from].inner.groups.get(number).expect("a group");
            let member = group.member().expect("a member");
            let moving = tokio::task::spawn_blocking(move || member.transfer_to(node));
            moving.await.expect("no panic").expect("a lead to hand over");
            wait_until("another node leads", async || self.leader(number).await.0 == to).await;
        }
    }

    async fn open(&self, index: usize, vhost: &str, password: &str) -> Result<Connection, Error> {
        let stream = TcpStream::connect(self.nodes[index].addresses().amqp[0]).await;
        let opening = Connection::open_on(stream.expect("a listener"), options(vhost, password));
        tokio::time::timeout(PATIENCE, opening).await.expect("an answer")
    }

    async fn stop(self) {
        for node in self.nodes {
            node.stop().await.expect("a clean stop");
        }
    }
}

fn options(vhost: &str, password: &str) -> Options {
    Options {
        virtual_host: vhost.try_into().expect("a short name"),
        credentials: Credentials::Plain { user: b"guest".into(), password: password.into() },
        ..Options::default()
    }
}

/// Publishes a message and takes it again.
async fn use_queue(connection: &Connection, queue: &str) {
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare(queue, QueueOptions::durable()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    // More than fits into one frame.
    let body = vec![7; 300_000];
    let message = Outgoing::new(&body).persistent();
    let confirm = channel.publish("", queue, message).await.expect("published");
    assert!(confirm.await.expect("a confirm").is_ack());
    let message = channel.get(queue, true).await.expect("a queue").expect("a message");
    assert!(message.body() == body);
}

/// Why a connection was refused, in the words that the client gets.
fn refusal(opened: Result<Connection, Error>) -> (u16, String) {
    match opened {
        Err(Error::ConnectionClosed(reason)) => (reason.code, reason.text.clone()),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_all_nodes_reach_the_vhosts_of_all_groups_whoever_leads_them() {
    let three = Three::start().await;
    let (home, _) = three.leader(GroupNumber::HOME).await;
    for leader in 0..3 {
        three.move_lead(ONE, leader).await;
        for index in 0..3 {
            for (vhost, group) in VHOSTS {
                let connection = three.open(index, vhost, "guest").await;
                let connection =
                    connection.unwrap_or_else(|error| panic!("{index} {vhost}: {error}"));
                use_queue(&connection, &format!("from-{index}")).await;
                let (at, service) = three.leader(group).await;
                assert_eq!(at, if group == ONE { leader } else { home });
                let connections = service.shared.broker.admin().connections(Some(vhost));
                let connections = connections.expect("a vhost");
                let names: Vec<_> = connections.iter().map(|one| one.name).collect();
                let door = three.nodes[index].addresses().amqp[0];
                assert_eq!(names.len(), 1, "{names:?}");
                assert!(names[0].ends_with(&format!(" -> {door}")), "{names:?}");
                connection.close().await.expect("a good end");
            }
        }
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_let_in_is_told_what_every_broker_tells() {
    let three = Three::start().await;
    let (home, service) = three.leader(GroupNumber::HOME).await;
    drop(service);
    three.move_lead(ONE, (home + 1) % 3).await;
    for index in 0..3 {
        for (vhost, _) in VHOSTS {
            let (code, text) = refusal(three.open(index, vhost, "wrong").await);
            assert_eq!(code, 403);
            assert!(text.starts_with("ACCESS_REFUSED - Login was refused"), "{text}");
        }
        let (code, text) = refusal(three.open(index, "nobody-has-it", "guest").await);
        assert_eq!((code, &*text), (530, "NOT_ALLOWED - vhost nobody-has-it not found"));
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_lead_of_a_group_moves_only_its_own_clients_are_closed() {
    let three = Three::start().await;
    let (home, service) = three.leader(GroupNumber::HOME).await;
    drop(service);
    three.move_lead(ONE, (home + 1) % 3).await;
    let (mut staying, mut closed) = (Vec::new(), Vec::new());
    for index in 0..3 {
        staying.push(three.open(index, "at-home", "guest").await.expect("a connection"));
        closed.push(three.open(index, "away", "guest").await.expect("a connection"));
    }
    three.move_lead(ONE, (home + 2) % 3).await;
    for connection in closed {
        let ended = tokio::time::timeout(PATIENCE, connection.closed()).await;
        ended.expect("the end of the connection");
    }
    for connection in staying {
        use_queue(&connection, "kept").await;
    }
    for index in 0..3 {
        let connection = three.open(index, "away", "guest").await.expect("a connection");
        use_queue(&connection, "again").await;
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vhost_that_has_moved_is_found_by_nodes_that_remember_where_it_was() {
    let three = Three::start().await;
    let (home, service) = three.leader(GroupNumber::HOME).await;
    drop(service);
    three.move_lead(ONE, (home + 1) % 3).await;
    // All nodes ask, and remember the answer.
    for index in 0..3 {
        for (vhost, group) in VHOSTS {
            three.open(index, vhost, "guest").await.expect("a connection");
            assert_eq!(three.front(index).group_of(vhost).await, Ok(Some(group)));
        }
    }
    three.place("at-home", ONE).await;
    three.place("away", GroupNumber::HOME).await;
    for index in 0..3 {
        for (vhost, group) in [("at-home", ONE), ("away", GroupNumber::HOME)] {
            let connection = three.open(index, vhost, "guest").await;
            let connection = connection.unwrap_or_else(|error| panic!("{index} {vhost}: {error}"));
            use_queue(&connection, "moved").await;
            let (_, service) = three.leader(group).await;
            let there = service.shared.broker.admin().connections(Some(vhost)).expect("a vhost");
            assert_eq!(there.iter().count(), 1);
            connection.close().await.expect("a good end");
        }
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_passed_on_is_counted_once_and_gives_its_places_back() {
    let three = Three::start_with(|config| config.limits.connections_max = 3).await;
    let (home, home_service) = three.leader(GroupNumber::HOME).await;
    let mut count = 0;
    for leader in [home, (home + 1) % 3] {
        three.move_lead(ONE, leader).await;
        let (_, service) = three.leader(ONE).await;
        let connections = || service.shared.broker.admin().connections(None).expect("all").len();
        for index in (0..3).chain(0..3).chain(0..3) {
            let connection = three.open(index, "away", "guest").await.expect("a place");
            count += 1;
            assert_eq!(connections(), 1);
            connection.close().await.expect("a good end");
            wait_until("it is gone", async || connections() == 0).await;
        }
        assert_eq!(home_service.shared.logins.counts(), (count, 0));
        assert!(leader == home || service.shared.logins.counts() == (0, 0));
    }
    drop(home_service);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_drained_says_goodbye_to_the_clients_of_all_groups() {
    let three = Three::start().await;
    let (home, service) = three.leader(GroupNumber::HOME).await;
    drop(service);
    let drained = (home + 2) % 3;
    three.move_lead(ONE, (home + 1) % 3).await;
    let (mut closed, mut staying) = (Vec::new(), Vec::new());
    for (vhost, _) in VHOSTS {
        closed.push(three.open(drained, vhost, "guest").await.expect("a connection"));
        staying.push(three.open(home, vhost, "guest").await.expect("a connection"));
    }
    three.front(drained).drain(Pace { group: 10, pause_ms: 0 });
    for connection in closed {
        let ended = tokio::time::timeout(PATIENCE, connection.closed()).await;
        match ended.expect("the end of the connection") {
            Error::ConnectionClosed(reason) => {
                assert_eq!(reason.code, 320);
                let text = "CONNECTION_FORCED - Node was put into maintenance mode";
                assert_eq!(reason.text, text);
            }
            error => panic!("{error}"),
        }
    }
    for connection in staying {
        use_queue(&connection, "kept").await;
    }
    three.stop().await;
}

/// A stream of bytes over a WebSocket.
async fn websocket(address: SocketAddr) -> DuplexStream {
    let request = format!("ws://{address}/ws/amqp").into_client_request().expect("a URL");
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.expect("a socket");
    let (mut inner, outer) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        loop {
            tokio::select! {
                read = inner.read(&mut buffer) => match read {
                    Ok(count @ 1..) => {
                        let message = Message::binary(buffer[..count].to_vec());
                        poll_fn(|cx| Pin::new(&mut socket).poll_ready(cx)).await.expect("room");
                        Pin::new(&mut socket).start_send(message).expect("sent");
                        poll_fn(|cx| Pin::new(&mut socket).poll_flush(cx)).await.expect("sent");
                    }
                    _ => return,
                },
                message = poll_fn(|cx| Pin::new(&mut socket).poll_next(cx)) => match message {
                    Some(Ok(Message::Binary(bytes))) => {
                        if inner.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                    Some(Ok(_)) => {}
                    _ => return,
                },
            }
        }
    });
    outer
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_over_websocket_reach_the_vhosts_of_all_groups() {
    let three = Three::start().await;
    let (home, service) = three.leader(GroupNumber::HOME).await;
    drop(service);
    for leader in [home, (home + 1) % 3] {
        three.move_lead(ONE, leader).await;
        for node in &three.nodes {
            for (vhost, _) in VHOSTS {
                let stream = websocket(node.addresses().http[0]).await;
                let opening = Connection::open_on(stream, options(vhost, "guest"));
                let opened = tokio::time::timeout(PATIENCE, opening).await.expect("an answer");
                let connection = opened.unwrap_or_else(|error| panic!("{vhost}: {error}"));
                use_queue(&connection, "browsers").await;
                connection.close().await.expect("a good end");
            }
        }
    }
    three.stop().await;
}

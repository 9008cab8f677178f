//! WebSockets of clients that have come to a node which does not lead.

use crate::cluster::Three;
use crate::cluster_groups::{GROUPS, leaders};
use crate::cluster_operated::ctl;
use crate::support::{Client, Heard, PATIENCE, wait_until};
use crate::websocket::pipe;
use courser::Node;
use courser_connection::client::Config as ClientConfig;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;

/// A WebSocket of a client at a node.
pub(crate) async fn socket(node: &Node) -> WebSocketStream<TcpStream> {
    let address = node.addresses().http[0];
    let stream = TcpStream::connect(address).await.expect("a listener");
    let opening = tokio_tungstenite::client_async(format!("ws://{address}/ws/amqp"), stream);
    timeout(PATIENCE, opening).await.expect("in time").expect("a socket").0
}

/// Whether this process still holds the end at `local` of a connection to `peer`. Once it has closed that, the system
/// keeps it for a while at most, without an owner.
pub(crate) fn is_held(local: SocketAddr, peer: SocketAddr) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let port = |text: &str| u16::from_str_radix(text.rsplit(':').next()?, 16).ok();
    table.lines().skip(1).any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let ports = (port(columns[1]), port(columns[2]));
        ports == (Some(local.port()), Some(peer.port())) && columns[9] != "0"
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_by_way_of_a_follower_ends_with_the_leader_though_its_client_does_not() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let follower = (leader + 1) % 3;
    let mut silent = socket(three.node(follower)).await.into_inner();
    let peer = silent.local_addr().expect("an address");
    let local = silent.peer_addr().expect("an address");
    assert!(is_held(local, peer));
    let led = three.nodes[leader].take().expect("it runs");
    led.stop().await.expect("a clean stop");
    // However it ends, the client does not close its own end.
    let mut rest = Vec::new();
    drop(timeout(PATIENCE, silent.read_to_end(&mut rest)).await.expect("it ends"));
    wait_until("the follower holds it no more", async || !is_held(local, peer)).await;
    drop(silent);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_a_socket_by_way_of_a_node_that_is_drained_is_told_to_go() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let follower = (leader + 1) % 3;
    let socket = socket(three.node(follower)).await;
    let mut client = Client::connect_on(pipe(socket, 1000), ClientConfig::default()).await;
    let drain: [&[&str]; 3] =
        [&["cluster", "drain", "a"], &["cluster", "drain", "b"], &["cluster", "drain", "c"]];
    let (drained, heard) =
        tokio::join!(ctl(&three.configs[follower], drain[follower]), client.next());
    assert!(drained.status.success(), "{drained:?}");
    let Heard::Closed(320, why) = heard else { panic!("{heard:?}") };
    assert!(why.contains("maintenance mode"), "{why}");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_of_each_node_publishes_and_consumes_wherever_a_vhost_is_led() {
    let three = Three::start_with(|config| config.cluster.groups = GROUPS).await;
    wait_until("leads on all three nodes", async || {
        leaders(&three).is_some_and(|all| all.into_iter().collect::<BTreeSet<_>>().len() == 3)
    })
    .await;
    let well = async |node: usize, words: &[&'static str]| {
        let said = ctl(&three.configs[node], words.to_vec().leak()).await;
        assert!(said.status.success(), "{words:?} at {node}: {said:?}");
        String::from_utf8(said.stdout).expect("text")
    };
    well(0, &["add_vhost", "one", "--group", "1"]).await;
    well(0, &["add_vhost", "two", "--group", "2"]).await;
    for node in 0..3 {
        for vhost in ["/", "one", "two"] {
            well(node, &["declare_queue", "-p", vhost, "q"]).await;
            well(node, &["publish", "-p", vhost, "-r", "q", "hello"]).await;
            let taken = well(node, &["consume", "-p", vhost, "q", "--count", "1"]).await;
            assert!(taken.contains("\thello\t"), "{taken}");
        }
    }
    three.stop().await;
}

//! Packets on sockets.

use crate::support::{
    LAST_GROUP, Listening, PATIENCE, about, endpoint, formation, heartbeat, packet,
};
use bytes::BytesMut;
use courser_cluster::transport::{Endpoint, Links, Purpose};
use courser_cluster::{GroupNumber, NodeId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

fn member(number: u64, name: &str) -> Arc<Endpoint> {
    let mut about = about(number, name);
    about.formation = Some(formation(&[1, 2]));
    endpoint(about)
}

fn links(group: GroupNumber) -> Arc<Links> {
    Links::new(member(2, "b"), group, Handle::current(), |_| {})
}

async fn takes_part(links: &Links, node: NodeId, wanted: bool) {
    let waiting = async {
        while links.takes_part(node) != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it says so");
}

async fn connected(links: &Links, node: NodeId, wanted: bool) {
    let waiting = async {
        while links.is_connected(node) != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("a connection, or none");
}

#[tokio::test]
async fn packets_arrive_whole_and_in_order() {
    let mut node = Listening::start(&member(1, "a")).await;
    let links = links(GroupNumber::HOME);
    links.set_address(NodeId(1), &node.address);
    connected(&links, NodeId(1), true).await;
    let sizes = [1, 100, 3 << 20, 70_000, 1];
    links.send(NodeId(1), sizes.iter().map(|size| packet(2, 1, *size)).collect());
    for size in sizes {
        let (from, heard) = node.packet().await;
        assert_eq!(from, NodeId(2));
        assert!(heard == packet(2, 1, size), "a packet with {size} bytes differs");
    }
}

/// A way to a node on which nothing goes on after `bytes` until it is let go: its address, what says that it is so far, and
/// what lets it go.
async fn stopped_way(
    to: String,
    bytes: u64,
) -> (String, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let ((reached, is_reached), (let_go, is_let_go)) = (oneshot::channel(), oneshot::channel());
    tokio::spawn(async move {
        let (from, _) = listener.accept().await.expect("a connection");
        let to = TcpStream::connect(to).await.expect("a node");
        let ((mut questions, mut back), (mut answers, mut forth)) =
            (from.into_split(), to.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
        let first = tokio::io::copy(&mut (&mut questions).take(bytes), &mut forth).await;
        assert_eq!(first.expect("open connections"), bytes);
        reached.send(()).expect("a test that waits");
        is_let_go.await.expect("a test that goes on");
        // Until the test is over.
        let _ = tokio::io::copy(&mut questions, &mut forth).await;
    });
    (address, is_reached, let_go)
}

#[tokio::test]
async fn a_leader_is_heard_while_a_long_packet_of_it_is_on_its_way() {
    /// More than sockets hold.
    const LONG_BYTES: usize = 60 << 20;
    let mut node = Listening::start(&member(1, "a")).await;
    let (address, is_reached, let_go) = stopped_way(node.address.clone(), 1 << 20).await;
    let links = links(GroupNumber::HOME);
    links.set_address(NodeId(1), &address);
    connected(&links, NodeId(1), true).await;
    let long = packet(2, 1, LONG_BYTES);
    links.send(NodeId(1), vec![long.clone()]);
    let reached = tokio::time::timeout(PATIENCE, is_reached).await;
    reached.expect("in time").expect("it has begun");
    links.send(NodeId(1), vec![heartbeat(2, 1)]);
    let_go.send(()).expect("a way");
    assert!(node.packet().await.1 == heartbeat(2, 1), "it comes behind the long one");
    assert!(node.packet().await.1 == long);
}

#[tokio::test]
async fn packets_come_to_their_group_and_to_none_that_is_not_there() {
    let mut node = Listening::start(&member(1, "a")).await;
    let nowhere = links(GroupNumber(LAST_GROUP.0 + 1));
    nowhere.set_address(NodeId(1), &node.address);
    let all: Vec<_> = (0..=LAST_GROUP.0).map(|group| links(GroupNumber(group))).collect();
    for (group, links) in all.iter().enumerate() {
        links.set_address(NodeId(1), &node.address);
        connected(links, NodeId(1), true).await;
        nowhere.send(NodeId(1), vec![packet(2, 1, 1)]);
        links.send(NodeId(1), vec![packet(2, 1, 10 + group)]);
        let (found, from, heard) = node.packet_of_any().await;
        assert_eq!((found, from), (GroupNumber(group as u16), NodeId(2)));
        assert!(heard == packet(2, 1, 10 + group));
    }
}

#[tokio::test]
async fn a_node_that_is_connected_says_whether_it_takes_part_in_the_group() {
    let node = Listening::start(&member(1, "a")).await;
    let links = links(GroupNumber::HOME);
    assert!(!links.takes_part(NodeId(1)));
    links.set_address(NodeId(1), &node.address);
    for wanted in [true, false, true] {
        node.has_part.store(wanted, Ordering::Relaxed);
        takes_part(&links, NodeId(1), wanted).await;
        assert!(links.is_connected(NodeId(1)));
    }
    node.task.abort();
    takes_part(&links, NodeId(1), false).await;
}

#[tokio::test]
async fn a_node_that_comes_back_is_connected_again() {
    let mut node = Listening::start(&member(1, "a")).await;
    let links = links(GroupNumber::HOME);
    links.set_address(NodeId(1), &node.address);
    connected(&links, NodeId(1), true).await;
    node.task.abort();
    connected(&links, NodeId(1), false).await;
    // What is sent to a node that is not there is lost, and takes no memory.
    links.send(NodeId(1), vec![packet(2, 1, 1)]);
    node = Listening::start_at(&Arc::clone(&node.endpoint), &node.address.clone()).await;
    connected(&links, NodeId(1), true).await;
    links.send(NodeId(1), vec![packet(2, 1, 9)]);
    assert!(node.packet().await.1 == packet(2, 1, 9));
}

#[tokio::test]
async fn a_node_that_moves_is_found_at_its_new_address() {
    let old = Listening::start(&member(1, "a")).await;
    let links = links(GroupNumber::HOME);
    links.set_address(NodeId(1), &old.address);
    connected(&links, NodeId(1), true).await;
    let mut new = Listening::start(&member(1, "a")).await;
    links.set_address(NodeId(1), &new.address);
    drop(old);
    // What is sent before it is found is lost.
    let sending = async {
        loop {
            links.send(NodeId(1), vec![packet(2, 1, 5)]);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = sending => {}
        (_, heard) = new.packet() => assert!(heard == packet(2, 1, 5)),
    }
}

#[tokio::test]
async fn a_connection_ends_with_a_damaged_packet_one_of_another_node_and_one_that_is_too_long() {
    let mut node = Listening::start(&member(1, "a")).await;
    let encoded = |from, to| {
        let mut body = BytesMut::new();
        packet(from, to, 50).encode(&mut body);
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    };
    let mut damaged = encoded(2, 1);
    damaged[12] ^= 1;
    let too_long = u32::MAX.to_le_bytes().to_vec();
    for bytes in [damaged, encoded(3, 1), encoded(2, 9), too_long] {
        let dialled = member(2, "b").dial(&node.address, Purpose::Packets, "").await;
        let mut stream = dialled.expect("let in").stream;
        stream.write_all(&bytes).await.expect("a listener");
        let answered = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 10])).await;
        assert_eq!(answered.expect("an end").unwrap_or(0), 0);
    }
    // None of them has come through, and the next good one does.
    let dialled = member(2, "b").dial(&node.address, Purpose::Packets, "").await;
    let mut stream = dialled.expect("let in").stream;
    stream.write_all(&encoded(2, 1)).await.expect("a listener");
    assert!(node.packet().await.1 == packet(2, 1, 50));
}

#[tokio::test]
async fn a_node_that_asks_whether_another_is_there_hears_that_it_is() {
    let node = Listening::start(&member(1, "a")).await;
    let dialled = member(2, "b").dial(&node.address, Purpose::Packets, "").await;
    let mut stream = dialled.expect("let in").stream;
    stream.write_all(&[0; 8]).await.expect("a listener");
    let mut answers = [0; 2];
    let answered = tokio::time::timeout(PATIENCE, stream.read_exact(&mut answers)).await;
    answered.expect("in time").expect("answers");
    assert_eq!(answers, [1, 1]);
}

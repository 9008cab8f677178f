//! Other ends that say nothing, or vanish.

use crate::support::{Listening, PATIENCE, about, endpoint, formation};
use courser_cluster::transport::{About, DialError, Purpose};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

#[tokio::test]
async fn a_node_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let endpoint = endpoint(about(1, "a"));
    let dialled = timeout(PATIENCE, endpoint.dial(&address, Purpose::Meet, "")).await;
    assert!(matches!(dialled.expect("an end"), Err(DialError::TimedOut)));
}

#[tokio::test]
async fn who_says_nothing_to_a_node_is_sent_away() {
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let mut stream = TcpStream::connect(&node.address).await.expect("a connection");
    let mut said = Vec::new();
    // A reset is an end as well.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut said)).await.expect("an end");
}

#[tokio::test]
async fn a_node_that_vanishes_is_noticed_by_the_system() {
    let [one, two] = [(1, "a"), (2, "b")].map(|(number, name)| {
        endpoint(About { formation: Some(formation(&[1, 2])), ..about(number, name) })
    });
    let node = Listening::start(&one).await;
    let dialled = two.dial(&node.address, Purpose::Tunnel, "hello").await;
    let stream = dialled.expect("it is there").stream;
    assert!(socket2::SockRef::from(stream.socket()).keepalive().expect("a socket"));
}

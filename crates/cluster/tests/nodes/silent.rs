//! Other ends that say nothing, or vanish.

use crate::support::{LONG_ANSWER_BYTES, Listening, PATIENCE, about, endpoint, formation};
use courser_cluster::transport::{About, DialError, HandshakeError, Purpose};
use std::io::ErrorKind;
use std::time::Duration;
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

/// More than may introduce themselves at once.
const STRANGERS: usize = 300;

#[tokio::test]
async fn silent_strangers_keep_no_node_out() {
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let mut strangers = Vec::new();
    for _ in 0..STRANGERS {
        strangers.push(TcpStream::connect(&node.address).await.expect("a connection"));
    }
    let other = endpoint(about(2, "b"));
    let coming = async {
        // They have had their time first.
        while other.dial(&node.address, Purpose::Meet, "").await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, coming).await.expect("they make room for a node");
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

/// How long an answer may take, as the documentation says.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_answer_that_does_not_come_is_not_waited_for_for_ever() {
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let asks = endpoint(about(2, "b"));
    let asked = timeout(2 * ANSWER_TIMEOUT, asks.ask(&node.address, "never"));
    let error = asked.await.expect("it is given up").expect_err("no answer");
    let is_timeout = |error: &std::io::Error| error.kind() == ErrorKind::TimedOut;
    let timed_out =
        matches!(&error, DialError::Handshake(HandshakeError::Io(io)) if is_timeout(io));
    assert!(timed_out, "{error}");
}

#[tokio::test]
async fn an_answer_that_is_not_taken_is_not_sent_for_ever() {
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let asks = endpoint(about(2, "b"));
    let dialled = asks.dial(&node.address, Purpose::Ask, "much").await;
    let mut stream = dialled.expect("it is there").stream;
    assert_eq!(stream.read_u8().await.expect("the answer begins"), 0);
    tokio::time::sleep(2 * ANSWER_TIMEOUT).await;
    let mut left = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut left).await;
    assert!(left.len() < LONG_ANSWER_BYTES, "{} bytes came all the same", left.len());
}

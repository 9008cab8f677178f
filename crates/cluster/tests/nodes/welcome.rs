//! Who is let in, and what is said to who is not.

use crate::support::{Listening, about, endpoint, formation};
use courser_cluster::transport::{DialError, Endpoint, HandshakeError, Purpose, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn nodes_with_the_same_secret_learn_who_the_other_one_is() {
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let met = endpoint(about(2, "b")).dial(&node.address, Purpose::Meet, "").await;
    assert_eq!(met.map(|dialled| dialled.about).ok(), Some(about(1, "a")));
}

#[tokio::test]
async fn another_secret_lets_no_client_in() {
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let other = Secret::new(b"another one of enough bytes").expect("long enough");
    for secret in [other, Secret::none()] {
        let stranger = Endpoint::new(about(2, "b"), secret, None);
        let met = stranger.dial(&node.address, Purpose::Meet, "").await;
        let error = met.err().expect("not let in");
        assert!(matches!(error, DialError::Handshake(HandshakeError::NotBelieved)), "{error}");
    }
}

#[tokio::test]
async fn what_does_not_know_the_secret_is_not_believed_and_is_told_nothing() {
    // Says the opening of a node, and proves nothing.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let impostor = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut opening = [0; 44];
        stream.read_exact(&mut opening).await.expect("an opening");
        stream.write_all(&opening).await.expect("a dialler");
        let mut proof = [0; 32];
        stream.read_exact(&mut proof).await.expect("a proof");
        // What was said, said back.
        stream.write_all(&proof).await.expect("a dialler");
        let mut told = Vec::new();
        stream.read_to_end(&mut told).await.map(|_| told)
    });
    let met = endpoint(about(2, "b")).dial(&address, Purpose::Meet, "a question").await;
    let error = met.err().expect("not believed");
    assert!(matches!(error, DialError::Handshake(HandshakeError::Secret)), "{error}");
    let told = impostor.await.expect("an impostor").expect("an end");
    assert_eq!(String::from_utf8_lossy(&told), "");
}

#[tokio::test]
async fn both_ends_are_told_that_they_speak_different_versions() {
    const OF_ANOTHER: &[u8; 44] = b"courser\n\xfe\xff\xff\xff0123456789abcdef0123456789abcdef";
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let mut stream = TcpStream::connect(&node.address).await.expect("a listener");
    stream.write_all(OF_ANOTHER).await.expect("a listener");
    let mut opening = Vec::new();
    stream.read_to_end(&mut opening).await.expect("an end");
    assert_eq!((opening.len(), &opening[..12]), (44, &b"courser\n\x02\0\x02\0"[..]));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let newer = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.write_all(OF_ANOTHER).await.expect("a dialler");
        stream.read_to_end(&mut Vec::new()).await
    });
    let met = endpoint(about(2, "b")).dial(&address, Purpose::Meet, "").await;
    let error = met.err().expect("no node of this version").to_string();
    assert!(error.contains("versions 65534 to 65535 between nodes, this node 2 to 2"), "{error}");
    newer.await.expect("a task").expect("an end");
}

#[tokio::test]
async fn a_node_of_another_cluster_is_told_so() {
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let mut other = about(2, "b");
    other.cluster = "test".into();
    let met = endpoint(other).dial(&node.address, Purpose::Meet, "").await;
    let error = met.err().expect("not let in").to_string();
    assert_eq!(error, "refuses: node 'a' belongs to cluster 'prod', not to 'test'");
}

#[tokio::test]
async fn clusters_of_the_same_name_that_were_formed_separately_are_told_apart() {
    let mut own = about(1, "a");
    own.formation = Some(formation(&[1, 3]));
    let node = Listening::start(&endpoint(own)).await;
    let mut other = about(2, "b");
    other.formation = Some(formation(&[2]));
    other.formation.as_mut().expect("one").group = 8;
    let met = endpoint(other).dial(&node.address, Purpose::Meet, "").await;
    assert!(matches!(met.err(), Some(DialError::Refused(_))));
}

#[tokio::test]
async fn packets_are_taken_of_nodes_of_the_same_cluster_only() {
    let mut own = about(1, "a");
    own.formation = Some(formation(&[1, 2]));
    let node = Listening::start(&endpoint(own.clone())).await;
    let mut other = about(2, "b");
    let refused = endpoint(other.clone()).dial(&node.address, Purpose::Packets, "").await;
    assert!(matches!(refused.err(), Some(DialError::Refused(_))));
    other.formation = own.formation;
    endpoint(other).dial(&node.address, Purpose::Packets, "").await.map(drop).expect("let in");
}

#[tokio::test]
async fn what_is_no_node_is_disconnected() {
    let mut node = Listening::start(&endpoint(about(1, "a"))).await;
    let nonsense =
        [&b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: everything\r\n\r\n"[..], &[0xff; 60]];
    for said in nonsense {
        let mut stream = TcpStream::connect(&node.address).await.expect("a listener");
        stream.write_all(said).await.expect("a listener");
        // An end or a reset: the listener may have left some of it unread.
        let answered = stream.read(&mut [0; 100]).await.unwrap_or(0);
        assert_eq!(answered, 0);
    }
    // It goes on with others, and has told no node of these.
    let met = endpoint(about(2, "b")).dial(&node.address, Purpose::Meet, "").await;
    met.map(drop).expect("a node");
    let first = node.heard.recv().await;
    assert!(matches!(first, Some(crate::support::Heard::Met(one)) if one.name == "b"));
}

#[tokio::test]
async fn a_question_is_answered_or_refused() {
    let node = Listening::start(&endpoint(about(1, "a"))).await;
    let asks = endpoint(about(2, "b"));
    assert_eq!(asks.ask(&node.address, "hello").await.ok().as_deref(), Some("hello from b"));
    let refused = asks.ask(&node.address, "no").await.expect_err("a refusal");
    assert_eq!(refused.to_string(), "refuses: refused");
}

#[tokio::test]
async fn a_tunnel_is_for_what_its_note_says() {
    let mut own = about(1, "a");
    own.formation = Some(formation(&[1, 2]));
    let node = Listening::start(&endpoint(own.clone())).await;
    let other =
        endpoint(courser_cluster::transport::About { formation: own.formation, ..about(2, "b") });
    let tunnel = other.dial(&node.address, Purpose::Tunnel, "a client").await;
    let mut heard = String::new();
    tunnel.expect("a tunnel").stream.read_to_string(&mut heard).await.expect("text");
    assert_eq!(heard, "a client");
}

#[test]
fn a_secret_that_can_be_guessed_is_refused() {
    assert!(Secret::new(b"short").is_err());
    assert!(Secret::new(&[b'x'; 16]).is_ok());
}

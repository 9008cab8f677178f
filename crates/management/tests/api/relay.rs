//! Requests that a node passes on to another one, over connections that are used again.

use crate::direct::{Asked, Direct, ELSEWHERE, HERE, head};
use crate::support::PATIENCE;
use courser_management::{OwnAnswer, Relay, RelayStream, Upgraded};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::sync::{mpsc, watch};

const PIPE_BYTES: usize = 64 << 10;
const REQUEST: &[u8] = b"GET /api/overview HTTP/1.1\r\nhost: broker\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/// A client of a relay, and the connections that it makes, each by what makes a stream of it.
fn relayed(
    relay: Arc<Relay>,
    stream: impl Fn(DuplexStream) -> RelayStream + Send + Sync + 'static,
) -> (DuplexStream, mpsc::UnboundedReceiver<DuplexStream>) {
    relayed_from(HERE, relay, stream)
}

/// The same for a client at this address.
fn relayed_from(
    from: [u8; 4],
    relay: Arc<Relay>,
    stream: impl Fn(DuplexStream) -> RelayStream + Send + Sync + 'static,
) -> (DuplexStream, mpsc::UnboundedReceiver<DuplexStream>) {
    let (client, own) = duplex(PIPE_BYTES);
    let (sender, connections) = mpsc::unbounded_channel();
    let (stop, stopping) = watch::channel(false);
    tokio::spawn(async move {
        let connect = || {
            let (ours, theirs) = duplex(PIPE_BYTES);
            let is_taken = sender.send(theirs).map_err(|_| io::ErrorKind::NotConnected.into());
            let stream = is_taken.map(|()| stream(ours));
            async { stream }
        };
        let peer = SocketAddr::from((from, 1));
        let carry = |_: Upgraded, _: Upgraded| {};
        relay.serve(own, peer, false, connect, carry, stopping).await;
        drop(stop);
    });
    (client, connections)
}

/// Reads what ends like this.
async fn read(stream: &mut DuplexStream, end: &[u8]) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        let reading = tokio::time::timeout(PATIENCE, stream.read_buf(&mut read)).await;
        if reading.expect("in time").expect("no error") == 0 {
            break;
        }
    }
    String::from_utf8(read).expect("text")
}

/// Answers the next request.
async fn answer(connection: &mut DuplexStream) {
    read(connection, b"\r\n\r\n").await;
    connection.write_all(ANSWER).await.expect("it is taken");
}

/// The next connection, whose request is answered.
async fn answer_next(connections: &mut mpsc::UnboundedReceiver<DuplexStream>) -> DuplexStream {
    let next = tokio::time::timeout(PATIENCE, connections.recv()).await;
    let mut connection = next.expect("in time").expect("a connection");
    answer(&mut connection).await;
    connection
}

// On one thread: the request is passed on before the end of the connection is seen.
#[tokio::test]
async fn a_request_goes_over_another_connection_where_the_last_one_has_just_ended() {
    let relay = Relay::new(|_, _| None);
    let (mut client, mut connections) = relayed(relay, |stream| Box::new(stream));
    client.write_all(REQUEST).await.expect("it is taken");
    let first = answer_next(&mut connections).await;
    read(&mut client, b"}").await;
    client.write_all(REQUEST).await.expect("it is taken");
    drop(first);
    let answering = async { answer_next(&mut connections).await };
    let (answered, _second) = tokio::select! {
        biased;
        second = answering => (read(&mut client, b"}").await, Some(second)),
        answered = read(&mut client, b"}") => (answered, None),
    };
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
}

/// A connection that is not looked at again, once an answer has come, until it is said that it may be.
struct Held {
    pipe: DuplexStream,
    /// Bytes of the answer that have not come, and how often more is asked for then: the first time, the answer is not
    /// handed on yet.
    left: usize,
    looks: usize,
    released: Arc<Mutex<Receiver<()>>>,
}

impl AsyncRead for Held {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            self.looks += 1;
            if self.looks == 2 {
                let released = self.released.lock().expect("no panic");
                // Others go on meanwhile.
                let _ = tokio::task::block_in_place(|| released.recv_timeout(PATIENCE));
            }
        }
        ready!(Pin::new(&mut self.pipe).poll_read(cx, buf))?;
        self.left = self.left.saturating_sub(buf.filled().len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Held {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_request_waits_for_its_connection_to_be_done_with_the_answer_before() {
    let (release, released) = channel();
    let (requests, released) = (AtomicUsize::new(0), Arc::new(Mutex::new(released)));
    let relay = Relay::new(move |_, _| {
        if requests.fetch_add(1, Ordering::Relaxed) == 1 {
            // The second one is about to be passed on.
            let release: Sender<()> = release.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(200));
                let _ = release.send(());
            });
        }
        None
    });
    let (mut client, mut connections) = relayed(relay, move |pipe| {
        Box::new(Held { pipe, left: ANSWER.len(), looks: 0, released: Arc::clone(&released) })
    });
    client.write_all(REQUEST).await.expect("it is taken");
    let mut connection = answer_next(&mut connections).await;
    read(&mut client, b"}").await;
    client.write_all(REQUEST).await.expect("it is taken");
    let answering = tokio::spawn(async move { answer(&mut connection).await });
    let answered = read(&mut client, b"}").await;
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    answering.await.expect("no panic");
    assert!(connections.try_recv().is_err(), "another connection is of no use");
}

/// Places for connections, and those that are kept for one user.
const PLACES: usize = 512;
const KEPT: usize = 128;
/// Bytes of an answer that a client does not take at once.
const LONG_BYTES: usize = 1 << 20;

/// Answers all requests over the connections that a relay makes, and has more to say than anything on the way takes.
async fn answer_all_long(mut connections: mpsc::UnboundedReceiver<DuplexStream>) {
    while let Some(mut connection) = connections.recv().await {
        tokio::spawn(async move {
            read(&mut connection, b"\r\n\r\n").await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG_BYTES}\r\n\r\n");
            // It may be gone before all is sent.
            let _ = connection.write_all(head.as_bytes()).await;
            let _ = connection.write_all(&[b' '; LONG_BYTES]).await;
        });
    }
}

/// Sends a request, and reads the beginning of its answer only.
async fn begin(client: &mut DuplexStream, request: &[u8]) -> String {
    client.write_all(request).await.expect("it is taken");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let reading = tokio::time::timeout(PATIENCE, client.read_u8()).await;
        head.push(reading.expect("in time").expect("an answer"));
    }
    String::from_utf8(head).expect("text")
}

/// A client at this address, and the beginning of an answer which it does not take.
async fn stranger(relay: &Arc<Relay>, from: [u8; 4], request: &[u8]) -> (DuplexStream, String) {
    let (mut client, connections) = relayed_from(from, Arc::clone(relay), |pipe| Box::new(pipe));
    tokio::spawn(answer_all_long(connections));
    let answered = begin(&mut client, request).await;
    (client, answered)
}

// No client is given up for taking nothing: time passes only where nothing else is to be done.
#[tokio::test(start_paused = true)]
async fn answers_that_strangers_do_not_read_keep_no_other_client_out() {
    let relay = Relay::new(|path, _| {
        let (status, body, page) = (200, "{}".to_owned(), None);
        let answer = OwnAnswer { status, content_type: "application/json", body, page };
        (path == "/health/live").then_some(answer)
    });
    let mut held = Vec::new();
    for number in 0..PLACES {
        let from = [192, 0, 2, (number / KEPT) as u8];
        let (client, answered) = stranger(&relay, from, REQUEST).await;
        assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
        held.push(client);
    }
    for request in [REQUEST, &b"GET /health/live HTTP/1.1\r\nhost: broker\r\n\r\n"[..]] {
        let (_client, answered) = stranger(&relay, [192, 0, 2, 9], request).await;
        assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    }
    drop(held);
}

/// Answers all requests over the connections that a relay makes for a client as a broker does.
async fn answer_all(broker: Arc<Direct>, mut connections: mpsc::UnboundedReceiver<DuplexStream>) {
    let (peer, local) = (SocketAddr::from((ELSEWHERE, 1)), SocketAddr::from((HERE, 2)));
    let stop = watch::Sender::new(false);
    while let Some(connection) = connections.recv().await {
        let api = Arc::clone(&broker.api);
        tokio::spawn(api.serve_relayed(connection, peer, local, None, stop.subscribe()));
    }
}

// Likewise.
#[tokio::test(start_paused = true)]
async fn an_answer_for_a_user_keeps_its_place_among_those_for_strangers() {
    let broker = Arc::new(Direct::new());
    broker.add_user("alice", "administrator");
    for row in 0..8 {
        let value = format!("\"{}\"", "x".repeat(60_000));
        let set = broker.broker.admin().set_global_parameter(&row.to_string(), &value);
        set.expect("a parameter");
    }
    let relay = Relay::new(|_, _| None);
    let mut held = Vec::new();
    for _ in 0..KEPT {
        held.push(stranger(&relay, ELSEWHERE, REQUEST).await.0);
    }
    let (mut alice, connections) =
        relayed_from(ELSEWHERE, Arc::clone(&relay), |pipe| Box::new(pipe));
    tokio::spawn(answer_all(Arc::clone(&broker), connections));
    let asked = head(&Asked::new("GET", "/api/global-parameters").by("alice"), 0);
    let answered = begin(&mut alice, asked.as_bytes()).await;
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    assert!(!answered.contains("alice"), "who it is for is between the nodes: {answered}");
    for _ in 0..PLACES {
        held.push(stranger(&relay, ELSEWHERE, REQUEST).await.0);
    }
    let mut rest = Vec::new();
    held[0].read_to_end(&mut rest).await.expect("what was sent");
    assert!(rest.len() < LONG_BYTES, "its place is another one's");
    let rest = read(&mut alice, b"\r\n0\r\n\r\n").await;
    assert!(rest.len() > 8 * 60_000, "{} bytes", rest.len());
}

//! Requests that a node passes on to another one, over connections that are used again.

use crate::support::PATIENCE;
use courser_management::{Relay, RelayStream, Upgraded};
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
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
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

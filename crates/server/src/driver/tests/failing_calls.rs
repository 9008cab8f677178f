//! Every call of a client's stream goes wrong once: the first, then the second, until all have passed. One that is short or
//! waits changes nothing; one that fails ends that connection, and what was confirmed is there. So it is on every way that
//! clients come.

mod faulty;

use self::faulty::{Call, Fault, Faulty};
use crate::Server;
use crate::cluster::pass_on;
use crate::driver::{ClientStream, serve};
use crate::inside::INSIDE;
use crate::interleavings::ClientWebSocket;
use crate::places::Places;
use crate::testing::start;
use crate::websocket::WebSocket;
use courser_client::{Connection, ConsumeOptions, Error, Options, Outgoing, QueueOptions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, duplex};

const PATIENCE: Duration = Duration::from_secs(60);
const PIPE_BYTES: usize = 4096;

/// How the client comes, and where on its way the stream is.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// It is the client's connection.
    Plain,
    /// It is below a WebSocket.
    WebSocket,
    /// It is the client's connection at a node that passes it on.
    ToFollower,
    /// It is that of this node to the one that serves the client.
    ToLeader,
}

/// What a client has come to know.
#[derive(Debug, Default)]
struct Known {
    confirmed: Vec<&'static str>,
    /// It has acknowledged the first message.
    acknowledged: bool,
    /// All that it has said was heard.
    closed: bool,
}

/// What a client does: two messages, of which it takes the first.
async fn session<S>(stream: S, known: &mut Known) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = Connection::open_on(stream, Options::default()).await?;
    let channel = connection.open_channel().await?;
    channel.queue_declare("q", QueueOptions::durable()).await?;
    channel.confirm_select().await?;
    for body in ["one", "two"] {
        let message = Outgoing::new(body.as_bytes()).persistent();
        if channel.publish("", "q", message).await?.await?.is_ack() {
            known.confirmed.push(body);
        }
    }
    let mut deliveries = channel.consume("q", ConsumeOptions::default()).await?;
    if let Some(delivery) = deliveries.next().await? {
        assert_eq!(delivery.message().body(), b"one");
        known.acknowledged = true;
        delivery.ack()?;
    }
    connection.close().await?;
    known.closed = true;
    Ok(())
}

/// What another client finds.
async fn found(server: &Server) -> BTreeSet<String> {
    let gone = async {
        while !server.admin().connections(None).expect("all vhosts").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the connection ends");
    let pipe = server.connect().expect("a place");
    let connection = Connection::open_on(pipe, Options::default()).await.expect("a login");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    let mut found = BTreeSet::new();
    while let Some(delivery) = channel.get("q", true).await.expect("it is there") {
        let body = String::from_utf8_lossy(delivery.message().body()).into_owned();
        assert!(found.insert(body), "a message is there twice");
    }
    connection.close().await.expect("closed");
    found
}

/// Serves a client on this stream.
fn spawn_serve(server: &Server, stream: impl ClientStream) {
    let (shared, stopping) = server.serving();
    let place = shared.places.admit_own().expect("a place");
    tokio::spawn(serve(stream, INSIDE, place, "a test".into(), Arc::clone(shared), stopping));
}

/// Passes a client on.
fn spawn_pass(mut client: impl ClientStream, mut node: impl ClientStream) {
    let mut place = Arc::new(Places::new(1)).admit_own().expect("a place");
    tokio::spawn(async move {
        pass_on(&mut client, &mut node, &mut place, false, Some(PATIENCE)).await;
    });
}

/// Whether the call went wrong.
async fn goes_wrong(server: &Server, way: Way, call: Call, fault: Fault, nth: usize) -> bool {
    let (stream, theirs) = duplex(PIPE_BYTES);
    let went_wrong = Arc::new(AtomicBool::new(false));
    let faulty = Faulty {
        stream,
        fault,
        call,
        left: nth,
        is_written_anywhere: nth.is_multiple_of(2),
        went_wrong: Arc::clone(&went_wrong),
    };
    let mut known = Known::default();
    let done = async {
        match way {
            Way::Plain => {
                spawn_serve(server, faulty);
                session(theirs, &mut known).await
            }
            Way::WebSocket => {
                let frame_max = server.serving().0.connection.frame_max;
                spawn_serve(server, WebSocket::new(faulty, frame_max));
                session(ClientWebSocket::new(theirs).await, &mut known).await
            }
            Way::ToFollower => {
                let (node, ours) = duplex(PIPE_BYTES);
                spawn_serve(server, ours);
                spawn_pass(faulty, node);
                session(theirs, &mut known).await
            }
            Way::ToLeader => {
                let (client, ours) = duplex(PIPE_BYTES);
                spawn_serve(server, theirs);
                spawn_pass(client, faulty);
                session(ours, &mut known).await
            }
        }
    };
    let done = tokio::time::timeout(PATIENCE, done).await;
    let what = format!("{way:?} {call:?} {nth} {fault:?}");
    let done = done.unwrap_or_else(|_| panic!("{what}: it waits for ever"));
    let found = found(server).await;
    let is_untouched = !went_wrong.load(Relaxed);
    let what = format!("{what}: {known:?}, {found:?}");
    if is_untouched || matches!(fault, Fault::Short | Fault::Blocked) {
        assert!(done.is_ok(), "{what}");
    }
    let must = known.confirmed.iter().filter(|body| **body != "one" || !known.acknowledged);
    assert!(must.copied().all(|body| found.contains(body)), "{what}");
    assert!(!known.closed || !found.contains("one"), "{what}");
    !is_untouched
}

async fn every_call_goes_wrong_once(way: Way) {
    let (server, _folder) = start().await;
    // A client that hangs up at once, having heard all, leaves no shutdown.
    for (call, least) in [(Call::Read, 5), (Call::Write, 5), (Call::Flush, 5), (Call::Shutdown, 0)]
    {
        for fault in [Fault::Short, Fault::Blocked, Fault::Ended, Fault::Failed] {
            let mut nth = 0;
            while goes_wrong(&server, way, call, fault, nth).await {
                nth += 1;
            }
            assert!(nth >= least, "hardly any {call:?}s: {nth}");
        }
    }
    server.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_a_stream_goes_wrong_once() {
    every_call_goes_wrong_once(Way::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_a_stream_below_a_web_socket_goes_wrong_once() {
    every_call_goes_wrong_once(Way::WebSocket).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_a_stream_that_is_passed_on_goes_wrong_once() {
    every_call_goes_wrong_once(Way::ToFollower).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_a_stream_between_nodes_goes_wrong_once() {
    every_call_goes_wrong_once(Way::ToLeader).await;
}

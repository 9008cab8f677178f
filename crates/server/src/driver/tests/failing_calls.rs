//! Every call of a client's stream goes wrong once: the first, then the second, until all have passed. One that is short or
//! waits changes nothing; one that fails ends that connection, and what was confirmed is there.

use crate::Server;
use crate::driver::{ClientStream, serve};
use crate::inside::INSIDE;
use crate::testing::start;
use courser_client::{Connection, ConsumeOptions, Error, Options, Outgoing, QueueOptions};
use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

const PATIENCE: Duration = Duration::from_secs(60);

/// What goes wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A byte is all that it does.
    Short,
    /// It waits, and is to be tried again at once.
    Blocked,
    /// The client is gone: reads end, and writes fail.
    Ended,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read,
    Write,
}

/// A stream whose calls of one kind go wrong when so many have passed.
struct Faulty {
    pipe: DuplexStream,
    fault: Fault,
    call: Call,
    left: usize,
    is_written_anywhere: bool,
    went_wrong: Arc<AtomicBool>,
}

impl ClientStream for Faulty {
    fn is_written_anywhere(&self) -> bool {
        self.is_written_anywhere
    }
}

impl Faulty {
    /// What is wrong with this call, if anything is.
    fn check(&mut self, call: Call) -> Option<Fault> {
        if self.went_wrong.load(Relaxed) {
            let is_over = matches!(self.fault, Fault::Ended | Fault::Failed);
            return is_over.then_some(self.fault);
        }
        if call != self.call {
            return None;
        }
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        self.went_wrong.store(true, Relaxed);
        Some(self.fault)
    }
}

impl AsyncRead for Faulty {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.check(Call::Read) {
            None => Pin::new(&mut self.pipe).poll_read(cx, buf),
            Some(Fault::Short) => {
                let mut short = [0];
                let mut one = ReadBuf::new(&mut short);
                let read = Pin::new(&mut self.pipe).poll_read(cx, &mut one);
                buf.put_slice(one.filled());
                read
            }
            Some(Fault::Blocked) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Fault::Ended) => Poll::Ready(Ok(())),
            Some(Fault::Failed) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

impl AsyncWrite for Faulty {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.check(Call::Write) {
            None => Pin::new(&mut self.pipe).poll_write(cx, bytes),
            Some(Fault::Short) => {
                let short = bytes.len().min(1);
                Pin::new(&mut self.pipe).poll_write(cx, &bytes[..short])
            }
            Some(Fault::Blocked) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Fault::Ended) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Some(Fault::Failed) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
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
async fn session(pipe: DuplexStream, known: &mut Known) -> Result<(), Error> {
    let connection = Connection::open_on(pipe, Options::default()).await?;
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

/// Whether the call went wrong.
async fn goes_wrong(server: &Server, call: Call, fault: Fault, nth: usize) -> bool {
    let (shared, stopping) = server.serving();
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = tokio::io::duplex(4096);
    let went_wrong = Arc::new(AtomicBool::new(false));
    let stream = Faulty {
        pipe,
        fault,
        call,
        left: nth,
        is_written_anywhere: nth.is_multiple_of(2),
        went_wrong: Arc::clone(&went_wrong),
    };
    tokio::spawn(serve(stream, INSIDE, place, "a test".into(), Arc::clone(shared), stopping));
    let mut known = Known::default();
    let done = tokio::time::timeout(PATIENCE, session(theirs, &mut known)).await;
    let done = done.unwrap_or_else(|_| panic!("{call:?} {nth} {fault:?}: it waits for ever"));
    let is_untouched = !went_wrong.load(Relaxed);
    let found = found(server).await;
    let what = format!("{call:?} {nth} {fault:?}: {known:?}, {found:?}");
    if is_untouched || matches!(fault, Fault::Short | Fault::Blocked) {
        assert!(done.is_ok(), "{what}");
    }
    let must = known.confirmed.iter().filter(|body| **body != "one" || !known.acknowledged);
    assert!(must.copied().all(|body| found.contains(body)), "{what}");
    assert!(!known.closed || !found.contains("one"), "{what}");
    !is_untouched
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_a_stream_goes_wrong_once() {
    let (server, _folder) = start().await;
    for call in [Call::Read, Call::Write] {
        for fault in [Fault::Short, Fault::Blocked, Fault::Ended, Fault::Failed] {
            let mut nth = 0;
            while goes_wrong(&server, call, fault, nth).await {
                nth += 1;
            }
            assert!(nth > 5, "hardly any {call:?}s: {nth}");
        }
    }
    server.stop().await.expect("a clean stop");
}

//! Connections whose streams are not what they should be.

mod alarms;
mod channels;
mod failing_calls;
mod failing_store;
mod held_reasons;
mod newcomers;
mod slow_readers;
mod turns;

use super::{ClientStream, serve};
use crate::Server;
use crate::inside::INSIDE;
use crate::testing::start;
use courser_client::{Channel, Connection, Error, Options, Outgoing, QueueOptions};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::runtime::Handle;

/// A stream that panics when it is written to outside of the runtime, as one with timers of its own does.
struct NeedsRuntime {
    pipe: DuplexStream,
    /// It says that it does not need it.
    is_written_anywhere: bool,
}

impl ClientStream for NeedsRuntime {
    fn is_written_anywhere(&self) -> bool {
        self.is_written_anywhere
    }
}

impl AsyncRead for NeedsRuntime {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(cx, buf)
    }
}

impl AsyncWrite for NeedsRuntime {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        assert!(Handle::try_current().is_ok(), "written to outside of the runtime");
        Pin::new(&mut self.pipe).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = bufs.first().map_or(&[][..], |first| first);
        self.poll_write(cx, first)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

/// A client whose end at the broker is one of those streams.
async fn connect(server: &Server, is_written_anywhere: bool) -> Connection {
    let (shared, stopping) = server.serving();
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = tokio::io::duplex(4096);
    let stream = NeedsRuntime { pipe, is_written_anywhere };
    tokio::spawn(serve(stream, INSIDE, place, "a test".into(), Arc::clone(shared), stopping));
    Connection::open_on(theirs, Options::default()).await.expect("a login")
}

/// A channel with confirms, and a durable queue `q`.
async fn confirming(connection: &Connection) -> Channel {
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    channel
}

async fn publish(channel: &Channel) -> Result<bool, Error> {
    let confirm = channel.publish("", "q", Outgoing::new(b"m").persistent()).await?;
    Ok(confirm.await?.is_ack())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_needs_the_runtime_is_not_written_to_by_the_log_thread() {
    let (server, _folder) = start().await;
    let connection = connect(&server, false).await;
    let channel = confirming(&connection).await;
    for _ in 0..50 {
        assert!(publish(&channel).await.expect("a confirm"));
    }
    connection.close().await.expect("closed");
    server.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_on_the_log_thread_ends_one_connection_and_nothing_else() {
    let (server, _folder) = start().await;
    let (faulty, other) = (connect(&server, true).await, connect(&server, false).await);
    let other_channel = confirming(&other).await;
    let channel = faulty.open_channel().await.expect("a channel");
    channel.confirm_select().await.expect("confirms");
    // The log thread confirms when it has nothing else to do.
    let ended = async { while publish(&channel).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("a confirm in place");
    assert!(publish(&other_channel).await.expect("a confirm"), "others go on");
    assert!(server.admin().connections(None).expect("all vhosts").len() <= 1);
    other.close().await.expect("closed");
    server.stop().await.expect("a clean stop");
}

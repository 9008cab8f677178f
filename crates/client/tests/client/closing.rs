//! What the end of a channel or a connection says of what was published.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_client::{Connection, Error, Options, Outgoing};
use courser_codec::{Method, ShortStr, basic, reply_code};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use crate::support::{Peer, Seen, beside, channel, channel_over};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_channel_that_closes_is_not_a_connection_that_is_gone() {
    let (connection, channel, mut peer) = channel().await;
    let closing = beside({
        let channel = channel.clone();
        async move { channel.close().await }
    });
    let error = loop {
        match channel.publish("", "q", "late").await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::ChannelClosed { channel: 1, .. }), "{error}");
    assert!(!error.is_connection_gone() && connection.is_open());
    while peer.seen().await != Seen::ChannelClosed(1) {}
    closing.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_close_tells_how_many_publishes_the_server_has_not_answered() {
    for closes_channel in [true, false] {
        let (connection, channel, mut peer) = confirming().await;
        for _ in 0..3 {
            channel.publish("", "q", "x").await.unwrap();
        }
        let closing = beside(async move {
            if closes_channel { channel.close().await } else { connection.close().await }
        });
        for _ in 0..3 {
            peer.publish().await;
        }
        peer.ack(1, 1, false).await;
        peer.seen().await;
        let result = closing.await.unwrap();
        assert!(matches!(result, Err(Error::NotConfirmed { count: 2 })), "{result:?}");
    }
}

async fn confirming() -> (Connection, courser_client::Channel, Peer) {
    let (connection, channel, mut peer) = channel().await;
    let selecting = beside({
        let channel = channel.clone();
        async move { channel.confirm_select().await }
    });
    peer.request("confirm.select").await;
    peer.send(1, Method::ConfirmSelectOk(Default::default())).await;
    selecting.await.unwrap().unwrap();
    (connection, channel, peer)
}

#[tokio::test]
async fn a_close_that_the_server_does_not_answer_is_no_success() {
    let (connection, channel, peer) = channel_over(4096).await;
    // More than the stream takes, to a server that reads nothing.
    channel.publish("", "q", &vec![7; 100_000]).await.unwrap();
    let result = connection.close().await;
    assert!(matches!(result, Err(Error::CloseUnanswered)), "{result:?}");
    drop(peer);
}

#[tokio::test]
async fn a_close_behind_a_write_that_waits_has_its_limit_without_heartbeats() {
    let (stream, mut peer) = Peer::new(4096);
    let close_timeout = Duration::from_millis(300);
    let options = Options { heartbeat_s: 0, close_timeout, ..Options::default() };
    let client = tokio::spawn(Connection::open_on(stream, options));
    peer.accept().await;
    let connection = client.await.unwrap().unwrap();
    let opening = beside({
        let connection = connection.clone();
        async move { connection.open_channel().await }
    });
    peer.channel_opened().await;
    let channel = opening.await.unwrap().unwrap();
    channel.publish("", "q", &vec![7; 100_000]).await.unwrap();
    // The connection's task has its turn, fills the stream, and sleeps; then it is told to close.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let closed = tokio::time::timeout(PATIENCE, connection.close()).await;
    let result = closed.expect("it ends at its limit");
    assert!(matches!(result, Err(Error::CloseUnanswered)), "{result:?}");
    drop(peer);
}

#[tokio::test]
async fn confirms_of_a_connection_that_has_died_are_not_all_there() {
    let (stream, mut peer) = Peer::new(4096);
    let options = Options { heartbeat_s: 1, ..Options::default() };
    let client = tokio::spawn(Connection::open_on(stream, options));
    peer.accept().await;
    let connection = client.await.unwrap().unwrap();
    let opening = beside({
        let connection = connection.clone();
        async move {
            let channel = connection.open_channel().await?;
            channel.confirm_select().await.map(|()| channel)
        }
    });
    peer.channel_opened().await;
    peer.request("confirm.select").await;
    peer.send(1, Method::ConfirmSelectOk(Default::default())).await;
    let channel = opening.await.unwrap().unwrap();
    channel.publish("", "q", &vec![7; 100_000]).await.unwrap();
    // The server is silent, and takes nothing. Asked again and again, as a loop with a time limit does.
    let result = loop {
        let waiting = channel.wait_for_confirms();
        if let Ok(result) = tokio::time::timeout(Duration::from_millis(20), waiting).await {
            break result;
        }
    };
    assert!(result.unwrap_err().is_connection_gone());
    drop(peer);
}

#[tokio::test]
async fn returns_that_are_not_read_do_not_keep_a_channel_from_closing() {
    let (connection, channel, mut peer) = channel().await;
    let returns = channel.returns().unwrap();
    let returned = basic::Return {
        reply_code: reply_code::NO_ROUTE,
        reply_text: ShortStr::from_static("NO_ROUTE"),
        exchange: ShortStr::EMPTY,
        routing_key: ShortStr::EMPTY,
    };
    channel.publish("", "q", Outgoing::new("x").mandatory()).await.unwrap();
    peer.publish().await;
    let body = vec![7; 1 << 20];
    let sending = beside(async move {
        for _ in 0..40 {
            peer.send_message(1, Method::BasicReturn(returned), &body).await;
        }
        peer
    });
    let mut stalled = connection.stalled();
    stalled.wait_for(|is_stalled| *is_stalled).await.unwrap();
    let closing = beside(async move { channel.close().await });
    let mut peer = sending.await.unwrap();
    while peer.seen().await != Seen::ChannelClosed(1) {}
    closing.await.unwrap().unwrap();
    drop(returns);
}

/// A stream that can't end while its peer takes nothing, as one of TLS that has records to write.
struct NeverEnding(DuplexStream);

impl AsyncRead for NeverEnding {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for NeverEnding {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_stream_that_does_not_end_keeps_no_connection_from_closing() {
    let (stream, mut peer) = Peer::new(1 << 20);
    let client = tokio::spawn(Connection::open_on(NeverEnding(stream), Options::default()));
    peer.accept().await;
    let connection = client.await.unwrap().unwrap();
    let closing = beside(async move { connection.close().await });
    assert_eq!(peer.seen().await, Seen::Gone);
    let closed = tokio::time::timeout(Duration::from_secs(60), closing).await;
    closed.expect("the close ends").unwrap().unwrap();
}

//! A server made of the connection machine, whose moves the test writes down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_client::{Connection, Error, Options};
use courser_codec::{
    Method, RawProperties, ShortStr, basic, connection, write_body_frame,
    write_content_header_frame,
};
use courser_connection::server::{self, Event};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

/// What has come from the client.
#[derive(Debug, PartialEq)]
pub enum Seen {
    ChannelOpened(u16),
    ChannelClosed(u16),
    /// A method, by name and as a frame's payload.
    Request(u16, &'static str, Vec<u8>),
    Publish {
        channel: u16,
        exchange: String,
        key: String,
        mandatory: bool,
        body: Vec<u8>,
        seq: u64,
    },
    /// The client has closed the connection, or dropped the stream.
    Gone,
}

pub struct Peer {
    stream: DuplexStream,
    pub machine: server::Connection,
    input: Vec<u8>,
}

impl Peer {
    /// The client's end of a pipe that holds `pipe_bytes` in each direction, and the server behind it.
    pub fn new(pipe_bytes: usize) -> (DuplexStream, Self) {
        let (client, stream) = tokio::io::duplex(pipe_bytes);
        let machine = server::Connection::new(Arc::new(server::Config::default()), Instant::now());
        (client, Self { stream, machine, input: Vec::new() })
    }

    /// A connection that is open, and its server.
    pub async fn connected() -> (Connection, Self) {
        Self::connected_over(1 << 20).await
    }

    pub async fn connected_over(pipe_bytes: usize) -> (Connection, Self) {
        let (stream, mut peer) = Self::new(pipe_bytes);
        let options = Options { close_timeout: Duration::from_millis(300), ..Options::default() };
        let client = tokio::spawn(Connection::open_on(stream, options));
        peer.accept().await;
        (client.await.unwrap().unwrap(), peer)
    }

    /// Lets the client in.
    pub async fn accept(&mut self) {
        loop {
            match self.turn(|machine, event| match event {
                Event::Login { .. } => {
                    machine.login_accepted(Instant::now());
                    Some(false)
                }
                Event::Open { .. } => {
                    machine.open_accepted(Instant::now());
                    Some(true)
                }
                event => panic!("{event:?} before the connection is open"),
            }) {
                Some(true) => return self.flush().await,
                Some(false) => self.flush().await,
                None => {
                    self.flush().await;
                    assert!(self.read().await, "the client has gone");
                }
            }
        }
    }

    /// What the client does next.
    pub async fn seen(&mut self) -> Seen {
        loop {
            match self.turn(|_, event| see(event)) {
                Some(seen) => {
                    self.flush().await;
                    return seen;
                }
                None => {
                    self.flush().await;
                    if !self.read().await {
                        return Seen::Gone;
                    }
                }
            }
        }
    }

    /// The next thing is this request.
    pub async fn request(&mut self, name: &str) -> (u16, Vec<u8>) {
        match self.seen().await {
            Seen::Request(channel, seen, payload) if seen == name => (channel, payload),
            other => panic!("{other:?} instead of {name}"),
        }
    }

    /// The next thing is a channel.
    pub async fn channel_opened(&mut self) -> u16 {
        match self.seen().await {
            Seen::ChannelOpened(channel) => channel,
            other => panic!("{other:?} instead of an open channel"),
        }
    }

    /// The next thing is a publish; gives its body and its number.
    pub async fn publish(&mut self) -> (Vec<u8>, u64) {
        match self.seen().await {
            Seen::Publish { body, seq, .. } => (body, seq),
            other => panic!("{other:?} instead of a publish"),
        }
    }

    pub async fn send(&mut self, channel: u16, method: Method<'_>) {
        self.machine.transmit(channel, &method);
        self.flush().await;
    }

    pub async fn ack(&mut self, channel: u16, delivery_tag: u64, multiple: bool) {
        self.send(channel, Method::BasicAck(basic::Ack { delivery_tag, multiple })).await;
    }

    /// Sends a method with a message.
    pub async fn send_message(&mut self, channel: u16, method: Method<'_>, body: &[u8]) {
        self.machine.transmit(channel, &method);
        let (out, size) = (self.machine.output(), body.len() as u64);
        write_content_header_frame(channel, basic::CLASS_ID, size, RawProperties::EMPTY, out);
        for piece in body.chunks(100_000) {
            write_body_frame(channel, piece, out);
        }
        self.flush().await;
    }

    pub async fn deliver(
        &mut self,
        channel: u16,
        consumer_tag: &str,
        delivery_tag: u64,
        body: &[u8],
    ) {
        let deliver = basic::Deliver {
            consumer_tag: ShortStr::cut(consumer_tag),
            delivery_tag,
            redelivered: false,
            exchange: ShortStr::from_static("x"),
            routing_key: ShortStr::from_static("key"),
        };
        self.send_message(channel, Method::BasicDeliver(deliver), body).await;
    }

    /// Closes a channel with an error of `method`.
    pub async fn channel_error(&mut self, channel: u16, code: u16, explanation: &str) {
        self.machine.channel_error(channel, code, explanation, (50, 10), Instant::now());
        self.flush().await;
    }

    /// Accepts a consumer; gives its tag.
    pub async fn accept_consumer(&mut self) -> (u16, String) {
        let (channel, payload) = loop {
            match self.seen().await {
                Seen::Request(channel, "basic.qos", _) => {
                    self.send(channel, Method::BasicQosOk(basic::QosOk {})).await;
                }
                Seen::Request(channel, "basic.consume", payload) => break (channel, payload),
                other => panic!("{other:?} instead of a consumer"),
            }
        };
        let Ok(Method::BasicConsume(consume)) = Method::decode(&payload) else { panic!() };
        let tag = consume.consumer_tag.to_string();
        let consumer_tag = ShortStr::cut(&tag);
        self.send(channel, Method::BasicConsumeOk(basic::ConsumeOk { consumer_tag })).await;
        (channel, tag)
    }

    /// Says on channel 1 that a consumer has ended.
    pub async fn cancel_ok(&mut self, tag: &str) {
        let consumer_tag = ShortStr::cut(tag);
        self.send(1, Method::BasicCancelOk(basic::CancelOk { consumer_tag })).await;
    }

    /// The next thing is a message that goes back to its queue; gives its delivery tag.
    pub async fn requeued(&mut self) -> u64 {
        let (_, payload) = self.request("basic.nack").await;
        match Method::decode(&payload) {
            Ok(Method::BasicNack(basic::Nack { delivery_tag, multiple: false, requeue: true })) => {
                delivery_tag
            }
            other => panic!("{other:?} instead of a message that goes back"),
        }
    }

    pub async fn flush(&mut self) {
        let output = std::mem::take(self.machine.output());
        // The client may be gone.
        let _ = self.stream.write_all(&output).await;
    }

    /// Says `connection.blocked`.
    pub async fn blocked(&mut self, reason: &str) {
        self.send(
            0,
            Method::ConnectionBlocked(connection::Blocked { reason: ShortStr::cut(reason) }),
        )
        .await;
    }

    /// The next event, made into something else.
    pub async fn next_event<R>(&mut self, take: impl Fn(Event<'_>) -> R) -> Option<R> {
        loop {
            if let Some(result) = self.turn(|_, event| Some(take(event))) {
                return Some(result);
            }
            self.flush().await;
            if !self.read().await {
                return None;
            }
        }
    }

    fn turn<R>(
        &mut self,
        act: impl FnOnce(&mut server::Connection, Event<'_>) -> Option<R>,
    ) -> Option<R> {
        let mut rest = &self.input[..];
        let event = self.machine.next(&mut rest, Instant::now());
        let result = event.and_then(|event| act(&mut self.machine, event));
        let used = self.input.len() - rest.len();
        self.input.drain(..used);
        result
    }

    async fn read(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        let count = self.stream.read(&mut bytes).await.unwrap_or(0);
        self.input.extend_from_slice(&bytes[..count]);
        count > 0
    }
}

fn see(event: Event<'_>) -> Option<Seen> {
    Some(match event {
        Event::ChannelOpened { channel } => Seen::ChannelOpened(channel),
        Event::ChannelClosed { channel, .. } => Seen::ChannelClosed(channel),
        Event::Request { channel, method } => {
            let mut frame = Vec::new();
            method.write_frame(channel, &mut frame);
            Seen::Request(channel, method.name(), frame[7..frame.len() - 1].to_vec())
        }
        Event::Publish(publish) => see_publish(&publish),
        Event::LargePublish(publish) => see_publish(&publish.as_publish()),
        Event::Closed(_) => Seen::Gone,
        Event::PublishBegun { .. } => return None,
        Event::Login { .. } | Event::Open { .. } => panic!("the connection is open already"),
    })
}

fn see_publish(publish: &server::Publish<'_>) -> Seen {
    Seen::Publish {
        channel: publish.channel,
        exchange: publish.publish.exchange.to_string(),
        key: publish.publish.routing_key.to_string(),
        mandatory: publish.publish.mandatory,
        body: publish.body.to_vec(),
        seq: publish.confirm_seq,
    }
}

/// Runs something of the client's beside the script.
pub fn beside<R: Send + 'static>(
    future: impl Future<Output = R> + Send + 'static,
) -> JoinHandle<R> {
    tokio::spawn(future)
}

/// An open channel on an open connection.
pub async fn channel() -> (Connection, courser_client::Channel, Peer) {
    channel_over(1 << 20).await
}

pub async fn channel_over(pipe_bytes: usize) -> (Connection, courser_client::Channel, Peer) {
    let (connection, mut peer) = Peer::connected_over(pipe_bytes).await;
    let opening = beside({
        let connection = connection.clone();
        async move { connection.open_channel().await }
    });
    assert_eq!(peer.channel_opened().await, 1);
    (connection, opening.await.unwrap().unwrap(), peer)
}

/// The reply code that an error carries.
pub fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<u16> {
    result.unwrap_err().reply_code()
}

//! A client made of a socket and the client's side of a connection.

use super::PATIENCE;
use courser_codec::{Method, RawProperties, ShortStr, basic, connection, queue};
use courser_connection::Credentials;
use courser_connection::client::{Config, Connection, DeliveryMethod, Event};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Something that the broker said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Opened,
    ChannelOpened(u16),
    /// A reply that says no more than its name.
    Reply(&'static str),
    DeclareOk {
        messages: u32,
        consumers: u32,
    },
    Delivery {
        tag: u64,
        body: Vec<u8>,
    },
    Returned(Vec<u8>),
    Confirm {
        first: u64,
        last: u64,
    },
    Blocked(String),
    Unblocked,
    ChannelClosed(u16, String),
    Closed(u16, String),
    /// The end of the stream.
    Gone,
}

pub struct Client<S = TcpStream> {
    pub stream: S,
    machine: Connection,
    input: Vec<u8>,
    heard: VecDeque<Heard>,
}

impl Client {
    /// A client that logs in with a name and a password; channel 1 is open if that is let in.
    pub async fn log_in(address: SocketAddr, user: &str, password: &str) -> Result<Self, Heard> {
        let credentials = Credentials::Plain { user: user.into(), password: password.into() };
        let config = Config { credentials, ..Config::default() };
        let mut client = Self::begin(address, config).await;
        match client.next().await {
            Heard::Opened => {}
            refused => return Err(refused),
        }
        client.machine.open_channel().expect("a channel");
        client.send().await;
        assert_eq!(client.next().await, Heard::ChannelOpened(1));
        Ok(client)
    }

    /// A client with channel 1 open.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, Config::default()).await
    }

    pub async fn connect_with(address: SocketAddr, config: Config) -> Self {
        Self::connect_on(Self::stream_to(address).await, config).await
    }

    /// A client that has sent nothing but the protocol header yet.
    pub async fn begin(address: SocketAddr, config: Config) -> Self {
        Self::begin_on(Self::stream_to(address).await, config).await
    }

    async fn stream_to(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("a connection");
        stream
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// As [`Client::connect_with`], on a stream that is there.
    pub async fn connect_on(stream: S, config: Config) -> Self {
        let mut client = Self::begin_on(stream, config).await;
        assert_eq!(client.next().await, Heard::Opened);
        client.machine.open_channel().expect("a channel");
        client.send().await;
        assert_eq!(client.next().await, Heard::ChannelOpened(1));
        client
    }

    /// Opens one more channel; what comes of it.
    pub async fn open_channel(&mut self) -> Heard {
        self.machine.open_channel().expect("a channel");
        self.send().await;
        self.next().await
    }

    /// As [`Client::begin`], on a stream that is there.
    pub async fn begin_on(stream: S, config: Config) -> Self {
        let machine = Connection::new(Arc::new(config), Instant::now());
        let (input, heard) = (Vec::new(), VecDeque::new());
        let mut client = Client { stream, machine, input, heard };
        client.send().await;
        client
    }

    /// Sends everything that there is to send.
    async fn send(&mut self) {
        let output = std::mem::take(self.machine.output());
        // Who is sent a close may find the socket closed already.
        let _ = self.stream.write_all(&output).await;
        let _ = self.stream.flush().await;
    }

    /// What the broker says next, in good time.
    pub async fn next(&mut self) -> Heard {
        tokio::time::timeout(PATIENCE, self.next_at_any_time()).await.expect("something to hear")
    }

    pub async fn next_at_any_time(&mut self) -> Heard {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            if !self.receive().await {
                return Heard::Gone;
            }
        }
    }

    /// Reads once. Returns whether the stream goes on.
    async fn receive(&mut self) -> bool {
        let count = self.stream.read_buf(&mut self.input).await.unwrap_or(0);
        let mut rest = &self.input[..];
        while let Some(event) = self.machine.next(&mut rest, Instant::now()) {
            self.heard.push_back(heard(event));
        }
        let used = self.input.len() - rest.len();
        self.input.drain(..used);
        self.send().await;
        count > 0
    }

    /// Waits for something, and forgets everything before it.
    pub async fn wait_for(&mut self, wanted: impl Fn(&Heard) -> bool) -> Heard {
        loop {
            let heard = self.next().await;
            if wanted(&heard) {
                return heard;
            }
            assert_ne!(heard, Heard::Gone, "and what was waited for did not come");
        }
    }

    pub async fn tell<'m>(&mut self, method: impl Into<Method<'m>>) {
        self.machine.request(1, &method.into()).expect("an open channel");
        self.send().await;
    }

    /// Sends a method; the answer to it.
    pub async fn call<'m>(&mut self, method: impl Into<Method<'m>>) -> Heard {
        self.tell(method).await;
        self.next().await
    }

    /// Brings a new secret (`connection.update-secret`); the answer to it.
    pub async fn update_secret(&mut self, secret: &str) -> Heard {
        self.bring_secret(secret).await;
        self.next().await
    }

    /// The same, without waiting for the answer.
    pub async fn bring_secret(&mut self, secret: &str) {
        let update = connection::UpdateSecret { new_secret: secret.as_bytes(), reason: short("") };
        self.machine.request(0, &update.into()).expect("an open connection");
        self.send().await;
    }

    pub async fn declare(&mut self, name: &str) {
        let declare = queue::Declare { queue: short(name), ..Default::default() };
        let answer = self.call(declare).await;
        assert!(matches!(answer, Heard::DeclareOk { .. }), "{answer:?}");
    }

    pub async fn declare_durable(&mut self, name: &str) {
        let declare = queue::Declare { queue: short(name), durable: true, ..Default::default() };
        let answer = self.call(declare).await;
        assert!(matches!(answer, Heard::DeclareOk { .. }), "{answer:?}");
    }

    /// Declares a queue and binds it with an empty key.
    pub async fn declare_and_bind(&mut self, name: &str, exchange: &str) {
        self.declare(name).await;
        let (queue, exchange) = (short(name), short(exchange));
        let bind = queue::Bind { queue, exchange, ..Default::default() };
        assert_eq!(self.call(bind).await, Heard::Reply("queue.bind-ok"));
    }

    /// How many messages wait in a queue.
    pub async fn count(&mut self, name: &str) -> u32 {
        self.counts(name).await.0
    }

    /// Messages that wait in a queue, and its consumers.
    pub async fn counts(&mut self, name: &str) -> (u32, u32) {
        let passive = true;
        let declare = queue::Declare { queue: short(name), passive, ..Default::default() };
        match self.call(declare).await {
            Heard::DeclareOk { messages, consumers } => (messages, consumers),
            other => panic!("no counts but {other:?}"),
        }
    }

    pub async fn consume(&mut self, name: &str, no_ack: bool) {
        let consume = basic::Consume { queue: short(name), no_ack, ..Default::default() };
        assert_eq!(self.call(consume).await, Heard::Reply("basic.consume-ok"));
    }

    /// The frames of a publish.
    pub fn encode(&mut self, exchange: &str, routing_key: &str, body: &[u8]) -> Vec<u8> {
        self.encode_with(exchange, routing_key, RawProperties::EMPTY, body)
    }

    fn encode_with(
        &mut self,
        exchange: &str,
        routing_key: &str,
        properties: RawProperties<'_>,
        body: &[u8],
    ) -> Vec<u8> {
        let (exchange, routing_key) = (short(exchange), short(routing_key));
        let publish = basic::Publish { exchange, routing_key, ..Default::default() };
        let mut out = Vec::new();
        let published = self.machine.publish(1, &publish, properties, body, &mut out);
        published.expect("an open channel");
        out
    }

    /// Publishes a persistent message.
    pub async fn publish_persistent(&mut self, queue: &str, body: &[u8]) {
        let mode_2 = RawProperties::from_encoded(&[0x10, 0, 2]).expect("delivery-mode alone");
        let bytes = self.encode_with("", queue, mode_2, body);
        self.stream.write_all(&bytes).await.expect("an open connection");
    }

    pub async fn publish(&mut self, queue: &str, body: &[u8]) {
        self.publish_to("", queue, body).await;
    }

    pub async fn publish_to(&mut self, exchange: &str, routing_key: &str, body: &[u8]) {
        let bytes = self.encode(exchange, routing_key, body);
        self.stream.write_all(&bytes).await.expect("an open connection");
    }

    /// Bodies of the next deliveries.
    pub async fn bodies(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut bodies = Vec::with_capacity(count);
        while bodies.len() < count {
            match self.next().await {
                Heard::Delivery { body, .. } => bodies.push(body),
                other => panic!("no delivery but {other:?}"),
            }
        }
        bodies
    }

    /// Opens channel 1 again after the broker has closed it.
    pub async fn reopen(&mut self) {
        self.machine.open_channel().expect("a channel");
        self.send().await;
        assert_eq!(self.next().await, Heard::ChannelOpened(1));
    }

    /// Closes the connection, and waits for the broker to agree.
    pub async fn close(&mut self) {
        self.machine.close(200, "done", Instant::now());
        self.send().await;
        while !self.machine.is_closed() {
            assert!(tokio::time::timeout(PATIENCE, self.receive()).await.expect("close-ok"));
        }
    }

    /// Whether nothing is said for a while.
    pub async fn is_silent(&mut self, milliseconds: u64) -> bool {
        let while_waiting = std::time::Duration::from_millis(milliseconds);
        tokio::time::timeout(while_waiting, self.next_at_any_time()).await.is_err()
    }
}

pub fn short(text: &str) -> ShortStr<'_> {
    text.try_into().expect("at most 255 bytes")
}

fn heard(event: Event<'_>) -> Heard {
    match event {
        Event::Opened => Heard::Opened,
        Event::ChannelOpened { channel } => Heard::ChannelOpened(channel),
        Event::ChannelClosed { channel, reason } => Heard::ChannelClosed(channel, reason.text),
        Event::Reply { method: Method::QueueDeclareOk(ok), .. } => {
            Heard::DeclareOk { messages: ok.message_count, consumers: ok.consumer_count }
        }
        Event::Reply { method, .. } => Heard::Reply(method.name()),
        Event::Confirm { first, last, is_ack, .. } => {
            assert!(is_ack, "a nack");
            Heard::Confirm { first, last }
        }
        Event::Delivery(delivery) => delivered(delivery.method, delivery.body),
        Event::LargeDelivery(delivery) => delivered(delivery.method(), &delivery.body),
        Event::Blocked { reason } => Heard::Blocked(reason.to_string()),
        Event::Unblocked => Heard::Unblocked,
        Event::Closed(reason) => Heard::Closed(reason.code, reason.text),
        Event::Flow { .. } => panic!("no broker asks for this"),
    }
}

fn delivered(method: DeliveryMethod<'_>, body: &[u8]) -> Heard {
    let body = body.to_vec();
    match method {
        DeliveryMethod::Deliver(deliver) => Heard::Delivery { tag: deliver.delivery_tag, body },
        DeliveryMethod::GetOk(ok) => Heard::Delivery { tag: ok.delivery_tag, body },
        DeliveryMethod::Return(_) => Heard::Returned(body),
    }
}

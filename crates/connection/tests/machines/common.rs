//! What the tests of this crate share: a server machine behind a script of frames.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_codec::*;
use courser_connection::server::{Config, Connection, Event};

/// What a machine said with an event or its output, owned and comparable.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Login {
        user: String,
        properties: FieldTable,
    },
    Open(String),
    ChannelOpened(u16),
    ChannelClosed {
        channel: u16,
        code: u16,
        text: String,
        ids: (u16, u16),
    },
    Request {
        channel: u16,
        payload: Vec<u8>,
    },
    Publish {
        channel: u16,
        exchange: String,
        key: String,
        mandatory: bool,
        header: Vec<u8>,
        body: Vec<u8>,
        seq: u64,
    },
    Closed {
        code: u16,
        text: String,
        ids: (u16, u16),
    },
}

impl Seen {
    /// `None` for what depends on how the input is cut.
    pub fn of(event: Event<'_>) -> Option<Self> {
        Some(match event {
            Event::PublishBegun { .. } => return None,
            Event::Login { credentials, client_properties } => {
                let properties = client_properties.to_owned().expect("well-formed");
                Self::Login { user: format!("{credentials:?}"), properties }
            }
            Event::Open { virtual_host } => Self::Open(virtual_host.to_string()),
            Event::ChannelOpened { channel } => Self::ChannelOpened(channel),
            Event::ChannelClosed { channel, reason } => Self::ChannelClosed {
                channel,
                code: reason.code,
                text: reason.text.clone(),
                ids: (reason.class_id, reason.method_id),
            },
            Event::Request { channel, method } => {
                let mut payload = Vec::new();
                method.write_frame(channel, &mut payload);
                Self::Request { channel, payload }
            }
            Event::Publish(publish) => Self::publish(publish),
            Event::LargePublish(publish) => Self::publish(publish.as_publish()),
            Event::Closed(reason) => Self::Closed {
                code: reason.code,
                text: reason.text.clone(),
                ids: (reason.class_id, reason.method_id),
            },
        })
    }

    fn publish(publish: courser_connection::server::Publish<'_>) -> Self {
        let (exchange, key) =
            courser_connection::server::split_exchange_and_key(publish.exchange_and_key);
        assert_eq!((exchange, key), (publish.publish.exchange, publish.publish.routing_key));
        Self::Publish {
            channel: publish.channel,
            exchange: exchange.to_string(),
            key: key.to_string(),
            mandatory: publish.publish.mandatory,
            header: publish.header.to_vec(),
            body: publish.body.to_vec(),
            seq: publish.confirm_seq,
        }
    }
}

/// A server machine, a clock, and what it was given and said.
pub struct Server {
    pub machine: Connection,
    pub now: Instant,
    /// Input that the machine has left.
    pub left: Vec<u8>,
    pub sent: Vec<u8>,
    pub accept: bool,
}

impl Server {
    pub fn new(config: Config) -> Self {
        let now = Instant::now();
        Self {
            machine: Connection::new(Arc::new(config), now),
            now,
            left: Vec::new(),
            sent: Vec::new(),
            accept: true,
        }
    }

    /// A connection in use.
    pub fn running() -> Self {
        Self::running_with(Config::default())
    }

    pub fn running_with(config: Config) -> Self {
        let tune_ok = connection::TuneOk {
            channel_max: config.channel_max,
            frame_max: config.frame_max,
            heartbeat: config.heartbeat_s,
        };
        Self::running_tuned(config, tune_ok)
    }

    pub fn running_tuned(config: Config, tune_ok: connection::TuneOk) -> Self {
        let mut server = Self::new(config);
        server.feed(&handshake(client_capabilities(), tune_ok));
        assert!(!server.machine.is_closing(), "{:?}", server.machine.close_reason());
        server.sent.clear();
        server
    }

    pub fn advance(&mut self, by: Duration) {
        self.now += by;
        self.machine.handle_timeout(self.now);
        self.sent.append(self.machine.output());
    }

    /// Presents bytes, answers logins and opens, and gives what was seen.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Seen> {
        let mut seen = Vec::new();
        self.left.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut self.left);
        let mut input = &buffer[..];
        while let Some(event) = self.machine.next(&mut input, self.now) {
            self.sent.append(self.machine.output());
            let event = Seen::of(event);
            match &event {
                Some(Seen::Login { .. }) if self.accept => self.machine.login_accepted(self.now),
                Some(Seen::Open(_)) if self.accept => self.machine.open_accepted(self.now),
                _ => {}
            }
            self.sent.append(self.machine.output());
            seen.extend(event);
        }
        self.sent.append(self.machine.output());
        self.left = input.to_vec();
        seen
    }

    /// The only method that was sent, which is a `connection.close` or `channel.close`.
    pub fn sent_close(&mut self) -> (u16, u16, String, (u16, u16)) {
        let sent = std::mem::take(&mut self.sent);
        let methods = methods(&sent);
        assert_eq!(methods.len(), 1, "{methods:?}");
        match methods[0] {
            (channel, Method::ConnectionClose(close)) => (
                channel,
                close.reply_code,
                close.reply_text.to_string(),
                (close.class_id, close.method_id),
            ),
            (channel, Method::ChannelClose(close)) => (
                channel,
                close.reply_code,
                close.reply_text.to_string(),
                (close.class_id, close.method_id),
            ),
            other => panic!("no close: {other:?}"),
        }
    }
}

/// All methods in a stream of frames that has nothing else.
pub fn methods(mut bytes: &[u8]) -> Vec<(u16, Method<'_>)> {
    let mut methods = Vec::new();
    while !bytes.is_empty() {
        let (frame, len) = Frame::parse(bytes, 0).expect("a frame").expect("a whole frame");
        assert_eq!(frame.kind, FrameKind::Method);
        methods.push((frame.channel, Method::decode(frame.payload).expect("a method")));
        bytes = &bytes[len..];
    }
    methods
}

pub fn frame(channel: u16, method: Method<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    method.write_frame(channel, &mut out);
    out
}

pub fn client_capabilities() -> FieldTable {
    let all = FieldTable::new()
        .with("authentication_failure_close", true)
        .with("connection.blocked", true);
    FieldTable::new().with("product", "test").with("capabilities", all)
}

pub fn start_ok(properties: &FieldTable, mechanism: &str, response: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    frame(
        0,
        Method::ConnectionStartOk(connection::StartOk {
            client_properties: Table::from_entries(&encoded[4..]),
            mechanism: mechanism.try_into().unwrap(),
            response,
            locale: "en_US".try_into().unwrap(),
        }),
    )
}

pub fn default_tune_ok() -> connection::TuneOk {
    connection::TuneOk { channel_max: 2047, frame_max: 131_072, heartbeat: 60 }
}

/// All that a client sends until its connection is open.
pub fn handshake(properties: FieldTable, tune_ok: connection::TuneOk) -> Vec<u8> {
    let mut bytes = PROTOCOL_HEADER.to_vec();
    bytes.extend(start_ok(&properties, "PLAIN", b"\0guest\0secret"));
    bytes.extend(frame(0, Method::ConnectionTuneOk(tune_ok)));
    bytes.extend(frame(
        0,
        Method::ConnectionOpen(connection::Open { virtual_host: "/".try_into().unwrap() }),
    ));
    bytes
}

pub fn open_channel(channel: u16) -> Vec<u8> {
    frame(channel, Method::ChannelOpen(channel::Open {}))
}

pub fn content_header(channel: u16, class_id: u16, body_size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let properties = Properties { delivery_mode: Some(2), ..Default::default() };
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    write_content_header_frame(
        channel,
        class_id,
        body_size,
        RawProperties::from_encoded(&encoded).unwrap(),
        &mut out,
    );
    out
}

pub fn body_frame(channel: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_body_frame(channel, body, &mut out);
    out
}

pub fn publish_method(channel: u16, key: &str) -> Vec<u8> {
    let publish = basic::Publish { routing_key: key.try_into().unwrap(), ..Default::default() };
    frame(channel, Method::BasicPublish(publish))
}

/// A publish whose body is cut into frames of at most `piece` bytes.
pub fn publish_cut(channel: u16, key: &str, body: &[u8], piece: usize) -> Vec<u8> {
    let mut bytes = publish_method(channel, key);
    bytes.extend(content_header(channel, basic::CLASS_ID, body.len() as u64));
    for part in body.chunks(piece) {
        bytes.extend(body_frame(channel, part));
    }
    bytes
}

pub fn publish(channel: u16, key: &str, body: &[u8]) -> Vec<u8> {
    publish_cut(channel, key, body, 131_064)
}

//! The client's machine: its requests, and what it makes of a server's answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_codec::*;
use courser_connection::ClosedBy;
use courser_connection::client::{
    Config, Connection, Event, OpenChannelError, PublishError, RequestError,
};

use crate::common::{body_frame, content_header, frame, methods};

/// A client machine and what it has written.
pub struct Client {
    pub machine: Connection,
    pub now: Instant,
    pub sent: Vec<u8>,
}

impl Client {
    pub fn new(config: Config) -> Self {
        let now = Instant::now();
        let mut client =
            Self { machine: Connection::new(Arc::new(config), now), now, sent: Vec::new() };
        assert_eq!(std::mem::take(client.machine.output()), PROTOCOL_HEADER);
        client
    }

    pub fn running() -> Self {
        let mut client = Self::new(Config::default());
        assert_eq!(
            client.feed(&[start("PLAIN AMQPLAIN"), tune(2047, 131_072, 60), open_ok()].concat()),
            ["Opened"]
        );
        client.sent.clear();
        client
    }

    /// A connection in use with channel 1 open.
    pub fn with_channel() -> Self {
        let mut client = Self::running();
        assert_eq!(client.machine.open_channel(), Ok(1));
        assert_eq!(client.feed(&channel_open_ok(1)), ["ChannelOpened { channel: 1 }"]);
        client.sent.clear();
        client
    }

    /// Presents bytes and gives the events as text.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut input = bytes;
        let mut seen = Vec::new();
        while let Some(event) = self.machine.next(&mut input, self.now) {
            seen.push(format!("{event:?}"));
        }
        assert!(input.is_empty(), "{input:?}");
        self.sent.append(self.machine.output());
        seen
    }

    pub fn sent_methods(&mut self) -> Vec<String> {
        self.sent.append(self.machine.output());
        let sent = std::mem::take(&mut self.sent);
        methods(&sent).iter().map(|(channel, method)| format!("{channel} {method:?}")).collect()
    }

    pub fn close_text(&self) -> &str {
        self.machine.close_reason().map_or("", |reason| &reason.text)
    }
}

pub fn start(mechanisms: &str) -> Vec<u8> {
    let mut properties = Vec::new();
    let capabilities = FieldTable::new().with("basic.nack", true);
    FieldTable::new()
        .with("product", "x")
        .with("capabilities", capabilities)
        .encode(&mut properties);
    let start = connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties: Table::from_entries(&properties[4..]),
        mechanisms: mechanisms.as_bytes(),
        locales: b"en_US",
    };
    frame(0, Method::ConnectionStart(start))
}

pub fn tune(channel_max: u16, frame_max: u32, heartbeat: u16) -> Vec<u8> {
    frame(0, Method::ConnectionTune(connection::Tune { channel_max, frame_max, heartbeat }))
}

pub fn open_ok() -> Vec<u8> {
    frame(0, Method::ConnectionOpenOk(connection::OpenOk {}))
}

fn channel_open_ok(channel: u16) -> Vec<u8> {
    frame(channel, Method::ChannelOpenOk(channel::OpenOk {}))
}

pub fn close(code: u16, text: &str) -> Vec<u8> {
    let text = text.try_into().unwrap();
    frame(
        0,
        Method::ConnectionClose(connection::Close {
            reply_code: code,
            reply_text: text,
            class_id: 0,
            method_id: 0,
        }),
    )
}

fn channel_close(channel: u16) -> Vec<u8> {
    let text = "NOT_FOUND - no queue 'q' in vhost '/'".try_into().unwrap();
    let close = channel::Close { reply_code: 404, reply_text: text, class_id: 50, method_id: 10 };
    frame(channel, Method::ChannelClose(close))
}

pub fn ack(delivery_tag: u64, multiple: bool) -> Vec<u8> {
    frame(1, Method::BasicAck(basic::Ack { delivery_tag, multiple }))
}

#[test]
fn a_silent_server_is_given_up() {
    let timeout = Config::default().handshake_timeout;
    let mut client = Client::new(Config::default());
    assert_eq!(client.machine.poll_timeout(), Some(client.now + timeout));
    client.machine.handle_timeout(client.now + timeout);
    assert!(client.machine.is_closed());
    assert_eq!(client.close_text(), "no handshake in time (in state starting)");

    let mut client = Client::running();
    let at = client.now + Duration::from_secs(120);
    client.machine.handle_timeout(at);
    assert!(client.machine.is_closed());
    assert_eq!(client.close_text(), "missed heartbeats from server, timeout: 60s");
}

#[test]
fn heartbeats_are_sent() {
    let mut client = Client::running();
    let at = client.now + Duration::from_secs(30);
    assert_eq!(client.machine.poll_timeout(), Some(at));
    client.machine.handle_timeout(at);
    assert_eq!(*client.machine.output(), HEARTBEAT_FRAME);
    assert!(!client.machine.is_closed());
}

#[test]
fn channel_numbers_run_out_and_are_used_again() {
    let mut client = Client::new(Config { channel_max: 2, ..Config::default() });
    assert_eq!(client.machine.open_channel(), Err(OpenChannelError::NotConnected));
    client.feed(&[start("PLAIN"), tune(2047, 131_072, 60), open_ok()].concat());
    assert_eq!((client.machine.open_channel(), client.machine.open_channel()), (Ok(1), Ok(2)));
    assert_eq!(client.machine.open_channel(), Err(OpenChannelError::NoneFree { channel_max: 2 }));
    client.feed(&[channel_open_ok(1), channel_open_ok(2)].concat());
    client.machine.close_channel(1, 200, "");
    assert_eq!(client.machine.open_channel(), Err(OpenChannelError::NoneFree { channel_max: 2 }));
    let seen = client.feed(&frame(1, Method::ChannelCloseOk(channel::CloseOk {})));
    assert!(
        seen[0].contains("ChannelClosed { channel: 1") && seen[0].contains("Local"),
        "{seen:?}"
    );
    assert_eq!(client.machine.open_channel(), Ok(1));
}

#[test]
fn a_channel_that_the_server_closes_is_told_with_its_reason() {
    let mut client = Client::with_channel();
    let seen = client.feed(&channel_close(1));
    assert!(seen[0].contains("code: 404") && seen[0].contains("class_id: 50"), "{seen:?}");
    assert_eq!(client.sent_methods(), ["1 ChannelCloseOk(CloseOk)"]);
    assert!(!client.machine.is_channel_open(1));
    assert_eq!(client.machine.open_channel(), Ok(1));
}

#[test]
fn a_channel_that_is_closing_is_silent() {
    let mut client = Client::with_channel();
    client.machine.close_channel(1, 200, "done");
    let deliver = frame(1, Method::BasicDeliver(basic::Deliver::default()));
    let late = [
        &deliver[..],
        &content_header(1, 60, 30_000),
        &body_frame(1, &[0; 30_000]),
        &ack(1, false),
    ]
    .concat();
    assert!(client.feed(&late).is_empty());
    // Both sides close at once: one event, and a late answer does no harm to the next channel.
    assert_eq!(client.feed(&channel_close(1)).len(), 1);
    assert_eq!(client.machine.open_channel(), Ok(1));
    let bytes =
        [frame(1, Method::ChannelCloseOk(channel::CloseOk {})), channel_open_ok(1)].concat();
    assert_eq!(client.feed(&bytes), ["ChannelOpened { channel: 1 }"]);
}

#[test]
fn requests_and_publishes_need_an_open_channel() {
    let mut client = Client::running();
    let declare = Method::QueueDeclare(queue::Declare::default());
    assert_eq!(client.machine.request(1, &declare), Err(RequestError::NotOpen { channel: 1 }));
    let channel = client.machine.open_channel().unwrap();
    assert_eq!(client.machine.request(channel, &declare), Err(RequestError::NotOpen { channel }));
    let publish = basic::Publish::default();
    let mut out = Vec::new();
    let result = client.machine.publish(channel, &publish, RawProperties::EMPTY, b"x", &mut out);
    assert_eq!(result, Err(PublishError::NotOpen { channel }));
    assert!(out.is_empty());
    client.feed(&channel_open_ok(1));
    assert_eq!(client.machine.request(channel, &declare), Ok(()));
    for (channel, method) in [
        (1, Method::ChannelOpen(channel::Open {})),
        (1, Method::BasicPublish(publish)),
        (1, Method::ConnectionOpenOk(connection::OpenOk {})),
        (0, declare),
    ] {
        let expected = Err(RequestError::NotARequest { name: method.name() });
        assert_eq!(client.machine.request(channel, &method), expected);
    }
}

#[test]
fn bodies_are_cut_at_frame_max() {
    let mut client = Client::new(Config { frame_max: 4096, ..Config::default() });
    client.feed(&[start("PLAIN"), tune(2047, 131_072, 60), open_ok()].concat());
    client.machine.open_channel().unwrap();
    client.feed(&channel_open_ok(1));
    for (len, frames) in [(0, 0), (1, 1), (4088, 1), (4089, 2), (8177, 3)] {
        let mut out = Vec::new();
        let publish = basic::Publish::default();
        client.machine.publish(1, &publish, RawProperties::EMPTY, &vec![0; len], &mut out).unwrap();
        let mut rest = &out[..];
        let mut kinds = Vec::new();
        while let Some((frame, len)) = Frame::parse(rest, 4096).unwrap() {
            kinds.push(frame.kind);
            rest = &rest[len..];
        }
        assert_eq!(kinds.iter().filter(|kind| **kind == FrameKind::Body).count(), frames);
        assert_eq!(kinds.len(), frames + 2);
    }
    let headers = FieldTable::new().with("x", "y".repeat(5000).as_str());
    let mut table = Vec::new();
    headers.encode(&mut table);
    let mut encoded = Vec::new();
    Properties { headers: Some(Table::from_entries(&table[4..])), ..Default::default() }
        .encode(&mut encoded);
    let properties = RawProperties::from_encoded(&encoded).unwrap();
    let mut out = Vec::new();
    let result = client.machine.publish(1, &basic::Publish::default(), properties, b"", &mut out);
    assert!(
        matches!(result, Err(PublishError::PropertiesTooLarge { frame_max: 4096, .. })),
        "{result:?}"
    );
    assert!(out.is_empty());
}

#[test]
fn messages_come_with_their_method_borrowed_or_put_together() {
    let methods = [
        Method::BasicDeliver(basic::Deliver {
            delivery_tag: 7,
            redelivered: true,
            ..Default::default()
        }),
        Method::BasicGetOk(basic::GetOk {
            delivery_tag: 8,
            message_count: 3,
            ..Default::default()
        }),
        Method::BasicReturn(basic::Return { reply_code: 312, ..Default::default() }),
    ];
    for method in methods {
        for body in [&b""[..], b"hello", &[5; 40_000]] {
            let mut bytes = frame(1, method);
            bytes.extend(content_header(1, 60, body.len() as u64));
            let (first, second) = body.split_at(body.len() / 2);
            let mut cut = bytes.clone();
            bytes.extend(if body.is_empty() { Vec::new() } else { body_frame(1, body) });
            cut.extend([body_frame(1, first), body_frame(1, second)].concat());
            let mut client = Client::with_channel();
            let now = client.now;
            let mut input = &bytes[..];
            let Some(Event::Delivery(whole)) = client.machine.next(&mut input, now) else {
                panic!()
            };
            assert_eq!((whole.body, whole.channel), (body, 1));
            if !body.is_empty() {
                let mut input = &cut[..];
                let Some(Event::LargeDelivery(large)) = client.machine.next(&mut input, now) else {
                    panic!()
                };
                assert_eq!(large.as_delivery(), whole);
            }
        }
    }
}

#[test]
fn blocks_flow_and_cancels_are_told() {
    let mut client = Client::with_channel();
    let reason = "low on memory".try_into().unwrap();
    let tag = "t".try_into().unwrap();
    let bytes = [
        frame(0, Method::ConnectionBlocked(connection::Blocked { reason })),
        frame(0, Method::ConnectionUnblocked(connection::Unblocked {})),
        frame(1, Method::ChannelFlow(channel::Flow { active: false })),
        frame(1, Method::BasicCancel(basic::Cancel { consumer_tag: tag, nowait: true })),
    ];
    let seen = client.feed(&bytes.concat());
    assert_eq!(
        seen[..3],
        [
            "Blocked { reason: \"low on memory\" }",
            "Unblocked",
            "Flow { channel: 1, is_active: false }"
        ]
    );
    assert!(seen[3].starts_with("Reply { channel: 1, method: BasicCancel("), "{seen:?}");
    assert_eq!(client.sent_methods(), ["1 ChannelFlowOk(FlowOk { active: false })"]);
}

#[test]
fn a_close_waits_for_its_answer_a_bounded_time() {
    for answers in [true, false] {
        let mut client = Client::with_channel();
        client.machine.close(200, "bye", client.now);
        assert!(client.feed(&[ack(1, false), channel_close(1)].concat()).is_empty());
        assert!(client.machine.is_closing() && !client.machine.is_closed());
        if answers {
            client.feed(&frame(0, Method::ConnectionCloseOk(connection::CloseOk {})));
        } else {
            client.machine.handle_timeout(client.now + Config::default().close_timeout);
        }
        assert!(client.machine.is_closed());
        let reason = client.machine.close_reason().map(|reason| (reason.by, reason.code));
        assert_eq!(reason, Some((ClosedBy::Local, 200)));
    }
}

#[test]
fn a_server_that_breaks_the_protocol_is_told_so() {
    for (bytes, code) in [
        (frame(1, Method::QueueDeclare(queue::Declare::default())), 503),
        (frame(2, Method::BasicGetEmpty(basic::GetEmpty {})), 504),
        (frame(0, Method::BasicGetEmpty(basic::GetEmpty {})), 504),
        (content_header(1, 60, 1), 505),
        (body_frame(1, b"x"), 505),
        (b"x\0\x01\0\0\0\0\xce".to_vec(), 501),
    ] {
        let mut client = Client::with_channel();
        let seen = client.feed(&bytes);
        assert!(seen[0].contains(&format!("code: {code}")), "{seen:?}");
        assert!(client.sent_methods()[0].contains(&format!("reply_code: {code}")));
        assert!(client.machine.is_closing());
    }
}

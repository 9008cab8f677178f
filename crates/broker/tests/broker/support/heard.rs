//! What clients are sent, decoded.

use courser_codec::{ContentHeader, Frame, FrameKind, Method, OwnedProperties, basic};

/// Something that a client was sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A reply that says nothing but that it is done: its name.
    Done(&'static str),
    DeclareOk {
        queue: String,
        messages: u32,
        consumers: u32,
    },
    /// `queue.purge-ok` or `queue.delete-ok`.
    Count(u32),
    ConsumeOk(String),
    CancelOk(String),
    /// `basic.cancel`: the broker has ended this consumer.
    Cancelled(String),
    Delivery(Delivery),
    GetOk {
        delivery: Delivery,
        left: u32,
    },
    GetEmpty,
    Return {
        reply: (u16, String),
        exchange: String,
        routing_key: String,
        body: Vec<u8>,
    },
    Confirm {
        channel: u16,
        through: u64,
        multiple: bool,
    },
    /// `basic.nack`: the broker refuses a publish.
    Refused {
        channel: u16,
        tag: u64,
    },
    FlowOk(bool),
    /// The channel was closed for a fault: what its text would be.
    ChannelClosed(String),
    /// The connection was closed for a fault.
    ConnectionClosed(String),
}

/// A message from a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivery {
    pub channel: u16,
    /// Empty for `basic.get`.
    pub consumer: String,
    pub tag: u64,
    pub redelivered: bool,
    pub exchange: String,
    pub routing_key: String,
    pub properties: OwnedProperties,
    pub body: Vec<u8>,
}

impl Delivery {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a text")
    }
}

/// A content whose frames are still coming.
struct Content<'a> {
    method: Method<'a>,
    header: Option<ContentHeader<'a>>,
    body: Vec<u8>,
}

/// Decodes everything, and checks that contents are complete and frames no larger than agreed.
pub fn decode(mut bytes: &[u8], frame_max: usize) -> Vec<Heard> {
    let mut heard = Vec::new();
    let mut content: Option<(u16, Content<'_>)> = None;
    while !bytes.is_empty() {
        let (frame, len) = Frame::parse(bytes, frame_max as u32)
            .expect("a frame within frame_max")
            .expect("no half frames in an outbox");
        bytes = &bytes[len..];
        let channel = frame.channel;
        match (frame.kind, &mut content) {
            (FrameKind::Method, None) => {
                let method = Method::decode(frame.payload).expect("a method");
                match reply(channel, &method) {
                    Some(reply) => heard.push(reply),
                    None => {
                        content = Some((channel, Content { method, header: None, body: vec![] }));
                    }
                }
            }
            (FrameKind::Header, Some((expected, content))) => {
                assert_eq!(channel, *expected);
                content.header = Some(ContentHeader::parse(frame.payload).expect("a header"));
            }
            (FrameKind::Body, Some((expected, content))) => {
                assert_eq!(channel, *expected);
                assert!(!frame.payload.is_empty(), "an empty body frame");
                content.body.extend_from_slice(frame.payload);
            }
            (kind, _) => panic!("a {kind:?} frame that is not expected"),
        }
        let complete = content.as_ref().is_some_and(|(_, content)| content.is_complete());
        if let Some((channel, content)) = content.take_if(|_| complete) {
            heard.push(content.into_heard(channel));
        }
    }
    assert!(content.is_none(), "a content that is not complete");
    heard
}

fn reply(channel: u16, method: &Method<'_>) -> Option<Heard> {
    Some(match method {
        Method::BasicDeliver(_) | Method::BasicGetOk(_) | Method::BasicReturn(_) => return None,
        Method::QueueDeclareOk(ok) => Heard::DeclareOk {
            queue: ok.queue.to_string(),
            messages: ok.message_count,
            consumers: ok.consumer_count,
        },
        Method::QueuePurgeOk(ok) => Heard::Count(ok.message_count),
        Method::QueueDeleteOk(ok) => Heard::Count(ok.message_count),
        Method::BasicConsumeOk(ok) => Heard::ConsumeOk(ok.consumer_tag.to_string()),
        Method::BasicCancelOk(ok) => Heard::CancelOk(ok.consumer_tag.to_string()),
        Method::BasicCancel(cancel) => Heard::Cancelled(cancel.consumer_tag.to_string()),
        Method::BasicGetEmpty(_) => Heard::GetEmpty,
        Method::BasicAck(basic::Ack { delivery_tag: through, multiple }) => {
            Heard::Confirm { channel, through: *through, multiple: *multiple }
        }
        Method::BasicNack(nack) => Heard::Refused { channel, tag: nack.delivery_tag },
        Method::ChannelFlowOk(ok) => Heard::FlowOk(ok.active),
        other => Heard::Done(other.name()),
    })
}

impl Content<'_> {
    fn is_complete(&self) -> bool {
        self.header.is_some_and(|header| {
            assert!(self.body.len() as u64 <= header.body_size, "more body than announced");
            header.body_size == self.body.len() as u64
        })
    }

    fn into_heard(self, channel: u16) -> Heard {
        let properties = self.header.map(|header| header.properties).unwrap_or_default();
        let properties =
            properties.decode().and_then(|known| known.to_owned()).expect("good properties");
        let body = self.body;
        match self.method {
            Method::BasicDeliver(deliver) => Heard::Delivery(Delivery {
                channel,
                consumer: deliver.consumer_tag.to_string(),
                tag: deliver.delivery_tag,
                redelivered: deliver.redelivered,
                exchange: deliver.exchange.to_string(),
                routing_key: deliver.routing_key.to_string(),
                properties,
                body,
            }),
            Method::BasicGetOk(ok) => Heard::GetOk {
                delivery: Delivery {
                    channel,
                    consumer: String::new(),
                    tag: ok.delivery_tag,
                    redelivered: ok.redelivered,
                    exchange: ok.exchange.to_string(),
                    routing_key: ok.routing_key.to_string(),
                    properties,
                    body,
                },
                left: ok.message_count,
            },
            Method::BasicReturn(back) => Heard::Return {
                reply: (back.reply_code, back.reply_text.to_string()),
                exchange: back.exchange.to_string(),
                routing_key: back.routing_key.to_string(),
                body,
            },
            other => panic!("{} has no content", other.name()),
        }
    }
}

//! A client's connection without a socket: methods go straight into a session, and what it is sent is
//! decoded with everything that the model has an opinion of.

use courser_broker::wire::WireBuffer;
use courser_broker::{Batch, Broker, Fault, Identity, Inbound, Session};
use courser_codec::{
    ContentHeader, FieldTable, FieldValue, Frame, FrameKind, Method, ShortString, basic,
};
use std::sync::Arc;

/// The largest frame that the connections take.
pub const FRAME_MAX: usize = 131_072;

/// As whom all clients connect.
pub const USER: &str = "client";

/// Something that a client was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A delivery to a consumer, or the answer to `basic.get`.
    Delivery(Delivery),
    /// There was nothing to get.
    Empty,
    /// A mandatory message comes back, by its number.
    Returned(u64),
    /// Publishes up to this number are confirmed.
    Confirmed(u64),
    /// The publish with this number is refused.
    Refused(u64),
    /// The broker has ended the consumer of this channel.
    Cancelled(u16),
    /// A commit is done.
    Committed,
    /// The channel was closed for a fault.
    Closed(u16, String),
}

/// A message as a client gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    pub channel: u16,
    pub tag: u64,
    pub redelivered: bool,
    /// How many messages wait behind it, if it was asked for.
    pub left: Option<u32>,
    /// The number in its body.
    pub id: u64,
    /// The size of the body.
    pub bytes: usize,
    /// `x-death`: queue, reason, count.
    pub deaths: Vec<(String, String, u64)>,
    /// `x-delivery-count`.
    pub returns: Option<u64>,
    /// `x-stream-offset`.
    pub offset: Option<u64>,
    pub has_cc: bool,
    pub has_bcc: bool,
}

/// A client's connection.
pub struct Connection {
    session: Session,
    confirm_next: u64,
}

impl Connection {
    /// Connects to the vhost `/`, if the user may.
    pub fn open(broker: &Arc<Broker>) -> Result<Self, Fault> {
        let admission = broker.admit(USER, "/")?;
        let identity = Identity {
            user: ShortString::try_from(USER).unwrap_or_default(),
            cancel_notify: true,
            impersonator: false,
        };
        let session = broker.open_session(admission, identity, FRAME_MAX);
        Ok(Connection { session, confirm_next: 1 })
    }

    /// Opens a channel, if the user may.
    pub fn open_channel(&mut self, number: u16) -> Result<(), Fault> {
        self.session.admit_channel()?;
        self.session.open_channel(number);
        Ok(())
    }

    pub fn close_channel(&mut self, number: u16) {
        self.session.close_channel(number);
    }

    /// The next publish on the confirming channel gets the number 1.
    pub fn restart_confirms(&mut self) {
        self.confirm_next = 1;
    }

    /// Sends a method, and ends the batch.
    pub fn send(&mut self, channel: u16, method: &Method<'_>) -> Result<(), Fault> {
        let mut batch = Batch::default();
        self.session.request(&mut batch, channel, method)?;
        self.session.flush(&mut batch).map(drop)
    }

    /// Publishes messages, header and body of each, as one batch. Returns the confirm number of the
    /// first, if they are to be confirmed.
    pub fn publish(
        &mut self,
        channel: u16,
        publish: basic::Publish<'_>,
        contents: &[(Vec<u8>, Vec<u8>)],
        confirms: bool,
    ) -> Result<u64, Fault> {
        let mut address = Vec::new();
        for part in [publish.exchange, publish.routing_key] {
            address.push(part.len() as u8);
            address.extend_from_slice(part.as_bytes());
        }
        let first = if confirms { self.confirm_next } else { 0 };
        let mut batch = Batch::default();
        for (header, body) in contents {
            let confirm_seq = if confirms { self.confirm_next } else { 0 };
            self.confirm_next += u64::from(confirms);
            let (address, shared_body) = (&address[..], None);
            let inbound =
                Inbound { channel, publish, address, header, body, shared_body, confirm_seq };
            self.session.publish(&mut batch, inbound)?;
        }
        self.session.flush(&mut batch)?;
        Ok(first)
    }

    /// Everything that the broker has sent since the last time, until it has nothing more to say.
    pub fn hear(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        let mut silences = 0;
        // Once may be before what waited for its turn has had it.
        while silences < 2 {
            self.session.confirm_durable();
            let mut wire = WireBuffer::default();
            let taken = self.session.outbox().take(&mut wire);
            let faults = self.session.outbox().take_faults();
            let closed = faults.iter().map(|(number, why)| Heard::Closed(*number, why.to_string()));
            heard.extend(closed);
            let is_silent = wire.is_empty() && taken.stalled.is_empty();
            silences = if is_silent { silences + 1 } else { 0 };
            let mut bytes = Vec::new();
            wire.append_to(&mut bytes);
            decode(&bytes, &mut heard);
            self.session.resume(taken.stalled);
        }
        heard
    }
}

/// A content whose frames are still coming.
#[derive(Default)]
struct Content {
    delivery: Delivery,
    is_return: bool,
    size: usize,
    body: Vec<u8>,
}

fn decode(mut bytes: &[u8], heard: &mut Vec<Heard>) {
    let mut content = None;
    while let Some((frame, len)) =
        Frame::parse(bytes, FRAME_MAX as u32).expect("frames within frame_max")
    {
        bytes = &bytes[len..];
        match frame.kind {
            FrameKind::Method => content = begin(&frame, heard),
            FrameKind::Header => {
                let header = ContentHeader::parse(frame.payload).expect("a header");
                let content = content.as_mut().expect("a header belongs to something");
                read_header(header, content);
            }
            FrameKind::Body => {
                let content = content.as_mut().expect("a body belongs to something");
                content.body.extend_from_slice(frame.payload);
            }
            FrameKind::Heartbeat => {}
        }
        if frame.kind != FrameKind::Method
            && let Some(whole) = content.take_if(|content| content.body.len() == content.size)
        {
            heard.push(whole.finish());
        }
    }
    assert!(bytes.is_empty() && content.is_none(), "a frame or a content is not whole");
}

/// Takes in a method. Returns what it begins, if contents follow.
fn begin(frame: &Frame<'_>, heard: &mut Vec<Heard>) -> Option<Content> {
    let channel = frame.channel;
    let delivery = Delivery { channel, ..Delivery::default() };
    match Method::decode(frame.payload).expect("a method") {
        Method::BasicDeliver(deliver) => {
            let (tag, redelivered) = (deliver.delivery_tag, deliver.redelivered);
            let delivery = Delivery { tag, redelivered, ..delivery };
            return Some(Content { delivery, ..Content::default() });
        }
        Method::BasicGetOk(got) => {
            let (tag, redelivered) = (got.delivery_tag, got.redelivered);
            let left = Some(got.message_count);
            let delivery = Delivery { tag, redelivered, left, ..delivery };
            return Some(Content { delivery, ..Content::default() });
        }
        Method::BasicReturn(_) => {
            return Some(Content { is_return: true, delivery, ..Content::default() });
        }
        Method::BasicGetEmpty(_) => heard.push(Heard::Empty),
        Method::BasicAck(ack) => heard.push(Heard::Confirmed(ack.delivery_tag)),
        Method::BasicNack(nack) => heard.push(Heard::Refused(nack.delivery_tag)),
        Method::BasicCancel(_) => heard.push(Heard::Cancelled(channel)),
        Method::TxCommitOk(_) => heard.push(Heard::Committed),
        _ => {}
    }
    None
}

fn read_header(header: ContentHeader<'_>, content: &mut Content) {
    content.size = header.body_size as usize;
    let headers = header.properties.headers().expect("good properties");
    let Some(headers) = headers else { return };
    let headers = headers.to_owned().expect("good headers");
    let number = |name: &str| headers.get(name).and_then(FieldValue::as_integer);
    let delivery = &mut content.delivery;
    delivery.returns = number("x-delivery-count").map(|count| count as u64);
    delivery.offset = number("x-stream-offset").map(|offset| offset as u64);
    delivery.has_cc = headers.get("CC").is_some();
    delivery.has_bcc = headers.get("BCC").is_some();
    if let Some(FieldValue::Array(deaths)) = headers.get("x-death") {
        delivery.deaths = deaths.iter().filter_map(FieldValue::as_table).map(death).collect();
    }
}

fn death(entry: &FieldTable) -> (String, String, u64) {
    let text = |name: &str| {
        let text = entry.get(name).and_then(FieldValue::as_str);
        text.unwrap_or_default().to_owned()
    };
    let count = entry.get("count").and_then(FieldValue::as_integer).unwrap_or_default();
    (text("queue"), text("reason"), count as u64)
}

impl Content {
    fn finish(self) -> Heard {
        let (id, padding) = self.body.split_first_chunk::<8>().expect("a number");
        let id = u64::from_le_bytes(*id);
        assert!(padding.iter().all(|byte| *byte == id as u8), "a body is not whole");
        match self.is_return {
            true => Heard::Returned(id),
            false => Heard::Delivery(Delivery { id, bytes: self.body.len(), ..self.delivery }),
        }
    }
}

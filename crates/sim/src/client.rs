//! A client without a connection: methods go straight into a broker's session.

use courser_broker::wire::WireBuffer;
use courser_broker::{Batch, Broker, Fault, Identity, Inbound, Session};
use courser_codec::{
    ContentHeader, FieldTable, Frame, FrameKind, Method, Properties, ShortStr, ShortString, Table,
    basic, channel, queue,
};
use std::sync::Arc;

/// The channel on which everything happens but transactions and changes of the topology.
pub const PLAIN: u16 = 1;
/// The transactional channel.
pub const TX: u16 = 2;
/// The channel for changes of the topology, whose answers hold up what comes behind them.
pub const TOPOLOGY: u16 = 3;
/// The channel for questions, one at a time.
pub const QUESTIONS: u16 = 4;

/// How a channel is closed.
const CLOSED: &str = "channel.close";

/// Something that the broker sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Publishes up to this number are confirmed.
    Confirmed(u64),
    /// The publish with this number is refused.
    Refused(u64),
    /// A message, with its delivery tag and the queue it was in.
    Message {
        /// The channel.
        channel: u16,
        /// The delivery tag.
        tag: u64,
        /// The number in its body.
        id: u64,
        /// Its offset, if it came from a stream.
        offset: Option<i64>,
    },
    /// A commit has become durable.
    Committed,
    /// A method on [`TOPOLOGY`] is answered, with this one.
    Answered(&'static str),
    /// A question on [`QUESTIONS`] is answered, with this method. A message is an answer too.
    Told(&'static str),
    /// Any other method, by name.
    Other(&'static str),
}

/// One client with four channels open.
pub struct Client {
    session: Session,
    confirms: u64,
}

impl Client {
    /// Opens a session with a confirming and a transactional channel.
    pub fn new(broker: &Arc<Broker>) -> Self {
        Self::in_vhost(broker, "/")
    }

    /// The same in another vhost.
    pub fn in_vhost(broker: &Arc<Broker>, name: &str) -> Self {
        let vhost = broker.vhost(name).expect("a vhost of this name");
        let identity = Identity {
            user: ShortString::try_from("guest").unwrap_or_default(),
            cancel_notify: true,
            impersonator: false,
        };
        let mut session = broker.open_session(vhost, identity, 131_072);
        session.open_channel(PLAIN);
        session.open_channel(TX);
        session.open_channel(TOPOLOGY);
        session.open_channel(QUESTIONS);
        let mut client = Client { session, confirms: 0 };
        let select = Method::TxSelect(Default::default());
        client.request(TX, &select).expect("transactions are supported");
        client
    }

    /// Sends a method and ends the batch.
    pub fn request(&mut self, channel: u16, method: &Method<'_>) -> Result<(), Fault> {
        let mut batch = Batch::default();
        self.session.request(&mut batch, channel, method)?;
        self.session.flush(&mut batch).map(drop)
    }

    /// Asks something on [`QUESTIONS`]. A fault closes the channel, as a connection does it, and it is opened again when that is
    /// heard.
    ///
    /// # Errors
    /// When the fault ends connections.
    pub fn ask(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        let Err(fault) = self.request(QUESTIONS, method) else { return Ok(()) };
        if fault.closes_connection() {
            return Err(fault);
        }
        self.session.close_channel(QUESTIONS);
        self.session.hold_answer(QUESTIONS);
        let close = channel::Close { reply_code: fault.code, ..channel::Close::default() };
        let mut frame = Vec::new();
        close.write_frame(QUESTIONS, &mut frame);
        self.session.outbox().lock().put_frames(&frame);
        Ok(())
    }

    /// Declares a durable queue, whose dead letters go to the queue of that name.
    pub fn declare(&mut self, name: &str, dead_letters: Option<&str>) -> Result<(), Fault> {
        let mut arguments = FieldTable::new();
        if let Some(queue) = dead_letters {
            arguments = arguments
                .with("x-dead-letter-exchange", "")
                .with("x-dead-letter-routing-key", queue);
        }
        self.declare_with(name, &arguments)
    }

    /// Declares a durable queue with these arguments.
    pub fn declare_with(&mut self, name: &str, arguments: &FieldTable) -> Result<(), Fault> {
        let arguments = arguments.to_entries();
        let declare = queue::Declare {
            queue: short(name),
            durable: true,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        self.request(TOPOLOGY, &Method::QueueDeclare(declare))
    }

    /// Publishes messages with these numbers as one batch. Returns the confirm number of the last.
    pub fn publish(
        &mut self,
        channel: u16,
        exchange: &str,
        key: &str,
        messages: &[(u64, usize)],
        persistent: bool,
    ) -> Result<u64, Fault> {
        let properties =
            Properties { delivery_mode: persistent.then_some(2), ..Default::default() };
        self.publish_with(channel, exchange, key, messages, &properties)
    }

    /// As [`Client::publish`], with these properties.
    pub fn publish_with(
        &mut self,
        channel: u16,
        exchange: &str,
        key: &str,
        messages: &[(u64, usize)],
        properties: &Properties<'_>,
    ) -> Result<u64, Fault> {
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        let mut address = Vec::new();
        for part in [exchange, key] {
            address.push(part.len() as u8);
            address.extend_from_slice(part.as_bytes());
        }
        let contents: Vec<(Vec<u8>, Vec<u8>)> = messages
            .iter()
            .map(|(id, padding)| {
                let mut body = id.to_le_bytes().to_vec();
                body.resize(8 + padding, *id as u8);
                let mut header = vec![0, 60, 0, 0];
                header.extend_from_slice(&(body.len() as u64).to_be_bytes());
                header.extend_from_slice(&encoded);
                (header, body)
            })
            .collect();
        let mut batch = Batch::default();
        for (header, body) in &contents {
            let confirm_seq = if channel == PLAIN {
                self.confirms += 1;
                self.confirms
            } else {
                0
            };
            let inbound = Inbound {
                channel,
                publish: basic::Publish {
                    exchange: short(exchange),
                    routing_key: short(key),
                    mandatory: false,
                    immediate: false,
                },
                address: &address,
                header,
                body,
                shared_body: None,
                confirm_seq,
            };
            self.session.publish(&mut batch, inbound)?;
        }
        self.session.flush(&mut batch)?;
        Ok(self.confirms)
    }

    /// Gets a message and refuses it. Returns whether there was one.
    pub fn reject_next(&mut self, queue: &str) -> Result<bool, Fault> {
        self.request(PLAIN, &Method::BasicGet(basic::Get { queue: short(queue), no_ack: false }))?;
        let taken = self.receive().into_iter().find_map(|received| match received {
            Received::Message { tag, .. } => Some(tag),
            _ => None,
        });
        let Some(delivery_tag) = taken else { return Ok(false) };
        let reject = basic::Reject { delivery_tag, requeue: false };
        self.request(PLAIN, &Method::BasicReject(reject)).map(|()| true)
    }

    /// Gets all messages of a queue, for good. Returns their numbers.
    pub fn take_all(&mut self, queue: &str) -> Result<Vec<u64>, Fault> {
        let mut ids = Vec::new();
        loop {
            let get = basic::Get { queue: short(queue), no_ack: true };
            self.request(PLAIN, &Method::BasicGet(get))?;
            let got = self.receive().into_iter().find_map(|received| match received {
                Received::Message { id, .. } => Some(id),
                _ => None,
            });
            match got {
                Some(id) => ids.push(id),
                None => return Ok(ids),
            }
        }
    }

    /// Everything that the broker has sent since the last time.
    pub fn receive(&mut self) -> Vec<Received> {
        let (mut bytes, mut wire) = (Vec::new(), WireBuffer::default());
        // First as the log thread does it, then as the connection's task.
        self.session.try_confirm(&mut wire);
        wire.append_to(&mut bytes);
        self.session.confirm_durable();
        loop {
            let mut wire = WireBuffer::default();
            let taken = self.session.outbox().take(&mut wire);
            wire.append_to(&mut bytes);
            if wire.is_empty() && taken.stalled.is_empty() {
                break;
            }
            self.session.resume(taken.stalled);
        }
        let received = decode(&bytes);
        if received.contains(&Received::Told(CLOSED)) {
            self.session.open_channel(QUESTIONS);
        }
        received
    }

    /// Closes and reopens the plain channel: what it has not acknowledged returns.
    pub fn reopen(&mut self) {
        self.session.close_channel(PLAIN);
        self.session.open_channel(PLAIN);
        self.confirms = 0;
    }
}

/// A short string of a text that is known to be short.
pub fn short(text: &str) -> ShortStr<'_> {
    ShortStr::new(text.as_bytes()).expect("short")
}

fn decode(bytes: &[u8]) -> Vec<Received> {
    let mut received = Vec::new();
    let mut rest = bytes;
    let mut pending: Option<(u16, u64)> = None;
    let mut body = Vec::new();
    let mut size = 0;
    let mut offset = None;
    while let Some((frame, len)) = Frame::parse(rest, 131_072).expect("whole frames") {
        rest = &rest[len..];
        match frame.kind {
            FrameKind::Method => match Method::decode(frame.payload).expect("a method") {
                Method::BasicAck(ack) => received.push(Received::Confirmed(ack.delivery_tag)),
                Method::BasicNack(nack) => received.push(Received::Refused(nack.delivery_tag)),
                Method::BasicDeliver(deliver) => {
                    pending = Some((frame.channel, deliver.delivery_tag));
                }
                Method::BasicGetOk(got) => pending = Some((frame.channel, got.delivery_tag)),
                Method::TxCommitOk(_) => received.push(Received::Committed),
                answer if frame.channel == QUESTIONS => {
                    received.push(Received::Told(answer.name()));
                }
                answer if frame.channel == TOPOLOGY => {
                    received.push(Received::Answered(answer.name()));
                }
                other => received.push(Received::Other(other.name())),
            },
            FrameKind::Header => {
                let header = ContentHeader::parse(frame.payload).expect("a header");
                size = header.body_size as usize;
                offset = offset_in(header);
                body.clear();
            }
            FrameKind::Body => {
                body.extend_from_slice(frame.payload);
                if body.len() == size
                    && let Some((channel, tag)) = pending.take()
                {
                    let (id, padding) = body.split_first_chunk::<8>().expect("a number");
                    let id = u64::from_le_bytes(*id);
                    assert!(padding.iter().all(|byte| *byte == id as u8), "a body is not whole");
                    received.push(Received::Message { channel, tag, id, offset });
                }
            }
            FrameKind::Heartbeat => {}
        }
    }
    assert!(rest.is_empty(), "a frame is not whole");
    received
}

/// What a stream says of a message.
fn offset_in(header: ContentHeader<'_>) -> Option<i64> {
    let headers = header.properties.headers().expect("good properties")?;
    headers.get("x-stream-offset").expect("good headers")?.as_integer()
}

//! Publishes, encoded one behind the other.

use courser_codec::{
    Frame, OwnedProperties, RawProperties, ShortStr, basic, write_body_frame,
    write_content_header_frame,
};
use courser_connection::client::write_body;

use crate::channel::Channel;
use crate::error::Error;
use crate::names::short;

/// Where messages go and what properties they have, encoded once for all of them.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Method frame and header frame for channel 0, with a body size of 0.
    frames: Vec<u8>,
    header_at: usize,
    exchange: String,
    routing_key: String,
    is_mandatory: bool,
    properties: Vec<u8>,
}

/// Where a frame has its channel.
const CHANNEL_AT: usize = 1;
/// Where a header frame has the size of the body.
const BODY_SIZE_AT: usize = 7 + 4;

impl Envelope {
    /// Messages without properties, for this exchange and with this routing key.
    ///
    /// # Errors
    /// When one of the names has more than 255 bytes.
    pub fn new(exchange: &str, routing_key: &str) -> Result<Self, Error> {
        short("an exchange's name", exchange)?;
        short("a routing key", routing_key)?;
        let mut envelope = Self {
            frames: Vec::new(),
            header_at: 0,
            exchange: exchange.to_owned(),
            routing_key: routing_key.to_owned(),
            is_mandatory: false,
            properties: RawProperties::EMPTY.as_bytes().to_vec(),
        };
        envelope.encode();
        Ok(envelope)
    }

    /// The same for messages that come back when no queue takes them.
    #[must_use]
    pub fn mandatory(mut self) -> Self {
        self.is_mandatory = true;
        self.encode();
        self
    }

    /// The same with these properties.
    #[must_use]
    pub fn with_properties(mut self, properties: &OwnedProperties) -> Self {
        self.properties.clear();
        properties.encode(&mut self.properties);
        self.encode();
        self
    }

    fn encode(&mut self) {
        let publish = basic::Publish {
            // Both were checked when the envelope was made.
            exchange: ShortStr::cut(&self.exchange),
            routing_key: ShortStr::cut(&self.routing_key),
            mandatory: self.is_mandatory,
            immediate: false,
        };
        self.frames.clear();
        publish.write_frame(0, &mut self.frames);
        self.header_at = self.frames.len();
        let properties = RawProperties::from_encoded(&self.properties).unwrap_or_default();
        write_content_header_frame(0, basic::CLASS_ID, 0, properties, &mut self.frames);
    }
}

/// Messages for one channel, encoded and not yet handed over.
#[derive(Debug)]
pub struct PublishBatch {
    pub(crate) frames: Vec<u8>,
    pub(crate) count: u64,
    pub(crate) channel: u16,
    frame_max: u32,
}

/// Numbers that publishes have got in confirm mode; both 0 when the channel is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Number of the first one.
    pub first: u64,
    /// Number of the last one.
    pub last: u64,
}

impl PublishBatch {
    /// An empty batch for this channel.
    #[must_use]
    pub fn new(channel: &Channel) -> Self {
        Self {
            frames: Vec::new(),
            count: 0,
            channel: channel.number(),
            frame_max: channel.frame_max(),
        }
    }

    /// Adds a message.
    ///
    /// # Errors
    /// When the properties do not fit into a frame of the connection. Nothing is added then.
    #[inline]
    pub fn push(&mut self, envelope: &Envelope, body: &[u8]) -> Result<(), Error> {
        if envelope.frames.len() - envelope.header_at > self.frame_max as usize {
            let (size_bytes, frame_max) = (envelope.properties.len(), self.frame_max);
            return Err(Error::PropertiesTooLarge { size_bytes, frame_max });
        }
        let [c0, c1] = self.channel.to_be_bytes();
        let at = self.frames.len();
        self.frames.extend_from_slice(&envelope.frames);
        let head = &mut self.frames[at..];
        head[CHANNEL_AT] = c0;
        head[CHANNEL_AT + 1] = c1;
        let header = &mut head[envelope.header_at..];
        header[CHANNEL_AT] = c0;
        header[CHANNEL_AT + 1] = c1;
        header[BODY_SIZE_AT..BODY_SIZE_AT + 8].copy_from_slice(&(body.len() as u64).to_be_bytes());
        if body.len() + Frame::OVERHEAD <= self.frame_max as usize && !body.is_empty() {
            write_body_frame(self.channel, body, &mut self.frames);
        } else {
            write_body(self.channel, body, self.frame_max, &mut self.frames);
        }
        self.count += 1;
        Ok(())
    }

    /// How many messages are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no message in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many bytes its messages take on the wire. Some 64 KiB are a good size to hand over.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.frames.len()
    }

    /// Takes all messages out.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.count = 0;
    }
}

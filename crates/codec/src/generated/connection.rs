//! Class `connection`: Opening, tuning and closing a connection; always on channel 0.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use crate::constants::FRAME_END;
use crate::frame::begin_method_frame;
use crate::reader::Reader;
use crate::sink::put_filled;
use crate::value::wire_len;
use crate::{DecodeError, Frame, ShortStr, Sink, Table};

/// Number of the class.
pub const CLASS_ID: u16 = 10;

/// `connection.start`: Offers the server's protocol version, properties, login mechanisms and locales.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Start<'a> {
    /// Major number of the protocol version: 0.
    pub version_major: u8,
    /// Minor number of the protocol version: 9.
    pub version_minor: u8,
    /// What a peer says of itself: product, version, capabilities.
    pub server_properties: Table<'a>,
    /// Login mechanisms, separated by spaces.
    pub mechanisms: &'a [u8],
    /// Locales for texts, separated by spaces.
    pub locales: &'a [u8],
}

impl<'a> Start<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 10;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.start";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let version_major = reader.u8()?;
        let version_minor = reader.u8()?;
        let server_properties = reader.table()?;
        let mechanisms = reader.long_str()?;
        let locales = reader.long_str()?;
        reader.finish()?;
        Ok(Self { version_major, version_minor, server_properties, mechanisms, locales })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        14 + self.server_properties.as_bytes().len() + self.mechanisms.len() + self.locales.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u8(self.version_major);
        sink.put_u8(self.version_minor);
        self.server_properties.encode(sink);
        sink.put_u32(wire_len(self.mechanisms.len()));
        sink.put(self.mechanisms);
        sink.put_u32(wire_len(self.locales.len()));
        sink.put(self.locales);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.start-ok`: Picks a login mechanism and a locale, and begins the login.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StartOk<'a> {
    /// What a peer says of itself: product, version, capabilities.
    pub client_properties: Table<'a>,
    /// The login mechanism that the client picked.
    pub mechanism: ShortStr<'a>,
    /// The mechanism's first response; its form is the mechanism's own.
    pub response: &'a [u8],
    /// The locale that the client picked.
    pub locale: ShortStr<'a>,
}

impl<'a> StartOk<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 11;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.start-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let client_properties = reader.table()?;
        let mechanism = reader.short_str()?;
        let response = reader.long_str()?;
        let locale = reader.short_str()?;
        reader.finish()?;
        Ok(Self { client_properties, mechanism, response, locale })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        10 + self.client_properties.as_bytes().len()
            + self.mechanism.len()
            + self.response.len()
            + self.locale.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        self.client_properties.encode(sink);
        sink.put_short_str(self.mechanism);
        sink.put_u32(wire_len(self.response.len()));
        sink.put(self.response);
        sink.put_short_str(self.locale);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.secure`: Asks for one more round of the login mechanism.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Secure<'a> {
    /// The mechanism's challenge.
    pub challenge: &'a [u8],
}

impl<'a> Secure<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 20;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.secure";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let challenge = reader.long_str()?;
        reader.finish()?;
        Ok(Self { challenge })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        4 + self.challenge.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u32(wire_len(self.challenge.len()));
        sink.put(self.challenge);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.secure-ok`: Answers a round of the login mechanism.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SecureOk<'a> {
    /// The mechanism's response.
    pub response: &'a [u8],
}

impl<'a> SecureOk<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 21;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.secure-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let response = reader.long_str()?;
        reader.finish()?;
        Ok(Self { response })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        4 + self.response.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u32(wire_len(self.response.len()));
        sink.put(self.response);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.tune`: Proposes limits for the connection.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tune {
    /// Highest channel number; 0 is no limit.
    pub channel_max: u16,
    /// Largest frame in bytes, header and end included; 0 is no limit.
    pub frame_max: u32,
    /// Interval of heartbeats in seconds; 0 is none.
    pub heartbeat: u16,
}

impl Tune {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 30;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.tune";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let channel_max = reader.u16()?;
        let frame_max = reader.u32()?;
        let heartbeat = reader.u16()?;
        reader.finish()?;
        Ok(Self { channel_max, frame_max, heartbeat })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        8
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(self.channel_max);
        sink.put_u32(self.frame_max);
        sink.put_u16(self.heartbeat);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.tune-ok`: Settles the limits, none above what the server proposed.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TuneOk {
    /// Highest channel number.
    pub channel_max: u16,
    /// Largest frame in bytes, header and end included.
    pub frame_max: u32,
    /// Interval of heartbeats in seconds; 0 is none.
    pub heartbeat: u16,
}

impl TuneOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 31;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.tune-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let channel_max = reader.u16()?;
        let frame_max = reader.u32()?;
        let heartbeat = reader.u16()?;
        reader.finish()?;
        Ok(Self { channel_max, frame_max, heartbeat })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        8
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(self.channel_max);
        sink.put_u32(self.frame_max);
        sink.put_u16(self.heartbeat);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.open`: Enters a virtual host.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Open<'a> {
    /// Name of a virtual host.
    pub virtual_host: ShortStr<'a>,
}

impl<'a> Open<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 40;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.open";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let virtual_host = reader.short_str()?;
        reader.short_str()?;
        reader.u8()?;
        reader.finish()?;
        Ok(Self { virtual_host })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        3 + self.virtual_host.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_short_str(self.virtual_host);
        sink.put_u8(0);
        sink.put_u8(0);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.open-ok`: The connection is ready for use.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenOk;

impl OpenOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 41;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.open-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.short_str()?;
        reader.finish()?;
        Ok(Self)
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        1
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u8(0);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.close`: Ends the connection and says why; the sender takes nothing but the reply from then on.
///
/// Sent by either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Close<'a> {
    /// One of the reply codes.
    pub reply_code: u16,
    /// The reason, for people.
    pub reply_text: ShortStr<'a>,
    /// Class of the method that the message is about, 0 when there is none.
    pub class_id: u16,
    /// Method that the message is about, 0 when there is none.
    pub method_id: u16,
}

impl<'a> Close<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 50;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.close";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let reply_code = reader.u16()?;
        let reply_text = reader.short_str()?;
        let class_id = reader.u16()?;
        let method_id = reader.u16()?;
        reader.finish()?;
        Ok(Self { reply_code, reply_text, class_id, method_id })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        7 + self.reply_text.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(self.reply_code);
        sink.put_short_str(self.reply_text);
        sink.put_u16(self.class_id);
        sink.put_u16(self.method_id);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.close-ok`: The last method on a connection.
///
/// Sent by either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CloseOk;

impl CloseOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 51;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.close-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let reader = Reader::new(args);
        reader.finish()?;
        Ok(Self)
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        0
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, _sink: &mut impl Sink) {}

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.blocked`: The server reads no publishes from this connection until further notice.
///
/// Sent by servers; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blocked<'a> {
    /// The resource that is short, for people.
    pub reason: ShortStr<'a>,
}

impl<'a> Blocked<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 60;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.blocked";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let reason = reader.short_str()?;
        reader.finish()?;
        Ok(Self { reason })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        1 + self.reason.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_short_str(self.reason);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.unblocked`: The server reads publishes again.
///
/// Sent by servers; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unblocked;

impl Unblocked {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 61;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.unblocked";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let reader = Reader::new(args);
        reader.finish()?;
        Ok(Self)
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        0
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, _sink: &mut impl Sink) {}

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.update-secret`: Replaces a secret that expires, such as a token, on a running connection.
///
/// Sent by clients; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UpdateSecret<'a> {
    /// The secret from now on.
    pub new_secret: &'a [u8],
    /// Why it changes, for people.
    pub reason: ShortStr<'a>,
}

impl<'a> UpdateSecret<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 70;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.update-secret";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let new_secret = reader.long_str()?;
        let reason = reader.short_str()?;
        reader.finish()?;
        Ok(Self { new_secret, reason })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        5 + self.new_secret.len() + self.reason.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u32(wire_len(self.new_secret.len()));
        sink.put(self.new_secret);
        sink.put_short_str(self.reason);
    }

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

/// `connection.update-secret-ok`: The new secret was taken.
///
/// Sent by servers; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UpdateSecretOk;

impl UpdateSecretOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 71;
    /// Class and method by name.
    pub const NAME: &'static str = "connection.update-secret-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let reader = Reader::new(args);
        reader.finish()?;
        Ok(Self)
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        0
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, _sink: &mut impl Sink) {}

    /// Writes a whole method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, sink: &mut impl Sink) {
        let args_len = self.encoded_len();
        put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {
            let ids = (Self::CLASS_ID, Self::METHOD_ID);
            begin_method_frame(ids, channel, args_len, window);
            self.fill(window);
            window.put_u8(FRAME_END);
        });
    }
}

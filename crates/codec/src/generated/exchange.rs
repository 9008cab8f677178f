//! Class `exchange`: Making, binding and deleting exchanges.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use crate::constants::FRAME_END;
use crate::frame::begin_method_frame;
use crate::reader::Reader;
use crate::sink::put_filled;
use crate::{DecodeError, Frame, ShortStr, Sink, Table};

/// Number of the class.
pub const CLASS_ID: u16 = 40;

/// `exchange.declare`: Makes an exchange, or checks that it is there as described.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Declare<'a> {
    /// Name of an exchange; empty is the default exchange.
    pub exchange: ShortStr<'a>,
    /// Type of the exchange: direct, fanout, topic, headers or one that a server adds.
    pub kind: ShortStr<'a>,
    /// Only check that the exchange exists.
    pub passive: bool,
    /// The exchange survives a restart of the server.
    pub durable: bool,
    /// The exchange goes when its last binding has gone.
    pub auto_delete: bool,
    /// Clients cannot publish to it, only other exchanges can.
    pub internal: bool,
    /// Send no reply.
    pub nowait: bool,
    /// Further arguments, by name.
    pub arguments: Table<'a>,
}

impl<'a> Declare<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 10;
    /// Class and method by name.
    pub const NAME: &'static str = "exchange.declare";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let exchange = reader.short_str()?;
        let kind = reader.short_str()?;
        let bits = reader.u8()?;
        let arguments = reader.table()?;
        reader.finish()?;
        Ok(Self {
            exchange,
            kind,
            passive: bits & 1 != 0,
            durable: bits & 2 != 0,
            auto_delete: bits & 4 != 0,
            internal: bits & 8 != 0,
            nowait: bits & 16 != 0,
            arguments,
        })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        9 + self.exchange.len() + self.kind.len() + self.arguments.as_bytes().len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(0);
        sink.put_short_str(self.exchange);
        sink.put_short_str(self.kind);
        sink.put_u8(
            u8::from(self.passive)
                | u8::from(self.durable) << 1
                | u8::from(self.auto_delete) << 2
                | u8::from(self.internal) << 3
                | u8::from(self.nowait) << 4,
        );
        self.arguments.encode(sink);
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

/// `exchange.declare-ok`: The exchange is there.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeclareOk;

impl DeclareOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 11;
    /// Class and method by name.
    pub const NAME: &'static str = "exchange.declare-ok";

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

/// `exchange.delete`: Deletes an exchange with its bindings.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Delete<'a> {
    /// Name of an exchange; empty is the default exchange.
    pub exchange: ShortStr<'a>,
    /// Only when nothing is bound to it.
    pub if_unused: bool,
    /// Send no reply.
    pub nowait: bool,
}

impl<'a> Delete<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 20;
    /// Class and method by name.
    pub const NAME: &'static str = "exchange.delete";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let exchange = reader.short_str()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { exchange, if_unused: bits & 1 != 0, nowait: bits & 2 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        4 + self.exchange.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(0);
        sink.put_short_str(self.exchange);
        sink.put_u8(u8::from(self.if_unused) | u8::from(self.nowait) << 1);
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

/// `exchange.delete-ok`: The exchange is gone.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeleteOk;

impl DeleteOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 21;
    /// Class and method by name.
    pub const NAME: &'static str = "exchange.delete-ok";

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

/// `exchange.bind`: Binds an exchange to an exchange.
///
/// Sent by clients; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bind<'a> {
    /// The exchange that receives.
    pub destination: ShortStr<'a>,
    /// The exchange that messages come from.
    pub source: ShortStr<'a>,
    /// What the exchange routes by.
    pub routing_key: ShortStr<'a>,
    /// Send no reply.
    pub nowait: bool,
    /// Further arguments, by name.
    pub arguments: Table<'a>,
}

impl<'a> Bind<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 30;
    /// Class and method by name.
    pub const NAME: &'static str = "exchange.bind";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let destination = reader.short_str()?;
        let source = reader.short_str()?;
        let routing_key = reader.short_str()?;
        let bits = reader.u8()?;
        let arguments = reader.table()?;
        reader.finish()?;
        Ok(Self { destination, source, routing_key, nowait: bits & 1 != 0, arguments })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        10 + self.destination.len()
            + self.source.len()
            + self.routing_key.len()
            + self.arguments.as_bytes().len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(0);
        sink.put_short_str(self.destination);
        sink.put_short_str(self.source);
        sink.put_short_str(self.routing_key);
        sink.put_u8(u8::from(self.nowait));
        self.arguments.encode(sink);
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

/// `exchange.bind-ok`: The exchanges are bound.
///
/// Sent by servers; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BindOk;

impl BindOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 31;
    /// Class and method by name.
    pub const NAME: &'static str = "exchange.bind-ok";

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

/// `exchange.unbind`: Takes a binding between exchanges away.
///
/// Sent by clients; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unbind<'a> {
    /// The exchange that receives.
    pub destination: ShortStr<'a>,
    /// The exchange that messages come from.
    pub source: ShortStr<'a>,
    /// What the exchange routes by.
    pub routing_key: ShortStr<'a>,
    /// Send no reply.
    pub nowait: bool,
    /// Further arguments, by name.
    pub arguments: Table<'a>,
}

impl<'a> Unbind<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 40;
    /// Class and method by name.
    pub const NAME: &'static str = "exchange.unbind";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let destination = reader.short_str()?;
        let source = reader.short_str()?;
        let routing_key = reader.short_str()?;
        let bits = reader.u8()?;
        let arguments = reader.table()?;
        reader.finish()?;
        Ok(Self { destination, source, routing_key, nowait: bits & 1 != 0, arguments })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        10 + self.destination.len()
            + self.source.len()
            + self.routing_key.len()
            + self.arguments.as_bytes().len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(0);
        sink.put_short_str(self.destination);
        sink.put_short_str(self.source);
        sink.put_short_str(self.routing_key);
        sink.put_u8(u8::from(self.nowait));
        self.arguments.encode(sink);
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

/// `exchange.unbind-ok`: The binding is gone.
///
/// Sent by servers; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnbindOk;

impl UnbindOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 51;
    /// Class and method by name.
    pub const NAME: &'static str = "exchange.unbind-ok";

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

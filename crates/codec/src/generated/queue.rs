//! Class `queue`: Making, binding, purging and deleting queues.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use crate::constants::FRAME_END;
use crate::frame::begin_method_frame;
use crate::reader::Reader;
use crate::sink::put_filled;
use crate::{DecodeError, Frame, ShortStr, Sink, Table};

/// Number of the class.
pub const CLASS_ID: u16 = 50;

/// `queue.declare`: Makes a queue, or checks that it is there as described.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Declare<'a> {
    /// Name of the queue; empty asks the server to make one up.
    pub queue: ShortStr<'a>,
    /// Only check that the queue exists.
    pub passive: bool,
    /// The queue survives a restart of the server.
    pub durable: bool,
    /// The queue belongs to this connection and goes with it.
    pub exclusive: bool,
    /// The queue goes when its last consumer has gone.
    pub auto_delete: bool,
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
    pub const NAME: &'static str = "queue.declare";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let queue = reader.short_str()?;
        let bits = reader.u8()?;
        let arguments = reader.table()?;
        reader.finish()?;
        Ok(Self {
            queue,
            passive: bits & 1 != 0,
            durable: bits & 2 != 0,
            exclusive: bits & 4 != 0,
            auto_delete: bits & 8 != 0,
            nowait: bits & 16 != 0,
            arguments,
        })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        8 + self.queue.len() + self.arguments.as_bytes().len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(0);
        sink.put_short_str(self.queue);
        sink.put_u8(
            u8::from(self.passive)
                | u8::from(self.durable) << 1
                | u8::from(self.exclusive) << 2
                | u8::from(self.auto_delete) << 3
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

/// `queue.declare-ok`: The queue is there.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeclareOk<'a> {
    /// Name of the queue, also when the server made it up.
    pub queue: ShortStr<'a>,
    /// Number of messages ready in the queue.
    pub message_count: u32,
    /// Number of the queue's consumers.
    pub consumer_count: u32,
}

impl<'a> DeclareOk<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 11;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.declare-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let queue = reader.short_str()?;
        let message_count = reader.u32()?;
        let consumer_count = reader.u32()?;
        reader.finish()?;
        Ok(Self { queue, message_count, consumer_count })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        9 + self.queue.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_short_str(self.queue);
        sink.put_u32(self.message_count);
        sink.put_u32(self.consumer_count);
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

/// `queue.bind`: Binds a queue to an exchange.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bind<'a> {
    /// Name of a queue; empty is the one that this channel declared last.
    pub queue: ShortStr<'a>,
    /// Name of an exchange; empty is the default exchange.
    pub exchange: ShortStr<'a>,
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
    pub const METHOD_ID: u16 = 20;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.bind";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let queue = reader.short_str()?;
        let exchange = reader.short_str()?;
        let routing_key = reader.short_str()?;
        let bits = reader.u8()?;
        let arguments = reader.table()?;
        reader.finish()?;
        Ok(Self { queue, exchange, routing_key, nowait: bits & 1 != 0, arguments })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        10 + self.queue.len()
            + self.exchange.len()
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
        sink.put_short_str(self.queue);
        sink.put_short_str(self.exchange);
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

/// `queue.bind-ok`: The queue is bound.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BindOk;

impl BindOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 21;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.bind-ok";

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

/// `queue.purge`: Removes all messages that are ready in a queue.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Purge<'a> {
    /// Name of a queue; empty is the one that this channel declared last.
    pub queue: ShortStr<'a>,
    /// Send no reply.
    pub nowait: bool,
}

impl<'a> Purge<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 30;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.purge";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let queue = reader.short_str()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { queue, nowait: bits & 1 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        4 + self.queue.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(0);
        sink.put_short_str(self.queue);
        sink.put_u8(u8::from(self.nowait));
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

/// `queue.purge-ok`: The messages are gone.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PurgeOk {
    /// Number of messages that were removed.
    pub message_count: u32,
}

impl PurgeOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 31;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.purge-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let message_count = reader.u32()?;
        reader.finish()?;
        Ok(Self { message_count })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        4
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u32(self.message_count);
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

/// `queue.delete`: Deletes a queue with its messages, bindings and consumers.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Delete<'a> {
    /// Name of a queue; empty is the one that this channel declared last.
    pub queue: ShortStr<'a>,
    /// Only when it has no consumers.
    pub if_unused: bool,
    /// Only when it has no messages.
    pub if_empty: bool,
    /// Send no reply.
    pub nowait: bool,
}

impl<'a> Delete<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 40;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.delete";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let queue = reader.short_str()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { queue, if_unused: bits & 1 != 0, if_empty: bits & 2 != 0, nowait: bits & 4 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        4 + self.queue.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u16(0);
        sink.put_short_str(self.queue);
        sink.put_u8(
            u8::from(self.if_unused) | u8::from(self.if_empty) << 1 | u8::from(self.nowait) << 2,
        );
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

/// `queue.delete-ok`: The queue is gone.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeleteOk {
    /// Number of messages that went with it.
    pub message_count: u32,
}

impl DeleteOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 41;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.delete-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let message_count = reader.u32()?;
        reader.finish()?;
        Ok(Self { message_count })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        4
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u32(self.message_count);
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

/// `queue.unbind`: Takes a queue's binding away.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unbind<'a> {
    /// Name of a queue; empty is the one that this channel declared last.
    pub queue: ShortStr<'a>,
    /// Name of an exchange; empty is the default exchange.
    pub exchange: ShortStr<'a>,
    /// What the exchange routes by.
    pub routing_key: ShortStr<'a>,
    /// Further arguments, by name.
    pub arguments: Table<'a>,
}

impl<'a> Unbind<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 50;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.unbind";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let queue = reader.short_str()?;
        let exchange = reader.short_str()?;
        let routing_key = reader.short_str()?;
        let arguments = reader.table()?;
        reader.finish()?;
        Ok(Self { queue, exchange, routing_key, arguments })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        9 + self.queue.len()
            + self.exchange.len()
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
        sink.put_short_str(self.queue);
        sink.put_short_str(self.exchange);
        sink.put_short_str(self.routing_key);
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

/// `queue.unbind-ok`: The binding is gone.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnbindOk;

impl UnbindOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 51;
    /// Class and method by name.
    pub const NAME: &'static str = "queue.unbind-ok";

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

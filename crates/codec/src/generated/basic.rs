//! Class `basic`: Publishing, consuming and acknowledging messages.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use crate::constants::FRAME_END;
use crate::frame::begin_method_frame;
use crate::reader::Reader;
use crate::sink::put_filled;
use crate::{DecodeError, Frame, ShortStr, Sink, Table};

/// Number of the class.
pub const CLASS_ID: u16 = 60;

/// `basic.qos`: Limits how much is delivered ahead of acknowledgements.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Qos {
    /// Limit in bytes; 0 is none.
    pub prefetch_size: u32,
    /// Limit in messages; 0 is none.
    pub prefetch_count: u16,
    /// One limit for the channel (true) or one for each consumer made from now on (false).
    pub global: bool,
}

impl Qos {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 10;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.qos";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let prefetch_size = reader.u32()?;
        let prefetch_count = reader.u16()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { prefetch_size, prefetch_count, global: bits & 1 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        7
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u32(self.prefetch_size);
        sink.put_u16(self.prefetch_count);
        sink.put_u8(u8::from(self.global));
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

/// `basic.qos-ok`: The limits hold.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QosOk;

impl QosOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 11;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.qos-ok";

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

/// `basic.consume`: Starts a consumer on a queue.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Consume<'a> {
    /// Name of a queue; empty is the one that this channel declared last.
    pub queue: ShortStr<'a>,
    /// Name of the consumer; empty asks the server to make one up.
    pub consumer_tag: ShortStr<'a>,
    /// Leave out what was published on this same connection.
    pub no_local: bool,
    /// Deliveries count as acknowledged when they are sent.
    pub no_ack: bool,
    /// No other consumer on this queue.
    pub exclusive: bool,
    /// Send no reply.
    pub nowait: bool,
    /// Further arguments, by name.
    pub arguments: Table<'a>,
}

impl<'a> Consume<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 20;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.consume";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let queue = reader.short_str()?;
        let consumer_tag = reader.short_str()?;
        let bits = reader.u8()?;
        let arguments = reader.table()?;
        reader.finish()?;
        Ok(Self {
            queue,
            consumer_tag,
            no_local: bits & 1 != 0,
            no_ack: bits & 2 != 0,
            exclusive: bits & 4 != 0,
            nowait: bits & 8 != 0,
            arguments,
        })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        9 + self.queue.len() + self.consumer_tag.len() + self.arguments.as_bytes().len()
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
        sink.put_short_str(self.consumer_tag);
        sink.put_u8(
            u8::from(self.no_local)
                | u8::from(self.no_ack) << 1
                | u8::from(self.exclusive) << 2
                | u8::from(self.nowait) << 3,
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

/// `basic.consume-ok`: The consumer runs.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConsumeOk<'a> {
    /// Name of the consumer, also when the server made it up.
    pub consumer_tag: ShortStr<'a>,
}

impl<'a> ConsumeOk<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 21;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.consume-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let consumer_tag = reader.short_str()?;
        reader.finish()?;
        Ok(Self { consumer_tag })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        1 + self.consumer_tag.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_short_str(self.consumer_tag);
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

/// `basic.cancel`: Ends a consumer; from the server: its queue is gone.
///
/// Sent by either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cancel<'a> {
    /// Name of a consumer, unique within its channel.
    pub consumer_tag: ShortStr<'a>,
    /// Send no reply.
    pub nowait: bool,
}

impl<'a> Cancel<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 30;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.cancel";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let consumer_tag = reader.short_str()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { consumer_tag, nowait: bits & 1 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        2 + self.consumer_tag.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_short_str(self.consumer_tag);
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

/// `basic.cancel-ok`: The consumer has ended.
///
/// Sent by either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CancelOk<'a> {
    /// Name of a consumer, unique within its channel.
    pub consumer_tag: ShortStr<'a>,
}

impl<'a> CancelOk<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 31;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.cancel-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let consumer_tag = reader.short_str()?;
        reader.finish()?;
        Ok(Self { consumer_tag })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        1 + self.consumer_tag.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_short_str(self.consumer_tag);
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

/// `basic.publish`: Sends a message to an exchange.
///
/// Sent by clients; a content follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Publish<'a> {
    /// Name of an exchange; empty is the default exchange.
    pub exchange: ShortStr<'a>,
    /// What the exchange routes by.
    pub routing_key: ShortStr<'a>,
    /// Return the message when no queue takes it.
    pub mandatory: bool,
    /// Return the message when no consumer takes it at once.
    pub immediate: bool,
}

impl<'a> Publish<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 40;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.publish";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.u16()?;
        let exchange = reader.short_str()?;
        let routing_key = reader.short_str()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { exchange, routing_key, mandatory: bits & 1 != 0, immediate: bits & 2 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        5 + self.exchange.len() + self.routing_key.len()
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
        sink.put_short_str(self.routing_key);
        sink.put_u8(u8::from(self.mandatory) | u8::from(self.immediate) << 1);
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

/// `basic.return`: Gives back a message that could not be routed.
///
/// Sent by servers; a content follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Return<'a> {
    /// One of the reply codes.
    pub reply_code: u16,
    /// The reason, for people.
    pub reply_text: ShortStr<'a>,
    /// Name of an exchange; empty is the default exchange.
    pub exchange: ShortStr<'a>,
    /// What the exchange routes by.
    pub routing_key: ShortStr<'a>,
}

impl<'a> Return<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 50;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.return";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let reply_code = reader.u16()?;
        let reply_text = reader.short_str()?;
        let exchange = reader.short_str()?;
        let routing_key = reader.short_str()?;
        reader.finish()?;
        Ok(Self { reply_code, reply_text, exchange, routing_key })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        5 + self.reply_text.len() + self.exchange.len() + self.routing_key.len()
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
        sink.put_short_str(self.exchange);
        sink.put_short_str(self.routing_key);
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

/// `basic.deliver`: Brings a message to a consumer.
///
/// Sent by servers; a content follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Deliver<'a> {
    /// Name of a consumer, unique within its channel.
    pub consumer_tag: ShortStr<'a>,
    /// Number of a delivery (or of a confirmed publish) within its channel, from 1.
    pub delivery_tag: u64,
    /// The message may have been delivered before.
    pub redelivered: bool,
    /// The exchange that the message was published to.
    pub exchange: ShortStr<'a>,
    /// The routing key that the message was published with.
    pub routing_key: ShortStr<'a>,
}

impl<'a> Deliver<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 60;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.deliver";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let consumer_tag = reader.short_str()?;
        let delivery_tag = reader.u64()?;
        let bits = reader.u8()?;
        let exchange = reader.short_str()?;
        let routing_key = reader.short_str()?;
        reader.finish()?;
        Ok(Self { consumer_tag, delivery_tag, redelivered: bits & 1 != 0, exchange, routing_key })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        12 + self.consumer_tag.len() + self.exchange.len() + self.routing_key.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_short_str(self.consumer_tag);
        sink.put_u64(self.delivery_tag);
        sink.put_u8(u8::from(self.redelivered));
        sink.put_short_str(self.exchange);
        sink.put_short_str(self.routing_key);
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

/// `basic.get`: Asks for one message of a queue.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Get<'a> {
    /// Name of a queue; empty is the one that this channel declared last.
    pub queue: ShortStr<'a>,
    /// Deliveries count as acknowledged when they are sent.
    pub no_ack: bool,
}

impl<'a> Get<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 70;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.get";

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
        Ok(Self { queue, no_ack: bits & 1 != 0 })
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
        sink.put_u8(u8::from(self.no_ack));
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

/// `basic.get-ok`: Brings the message that was asked for.
///
/// Sent by servers; a content follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GetOk<'a> {
    /// Number of a delivery (or of a confirmed publish) within its channel, from 1.
    pub delivery_tag: u64,
    /// The message may have been delivered before.
    pub redelivered: bool,
    /// The exchange that the message was published to.
    pub exchange: ShortStr<'a>,
    /// The routing key that the message was published with.
    pub routing_key: ShortStr<'a>,
    /// Number of messages left in the queue.
    pub message_count: u32,
}

impl<'a> GetOk<'a> {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 71;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.get-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let delivery_tag = reader.u64()?;
        let bits = reader.u8()?;
        let exchange = reader.short_str()?;
        let routing_key = reader.short_str()?;
        let message_count = reader.u32()?;
        reader.finish()?;
        Ok(Self { delivery_tag, redelivered: bits & 1 != 0, exchange, routing_key, message_count })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        15 + self.exchange.len() + self.routing_key.len()
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u64(self.delivery_tag);
        sink.put_u8(u8::from(self.redelivered));
        sink.put_short_str(self.exchange);
        sink.put_short_str(self.routing_key);
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

/// `basic.get-empty`: The queue has no message.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GetEmpty;

impl GetEmpty {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 72;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.get-empty";

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

/// `basic.ack`: Acknowledges deliveries; from the server: confirms publishes.
///
/// Sent by either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ack {
    /// Number of a delivery (or of a confirmed publish) within its channel, from 1.
    pub delivery_tag: u64,
    /// All up to and with this tag; with tag 0 all there are.
    pub multiple: bool,
}

impl Ack {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 80;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.ack";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let delivery_tag = reader.u64()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { delivery_tag, multiple: bits & 1 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        9
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u64(self.delivery_tag);
        sink.put_u8(u8::from(self.multiple));
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

/// `basic.reject`: Refuses a delivery.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reject {
    /// Number of a delivery (or of a confirmed publish) within its channel, from 1.
    pub delivery_tag: u64,
    /// Put the message back into its queue.
    pub requeue: bool,
}

impl Reject {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 90;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.reject";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let delivery_tag = reader.u64()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { delivery_tag, requeue: bits & 1 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        9
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u64(self.delivery_tag);
        sink.put_u8(u8::from(self.requeue));
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

/// `basic.recover-async`: Asks for all unacknowledged messages again, without a reply.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecoverAsync {
    /// Put the messages back into their queues.
    pub requeue: bool,
}

impl RecoverAsync {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 100;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.recover-async";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { requeue: bits & 1 != 0 })
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
        sink.put_u8(u8::from(self.requeue));
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

/// `basic.recover`: Asks for all unacknowledged messages again.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Recover {
    /// Put the messages back into their queues.
    pub requeue: bool,
}

impl Recover {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 110;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.recover";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { requeue: bits & 1 != 0 })
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
        sink.put_u8(u8::from(self.requeue));
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

/// `basic.recover-ok`: The messages are on their way.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecoverOk;

impl RecoverOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 111;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.recover-ok";

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

/// `basic.nack`: Refuses deliveries; from the server: publishes that it could not take.
///
/// Sent by either side; RabbitMQ's addition to AMQP 0-9-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nack {
    /// Number of a delivery (or of a confirmed publish) within its channel, from 1.
    pub delivery_tag: u64,
    /// All up to and with this tag; with tag 0 all there are.
    pub multiple: bool,
    /// Put the messages back into their queues.
    pub requeue: bool,
}

impl Nack {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 120;
    /// Class and method by name.
    pub const NAME: &'static str = "basic.nack";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let delivery_tag = reader.u64()?;
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { delivery_tag, multiple: bits & 1 != 0, requeue: bits & 2 != 0 })
    }

    /// Bytes of the arguments.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        9
    }

    /// Writes the arguments.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| self.fill(window));
    }

    #[inline]
    fn fill(&self, sink: &mut impl Sink) {
        sink.put_u64(self.delivery_tag);
        sink.put_u8(u8::from(self.multiple) | u8::from(self.requeue) << 1);
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

//! Class `channel`: Opening and closing the channels of a connection.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use crate::constants::FRAME_END;
use crate::frame::begin_method_frame;
use crate::reader::Reader;
use crate::sink::put_filled;
use crate::{DecodeError, Frame, ShortStr, Sink};

/// Number of the class.
pub const CLASS_ID: u16 = 20;

/// `channel.open`: Opens the channel that the frame names.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Open;

impl Open {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 10;
    /// Class and method by name.
    pub const NAME: &'static str = "channel.open";

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

/// `channel.open-ok`: The channel is ready for use.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenOk;

impl OpenOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 11;
    /// Class and method by name.
    pub const NAME: &'static str = "channel.open-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        reader.long_str()?;
        reader.finish()?;
        Ok(Self)
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
        sink.put_u32(0);
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

/// `channel.flow`: Asks the peer to stop or go on sending contents.
///
/// Sent by either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Send contents (true) or hold them back (false).
    pub active: bool,
}

impl Flow {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 20;
    /// Class and method by name.
    pub const NAME: &'static str = "channel.flow";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { active: bits & 1 != 0 })
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
        sink.put_u8(u8::from(self.active));
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

/// `channel.flow-ok`: Says that the wish about the flow was received.
///
/// Sent by either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowOk {
    /// The wish as it was received.
    pub active: bool,
}

impl FlowOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 21;
    /// Class and method by name.
    pub const NAME: &'static str = "channel.flow-ok";

    /// Reads the arguments, which follow class and method number in a payload.
    ///
    /// # Errors
    /// When the arguments are cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(args: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(args);
        let bits = reader.u8()?;
        reader.finish()?;
        Ok(Self { active: bits & 1 != 0 })
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
        sink.put_u8(u8::from(self.active));
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

/// `channel.close`: Ends the channel and says why; the sender takes nothing but the reply on it from then on.
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
    pub const METHOD_ID: u16 = 40;
    /// Class and method by name.
    pub const NAME: &'static str = "channel.close";

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

/// `channel.close-ok`: The last method on a channel.
///
/// Sent by either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CloseOk;

impl CloseOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 41;
    /// Class and method by name.
    pub const NAME: &'static str = "channel.close-ok";

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

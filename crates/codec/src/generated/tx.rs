//! Class `tx`: Transactions of publishes and acknowledgements on a channel.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use crate::constants::FRAME_END;
use crate::frame::begin_method_frame;
use crate::reader::Reader;
use crate::sink::put_filled;
use crate::{DecodeError, Frame, Sink};

/// Number of the class.
pub const CLASS_ID: u16 = 90;

/// `tx.select`: Makes the channel transactional.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Select;

impl Select {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 10;
    /// Class and method by name.
    pub const NAME: &'static str = "tx.select";

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

/// `tx.select-ok`: The channel is transactional.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SelectOk;

impl SelectOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 11;
    /// Class and method by name.
    pub const NAME: &'static str = "tx.select-ok";

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

/// `tx.commit`: Carries out what was collected, and begins anew.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Commit;

impl Commit {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 20;
    /// Class and method by name.
    pub const NAME: &'static str = "tx.commit";

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

/// `tx.commit-ok`: The transaction was carried out.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CommitOk;

impl CommitOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 21;
    /// Class and method by name.
    pub const NAME: &'static str = "tx.commit-ok";

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

/// `tx.rollback`: Forgets what was collected, and begins anew.
///
/// Sent by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rollback;

impl Rollback {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 30;
    /// Class and method by name.
    pub const NAME: &'static str = "tx.rollback";

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

/// `tx.rollback-ok`: The transaction was forgotten.
///
/// Sent by servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RollbackOk;

impl RollbackOk {
    /// Number of the class.
    pub const CLASS_ID: u16 = CLASS_ID;
    /// Number of the method in its class.
    pub const METHOD_ID: u16 = 31;
    /// Class and method by name.
    pub const NAME: &'static str = "tx.rollback-ok";

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

//! The properties of a message.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use super::basic::CLASS_ID;
use super::constants::FRAME_END;
use crate::content::{CONTENT_HEADER_FIXED_LEN, begin_header_frame, put_fixed};
use crate::error::DecodeError;
use crate::properties::PropertyKind;
use crate::reader::Reader;
use crate::sink::put_filled;
use crate::{FieldTable, Frame, RawProperties, ShortStr, ShortString, Sink, Table};

/// Flags that a property has.
pub(crate) const KNOWN_FLAGS: u16 = 0xfffc;

/// How each property lies on the wire, by the number of flags above its own.
pub(crate) const PROPERTY_KINDS: [PropertyKind; 14] = [
    PropertyKind::ShortStr,
    PropertyKind::ShortStr,
    PropertyKind::Table,
    PropertyKind::Octet,
    PropertyKind::Octet,
    PropertyKind::ShortStr,
    PropertyKind::ShortStr,
    PropertyKind::ShortStr,
    PropertyKind::ShortStr,
    PropertyKind::Timestamp,
    PropertyKind::ShortStr,
    PropertyKind::ShortStr,
    PropertyKind::ShortStr,
    PropertyKind::ShortStr,
];

/// Properties of a message, borrowed; headers stay encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a> {
    /// MIME type of the body.
    pub content_type: Option<ShortStr<'a>>,
    /// MIME encoding of the body.
    pub content_encoding: Option<ShortStr<'a>>,
    /// The application's own headers.
    pub headers: Option<Table<'a>>,
    /// 1 is transient, 2 is persistent.
    pub delivery_mode: Option<u8>,
    /// Priority of the message, higher is more urgent.
    pub priority: Option<u8>,
    /// What this message answers.
    pub correlation_id: Option<ShortStr<'a>>,
    /// Where answers go, usually a queue.
    pub reply_to: Option<ShortStr<'a>>,
    /// Time to live in milliseconds, as text.
    pub expiration: Option<ShortStr<'a>>,
    /// The application's name for the message.
    pub message_id: Option<ShortStr<'a>>,
    /// When the message was made, in seconds since 1970.
    pub timestamp: Option<u64>,
    /// The application's kind of message.
    pub kind: Option<ShortStr<'a>>,
    /// The user who published it; the server checks it.
    pub user_id: Option<ShortStr<'a>>,
    /// The application that published it.
    pub app_id: Option<ShortStr<'a>>,
    /// Of no use any more; kept for old clients.
    pub cluster_id: Option<ShortStr<'a>>,
}

impl<'a> Properties<'a> {
    /// Flag of the property `content-type`.
    pub const CONTENT_TYPE_FLAG: u16 = 0x8000;
    /// Flag of the property `content-encoding`.
    pub const CONTENT_ENCODING_FLAG: u16 = 0x4000;
    /// Flag of the property `headers`.
    pub const HEADERS_FLAG: u16 = 0x2000;
    /// Flag of the property `delivery-mode`.
    pub const DELIVERY_MODE_FLAG: u16 = 0x1000;
    /// Flag of the property `priority`.
    pub const PRIORITY_FLAG: u16 = 0x0800;
    /// Flag of the property `correlation-id`.
    pub const CORRELATION_ID_FLAG: u16 = 0x0400;
    /// Flag of the property `reply-to`.
    pub const REPLY_TO_FLAG: u16 = 0x0200;
    /// Flag of the property `expiration`.
    pub const EXPIRATION_FLAG: u16 = 0x0100;
    /// Flag of the property `message-id`.
    pub const MESSAGE_ID_FLAG: u16 = 0x0080;
    /// Flag of the property `timestamp`.
    pub const TIMESTAMP_FLAG: u16 = 0x0040;
    /// Flag of the property `type`.
    pub const TYPE_FLAG: u16 = 0x0020;
    /// Flag of the property `user-id`.
    pub const USER_ID_FLAG: u16 = 0x0010;
    /// Flag of the property `app-id`.
    pub const APP_ID_FLAG: u16 = 0x0008;
    /// Flag of the property `cluster-id`.
    pub const CLUSTER_ID_FLAG: u16 = 0x0004;

    /// Reads the values whose flags are set.
    pub(crate) fn read(flags: u16, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut properties = Self::default();
        if flags & Self::CONTENT_TYPE_FLAG != 0 {
            properties.content_type = Some(reader.short_str()?);
        }
        if flags & Self::CONTENT_ENCODING_FLAG != 0 {
            properties.content_encoding = Some(reader.short_str()?);
        }
        if flags & Self::HEADERS_FLAG != 0 {
            properties.headers = Some(reader.table()?);
        }
        if flags & Self::DELIVERY_MODE_FLAG != 0 {
            properties.delivery_mode = Some(reader.u8()?);
        }
        if flags & Self::PRIORITY_FLAG != 0 {
            properties.priority = Some(reader.u8()?);
        }
        if flags & Self::CORRELATION_ID_FLAG != 0 {
            properties.correlation_id = Some(reader.short_str()?);
        }
        if flags & Self::REPLY_TO_FLAG != 0 {
            properties.reply_to = Some(reader.short_str()?);
        }
        if flags & Self::EXPIRATION_FLAG != 0 {
            properties.expiration = Some(reader.short_str()?);
        }
        if flags & Self::MESSAGE_ID_FLAG != 0 {
            properties.message_id = Some(reader.short_str()?);
        }
        if flags & Self::TIMESTAMP_FLAG != 0 {
            properties.timestamp = Some(reader.u64()?);
        }
        if flags & Self::TYPE_FLAG != 0 {
            properties.kind = Some(reader.short_str()?);
        }
        if flags & Self::USER_ID_FLAG != 0 {
            properties.user_id = Some(reader.short_str()?);
        }
        if flags & Self::APP_ID_FLAG != 0 {
            properties.app_id = Some(reader.short_str()?);
        }
        if flags & Self::CLUSTER_ID_FLAG != 0 {
            properties.cluster_id = Some(reader.short_str()?);
        }
        reader.finish()?;
        Ok(properties)
    }

    /// The word of flags that stands before the values.
    #[must_use]
    pub fn flags(&self) -> u16 {
        self.measure().0
    }

    /// Bytes that `encode` writes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.measure().1
    }

    /// Whether no property is set.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !(self.content_type.is_some()
            | self.content_encoding.is_some()
            | self.headers.is_some()
            | self.delivery_mode.is_some()
            | self.priority.is_some()
            | self.correlation_id.is_some()
            | self.reply_to.is_some()
            | self.expiration.is_some()
            | self.message_id.is_some()
            | self.timestamp.is_some()
            | self.kind.is_some()
            | self.user_id.is_some()
            | self.app_id.is_some()
            | self.cluster_id.is_some())
    }

    /// The flags, and the bytes of these and all values.
    #[inline]
    fn measure(&self) -> (u16, usize) {
        if self.is_empty() { (0, 2) } else { self.measure_values() }
    }

    fn measure_values(&self) -> (u16, usize) {
        let (mut flags, mut len) = (0, 2);
        if let Some(value) = &self.content_type {
            flags |= Properties::CONTENT_TYPE_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.content_encoding {
            flags |= Properties::CONTENT_ENCODING_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.headers {
            flags |= Properties::HEADERS_FLAG;
            len += value.encoded_len();
        }
        if self.delivery_mode.is_some() {
            flags |= Properties::DELIVERY_MODE_FLAG;
            len += 1;
        }
        if self.priority.is_some() {
            flags |= Properties::PRIORITY_FLAG;
            len += 1;
        }
        if let Some(value) = &self.correlation_id {
            flags |= Properties::CORRELATION_ID_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.reply_to {
            flags |= Properties::REPLY_TO_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.expiration {
            flags |= Properties::EXPIRATION_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.message_id {
            flags |= Properties::MESSAGE_ID_FLAG;
            len += 1 + value.len();
        }
        if self.timestamp.is_some() {
            flags |= Properties::TIMESTAMP_FLAG;
            len += 8;
        }
        if let Some(value) = &self.kind {
            flags |= Properties::TYPE_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.user_id {
            flags |= Properties::USER_ID_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.app_id {
            flags |= Properties::APP_ID_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.cluster_id {
            flags |= Properties::CLUSTER_ID_FLAG;
            len += 1 + value.len();
        }
        (flags, len)
    }

    /// Writes the flags and the values behind them.
    pub fn encode(&self, sink: &mut impl Sink) {
        let (flags, len) = self.measure();
        put_filled!(sink, len, |window| self.fill(flags, window));
    }

    /// Writes a whole header frame, for a body of `body_size` bytes.
    pub fn write_header_frame(&self, channel: u16, body_size: u64, sink: &mut impl Sink) {
        let (flags, len) = self.measure();
        put_filled!(sink, Frame::OVERHEAD + CONTENT_HEADER_FIXED_LEN + len, |window| {
            begin_header_frame(channel, len, window);
            put_fixed(CLASS_ID, body_size, window);
            self.fill(flags, window);
            window.put_u8(FRAME_END);
        });
    }

    /// Writes the payload of a header frame, for a body of `body_size` bytes.
    pub fn encode_header(&self, body_size: u64, sink: &mut impl Sink) {
        let (flags, len) = self.measure();
        put_filled!(sink, CONTENT_HEADER_FIXED_LEN + len, |window| {
            put_fixed(CLASS_ID, body_size, window);
            self.fill(flags, window);
        });
    }

    #[inline]
    fn fill(&self, flags: u16, sink: &mut impl Sink) {
        sink.put_u16(flags);
        if flags != 0 {
            self.fill_values(sink);
        }
    }

    fn fill_values(&self, sink: &mut impl Sink) {
        if let Some(value) = &self.content_type {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.content_encoding {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.headers {
            value.encode(sink);
        }
        if let Some(value) = &self.delivery_mode {
            sink.put_u8(*value);
        }
        if let Some(value) = &self.priority {
            sink.put_u8(*value);
        }
        if let Some(value) = &self.correlation_id {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.reply_to {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.expiration {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.message_id {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.timestamp {
            sink.put_u64(*value);
        }
        if let Some(value) = &self.kind {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.user_id {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.app_id {
            sink.put_short_str(*value);
        }
        if let Some(value) = &self.cluster_id {
            sink.put_short_str(*value);
        }
    }

    /// The owned form, headers decoded.
    ///
    /// # Errors
    /// When the headers are malformed; the offset counts within them.
    pub fn to_owned(&self) -> Result<OwnedProperties, DecodeError> {
        Ok(OwnedProperties {
            content_type: self.content_type.map(ShortString::from),
            content_encoding: self.content_encoding.map(ShortString::from),
            headers: self.headers.map(Table::to_owned).transpose()?,
            delivery_mode: self.delivery_mode,
            priority: self.priority,
            correlation_id: self.correlation_id.map(ShortString::from),
            reply_to: self.reply_to.map(ShortString::from),
            expiration: self.expiration.map(ShortString::from),
            message_id: self.message_id.map(ShortString::from),
            timestamp: self.timestamp,
            kind: self.kind.map(ShortString::from),
            user_id: self.user_id.map(ShortString::from),
            app_id: self.app_id.map(ShortString::from),
            cluster_id: self.cluster_id.map(ShortString::from),
        })
    }
}

/// Single properties; those before the wanted one are skipped, not decoded. An error means that a value
/// up to the wanted one is cut short.
#[allow(clippy::missing_errors_doc, reason = "said once above")]
impl<'a> RawProperties<'a> {
    /// MIME type of the body.
    pub fn content_type(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::CONTENT_TYPE_FLAG)?
            .map(|mut reader| reader.short_str())
            .transpose()
    }

    /// MIME encoding of the body.
    pub fn content_encoding(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::CONTENT_ENCODING_FLAG)?
            .map(|mut reader| reader.short_str())
            .transpose()
    }

    /// The application's own headers.
    pub fn headers(&self) -> Result<Option<Table<'a>>, DecodeError> {
        self.reader_at(Properties::HEADERS_FLAG)?.map(|mut reader| reader.table()).transpose()
    }

    /// 1 is transient, 2 is persistent.
    pub fn delivery_mode(&self) -> Result<Option<u8>, DecodeError> {
        self.reader_at(Properties::DELIVERY_MODE_FLAG)?.map(|mut reader| reader.u8()).transpose()
    }

    /// Priority of the message, higher is more urgent.
    pub fn priority(&self) -> Result<Option<u8>, DecodeError> {
        self.reader_at(Properties::PRIORITY_FLAG)?.map(|mut reader| reader.u8()).transpose()
    }

    /// What this message answers.
    pub fn correlation_id(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::CORRELATION_ID_FLAG)?
            .map(|mut reader| reader.short_str())
            .transpose()
    }

    /// Where answers go, usually a queue.
    pub fn reply_to(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::REPLY_TO_FLAG)?.map(|mut reader| reader.short_str()).transpose()
    }

    /// Time to live in milliseconds, as text.
    pub fn expiration(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::EXPIRATION_FLAG)?
            .map(|mut reader| reader.short_str())
            .transpose()
    }

    /// The application's name for the message.
    pub fn message_id(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::MESSAGE_ID_FLAG)?
            .map(|mut reader| reader.short_str())
            .transpose()
    }

    /// When the message was made, in seconds since 1970.
    pub fn timestamp(&self) -> Result<Option<u64>, DecodeError> {
        self.reader_at(Properties::TIMESTAMP_FLAG)?.map(|mut reader| reader.u64()).transpose()
    }

    /// The application's kind of message.
    pub fn kind(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::TYPE_FLAG)?.map(|mut reader| reader.short_str()).transpose()
    }

    /// The user who published it; the server checks it.
    pub fn user_id(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::USER_ID_FLAG)?.map(|mut reader| reader.short_str()).transpose()
    }

    /// The application that published it.
    pub fn app_id(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::APP_ID_FLAG)?.map(|mut reader| reader.short_str()).transpose()
    }

    /// Of no use any more; kept for old clients.
    pub fn cluster_id(&self) -> Result<Option<ShortStr<'a>>, DecodeError> {
        self.reader_at(Properties::CLUSTER_ID_FLAG)?
            .map(|mut reader| reader.short_str())
            .transpose()
    }
}

/// Properties of a message, owned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnedProperties {
    /// MIME type of the body.
    pub content_type: Option<ShortString>,
    /// MIME encoding of the body.
    pub content_encoding: Option<ShortString>,
    /// The application's own headers.
    pub headers: Option<FieldTable>,
    /// 1 is transient, 2 is persistent.
    pub delivery_mode: Option<u8>,
    /// Priority of the message, higher is more urgent.
    pub priority: Option<u8>,
    /// What this message answers.
    pub correlation_id: Option<ShortString>,
    /// Where answers go, usually a queue.
    pub reply_to: Option<ShortString>,
    /// Time to live in milliseconds, as text.
    pub expiration: Option<ShortString>,
    /// The application's name for the message.
    pub message_id: Option<ShortString>,
    /// When the message was made, in seconds since 1970.
    pub timestamp: Option<u64>,
    /// The application's kind of message.
    pub kind: Option<ShortString>,
    /// The user who published it; the server checks it.
    pub user_id: Option<ShortString>,
    /// The application that published it.
    pub app_id: Option<ShortString>,
    /// Of no use any more; kept for old clients.
    pub cluster_id: Option<ShortString>,
}

impl OwnedProperties {
    /// The word of flags that stands before the values.
    #[must_use]
    pub fn flags(&self) -> u16 {
        self.measure().0
    }

    /// Bytes that `encode` writes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.measure().1
    }

    /// Whether no property is set.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !(self.content_type.is_some()
            | self.content_encoding.is_some()
            | self.headers.is_some()
            | self.delivery_mode.is_some()
            | self.priority.is_some()
            | self.correlation_id.is_some()
            | self.reply_to.is_some()
            | self.expiration.is_some()
            | self.message_id.is_some()
            | self.timestamp.is_some()
            | self.kind.is_some()
            | self.user_id.is_some()
            | self.app_id.is_some()
            | self.cluster_id.is_some())
    }

    /// The flags, and the bytes of these and all values.
    #[inline]
    fn measure(&self) -> (u16, usize) {
        if self.is_empty() { (0, 2) } else { self.measure_values() }
    }

    fn measure_values(&self) -> (u16, usize) {
        let (mut flags, mut len) = (0, 2);
        if let Some(value) = &self.content_type {
            flags |= Properties::CONTENT_TYPE_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.content_encoding {
            flags |= Properties::CONTENT_ENCODING_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.headers {
            flags |= Properties::HEADERS_FLAG;
            len += value.encoded_len();
        }
        if self.delivery_mode.is_some() {
            flags |= Properties::DELIVERY_MODE_FLAG;
            len += 1;
        }
        if self.priority.is_some() {
            flags |= Properties::PRIORITY_FLAG;
            len += 1;
        }
        if let Some(value) = &self.correlation_id {
            flags |= Properties::CORRELATION_ID_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.reply_to {
            flags |= Properties::REPLY_TO_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.expiration {
            flags |= Properties::EXPIRATION_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.message_id {
            flags |= Properties::MESSAGE_ID_FLAG;
            len += 1 + value.len();
        }
        if self.timestamp.is_some() {
            flags |= Properties::TIMESTAMP_FLAG;
            len += 8;
        }
        if let Some(value) = &self.kind {
            flags |= Properties::TYPE_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.user_id {
            flags |= Properties::USER_ID_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.app_id {
            flags |= Properties::APP_ID_FLAG;
            len += 1 + value.len();
        }
        if let Some(value) = &self.cluster_id {
            flags |= Properties::CLUSTER_ID_FLAG;
            len += 1 + value.len();
        }
        (flags, len)
    }

    /// Writes the flags and the values behind them.
    pub fn encode(&self, sink: &mut impl Sink) {
        let (flags, len) = self.measure();
        put_filled!(sink, len, |window| self.fill(flags, window));
    }

    /// Writes a whole header frame, for a body of `body_size` bytes.
    pub fn write_header_frame(&self, channel: u16, body_size: u64, sink: &mut impl Sink) {
        let (flags, len) = self.measure();
        put_filled!(sink, Frame::OVERHEAD + CONTENT_HEADER_FIXED_LEN + len, |window| {
            begin_header_frame(channel, len, window);
            put_fixed(CLASS_ID, body_size, window);
            self.fill(flags, window);
            window.put_u8(FRAME_END);
        });
    }

    /// Writes the payload of a header frame, for a body of `body_size` bytes.
    pub fn encode_header(&self, body_size: u64, sink: &mut impl Sink) {
        let (flags, len) = self.measure();
        put_filled!(sink, CONTENT_HEADER_FIXED_LEN + len, |window| {
            put_fixed(CLASS_ID, body_size, window);
            self.fill(flags, window);
        });
    }

    #[inline]
    fn fill(&self, flags: u16, sink: &mut impl Sink) {
        sink.put_u16(flags);
        if flags != 0 {
            self.fill_values(sink);
        }
    }

    fn fill_values(&self, sink: &mut impl Sink) {
        if let Some(value) = &self.content_type {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.content_encoding {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.headers {
            value.encode(sink);
        }
        if let Some(value) = &self.delivery_mode {
            sink.put_u8(*value);
        }
        if let Some(value) = &self.priority {
            sink.put_u8(*value);
        }
        if let Some(value) = &self.correlation_id {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.reply_to {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.expiration {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.message_id {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.timestamp {
            sink.put_u64(*value);
        }
        if let Some(value) = &self.kind {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.user_id {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.app_id {
            sink.put_short_str(value.as_short_str());
        }
        if let Some(value) = &self.cluster_id {
            sink.put_short_str(value.as_short_str());
        }
    }
}

//! Content headers: class, body size and properties of a message (section 4.2.6.1 of the
//! specification).

use crate::error::{DecodeError, DecodeErrorKind};
use crate::frame::{FrameKind, write_frame_header};
use crate::generated::constants::FRAME_END;
use crate::sink::put_filled;
use crate::value::wire_len;
use crate::{Frame, RawProperties, Sink};

/// Bytes of a content header before the property flags.
pub const CONTENT_HEADER_FIXED_LEN: usize = 12;

/// A content header; its properties stay encoded until they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// Class of the method that the content belongs to: `basic::CLASS_ID`.
    pub class_id: u16,
    /// Bytes in all body frames together.
    pub body_size: u64,
    /// The properties, undecoded.
    pub properties: RawProperties<'a>,
}

impl<'a> ContentHeader<'a> {
    /// Reads the payload of a header frame. The properties are not looked into.
    ///
    /// # Errors
    /// When the payload is too short to have property flags, or its weight is not 0.
    #[inline]
    pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((fixed, properties)) = payload.split_first_chunk::<CONTENT_HEADER_FIXED_LEN>()
        else {
            return Err(cut_short(payload.len()));
        };
        let &[class0, class1, weight0, weight1, ref body_size @ ..] = fixed;
        let weight = u16::from_be_bytes([weight0, weight1]);
        if weight != 0 {
            return Err(DecodeError::new(2, DecodeErrorKind::NonZeroWeight(weight)));
        }
        let properties = RawProperties::from_encoded(properties)
            .map_err(|error| error.shifted(CONTENT_HEADER_FIXED_LEN))?;
        Ok(Self {
            class_id: u16::from_be_bytes([class0, class1]),
            body_size: u64::from_be_bytes(*body_size),
            properties,
        })
    }

    /// Bytes of the payload.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        CONTENT_HEADER_FIXED_LEN + self.properties.as_bytes().len()
    }

    /// Writes the payload.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        put_fixed(self.class_id, self.body_size, sink);
        sink.put(self.properties.as_bytes());
    }
}

/// The error for a header that ends within class, weight or body size.
#[cold]
fn cut_short(len: usize) -> DecodeError {
    let offset = match len {
        0..2 => 0,
        2..4 => 2,
        _ => 4,
    };
    DecodeError::new(offset, DecodeErrorKind::Truncated)
}

/// Writes class, weight and body size.
#[inline]
pub(crate) fn put_fixed(class_id: u16, body_size: u64, sink: &mut impl Sink) {
    // As one number, which stays in registers until it is stored at once.
    let fixed = u128::from(class_id) << 112 | u128::from(body_size) << 32;
    sink.put(&fixed.to_be_bytes()[..CONTENT_HEADER_FIXED_LEN]);
}

/// Writes what stands before a content header with `properties_len` bytes of properties.
#[inline]
pub(crate) fn begin_header_frame(channel: u16, properties_len: usize, sink: &mut impl Sink) {
    let payload_len = wire_len(CONTENT_HEADER_FIXED_LEN + properties_len);
    write_frame_header(FrameKind::Header, channel, payload_len, sink);
}

/// Writes a header frame; `properties` are encoded ones, with their flags.
#[inline]
pub fn write_content_header_frame(
    channel: u16,
    class_id: u16,
    body_size: u64,
    properties: RawProperties<'_>,
    sink: &mut impl Sink,
) {
    let header = ContentHeader { class_id, body_size, properties };
    put_filled!(sink, Frame::OVERHEAD + header.encoded_len(), |window| {
        begin_header_frame(channel, properties.as_bytes().len(), window);
        header.encode(window);
        window.put_u8(FRAME_END);
    });
}

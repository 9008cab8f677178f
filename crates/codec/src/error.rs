//! What can be wrong with bytes that came in.

use core::fmt;

/// Bytes that are not what they should be: where and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset in bytes, counted from the start of the slice that was to be decoded.
    pub offset: usize,
    /// What is wrong there.
    pub kind: DecodeErrorKind,
}

/// The cause of a [`DecodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// The input ends before the value does, or a length says more than there is.
    Truncated,
    /// Bytes are left behind the last field.
    TrailingBytes,
    /// No class has this id.
    UnknownClass(u16),
    /// The class has no method with this id.
    UnknownMethod {
        /// Id of the class, which is known.
        class_id: u16,
        /// Id that none of its methods has.
        method_id: u16,
    },
    /// No field-table value has this tag.
    UnknownFieldType(u8),
    /// Tables and arrays are nested deeper than [`MAX_NESTING`](crate::MAX_NESTING).
    TooDeep,
    /// Property flags are set that the class does not have.
    UnknownPropertyFlags(u16),
    /// A content header's weight is not zero.
    NonZeroWeight(u16),
}

impl DecodeError {
    pub(crate) const fn new(offset: usize, kind: DecodeErrorKind) -> Self {
        Self { offset, kind }
    }

    /// The same error, seen from a slice that begins `bytes` earlier.
    #[must_use]
    pub const fn shifted(self, bytes: usize) -> Self {
        Self { offset: self.offset + bytes, kind: self.kind }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}", self.kind, self.offset)
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated => f.write_str("input ends within a value"),
            Self::TrailingBytes => f.write_str("bytes behind the last field"),
            Self::UnknownClass(id) => write!(f, "unknown class {id}"),
            Self::UnknownMethod { class_id, method_id } => {
                write!(f, "unknown method {method_id} of class {class_id}")
            }
            Self::UnknownFieldType(tag) => write!(f, "unknown field type '{}'", tag.escape_ascii()),
            Self::TooDeep => write!(f, "tables nested deeper than {}", crate::MAX_NESTING),
            Self::UnknownPropertyFlags(flags) => write!(f, "unknown property flags {flags:#06x}"),
            Self::NonZeroWeight(weight) => write!(f, "content weight {weight} instead of 0"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Bytes that are no frame; the connection cannot go on (reply code 501).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The first byte is none of the frame types.
    UnknownType(u8),
    /// The frame is larger than the connection allows.
    TooLarge {
        /// Size of the whole frame in bytes, header and end included.
        size: u64,
        /// The limit that it was held against.
        max: u32,
    },
    /// Something else stands where the frame's end marker (0xCE) should be.
    BadEnd(u8),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UnknownType(kind) => write!(f, "unknown frame type {kind}"),
            Self::TooLarge { size, max } => {
                write!(f, "frame of {size} bytes is larger than frame_max {max}")
            }
            Self::BadEnd(byte) => write!(f, "frame ends with {byte:#04x} instead of 0xce"),
        }
    }
}

impl core::error::Error for FrameError {}

//! Message properties as they came: a word of flags and the values whose flags are set, undecoded.
//!
//! A broker passes most properties on without a look at them. [`RawProperties`] finds a single one
//! by skipping those before it. Accessors for each property are generated beside the fields
//! themselves.

use core::fmt;

use crate::Properties;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::generated::properties::{KNOWN_FLAGS, PROPERTY_KINDS};
use crate::reader::Reader;

/// Encoded properties of a message, flags included.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawProperties<'a> {
    flags: u16,
    encoded: &'a [u8],
}

/// How a property's value lies on the wire.
#[derive(Clone, Copy)]
pub(crate) enum PropertyKind {
    ShortStr,
    Table,
    Octet,
    Timestamp,
}

impl PropertyKind {
    /// Moves past a value.
    #[inline]
    fn skip(self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        match self {
            PropertyKind::ShortStr => reader.short_str().map(drop),
            PropertyKind::Table => reader.long_str().map(drop),
            PropertyKind::Octet => reader.u8().map(drop),
            PropertyKind::Timestamp => reader.u64().map(drop),
        }
    }
}

impl RawProperties<'static> {
    /// No property at all.
    pub const EMPTY: Self = Self { flags: 0, encoded: &[0, 0] };
}

impl Default for RawProperties<'_> {
    fn default() -> Self {
        RawProperties::EMPTY
    }
}

impl<'a> RawProperties<'a> {
    /// A view of the flags and the values behind them, which are looked at when they are asked for.
    ///
    /// # Errors
    /// When there are no flags, or one is set that no property has.
    #[inline]
    pub fn from_encoded(encoded: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((flags, _)) = encoded.split_first_chunk() else {
            return Err(DecodeError::new(0, DecodeErrorKind::Truncated));
        };
        let flags = u16::from_be_bytes(*flags);
        if flags & !KNOWN_FLAGS != 0 {
            return Err(DecodeError::new(
                0,
                DecodeErrorKind::UnknownPropertyFlags(flags & !KNOWN_FLAGS),
            ));
        }
        Ok(Self { flags, encoded })
    }

    /// The flags and the values behind them, as [`RawProperties::from_encoded`] takes them.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.encoded
    }

    /// The word of flags; the highest bit is the first property.
    #[inline]
    #[must_use]
    pub const fn flags(&self) -> u16 {
        self.flags
    }

    /// Whether no property is set.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.flags == 0
    }

    /// All properties. Headers stay encoded.
    ///
    /// # Errors
    /// When a value is cut short, or bytes follow the last one.
    #[inline]
    pub fn decode(&self) -> Result<Properties<'a>, DecodeError> {
        Properties::read(self.flags, &mut self.values())
    }

    /// Reads everything, also the headers.
    ///
    /// # Errors
    /// As [`RawProperties::decode`], and when the headers are malformed.
    pub fn validate(&self) -> Result<(), DecodeError> {
        let mut reader = self.values();
        let mut left = self.flags;
        while left != 0 {
            let index = left.leading_zeros();
            let kind = PROPERTY_KINDS[index as usize];
            if matches!(kind, PropertyKind::Table) {
                let headers = reader.table()?;
                let start = reader.offset() - headers.as_bytes().len();
                headers.validate().map_err(|error| error.shifted(start))?;
            } else {
                kind.skip(&mut reader)?;
            }
            left &= !(0x8000 >> index);
        }
        reader.finish()
    }

    fn values(&self) -> Reader<'a> {
        let mut reader = Reader::new(self.encoded);
        // The flags are there: that is how this view came to be.
        let _ = reader.u16();
        reader
    }

    /// A reader that stands at the value of the property with this flag, if the message has it.
    #[inline]
    pub(crate) fn reader_at(&self, flag: u16) -> Result<Option<Reader<'a>>, DecodeError> {
        if self.flags & flag == 0 {
            return Ok(None);
        }
        let mut reader = self.values();
        // Bits above the wanted one are the properties before it.
        let mut before = self.flags & !(flag | (flag - 1));
        while before != 0 {
            let index = before.leading_zeros();
            PROPERTY_KINDS[index as usize].skip(&mut reader)?;
            before &= !(0x8000 >> index);
        }
        Ok(Some(reader))
    }
}

impl fmt::Debug for RawProperties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.decode() {
            Ok(properties) => fmt::Debug::fmt(&properties, f),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

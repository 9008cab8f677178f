//! A value of a field table as a borrowed view.

use core::fmt;

use crate::error::{DecodeError, DecodeErrorKind};
use crate::generated::constants::field_type;
use crate::reader::Reader;
use crate::table::check_nesting;
use crate::{Array, FieldValue, Sink, Table};

/// How deep tables and arrays may be nested: a table that holds no other is 1 deep.
///
/// The protocol has no limit. This one keeps every recursion of this crate within a known stack,
/// far above what any client sends.
pub const MAX_NESTING: usize = 64;

/// A decimal number: `digits` with the decimal point `scale` places from the right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// Number of decimal places.
    pub scale: u8,
    /// The digits. RabbitMQ reads them unsigned, some clients as two's complement; the bytes are
    /// the same.
    pub digits: u32,
}

/// A value of a field table, borrowed from the input.
#[derive(Clone, Copy, PartialEq)]
// A tag as wide as a register: with one byte, the value beside it lies at an odd place and is moved
// in pieces, which more than doubles the time that reading takes.
#[repr(u64)]
pub enum Value<'a> {
    /// Tag `t`. Any byte but zero reads as true.
    Bool(bool),
    /// Tag `b`.
    I8(i8),
    /// Tag `B`.
    U8(u8),
    /// Tag `s`.
    I16(i16),
    /// Tag `u`.
    U16(u16),
    /// Tag `I`.
    I32(i32),
    /// Tag `i`.
    U32(u32),
    /// Tag `l`; `L` is read as the same.
    I64(i64),
    /// Tag `f`.
    F32(f32),
    /// Tag `d`.
    F64(f64),
    /// Tag `D`.
    Decimal(Decimal),
    /// Tag `S`: text by convention, any bytes in fact.
    LongStr(&'a [u8]),
    /// Tag `A`.
    Array(Array<'a>),
    /// Tag `T`: seconds since 1970.
    Timestamp(u64),
    /// Tag `F`.
    Table(Table<'a>),
    /// Tag `V`: no value.
    Void,
    /// Tag `x`: bytes that are no text.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Takes a tag and its value off the reader. Tables and arrays stay encoded.
    #[inline]
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let at_tag = *reader;
        Ok(match reader.u8()? {
            field_type::LONG_STR => Self::LongStr(reader.long_str()?),
            field_type::BOOL => Self::Bool(reader.u8()? != 0),
            field_type::I8 => Self::I8(reader.u8()? as i8),
            field_type::U8 => Self::U8(reader.u8()?),
            field_type::I16 => Self::I16(reader.u16()? as i16),
            field_type::U16 => Self::U16(reader.u16()?),
            field_type::I32 => Self::I32(reader.u32()? as i32),
            field_type::U32 => Self::U32(reader.u32()?),
            field_type::I64 | field_type::I64_ALSO_READ => Self::I64(reader.u64()? as i64),
            field_type::F32 => Self::F32(f32::from_bits(reader.u32()?)),
            field_type::F64 => Self::F64(f64::from_bits(reader.u64()?)),
            field_type::DECIMAL => {
                Self::Decimal(Decimal { scale: reader.u8()?, digits: reader.u32()? })
            }
            field_type::ARRAY => Self::Array(Array::from_elements(reader.long_str()?)),
            field_type::TIMESTAMP => Self::Timestamp(reader.u64()?),
            field_type::TABLE => Self::Table(reader.table()?),
            field_type::VOID => Self::Void,
            field_type::BYTES => Self::Bytes(reader.long_str()?),
            tag => return at_tag.fail(DecodeErrorKind::UnknownFieldType(tag)),
        })
    }

    /// The owned form; a table or an array in it is read to its end.
    ///
    /// # Errors
    /// When a table or an array in it is malformed or nested too deep.
    pub fn to_owned(&self) -> Result<FieldValue, DecodeError> {
        let mut owned = FieldValue::Void;
        self.to_owned_in(&mut owned, 0)?;
        Ok(owned)
    }

    /// The owned form of a value that lies in `outer_levels` tables and arrays, written to where it
    /// is to stay: moving what was just written in small pieces costs more than making it.
    pub(crate) fn to_owned_in(
        self,
        slot: &mut FieldValue,
        outer_levels: usize,
    ) -> Result<(), DecodeError> {
        match self {
            Self::Bool(value) => *slot = FieldValue::Bool(value),
            Self::I8(value) => *slot = FieldValue::I8(value),
            Self::U8(value) => *slot = FieldValue::U8(value),
            Self::I16(value) => *slot = FieldValue::I16(value),
            Self::U16(value) => *slot = FieldValue::U16(value),
            Self::I32(value) => *slot = FieldValue::I32(value),
            Self::U32(value) => *slot = FieldValue::U32(value),
            Self::I64(value) => *slot = FieldValue::I64(value),
            Self::F32(value) => *slot = FieldValue::F32(value),
            Self::F64(value) => *slot = FieldValue::F64(value),
            Self::Decimal(value) => *slot = FieldValue::Decimal(value),
            Self::LongStr(value) => *slot = FieldValue::LongStr(value.into()),
            Self::Array(value) => *slot = FieldValue::Array(value.to_owned_at(outer_levels)?),
            Self::Timestamp(value) => *slot = FieldValue::Timestamp(value),
            Self::Table(value) => *slot = FieldValue::Table(value.to_owned_at(outer_levels)?),
            Self::Void => *slot = FieldValue::Void,
            Self::Bytes(value) => *slot = FieldValue::Bytes(value.into()),
        }
        Ok(())
    }

    /// Checks the tables and arrays in it. `outer_levels` of them are around it.
    pub(crate) fn validate_at(self, outer_levels: usize) -> Result<(), DecodeError> {
        match self {
            Self::Table(table) => {
                check_nesting(outer_levels)?;
                table.validate_at(outer_levels)
            }
            Self::Array(array) => {
                check_nesting(outer_levels)?;
                array.validate_at(outer_levels)
            }
            _ => Ok(()),
        }
    }

    /// The tag that stands before the value on the wire.
    #[must_use]
    pub const fn tag(&self) -> u8 {
        match self {
            Self::Bool(_) => field_type::BOOL,
            Self::I8(_) => field_type::I8,
            Self::U8(_) => field_type::U8,
            Self::I16(_) => field_type::I16,
            Self::U16(_) => field_type::U16,
            Self::I32(_) => field_type::I32,
            Self::U32(_) => field_type::U32,
            Self::I64(_) => field_type::I64,
            Self::F32(_) => field_type::F32,
            Self::F64(_) => field_type::F64,
            Self::Decimal(_) => field_type::DECIMAL,
            Self::LongStr(_) => field_type::LONG_STR,
            Self::Array(_) => field_type::ARRAY,
            Self::Timestamp(_) => field_type::TIMESTAMP,
            Self::Table(_) => field_type::TABLE,
            Self::Void => field_type::VOID,
            Self::Bytes(_) => field_type::BYTES,
        }
    }

    /// RabbitMQ's name of the type, as its error texts use it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        field_type::rabbitmq_name(self.tag())
    }

    /// The number, when the value is an integer of any width. Timestamps are none.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Self::I8(value) => Some(value.into()),
            Self::U8(value) => Some(value.into()),
            Self::I16(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::I32(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::I64(value) => Some(value),
            _ => None,
        }
    }

    /// The bytes, when the value is a long string.
    #[must_use]
    pub const fn as_long_str(&self) -> Option<&'a [u8]> {
        match *self {
            Self::LongStr(value) => Some(value),
            _ => None,
        }
    }

    /// Bytes that [`Value::encode`] writes, the tag included.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Void => 0,
            Self::Bool(_) | Self::I8(_) | Self::U8(_) => 1,
            Self::I16(_) | Self::U16(_) => 2,
            Self::I32(_) | Self::U32(_) | Self::F32(_) => 4,
            Self::Decimal(_) => 5,
            Self::I64(_) | Self::F64(_) | Self::Timestamp(_) => 8,
            Self::LongStr(bytes) | Self::Bytes(bytes) => 4 + bytes.len(),
            Self::Array(array) => 4 + array.as_bytes().len(),
            Self::Table(table) => 4 + table.as_bytes().len(),
        }
    }

    /// Writes the tag and the value.
    // Always in line: where the variant is known, nothing is left of the choice.
    #[inline(always)]
    pub fn encode(&self, sink: &mut impl Sink) {
        let tag = self.tag();
        match *self {
            Self::Bool(value) => sink.put(&[tag, value.into()]),
            Self::I8(value) => sink.put(&[tag, value as u8]),
            Self::U8(value) => sink.put(&[tag, value]),
            Self::I16(value) => put_tagged(tag, value.to_be_bytes(), sink),
            Self::U16(value) => put_tagged(tag, value.to_be_bytes(), sink),
            Self::I32(value) => put_tagged(tag, value.to_be_bytes(), sink),
            Self::U32(value) => put_tagged(tag, value.to_be_bytes(), sink),
            Self::I64(value) => put_tagged(tag, value.to_be_bytes(), sink),
            Self::F32(value) => put_tagged(tag, value.to_bits().to_be_bytes(), sink),
            Self::F64(value) => put_tagged(tag, value.to_bits().to_be_bytes(), sink),
            Self::Decimal(value) => {
                sink.put(&[tag, value.scale]);
                sink.put_u32(value.digits);
            }
            Self::LongStr(bytes) | Self::Bytes(bytes) => put_tagged_bytes(tag, bytes, sink),
            Self::Array(array) => put_tagged_bytes(tag, array.as_bytes(), sink),
            Self::Timestamp(value) => put_tagged(tag, value.to_be_bytes(), sink),
            Self::Table(table) => put_tagged_bytes(tag, table.as_bytes(), sink),
            Self::Void => sink.put_u8(tag),
        }
    }
}

#[inline]
fn put_tagged<const N: usize>(tag: u8, bytes: [u8; N], sink: &mut impl Sink) {
    sink.put_u8(tag);
    sink.put(&bytes);
}

#[inline]
fn put_tagged_bytes(tag: u8, bytes: &[u8], sink: &mut impl Sink) {
    sink.put_u8(tag);
    sink.put_u32(wire_len(bytes.len()));
    sink.put(bytes);
}

/// A length as the four bytes before a long string, table or array hold it.
///
/// # Panics
/// Above 4 GiB, which nothing can ask for that fits into a frame.
#[inline]
pub(crate) fn wire_len(len: usize) -> u32 {
    u32::try_from(len).expect("a field of at most 4 GiB")
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::LongStr(text.as_bytes())
    }
}

macro_rules! value_from {
    ($($variant:ident: $type:ty),*) => {$(
        impl From<$type> for Value<'_> {
            #[inline]
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

value_from!(Bool: bool, I8: i8, U8: u8, I16: i16, U16: u16, I32: i32, U32: u32, I64: i64, F32: f32, F64: f64);
value_from!(Decimal: Decimal);

impl<'a> From<Table<'a>> for Value<'a> {
    fn from(value: Table<'a>) -> Self {
        Self::Table(value)
    }
}

impl<'a> From<Array<'a>> for Value<'a> {
    fn from(value: Array<'a>) -> Self {
        Self::Array(value)
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => fmt::Debug::fmt(value, f),
            Self::I8(value) => write!(f, "{value}i8"),
            Self::U8(value) => write!(f, "{value}u8"),
            Self::I16(value) => write!(f, "{value}i16"),
            Self::U16(value) => write!(f, "{value}u16"),
            Self::I32(value) => write!(f, "{value}i32"),
            Self::U32(value) => write!(f, "{value}u32"),
            Self::I64(value) => write!(f, "{value}i64"),
            Self::F32(value) => write!(f, "{value:?}f32"),
            Self::F64(value) => write!(f, "{value:?}f64"),
            Self::Decimal(value) => write!(f, "{}e-{}", value.digits, value.scale),
            Self::LongStr(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Array(array) => fmt::Debug::fmt(array, f),
            Self::Timestamp(seconds) => write!(f, "@{seconds}"),
            Self::Table(table) => fmt::Debug::fmt(table, f),
            Self::Void => f.write_str("void"),
            Self::Bytes(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
        }
    }
}

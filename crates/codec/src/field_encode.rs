//! Encoding owned field tables.

use alloc::vec::Vec;

use crate::generated::constants::field_type;
use crate::sink::put_filled;
use crate::value::wire_len;
use crate::{FieldTable, FieldValue, Sink, Value};

impl FieldTable {
    /// Bytes that [`FieldTable::encode`] writes, the length before the entries included.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        4 + self.entries_len()
    }

    /// Bytes of the encoded entries alone.
    #[must_use]
    pub fn entries_len(&self) -> usize {
        self.iter().map(|(key, value)| 1 + key.len() + value.encoded_len()).sum()
    }

    /// Writes the length and the entries.
    pub fn encode(&self, sink: &mut impl Sink) {
        let entries_len = self.entries_len();
        put_filled!(sink, 4 + entries_len, |window| {
            window.put_u32(wire_len(entries_len));
            self.encode_entries(window);
        });
    }

    /// The encoded entries, as [`Table::from_entries`](crate::Table::from_entries) takes them.
    #[must_use]
    pub fn to_entries(&self) -> Vec<u8> {
        let mut entries = Vec::new();
        put_filled!(entries, self.entries_len(), |window| self.encode_entries(window));
        entries
    }

    /// Writes the entries alone, as [`Table::from_entries`](crate::Table::from_entries) takes them.
    pub fn encode_entries(&self, sink: &mut impl Sink) {
        for (key, value) in self.iter() {
            sink.put_short_str(key.as_short_str());
            value.encode(sink);
        }
    }
}

impl FieldValue {
    /// The value as a borrowed one, unless it is a table or an array, whose borrowed form is
    /// encoded.
    #[inline]
    pub(crate) fn as_scalar(&self) -> Option<Value<'_>> {
        Some(match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::I8(value) => Value::I8(*value),
            Self::U8(value) => Value::U8(*value),
            Self::I16(value) => Value::I16(*value),
            Self::U16(value) => Value::U16(*value),
            Self::I32(value) => Value::I32(*value),
            Self::U32(value) => Value::U32(*value),
            Self::I64(value) => Value::I64(*value),
            Self::F32(value) => Value::F32(*value),
            Self::F64(value) => Value::F64(*value),
            Self::Decimal(value) => Value::Decimal(*value),
            Self::LongStr(value) => Value::LongStr(value),
            Self::Timestamp(value) => Value::Timestamp(*value),
            Self::Void => Value::Void,
            Self::Bytes(value) => Value::Bytes(value),
            Self::Array(_) | Self::Table(_) => return None,
        })
    }

    /// RabbitMQ's name of the type, as its error texts use it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        field_type::rabbitmq_name(match self {
            Self::Array(_) => field_type::ARRAY,
            Self::Table(_) => field_type::TABLE,
            other => other.as_scalar().map_or(field_type::VOID, |value| value.tag()),
        })
    }

    /// Bytes that [`FieldValue::encode`] writes, the tag included.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Void => 0,
            Self::Bool(_) | Self::I8(_) | Self::U8(_) => 1,
            Self::I16(_) | Self::U16(_) => 2,
            Self::I32(_) | Self::U32(_) | Self::F32(_) => 4,
            Self::Decimal(_) => 5,
            Self::I64(_) | Self::F64(_) | Self::Timestamp(_) => 8,
            Self::LongStr(bytes) | Self::Bytes(bytes) => 4 + bytes.len(),
            Self::Array(elements) => 4 + elements_len(elements),
            Self::Table(table) => table.encoded_len(),
        }
    }

    /// Writes the tag and the value.
    pub fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::LongStr(bytes) => Value::LongStr(bytes).encode(sink),
            Self::Bool(value) => Value::Bool(*value).encode(sink),
            Self::I8(value) => Value::I8(*value).encode(sink),
            Self::U8(value) => Value::U8(*value).encode(sink),
            Self::I16(value) => Value::I16(*value).encode(sink),
            Self::U16(value) => Value::U16(*value).encode(sink),
            Self::I32(value) => Value::I32(*value).encode(sink),
            Self::U32(value) => Value::U32(*value).encode(sink),
            Self::I64(value) => Value::I64(*value).encode(sink),
            Self::F32(value) => Value::F32(*value).encode(sink),
            Self::F64(value) => Value::F64(*value).encode(sink),
            Self::Decimal(value) => Value::Decimal(*value).encode(sink),
            Self::Timestamp(value) => Value::Timestamp(*value).encode(sink),
            Self::Void => Value::Void.encode(sink),
            Self::Bytes(bytes) => Value::Bytes(bytes).encode(sink),
            Self::Array(elements) => {
                sink.put_u8(field_type::ARRAY);
                sink.put_u32(wire_len(elements_len(elements)));
                for element in elements {
                    element.encode(sink);
                }
            }
            Self::Table(table) => {
                sink.put_u8(field_type::TABLE);
                sink.put_u32(wire_len(table.entries_len()));
                table.encode_entries(sink);
            }
        }
    }
}

fn elements_len(elements: &[FieldValue]) -> usize {
    elements.iter().map(FieldValue::encoded_len).sum()
}

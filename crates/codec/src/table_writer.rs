//! Writing a field table entry by entry, without an owned table in between.

use alloc::vec::Vec;

use crate::generated::constants::field_type;
use crate::sink::put_filled;
use crate::value::wire_len;
use crate::{ShortStr, Sink, Value};

/// Appends the entries of a table to a buffer; what it writes reads as
/// [`Table::from_entries`](crate::Table::from_entries).
///
/// ```
/// use courser_codec::{ShortStr, Table, TableWriter};
///
/// let mut entries = Vec::new();
/// TableWriter::new(&mut entries)
///     .put(ShortStr::from_static("product"), "Courser")
///     .table(ShortStr::from_static("capabilities"), |inner| {
///         inner.put(ShortStr::from_static("basic.nack"), true);
///     });
/// assert_eq!(Table::from_entries(&entries).iter().count(), 2);
/// ```
pub struct TableWriter<'v> {
    out: &'v mut Vec<u8>,
}

impl<'v> TableWriter<'v> {
    /// A writer that appends to `out`.
    #[must_use]
    pub fn new(out: &'v mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends an entry.
    pub fn put<'a>(&mut self, key: ShortStr<'_>, value: impl Into<Value<'a>>) -> &mut Self {
        let value = value.into();
        put_filled!(self.out, 1 + key.len() + value.encoded_len(), |window| {
            window.put_short_str(key);
            value.encode(window);
        });
        self
    }

    /// Appends a table whose entries `fill` writes.
    pub fn table(
        &mut self,
        key: ShortStr<'_>,
        fill: impl FnOnce(&mut TableWriter<'_>),
    ) -> &mut Self {
        self.out.put_short_str(key);
        self.out.put_u8(field_type::TABLE);
        let start = self.out.len();
        self.out.put_u32(0);
        fill(&mut TableWriter { out: self.out });
        let len = wire_len(self.out.len() - start - 4);
        self.out[start..start + 4].copy_from_slice(&len.to_be_bytes());
        self
    }
}

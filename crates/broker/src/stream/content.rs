//! What a stream's reader looks at in a message, and what it adds to it.

use crate::fault::{Fault, Resource};
use crate::headers::find;
use crate::keyed::KeyedSet;
use crate::memory::{Charge, Memory, Use};
use courser_codec::{CONTENT_HEADER_FIXED_LEN, ShortStr};
use courser_codec::{ContentHeader, FieldTable, FieldValue, Properties, Table, TableWriter, Value};
use std::sync::Arc;

const OFFSET: &str = "x-stream-offset";
/// The header's name as it stands in a table: with its length in front.
const OFFSET_KEY: &[u8] = b"\x0fx-stream-offset";
const FILTER_VALUE: &str = "x-stream-filter-value";
/// The argument of `basic.consume` that names what a consumer wants, one value or several.
pub(crate) const FILTER: &str = "x-stream-filter";
/// The argument that says whether it wants what has no value, too.
pub(crate) const MATCH_UNFILTERED: &str = "x-stream-match-unfiltered";

/// Which messages a consumer wants.
#[derive(Debug)]
pub(crate) struct Filter {
    values: KeyedSet<Vec<u8>>,
    unfiltered_too: bool,
    _charge: Charge,
}

/// What the allocation of a value takes besides the value.
const VALUE_BYTES: usize = 16;

impl Filter {
    /// What a consumer's arguments ask for; none if it wants everything. Counted in `memory`.
    ///
    /// # Errors
    /// When they can't be meant, or there is no room for it.
    pub fn parse(
        arguments: &FieldTable,
        memory: &Arc<Memory>,
        queue: &Resource<'_>,
    ) -> Result<Option<Self>, Fault> {
        let refused = |name: &str, value: &FieldValue| {
            let got = value.type_name();
            Fault::precondition_failed(format_args!(
                "invalid arg '{name}' for {queue}: {{unacceptable_type,{got}}}"
            ))
        };
        let unfiltered_too = match arguments.get(MATCH_UNFILTERED) {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| refused(MATCH_UNFILTERED, value))?,
        };
        let Some(filter) = arguments.get(FILTER) else { return Ok(None) };
        let several = filter.as_array().unwrap_or(std::slice::from_ref(filter));
        let text = |value: &FieldValue| {
            value.as_long_str().map(<[u8]>::to_vec).ok_or_else(|| refused(FILTER, value))
        };
        let values: KeyedSet<Vec<u8>> = several.iter().map(text).collect::<Result<_, _>>()?;
        // Place and control byte, in a table of which an eighth stays free.
        let table_bytes = values.capacity() * (size_of::<Vec<u8>>() + 1) * 8 / 7;
        let bytes = values.iter().map(|value| value.len() + VALUE_BYTES).sum::<usize>();
        memory.admit_held(table_bytes + bytes, |_| false)?;
        let charge = memory.charge(Use::Channels, table_bytes + bytes);
        Ok(Some(Filter { values, unfiltered_too, _charge: charge }))
    }

    /// Whether a message with this content header is wanted.
    pub fn wants(&self, header: &[u8]) -> bool {
        let is_meant = |name: &[u8]| name == FILTER_VALUE.as_bytes();
        match headers(header).and_then(|headers| find(headers, is_meant).ok()?) {
            Some(Value::LongStr(value)) => self.values.contains(value),
            _ => self.unfiltered_too,
        }
    }
}

fn headers(header: &[u8]) -> Option<Table<'_>> {
    ContentHeader::parse(header).ok()?.properties.headers().ok()?
}

/// Writes the content header `header` into `out` (which is emptied) with the offset of its message
/// among the headers, instead of one that it may have come with. A header that makes no sense is
/// left as it is.
pub(super) fn put_offset(header: &[u8], offset: u64, out: &mut Vec<u8>) {
    out.clear();
    if put_parts(header, offset, out).is_none() {
        out.clear();
        out.extend_from_slice(header);
    }
}

/// Puts the offset first into the table of headers; what stands around it is copied.
fn put_parts(header: &[u8], offset: u64, out: &mut Vec<u8>) -> Option<()> {
    let (fixed, properties) = header.split_at_checked(CONTENT_HEADER_FIXED_LEN)?;
    let (flags, values) = properties.split_first_chunk::<2>()?;
    let flags = u16::from_be_bytes(*flags);
    let mut before_len = 0;
    for flag in [Properties::CONTENT_TYPE_FLAG, Properties::CONTENT_ENCODING_FLAG] {
        if flags & flag != 0 {
            before_len += 1 + usize::from(*values.get(before_len)?);
        }
    }
    let (before, rest) = values.split_at_checked(before_len)?;
    let (entries, after) = if flags & Properties::HEADERS_FLAG != 0 {
        let (table, len) = Table::parse(rest).ok()?;
        (table, &rest[len..])
    } else {
        (Table::EMPTY, rest)
    };
    out.extend_from_slice(fixed);
    out.extend_from_slice(&(flags | Properties::HEADERS_FLAG).to_be_bytes());
    out.extend_from_slice(before);
    let table_at = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut table = TableWriter::new(out);
    table.put(ShortStr::from_static(OFFSET), Value::I64(offset.cast_signed()));
    if has_offset(entries) {
        for entry in entries.iter() {
            let (name, value) = entry.ok()?;
            if name.as_bytes() != OFFSET.as_bytes() {
                table.put(name, value);
            }
        }
    } else {
        out.extend_from_slice(entries.as_bytes());
    }
    let table_len = u32::try_from(out.len() - table_at - 4).ok()?;
    out[table_at..table_at + 4].copy_from_slice(&table_len.to_be_bytes());
    out.extend_from_slice(after);
    Some(())
}

/// Whether a message may have an offset already: one that was read from a stream and published
/// again. A look at the bytes is enough to say no.
fn has_offset(entries: Table<'_>) -> bool {
    entries.as_bytes().windows(OFFSET_KEY.len()).any(|bytes| bytes == OFFSET_KEY)
}

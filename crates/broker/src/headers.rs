//! What is looked up in the headers of a message, and content headers with other headers.
//!
//! A client may send tens of thousands of headers with a message, all of the same name if it likes. Each look takes every header
//! once, and is counted, as a message that waits may be looked at again and again. The bytes of the value that is found count as well:
//! the caller reads them.

use crate::work;
use courser_codec::{
    CONTENT_HEADER_FIXED_LEN, ContentHeader, DecodeError, Properties, Table, TableWriter, Value,
};

/// The value of the first header whose name is meant.
///
/// # Errors
/// When a header up to there is malformed.
pub(crate) fn find<'t>(
    headers: Table<'t>,
    is_meant: impl Fn(&[u8]) -> bool,
) -> Result<Option<Value<'t>>, DecodeError> {
    let mut looked_at = 0;
    let found = headers.iter().inspect(|_| looked_at += 1).find(|entry| match entry {
        Ok((name, _)) => is_meant(name.as_bytes()),
        Err(_) => true,
    });
    work::count(looked_at);
    let found = found.transpose()?.map(|(_, value)| value);
    found.iter().for_each(|value| work::count_bytes(value.encoded_len()));
    Ok(found)
}

/// Writes a content header into `out` (which is emptied) with those of its headers that `keep` gives a value, and behind them what
/// `put` writes. Class, weight and body size stay.
///
/// # Errors
/// When a header is malformed; then `out` is of no use.
pub(crate) fn rewrite<'h>(
    header: &'h [u8],
    mut keep: impl FnMut(&[u8], Value<'h>) -> Option<Value<'h>>,
    put: impl FnOnce(&mut TableWriter<'_>),
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let properties = ContentHeader::parse(header)?.properties.decode()?;
    let headers = properties.headers.unwrap_or_default();
    let (mut entries, mut looked_at) = (Vec::with_capacity(headers.as_bytes().len() + 64), 0);
    let mut table = TableWriter::new(&mut entries);
    for entry in headers.iter() {
        let (name, value) = entry?;
        looked_at += 1;
        if let Some(value) = keep(name.as_bytes(), value) {
            table.put(name, value);
        }
    }
    put(&mut table);
    work::count(looked_at);
    out.clear();
    out.extend_from_slice(&header[..CONTENT_HEADER_FIXED_LEN]);
    Properties { headers: Some(Table::from_entries(&entries)), ..properties }.encode(out);
    Ok(())
}

//! The headers CC and BCC: further routing keys that a publisher names (RabbitMQ's sender-selected
//! distribution). BCC is not shown to consumers.

use crate::fault::Fault;
use crate::{headers, work};
use courser_codec::{ContentHeader, DecodeError, Properties, RawProperties, Value};
use courser_store::MessageRef;
use std::borrow::Cow;
use std::collections::HashSet;

const CC: &[u8] = b"CC";
const BCC: &[u8] = b"BCC";

/// Whether a message names more keys than its routing key.
pub(crate) fn names_more_keys(properties: RawProperties<'_>) -> Result<bool, DecodeError> {
    if properties.flags() & Properties::HEADERS_FLAG == 0 {
        return Ok(false);
    }
    let Some(headers) = properties.headers()? else { return Ok(false) };
    Ok(headers::find(headers, |name| matches!(name, CC | BCC))?.is_some())
}

/// The routing keys of a message with these well-formed properties, each once: that of the publish, then
/// those that its headers name.
pub(crate) fn keys<'m>(
    routing_key: &'m [u8],
    properties: RawProperties<'m>,
) -> Result<Vec<&'m [u8]>, Fault> {
    let malformed =
        |error: DecodeError| Fault::new(502, format_args!("malformed content header: {error}"));
    let mut found = vec![routing_key];
    if !names_more_keys(properties).map_err(malformed)? {
        return Ok(found);
    }
    let headers = properties.headers().map_err(malformed)?.unwrap_or_default();
    // Its hashes are none that a client could know: keys that collide would take long.
    let mut seen = HashSet::from([routing_key]);
    for entry in headers.iter().inspect(|_| work::count(1)) {
        let (name, value) = entry.map_err(malformed)?;
        if !matches!(name.as_bytes(), CC | BCC) {
            continue;
        }
        let Value::Array(array) = value else {
            return Err(Fault::precondition_failed(format_args!(
                "invalid message: {{unacceptable_type_in_header,\"{name}\",{}}}",
                value.type_name()
            )));
        };
        for element in array.iter().inspect(|_| work::count(1)) {
            if let Value::LongStr(key) = element.map_err(malformed)?
                && seen.insert(key)
            {
                found.push(key);
            }
        }
    }
    Ok(found)
}

/// The keys of a message that has been published: one that was given another key goes by that alone.
pub(crate) fn keys_of<'m>(
    message: &MessageRef<'m>,
    properties: RawProperties<'m>,
) -> Result<Vec<&'m [u8]>, Fault> {
    match message.one_key {
        true => Ok(vec![message.routing_key()]),
        false => keys(message.routing_key(), properties),
    }
}

/// A content header as consumers get it, without BCC.
pub(crate) fn shown(header: &[u8]) -> Cow<'_, [u8]> {
    without_bcc(header).ok().flatten().map_or(Cow::Borrowed(header), Cow::Owned)
}

/// A content header without each BCC that it has; none if it has none.
fn without_bcc(header: &[u8]) -> Result<Option<Vec<u8>>, DecodeError> {
    let headers = ContentHeader::parse(header)?.properties.headers()?.unwrap_or_default();
    if headers::find(headers, |name| name == BCC)?.is_none() {
        return Ok(None);
    }
    let mut shown = Vec::new();
    let keep = |name: &[u8], value| (name != BCC).then_some(value);
    headers::rewrite(header, keep, |_| {}, &mut shown)?;
    Ok(Some(shown))
}

//! Publishes as they are sent: where to, with which key, and their contents.

use crate::model::{Path, Publish};
use crate::topology::{BRIEF, CHAIN, DIRECT, HASH, KEY, LATER, LONG_KEY, OTHER, WORK};
use courser_codec::{FieldTable, FieldValue, Properties, ShortString, Table};

pub fn exchange_of(path: Path) -> &'static str {
    match path {
        Path::Name | Path::Other => "",
        Path::Direct | Path::Unbound => DIRECT,
        Path::Chain => CHAIN,
        Path::Hash(_) => HASH,
        Path::Later => LATER,
        Path::Brief => BRIEF,
    }
}

pub fn key_of(path: Path, is_long: bool) -> String {
    match path {
        Path::Direct | Path::Chain | Path::Later if is_long => LONG_KEY.to_owned(),
        Path::Name => WORK.to_owned(),
        Path::Other => OTHER.to_owned(),
        Path::Unbound => "nothing".to_owned(),
        Path::Hash(key) => format!("key {key}"),
        _ => KEY.to_owned(),
    }
}

/// What a publish says besides what the model knows of it.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// The header that names more keys.
    pub more_keys: Option<&'static str>,
    /// How often the same key is named.
    pub repeated: usize,
    /// The size that the content header has at least.
    pub header_bytes: usize,
    /// It has the longest key there can be, where keys decide.
    pub has_long_key: bool,
}

/// The content header and the body of a message.
pub fn content(publish: &Publish, extra: &Extra) -> (Vec<u8>, Vec<u8>) {
    let message = &publish.message;
    let mut body = message.id.to_le_bytes().to_vec();
    body.resize(message.bytes, message.id as u8);
    let mut headers = FieldTable::new();
    if let Some(mark) = message.mark {
        headers = headers.with("x-deduplication-header", format!("mark {mark}"));
    }
    if let Some(delay_ms) = publish.delay_ms {
        headers = headers.with("x-delay", delay_ms as i64);
    }
    if let Some(name) = extra.more_keys {
        let keys = vec![FieldValue::from(OTHER); extra.repeated.max(1)];
        headers = headers.with(name, FieldValue::Array(keys));
    }
    let header = encode(publish, &headers, body.len());
    let with_padding = |padding| {
        encode(publish, &headers.clone().with("padding", "p".repeat(padding)), body.len())
    };
    let padding = extra.header_bytes.checked_sub(with_padding(0).len());
    (padding.map_or(header, with_padding), body)
}

fn encode(publish: &Publish, headers: &FieldTable, body_bytes: usize) -> Vec<u8> {
    let message = &publish.message;
    let expiration = message.ttl_ms.map(|ttl_ms| ttl_ms.to_string());
    let expiration = expiration.and_then(|text| ShortString::try_from(text.as_str()).ok());
    let entries = headers.to_entries();
    let properties = Properties {
        headers: (!entries.is_empty()).then(|| Table::from_entries(&entries)),
        delivery_mode: message.persistent.then_some(2),
        priority: (message.priority > 0).then_some(message.priority),
        expiration: expiration.as_ref().map(ShortString::as_short_str),
        ..Properties::default()
    };
    let mut header = vec![0, 60, 0, 0];
    header.extend_from_slice(&(body_bytes as u64).to_be_bytes());
    properties.encode(&mut header);
    header
}

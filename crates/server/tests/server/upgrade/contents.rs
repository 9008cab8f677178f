//! What is in a fixture, for who makes it and for who looks for it.

use courser_client::{FieldTable, FieldValue, OwnedProperties, ShortString};
use courser_codec::Decimal;
use serde_json::Value;

/// Vhosts with the same in them: of one a checkpoint tells, of the other the log behind it.
pub const VHOSTS: [&str; 2] = ["checkpoint", "log"];

pub const HOUR_MS: i64 = 3_600_000;
pub const DAY_MS: i64 = 24 * HOUR_MS;
/// Nearly as far away as the broker lets anything be.
pub const NINE_YEARS_MS: i64 = 9 * 365 * DAY_MS;

/// Messages of the stream that keeps all, and of the one that is cut.
pub const STREAMED: u64 = 320;
pub const TRIMMED: u64 = 420;
/// How many of these come after the rest.
pub const LATER: u64 = 20;

/// Bytes of a message that needs several frames.
pub const LARGE_BYTES: usize = 700_000;

/// Definitions, as a file of them names them, of one of the vhosts.
pub fn definitions(text: &str, vhost: &str) -> Value {
    serde_json::from_str(&text.replace("VHOST", vhost)).expect("JSON")
}

pub fn short(text: &str) -> ShortString {
    ShortString::try_from(text).expect("a short text")
}

/// Each property, and a header of each type.
pub fn all_properties() -> OwnedProperties {
    let headers = FieldTable::new()
        .with("bool", true)
        .with("i8", -8i8)
        .with("u8", 8u8)
        .with("i16", -16i16)
        .with("u16", 16u16)
        .with("i32", -32i32)
        .with("u32", 32u32)
        .with("i64", -64i64)
        .with("f32", 0.5f32)
        .with("f64", 0.25f64)
        .with("decimal", Decimal { scale: 2, digits: 314 })
        .with("text", "text")
        .with("array", vec![FieldValue::I32(1), "two".into()])
        .with("timestamp", FieldValue::Timestamp(1_000_000_000))
        .with("table", FieldTable::new().with("inner", "value"))
        .with("void", FieldValue::Void)
        .with("bytes", FieldValue::Bytes(vec![0, 255]));
    OwnedProperties {
        content_type: Some(short("text/plain")),
        content_encoding: Some(short("identity")),
        headers: Some(headers),
        delivery_mode: Some(2),
        priority: Some(3),
        correlation_id: Some(short("correlation")),
        reply_to: Some(short("answers")),
        expiration: Some(short(&NINE_YEARS_MS.to_string())),
        message_id: Some(short("message")),
        timestamp: Some(1_234_567_890),
        kind: Some(short("kind")),
        user_id: Some(short("guest")),
        app_id: Some(short("app")),
        cluster_id: Some(short("cluster")),
    }
}

/// A persistent message with one header.
pub fn with_header(name: &str, value: impl Into<FieldValue>) -> OwnedProperties {
    let headers = Some(FieldTable::new().with(name, value));
    OwnedProperties { headers, ..persistent() }
}

pub fn persistent() -> OwnedProperties {
    OwnedProperties { delivery_mode: Some(2), ..OwnedProperties::default() }
}

/// What the message with this offset of a stream says: so much that a few fill a page of the smallest size.
pub fn streamed(offset: u64) -> String {
    format!("message {offset} {:-<150}", "")
}

/// By what streams are filtered; every third message has nothing.
pub fn filter_value(offset: u64) -> Option<&'static str> {
    [Some("one"), Some("two"), None][(offset % 3) as usize]
}

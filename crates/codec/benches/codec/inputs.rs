//! The values and bytes that the rows work on; the Go side has the same.

use courser_codec::{
    FieldTable, Frame, FrameKind, Properties, RawProperties, ShortStr, Table, basic,
    write_body_frame, write_content_header_frame,
};

/// A short string of a literal.
pub fn text(text: &'static str) -> ShortStr<'static> {
    ShortStr::from_static(text)
}

/// A method frame on channel 1 around so many zeros.
pub fn frame(payload_len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    Frame { kind: FrameKind::Method, channel: 1, payload: &vec![0; payload_len] }.encode(&mut out);
    out
}

/// Two entries.
pub fn table_2() -> FieldTable {
    FieldTable::new().with("key1", "value1").with("key2", 42)
}

/// Ten entries of the usual types.
pub fn table_10() -> FieldTable {
    FieldTable::new()
        .with("key1", "value1")
        .with("key2", 42)
        .with("key3", true)
        .with("key4", "another string")
        .with("key5", 999)
        .with("key6", false)
        .with("key7", "more data")
        .with("key8", 12345)
        .with("key9", "test value")
        .with("key10", 67890)
}

/// The first five of the ten entries.
pub fn table_5() -> FieldTable {
    table_10().into_iter().take(5).collect()
}

/// A table in a table.
pub fn table_nested() -> FieldTable {
    let nested = FieldTable::new().with("inner1", "inner value").with("inner2", 100);
    FieldTable::new().with("key1", "value1").with("nested", nested).with("key2", 42)
}

/// The properties of the full content header. `headers` are the encoded ones of [`header_table`].
pub fn full_properties(headers: &[u8]) -> Properties<'_> {
    Properties {
        content_type: Some(text("application/json")),
        content_encoding: Some(text("utf-8")),
        headers: Some(Table::from_entries(headers)),
        delivery_mode: Some(2),
        priority: Some(5),
        correlation_id: Some(text("correlation-123")),
        reply_to: Some(text("reply-queue")),
        expiration: Some(text("60000")),
        message_id: Some(text("msg-456")),
        timestamp: Some(1_609_459_200),
        ..Default::default()
    }
}

/// The headers in the full content header.
pub fn header_table() -> FieldTable {
    FieldTable::new().with("x-custom", "value")
}

/// The properties of the content header that is decoded.
pub fn two_properties() -> Properties<'static> {
    Properties {
        content_type: Some(text("application/json")),
        delivery_mode: Some(2),
        ..Default::default()
    }
}

/// Publishes with a body of 1 KiB each, as a client sends them.
pub fn publish_stream(publishes: usize) -> Vec<u8> {
    let publish = basic::Publish {
        exchange: text("test.exchange"),
        routing_key: text("test.key"),
        ..Default::default()
    };
    let mut properties = Vec::new();
    two_properties().encode(&mut properties);
    let properties = RawProperties::from_encoded(&properties).expect("what was encoded");
    let body = [7; 1024];
    let mut stream = Vec::new();
    for _ in 0..publishes {
        publish.write_frame(1, &mut stream);
        write_content_header_frame(1, basic::CLASS_ID, 1024, properties, &mut stream);
        write_body_frame(1, &body, &mut stream);
    }
    stream
}

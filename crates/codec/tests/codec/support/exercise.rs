//! Reads bytes in every way there is; nothing may panic, and what reads must write and read again
//! alike.
//!
//! Tests give this generated and changed bytes, the fuzzer whatever it comes upon.

use courser_codec::{
    Array, CONTENT_HEADER_FIXED_LEN, ContentHeader, DecodeError, Frame, FrameKind, Method,
    RawProperties, Table, Value,
};

/// Reads the bytes as everything they could be.
pub fn decode_anything(input: &[u8]) {
    let mut rest = input;
    while let Ok(Some((frame, used))) = Frame::parse(rest, 0) {
        assert!(used <= rest.len());
        payload(&frame);
        rest = &rest[used..];
    }
    let _ = Frame::parse(input, 4096);
    within(input, Method::decode(input).map(drop));
    header(input);
    table(Table::from_entries(input));
    array(Array::from_elements(input));
    if let Ok((inner, used)) = Table::parse(input) {
        assert_eq!(used, 4 + inner.as_bytes().len());
        table(inner);
    }
}

/// What reads is written, and reads as the same again.
pub fn decode_encode_decode(input: &[u8]) {
    if let Ok(Some((frame, used))) = Frame::parse(input, 0) {
        let mut out = Vec::new();
        frame.encode(&mut out);
        assert_eq!(out, input[..used]);
        payload_again(&frame);
    }
    method_again(input);
    properties_again(input);
    table_again(Table::from_entries(input));
}

fn payload(frame: &Frame<'_>) {
    match frame.kind {
        FrameKind::Method => within(frame.payload, Method::decode(frame.payload).map(drop)),
        FrameKind::Header => header(frame.payload),
        FrameKind::Body | FrameKind::Heartbeat => {}
    }
}

fn payload_again(frame: &Frame<'_>) {
    match frame.kind {
        FrameKind::Method => method_again(frame.payload),
        FrameKind::Header => {
            properties_again(frame.payload.get(CONTENT_HEADER_FIXED_LEN..).unwrap_or_default())
        }
        FrameKind::Body | FrameKind::Heartbeat => {}
    }
}

/// An error points into the input, or at its end.
fn within(input: &[u8], result: Result<(), DecodeError>) {
    if let Err(error) = result {
        assert!(error.offset <= input.len(), "{error} in {} bytes", input.len());
        assert!(!error.to_string().is_empty());
    }
}

fn header(input: &[u8]) {
    within(input, ContentHeader::parse(input).map(drop));
    if let Ok(header) = ContentHeader::parse(input) {
        let properties = header.properties;
        within(properties.as_bytes(), properties.decode().map(drop));
        within(properties.as_bytes(), properties.validate());
        accessors_agree(&properties);
        let _ = format!("{header:?}");
    }
}

/// Single properties are what decoding everything gives. They are there for more inputs: bytes
/// after them do not matter.
fn accessors_agree(raw: &RawProperties<'_>) {
    let headers = raw.headers();
    let last = raw.cluster_id();
    if let Ok(all) = raw.decode() {
        assert_eq!(raw.content_type(), Ok(all.content_type));
        assert_eq!(headers, Ok(all.headers));
        assert_eq!(raw.delivery_mode(), Ok(all.delivery_mode));
        assert_eq!(raw.priority(), Ok(all.priority));
        assert_eq!(raw.expiration(), Ok(all.expiration));
        assert_eq!(raw.timestamp(), Ok(all.timestamp));
        assert_eq!(last, Ok(all.cluster_id));
    }
}

fn table(table: Table<'_>) {
    let validated = table.validate();
    within(table.as_bytes(), validated);
    assert_eq!(validated, table.to_owned().map(drop));
    let _ = table.get("key");
    let _ = format!("{table:?}");
    for (_, value) in table.iter().flatten() {
        scalar(value);
    }
}

fn array(array: Array<'_>) {
    let validated = array.validate();
    within(array.as_bytes(), validated);
    assert_eq!(validated, array.to_owned().map(drop));
    array.iter().flatten().for_each(scalar);
}

fn scalar(value: Value<'_>) {
    let mut out = Vec::new();
    value.encode(&mut out);
    assert_eq!(out.len(), value.encoded_len());
    assert_ne!(value.type_name(), "unknown");
}

fn method_again(input: &[u8]) {
    let Ok(method) = Method::decode(input) else { return };
    let mut out = Vec::new();
    method.write_frame(1, &mut out);
    assert_eq!(out.len(), Frame::OVERHEAD + method.encoded_len());
    let (frame, used) = Frame::parse(&out, 0).expect("a frame").expect("all of it");
    assert_eq!((used, Method::decode(frame.payload)), (out.len(), Ok(method)));
}

fn properties_again(input: &[u8]) {
    let Ok(raw) = RawProperties::from_encoded(input) else { return };
    let Ok(properties) = raw.decode() else { return };
    let mut out = Vec::new();
    properties.encode(&mut out);
    assert_eq!((&*out, out.len()), (input, properties.encoded_len()));
    if let Ok(owned) = properties.to_owned() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        owned.encode(&mut first);
        assert_eq!(first.len(), owned.encoded_len());
        let again = RawProperties::from_encoded(&first)
            .and_then(|raw| raw.decode())
            .expect("what was written");
        again.to_owned().expect("what was written").encode(&mut second);
        assert_eq!(first, second);
    }
}

fn table_again(table: Table<'_>) {
    let Ok(owned) = table.to_owned() else { return };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    owned.encode(&mut first);
    assert_eq!(first.len(), owned.encoded_len());
    let (again, used) = Table::parse(&first).expect("what was written");
    assert_eq!(used, first.len());
    // Compared as bytes, since a NaN is not equal to itself.
    again.to_owned().expect("what was written").encode(&mut second);
    assert_eq!(first, second);
}

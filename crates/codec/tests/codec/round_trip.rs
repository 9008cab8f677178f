//! What is written reads as what it was.

use courser_codec::{
    ContentHeader, FieldTable, FieldValue, Frame, FrameError, FrameKind, HEARTBEAT_FRAME, Method,
    Properties, RawProperties, ShortStr, Table, basic, queue, write_content_header_frame,
};

fn text(text: &str) -> ShortStr<'_> {
    text.try_into().unwrap()
}

#[test]
fn a_publish_has_the_bytes_of_the_specification() {
    let publish = basic::Publish {
        exchange: text("x"),
        routing_key: text("key"),
        mandatory: true,
        immediate: false,
    };
    let mut out = Vec::new();
    publish.write_frame(7, &mut out);
    assert_eq!(out, b"\x01\x00\x07\x00\x00\x00\x0d\x00\x3c\x00\x28\x00\x00\x01x\x03key\x01\xce");
    let (frame, used) = Frame::parse(&out, 4096).unwrap().unwrap();
    assert_eq!((frame.kind, frame.channel, used), (FrameKind::Method, 7, out.len()));
    assert_eq!(Method::decode(frame.payload), Ok(publish.into()));
}

#[test]
fn a_declare_with_arguments_comes_back() {
    let arguments =
        FieldTable::new().with("x-message-ttl", 60_000).with("x-dead-letter-exchange", "dlx").with(
            "nested",
            FieldTable::new().with("list", vec![FieldValue::Void, FieldValue::U16(65_535)]),
        );
    let entries = arguments.to_entries();
    let declare = queue::Declare {
        queue: text("q"),
        durable: true,
        auto_delete: true,
        arguments: Table::from_entries(&entries),
        ..Default::default()
    };
    let mut args = Vec::new();
    declare.encode(&mut args);
    assert_eq!(args.len(), declare.encoded_len());
    let back = queue::Declare::decode(&args).unwrap();
    assert_eq!(back, declare);
    assert_eq!(back.arguments.to_owned().unwrap(), arguments);
    assert_eq!(back.arguments.get("x-message-ttl").unwrap().unwrap().as_integer(), Some(60_000));
}

#[test]
fn single_properties_are_found_without_the_others() {
    let headers = FieldTable::new().with("k", "v").to_entries();
    let properties = Properties {
        content_type: Some(text("text/plain")),
        headers: Some(Table::from_entries(&headers)),
        delivery_mode: Some(2),
        expiration: Some(text("1000")),
        timestamp: Some(1_609_459_200),
        app_id: Some(text("app")),
        ..Default::default()
    };
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    assert_eq!(encoded.len(), properties.encoded_len());
    let raw = RawProperties::from_encoded(&encoded).unwrap();
    assert_eq!(raw.decode(), Ok(properties));
    assert_eq!(raw.delivery_mode(), Ok(Some(2)));
    assert_eq!(raw.priority(), Ok(None));
    assert_eq!(raw.expiration(), Ok(Some(text("1000"))));
    assert_eq!(raw.app_id(), Ok(Some(text("app"))));
    assert_eq!(raw.validate(), Ok(()));

    let mut frame = Vec::new();
    write_content_header_frame(1, basic::CLASS_ID, 5, raw, &mut frame);
    let (frame, _) = Frame::parse(&frame, 0).unwrap().unwrap();
    let header = ContentHeader::parse(frame.payload).unwrap();
    assert_eq!((header.class_id, header.body_size, header.properties), (60, 5, raw));
}

#[test]
fn a_frame_is_taken_only_when_it_is_whole() {
    for end in 0..HEARTBEAT_FRAME.len() {
        assert_eq!(Frame::parse(&HEARTBEAT_FRAME[..end], 4096), Ok(None));
    }
    let (frame, used) = Frame::parse(&HEARTBEAT_FRAME, 4096).unwrap().unwrap();
    assert_eq!((frame.kind, used, frame.payload.len()), (FrameKind::Heartbeat, 8, 0));
}

#[test]
fn what_is_no_frame_is_refused_at_once() {
    assert_eq!(Frame::parse(b"G", 4096), Err(FrameError::UnknownType(b'G')));
    assert_eq!(
        Frame::parse(b"\x03\0\x01\0\0\x0f\xf9", 4096),
        Err(FrameError::TooLarge { size: 4097, max: 4096 })
    );
    assert_eq!(Frame::parse(b"\x03\0\x01\0\0\x0f\xf8", 4096), Ok(None));
    assert_eq!(Frame::parse(b"\x08\0\0\0\0\0\0\xcd", 4096), Err(FrameError::BadEnd(0xcd)));
}

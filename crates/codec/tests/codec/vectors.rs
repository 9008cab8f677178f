//! The vectors of `spec/vectors/`, read and written.

use crate::support::values::{Values, entries};
use crate::support::{by_name, bytes_at, vectors, written};
use courser_codec::{
    ContentHeader, DecodeError, DecodeErrorKind, Frame, FrameError, FrameKind, Method, Table, basic,
};
use serde_json::Value as Json;

fn kind(name: &Json) -> FrameKind {
    match name.as_str() {
        Some("method") => FrameKind::Method,
        Some("header") => FrameKind::Header,
        Some("body") => FrameKind::Body,
        Some("heartbeat") => FrameKind::Heartbeat,
        other => panic!("unknown frame type {other:?}"),
    }
}

#[test]
fn frames_read_and_write_as_the_vectors_say() {
    for vector in vectors("frames.json") {
        let (bytes, payload) = (bytes_at(&vector, "bytes"), bytes_at(&vector, "payload"));
        let channel = vector["channel"].as_u64().unwrap().try_into().unwrap();
        let frame = Frame { kind: kind(&vector["kind"]), channel, payload: &payload };
        assert_eq!(
            Frame::parse(&bytes, 4096),
            Ok(Some((frame, bytes.len()))),
            "{}",
            vector["name"]
        );
        let mut out = Vec::new();
        frame.encode(&mut out);
        assert_eq!((out, frame.encoded_len()), (bytes.clone(), bytes.len()), "{}", vector["name"]);
        for end in 0..bytes.len() {
            assert_eq!(
                Frame::parse(&bytes[..end], 4096),
                Ok(None),
                "{}, first {end} bytes",
                vector["name"]
            );
        }
    }
}

#[test]
fn methods_read_and_write_as_the_vectors_say() {
    for vector in vectors("methods.json") {
        let name = vector["method"].as_str().unwrap();
        let values = Values::new(&vector["fields"]);
        let method = by_name::method(name, &values).expect("a known method");
        assert_eq!(method.name(), name);
        assert_eq!(
            (&vector["class_id"], &vector["method_id"]),
            (&method.class_id().into(), &method.method_id().into())
        );

        let bytes = bytes_at(&vector, "bytes");
        assert_eq!(Method::decode(&bytes), Ok(method), "{}", vector["name"]);
        let mut frame = Vec::new();
        method.write_frame(9, &mut frame);
        let (frame, _) = Frame::parse(&frame, 0).unwrap().unwrap();
        assert_eq!((frame.kind, frame.channel), (FrameKind::Method, 9));
        assert_eq!(frame.payload, written(&vector), "{}", vector["name"]);
        assert_eq!(frame.payload.len(), method.encoded_len(), "{}", vector["name"]);
        for end in 0..bytes.len() {
            let error = Method::decode(&bytes[..end]).expect_err("a cut method");
            assert_eq!(
                error.kind,
                DecodeErrorKind::Truncated,
                "{}, first {end} bytes",
                vector["name"]
            );
            assert!(error.offset <= end);
        }
    }
}

#[test]
fn content_headers_read_and_write_as_the_vectors_say() {
    for vector in vectors("headers.json") {
        let bytes = bytes_at(&vector, "bytes");
        let values = Values::new(&vector["properties"]);
        let properties = by_name::properties(&values);
        let header = ContentHeader::parse(&bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", vector["name"]));
        assert_eq!(
            (header.class_id, Some(header.body_size)),
            (basic::CLASS_ID, vector["body_size"].as_u64())
        );
        assert_eq!(header.properties.decode(), Ok(properties), "{}", vector["name"]);
        assert_eq!(header.properties.validate(), Ok(()), "{}", vector["name"]);
        assert_eq!(header.properties.headers(), Ok(properties.headers), "{}", vector["name"]);
        assert_eq!(header.properties.cluster_id(), Ok(properties.cluster_id), "{}", vector["name"]);

        let mut out = Vec::new();
        properties.encode(&mut out);
        assert_eq!(
            (&*out, out.len()),
            (&bytes[12..], properties.encoded_len()),
            "{}",
            vector["name"]
        );
        let owned = properties.to_owned().unwrap();
        out.clear();
        owned.encode(&mut out);
        assert_eq!(
            (&*out, out.len()),
            (&bytes[12..], owned.encoded_len()),
            "{}, owned",
            vector["name"]
        );
        for end in 0..bytes.len() {
            let error = read_header(&bytes[..end]).expect_err("a cut header");
            assert_eq!(
                error.kind,
                DecodeErrorKind::Truncated,
                "{}, first {end} bytes",
                vector["name"]
            );
        }
    }
}

#[test]
fn tables_read_and_write_as_the_vectors_say() {
    for vector in vectors("tables.json") {
        let bytes = bytes_at(&vector, "bytes");
        let (table, used) = Table::parse(&bytes).unwrap();
        assert_eq!((used, table.validate()), (bytes.len(), Ok(())), "{}", vector["name"]);
        // Two values are the same when they are written alike: that holds for NaNs too.
        let mut out = Vec::new();
        let owned = table.to_owned().unwrap();
        owned.encode(&mut out);
        assert_eq!(
            (&out, out.len()),
            (&written(&vector), owned.encoded_len()),
            "{}",
            vector["name"]
        );
        assert_eq!(entries(&vector["table"]), written(&vector)[4..], "{}", vector["name"]);

        for end in 0..bytes.len().min(2000) {
            let error = read_table(&bytes[..end]).expect_err("a cut table");
            assert_eq!(
                error.kind,
                DecodeErrorKind::Truncated,
                "{}, first {end} bytes",
                vector["name"]
            );
        }
    }
}

#[test]
fn malformed_bytes_are_refused_where_the_vectors_say() {
    for vector in vectors("malformed.json") {
        let bytes = bytes_at(&vector, "bytes");
        let offset = usize::try_from(vector["offset"].as_u64().unwrap()).unwrap();
        let found = match vector["what"].as_str() {
            Some("frame") => {
                let frame_max = vector["frame_max"].as_u64().unwrap_or(0).try_into().unwrap();
                let error = Frame::parse(&bytes, frame_max).expect_err("a bad frame");
                assert_eq!(frame_error_name(error), vector["error"], "{}", vector["name"]);
                continue;
            }
            Some("method") => Method::decode(&bytes).map(drop),
            Some("header") => read_header(&bytes),
            Some("table") => read_table(&bytes),
            other => panic!("{}: unknown reader {other:?}", vector["name"]),
        };
        let error = found.expect_err("an error");
        assert_eq!(
            (error_name(error.kind), error.offset),
            (vector["error"].as_str().unwrap(), offset),
            "{}",
            vector["name"]
        );
    }
}

fn read_header(bytes: &[u8]) -> Result<(), DecodeError> {
    let header = ContentHeader::parse(bytes)?;
    header
        .properties
        .validate()
        .map_err(|error| error.shifted(courser_codec::CONTENT_HEADER_FIXED_LEN))
}

fn read_table(bytes: &[u8]) -> Result<(), DecodeError> {
    let (table, _) = Table::parse(bytes)?;
    let validated = table.validate();
    assert_eq!(validated, table.to_owned().map(drop), "both ways of reading all of a table agree");
    validated.map_err(|error| error.shifted(4))
}

fn error_name(kind: DecodeErrorKind) -> &'static str {
    match kind {
        DecodeErrorKind::Truncated => "truncated",
        DecodeErrorKind::TrailingBytes => "trailing-bytes",
        DecodeErrorKind::UnknownClass(_) => "unknown-class",
        DecodeErrorKind::UnknownMethod { .. } => "unknown-method",
        DecodeErrorKind::UnknownFieldType(_) => "unknown-field-type",
        DecodeErrorKind::TooDeep => "too-deep",
        DecodeErrorKind::UnknownPropertyFlags(_) => "unknown-property-flags",
        DecodeErrorKind::NonZeroWeight(_) => "non-zero-weight",
    }
}

fn frame_error_name(error: FrameError) -> &'static str {
    match error {
        FrameError::UnknownType(_) => "unknown-type",
        FrameError::TooLarge { .. } => "too-large",
        FrameError::BadEnd(_) => "bad-end",
    }
}

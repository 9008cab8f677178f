//! Frames that a server must not take: on the wrong channel, in the wrong order, too large, or no frames at all.

use courser_codec::*;
use courser_connection::server::Config;

use crate::common::*;

/// What a client sees of its connection's end after these bytes; channel 1 is open.
fn answer_to(bytes: &[u8]) -> (u16, u16, String, (u16, u16)) {
    let mut server = Server::running();
    server.feed(&open_channel(1));
    server.sent.clear();
    let seen = server.feed(bytes);
    let close = server.sent_close();
    let closed = Seen::Closed { code: close.1, text: close.2.clone(), ids: close.3 };
    assert_eq!(seen.last(), Some(&closed), "the driver and the client are told the same");
    assert!(server.machine.is_closing());
    assert!(!server.machine.is_channel_open(1));
    close
}

fn raw_frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(channel.to_be_bytes());
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend(payload);
    bytes.push(FRAME_END);
    bytes
}

fn connection_error(code: u16, text: &str, ids: (u16, u16)) -> (u16, u16, String, (u16, u16)) {
    (0, code, text.to_owned(), ids)
}

#[test]
fn a_heartbeat_on_a_channel_is_505() {
    let expected = connection_error(505, "UNEXPECTED_FRAME - type 8, all octets = <<>>", (0, 0));
    assert_eq!(answer_to(&raw_frame(8, 1, b"")), expected);
    assert_eq!(answer_to(&raw_frame(8, 7, b"")), expected);
}

#[test]
fn a_heartbeat_with_a_payload_is_501() {
    let expected = connection_error(
        501,
        "FRAME_ERROR - type 8, all octets = <<\"x\">>: unknown_frame",
        (0, 0),
    );
    assert_eq!(answer_to(&raw_frame(8, 0, b"x")), expected);
    assert_eq!(answer_to(&raw_frame(8, 1, b"x")), expected);
}

#[test]
fn an_unknown_frame_type_is_501() {
    let error = |text: &str| connection_error(501, &format!("FRAME_ERROR - {text}"), (0, 0));
    assert_eq!(answer_to(&raw_frame(9, 1, b"")), error("type 9, all octets = <<>>: unknown_frame"));
    assert_eq!(
        answer_to(&raw_frame(9, 1, b"abc")),
        error("type 9, all octets = <<\"abc\">>: unknown_frame")
    );
    assert_eq!(
        answer_to(&raw_frame(0, 0, b"0123456789abcdef")),
        error("type 0, all octets = <<\"0123456789abcdef\">>: unknown_frame")
    );
    let long = "type 9, first 16 octets = <<\"0123456789abcdef\">>: unknown_frame";
    let frame = raw_frame(9, 1, b"0123456789abcdefghi");
    assert_eq!(answer_to(&frame), error(long));
    assert_eq!(answer_to(&frame[..23]), error(long), "the rest is not waited for");
}

#[test]
fn a_frame_of_an_unknown_type_that_is_wrong_otherwise_is_501() {
    let mut frame = raw_frame(9, 1, b"abc");
    *frame.last_mut().unwrap() = 7;
    let text = "FRAME_ERROR - type 9, all octets = <<\"abc\">>: {invalid_frame_end_marker,7}";
    assert_eq!(answer_to(&frame), connection_error(501, text, (0, 0)));
    let text = "FRAME_ERROR - type 71, all octets = <<>>: {frame_too_large,539959368,131064}";
    assert_eq!(answer_to(b"GET / HTTP/1.1"), connection_error(501, text, (0, 0)));
}

#[test]
fn a_frame_above_frame_max_is_501_before_it_has_come() {
    let text = "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}";
    assert_eq!(answer_to(&[3, 0, 1, 0, 2, 0, 1]), connection_error(501, text, (0, 0)));
}

#[test]
fn a_frame_that_forgets_to_count_its_header_is_let_pass() {
    let mut server = Server::running();
    server.feed(&open_channel(1));
    let body = vec![7; 131_072];
    let seen = server.feed(&publish_cut(1, "q", &body, body.len()));
    assert!(matches!(&seen[..], [Seen::Publish { body: got, .. }] if *got == body));
}

#[test]
fn the_agreed_frame_max_counts() {
    let mut server = Server::running_tuned(
        Config::default(),
        connection::TuneOk { channel_max: 10, frame_max: 4096, heartbeat: 0 },
    );
    server.feed(&open_channel(1));
    server.sent.clear();
    server.feed(&publish_cut(1, "q", &[0; 5000], 5000));
    let text = "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,5000,4088}";
    assert_eq!(server.sent_close(), connection_error(501, text, (0, 0)));
}

#[test]
fn a_wrong_end_marker_is_501() {
    let mut bytes = frame(1, Method::BasicAck(basic::Ack { delivery_tag: 1, multiple: false }));
    *bytes.last_mut().unwrap() = 0;
    let text = "FRAME_ERROR - type 1, all octets = <<0,60,0,80,0,0,0,0,0,0,0,1,0>>: {invalid_frame_end_marker,0}";
    assert_eq!(answer_to(&bytes), connection_error(501, text, (0, 0)));
}

#[test]
fn a_wrong_end_marker_of_a_large_body_is_501_whole_or_in_pieces() {
    let body = b"0123456789".repeat(5000);
    let mut bytes = publish(1, "q", &body);
    *bytes.last_mut().unwrap() = b'!';
    let text = "FRAME_ERROR - type 3, first 16 octets = <<\"0123456789012345\">>: {invalid_frame_end_marker,33}";
    let expected = connection_error(501, text, (0, 0));
    assert_eq!(answer_to(&bytes), expected);

    let mut server = Server::running();
    server.feed(&open_channel(1));
    server.sent.clear();
    let seen: Vec<_> = bytes.chunks(1000).flat_map(|piece| server.feed(piece)).collect();
    assert_eq!(seen.len(), 1);
    assert_eq!(server.sent_close(), expected);
}

#[test]
fn content_frames_without_a_publish_are_505() {
    let expected = connection_error(
        505,
        "UNEXPECTED_FRAME - expected method frame, got non method frame instead",
        (0, 0),
    );
    assert_eq!(answer_to(&content_header(1, 60, 3)), expected);
    assert_eq!(answer_to(&body_frame(1, b"abc")), expected);
    assert_eq!(answer_to(&body_frame(2, b"abc")), expected);
    assert_eq!(answer_to(&body_frame(1, &[0; 50_000])[..20_000]), expected);
}

#[test]
fn content_frames_on_channel_0_are_505() {
    let text = "UNEXPECTED_FRAME - type 3, all octets = <<\"abc\">>";
    assert_eq!(answer_to(&body_frame(0, b"abc")), connection_error(505, text, (0, 0)));
    let text = "UNEXPECTED_FRAME - type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0,3,16,0,2>>";
    assert_eq!(answer_to(&content_header(0, 60, 3)), connection_error(505, text, (0, 0)));
}

#[test]
fn a_publish_without_a_content_header_is_505() {
    let text = "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead";
    let expected = connection_error(505, text, (60, 40));
    assert_eq!(answer_to(&[publish_method(1, "q"), publish_method(1, "q")].concat()), expected);
    assert_eq!(answer_to(&[publish_method(1, "q"), body_frame(1, b"abc")].concat()), expected);
    let mut weighty = content_header(1, 60, 3);
    weighty[10] = 1;
    assert_eq!(answer_to(&[publish_method(1, "q"), weighty].concat()), expected);
}

#[test]
fn a_content_header_of_another_class_is_505() {
    let text =
        "UNEXPECTED_FRAME - expected content header for class 60, got one for class 61 instead";
    let expected = connection_error(505, text, (60, 40));
    assert_eq!(answer_to(&[publish_method(1, "q"), content_header(1, 61, 3)].concat()), expected);
}

#[test]
fn a_method_in_the_place_of_a_body_is_505() {
    let text = "UNEXPECTED_FRAME - expected content body, got non content body frame instead";
    let expected = connection_error(505, text, (60, 40));
    let begun = [publish_method(1, "q"), content_header(1, 60, 3)].concat();
    assert_eq!(answer_to(&[&begun[..], &publish_method(1, "q")].concat()), expected);
    assert_eq!(answer_to(&[&begun[..], &content_header(1, 60, 3)].concat()), expected);
}

#[test]
fn a_body_over_the_announced_size_is_501() {
    let text = "FRAME_ERROR - content body frame exceeds remaining content size";
    let expected = connection_error(501, text, (60, 40));
    let begun = |size| [publish_method(1, "q"), content_header(1, 60, size)].concat();
    assert_eq!(answer_to(&[&begun(3)[..], &body_frame(1, b"abcd")].concat()), expected);
    assert_eq!(
        answer_to(&[&begun(6)[..], &body_frame(1, b"abcd"), &body_frame(1, b"efg")].concat()),
        expected
    );
    assert_eq!(
        answer_to(&[&begun(30_000)[..], &body_frame(1, &[0; 40_000])[..20_000]].concat()),
        expected
    );
}

#[test]
fn a_content_header_that_is_cut_short_is_501() {
    let bytes = [publish_method(1, "q"), raw_frame(2, 1, b"\x00\x3c")].concat();
    let text = "FRAME_ERROR - type 2, all octets = <<0,60>>: unknown_frame";
    assert_eq!(answer_to(&bytes), connection_error(501, text, (0, 0)));
}

#[test]
fn a_body_that_no_broker_takes_is_501() {
    let bytes = [publish_method(1, "q"), content_header(1, 60, u64::MAX)].concat();
    let text = "FRAME_ERROR - content body size 18446744073709551615 exceeds maximum allowed size 536870912";
    assert_eq!(answer_to(&bytes), connection_error(501, text, (60, 40)));
}

#[test]
fn unknown_classes_and_methods_are_refused_by_name_and_number() {
    let text = "COMMAND_INVALID - unimplemented method";
    assert_eq!(answer_to(&raw_frame(1, 1, &[0, 99, 0, 1])), connection_error(503, text, (99, 1)));
    let text = "NOT_IMPLEMENTED - unimplemented method";
    assert_eq!(
        answer_to(&raw_frame(1, 1, &[0, 60, 0, 200])),
        connection_error(540, text, (60, 200))
    );
    assert_eq!(
        answer_to(&raw_frame(1, 0, &[0, 10, 0, 200])),
        connection_error(540, text, (10, 200))
    );
}

#[test]
fn a_method_that_only_a_server_sends_is_503() {
    let text = "COMMAND_INVALID - unimplemented method";
    let get_empty = frame(1, Method::BasicGetEmpty(basic::GetEmpty {}));
    assert_eq!(answer_to(&get_empty), connection_error(503, text, (60, 72)));
    let on_channel =
        frame(1, Method::ConnectionOpen(connection::Open { virtual_host: ShortStr::EMPTY }));
    assert_eq!(answer_to(&on_channel), connection_error(503, text, (10, 40)));
}

#[test]
fn malformed_arguments_are_501() {
    let text = "FRAME_ERROR - input ends within a value at offset ";
    let (0, 501, got, (60, 80)) = answer_to(&raw_frame(1, 1, &[0, 60, 0, 80, 0, 0])) else {
        panic!()
    };
    assert!(got.starts_with(text), "{got}");
    let text = "FRAME_ERROR - type 1, all octets = <<0,60>>: unknown_frame";
    assert_eq!(answer_to(&raw_frame(1, 1, &[0, 60])), connection_error(501, text, (0, 0)));
}

#[test]
fn a_method_on_channel_0_that_belongs_elsewhere_is_504() {
    let text = "CHANNEL_ERROR - unexpected method in connection state running";
    let ack = frame(0, Method::BasicAck(basic::Ack { delivery_tag: 1, multiple: false }));
    assert_eq!(answer_to(&ack), connection_error(504, text, (60, 80)));
    assert_eq!(answer_to(&open_channel(0)), connection_error(504, text, (20, 10)));
    let again =
        frame(0, Method::ConnectionOpen(connection::Open { virtual_host: ShortStr::EMPTY }));
    assert_eq!(answer_to(&again), connection_error(504, text, (10, 40)));
}

#[test]
fn immediate_publishes_are_540() {
    let publish = basic::Publish { immediate: true, ..Default::default() };
    let bytes = [frame(1, Method::BasicPublish(publish)), content_header(1, 60, 0)].concat();
    assert_eq!(
        answer_to(&bytes),
        connection_error(540, "NOT_IMPLEMENTED - immediate=true", (60, 40))
    );
}

//! Frames become AMQP messages and come back as they were.

use bytes::Bytes;
use courser_client::{FieldTable, FieldValue};
use courser_gateway::{Envelope, FRAMES_HEADER, LENGTHS_HEADER, from_amqp, to_amqp};

fn frames(list: &[&[u8]]) -> Vec<Bytes> {
    list.iter().map(|frame| Bytes::copy_from_slice(frame)).collect()
}

#[test]
fn every_message_comes_back_as_it_was() {
    let large = vec![7; 70_000];
    let many: Vec<&[u8]> = vec![b"x"; 512];
    let lists: [&[&[u8]]; 7] = [
        &[b"alone"],
        &[b""],
        &[b"", b""],
        &[b"a", b"\x00\xff", b"body"],
        &[&large, b"", b"b"],
        &[b"", &large],
        &many,
    ];
    for list in lists {
        let list = frames(list);
        for always in [false, true] {
            let mapped = to_amqp(&list, always).expect("it can be carried");
            let (back, _) =
                from_amqp(Some(&mapped.headers), mapped.body).expect("it is well-formed");
            assert_eq!(back, list);
        }
    }
}

#[test]
fn a_single_frame_needs_no_header_and_a_marked_one_has_an_empty_list() {
    let alone = frames(&[b"alone"]);
    assert!(to_amqp(&alone, false).expect("one frame").headers.is_empty());
    let marked = to_amqp(&alone, true).expect("one frame");
    assert_eq!(marked.headers.get(FRAMES_HEADER), Some(&FieldValue::Array(Vec::new())));
}

#[test]
fn large_frames_stand_in_the_body_with_their_lengths_in_a_header() {
    let mapped = to_amqp(&frames(&[&[1; 4000], b"end"]), false).expect("two frames");
    let lengths = FieldValue::Array(vec![FieldValue::I32(4000), FieldValue::I32(3)]);
    assert_eq!(mapped.headers.get(LENGTHS_HEADER), Some(&lengths));
    assert_eq!(mapped.body.len(), 4003);
}

#[test]
fn no_frame_and_too_many_frames_are_refused() {
    assert_eq!(to_amqp(&[], false), None);
    assert_eq!(to_amqp(&vec![Bytes::new(); 513], false), None);
}

#[test]
fn strings_of_amqp_programs_are_frames_too() {
    let headers = FieldTable::new()
        .with(FRAMES_HEADER, FieldValue::Array(vec![FieldValue::LongStr(b"key".to_vec())]));
    let read = from_amqp(Some(&headers), Bytes::from_static(b"body"));
    assert_eq!(read, Some((frames(&[b"key", b"body"]), true)));
}

#[test]
fn headers_that_contradict_the_body_are_refused() {
    let lengths = |values: &[i64]| {
        let array = values.iter().map(|value| FieldValue::I64(*value)).collect();
        FieldTable::new().with(LENGTHS_HEADER, FieldValue::Array(array))
    };
    let body = Bytes::from_static(b"four");
    for wrong in [&[][..], &[5], &[3], &[-1, 5], &[4, 1], &[i64::MAX, 4]] {
        assert_eq!(from_amqp(Some(&lengths(wrong)), body.clone()), None, "{wrong:?}");
    }
    let number = FieldTable::new().with(FRAMES_HEADER, 7);
    assert_eq!(from_amqp(Some(&number), body), None);
}

#[test]
fn an_envelope_ends_with_the_first_empty_frame() {
    let divide = |list: &[&[u8]]| Envelope::divide(frames(list));
    let whole = divide(&[b"hop", b"", b"a", b"", b"b"]);
    assert_eq!(whole.address, frames(&[b"hop", b""]));
    assert_eq!(whole.content, frames(&[b"a", b"", b"b"]));
    assert_eq!(divide(&[b"a", b"b"]).address, frames(&[]));
    assert_eq!(divide(&[b"a", b"b"]).content, frames(&[b"a", b"b"]));
    assert_eq!(divide(&[b""]).content, frames(&[b""]));
}

//! Sinks take what is announced, all of it and no more.

use courser_codec::{Sink, SliceSink, Window, basic};

#[test]
fn bytes_of_every_length_arrive_as_they_were() {
    let bytes: Vec<u8> = (0..=255).collect();
    for len in 0..bytes.len() {
        let mut out = b"before".to_vec();
        out.put_with(len, |window| window.put(&bytes[..len]));
        assert_eq!((&out[..6], &out[6..]), (&b"before"[..], &bytes[..len]));
    }
}

#[test]
#[should_panic(expected = "more than it had announced")]
fn more_than_announced_is_refused() {
    Vec::new().put_with(3, |window| window.put_u32(7));
}

#[test]
#[should_panic(expected = "less than it had announced")]
fn less_than_announced_is_refused() {
    Vec::new().put_with(5, |window| window.put_u32(7));
}

#[test]
#[should_panic(expected = "less than it had announced")]
fn a_window_in_a_window_that_is_not_filled_does_not_count() {
    Vec::new().put_with(4, |window| {
        let _ = window.window(4);
    });
}

#[test]
#[should_panic(expected = "less than it had announced")]
fn another_window_in_the_place_of_the_lent_one_does_not_count() {
    Vec::new().put_with(4, |window| *window = Window::over(&mut []));
}

#[test]
fn a_window_in_a_window_counts_when_it_is_filled() {
    let mut out = Vec::new();
    out.put_with(6, |window| {
        window.put_with(4, |inner| inner.put_u32(0x0102_0304));
        window.put_u16(0x0506);
    });
    assert_eq!(out, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_slice_sink_says_when_there_was_not_enough_room() {
    let ack = basic::Ack { delivery_tag: 1, multiple: false };
    let mut buffer = [0; 21];
    let mut sink = SliceSink::new(&mut buffer);
    ack.write_frame(1, &mut sink);
    assert_eq!(sink.finish().map(<[u8]>::len), Some(21));
    let mut sink = SliceSink::new(&mut buffer[..20]);
    ack.write_frame(1, &mut sink);
    // What would fit behind it is not taken either.
    sink.put_u8(1);
    assert_eq!(sink.finish(), None);
}

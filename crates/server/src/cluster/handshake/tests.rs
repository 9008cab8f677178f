use super::*;
use courser_codec::{HEARTBEAT_FRAME, ShortStr, Table, channel, connection};

/// What a client says to open a vhost, piece by piece.
fn pieces(vhost: &'static str) -> Vec<Vec<u8>> {
    let mut frames = vec![PROTOCOL_HEADER.to_vec()];
    let mut frame = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        frames.push(bytes);
    };
    let start_ok = connection::StartOk {
        client_properties: Table::EMPTY,
        mechanism: ShortStr::from_static("PLAIN"),
        response: b"\0guest\0guest",
        locale: ShortStr::from_static("en_US"),
    };
    frame(&|out| start_ok.write_frame(0, out));
    frame(&|out| connection::SecureOk { response: b"more" }.write_frame(0, out));
    frame(&|out| out.extend_from_slice(&HEARTBEAT_FRAME));
    let tune_ok = connection::TuneOk { channel_max: 7, frame_max: 4096, heartbeat: 3 };
    frame(&|out| tune_ok.write_frame(0, out));
    frame(&|out| out.extend_from_slice(&HEARTBEAT_FRAME));
    let open = connection::Open { virtual_host: ShortStr::from_static(vhost) };
    frame(&|out| open.write_frame(0, out));
    frames
}

/// Everything but the last piece, which is `connection.open`.
fn before_open(pieces: &[Vec<u8>]) -> Vec<u8> {
    pieces[..pieces.len() - 1].concat()
}

#[test]
fn a_vhost_is_found_wherever_the_bytes_are_cut() {
    let pieces = pieces("orders");
    let (before, all) = (before_open(&pieces), pieces.concat());
    let up_to_tune_ok = pieces[..5].concat().len();
    for step in 1..=all.len() {
        let mut handshake = Handshake::new();
        let mut heard = Heard::More;
        for bytes in all.chunks(step) {
            assert_eq!(heard, Heard::More, "in steps of {step}");
            heard = handshake.hear(bytes);
            let said = handshake.bytes().len();
            // Behind that, a frame may be the one that is not passed on.
            let passable = if said < before.len() { up_to_tune_ok } else { before.len() };
            assert_eq!(handshake.passable().len(), said.min(passable), "in steps of {step}");
        }
        assert_eq!(heard, Heard::Open("orders".into()));
        assert_eq!(handshake.passable(), before);
        assert_eq!(*handshake.into_bytes(), all);
    }
}

#[test]
fn what_follows_the_vhost_is_kept_with_it() {
    let mut bytes = pieces("orders").concat();
    channel::Open {}.write_frame(1, &mut bytes);
    let mut handshake = Handshake::new();
    assert_eq!(handshake.hear(&bytes), Heard::Open("orders".into()));
    assert_eq!(handshake.bytes(), bytes);
}

#[test]
fn what_is_no_handshake_is_passed_on() {
    let pieces = pieces("orders");
    let method = |channel, write: &dyn Fn(u16, &mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(channel, &mut bytes);
        bytes
    };
    let close = connection::Close {
        reply_code: 200,
        reply_text: ShortStr::from_static("bye"),
        class_id: 0,
        method_id: 0,
    };
    let open = connection::Open { virtual_host: ShortStr::from_static("orders") };
    let strange = [
        b"GET / HTTP/1.1\r\nHost: courser\r\n\r\n".to_vec(),
        // Twice, or too early.
        [&pieces[0][..], &pieces[1], &pieces[1]].concat(),
        [&pieces[0][..], &pieces[6]].concat(),
        [&pieces[0][..], &pieces[1], &pieces[6]].concat(),
        // Another method, another channel, another kind of frame.
        [before_open(&pieces), method(0, &|channel, out| close.write_frame(channel, out))].concat(),
        [before_open(&pieces), method(1, &|channel, out| open.write_frame(channel, out))].concat(),
        [before_open(&pieces), vec![3, 0, 0, 0, 0, 0, 0, 0xce]].concat(),
        [before_open(&pieces), vec![8, 0, 0, 0, 0, 0, 1, 0, 0xce]].concat(),
        // No end where there should be one, and arguments that are none.
        [before_open(&pieces), vec![1, 0, 0, 0, 0, 0, 0, 0]].concat(),
        [before_open(&pieces), vec![1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 40, 0xce]].concat(),
        // Larger than it can be: the rest is not waited for.
        [before_open(&pieces), vec![1, 0, 0, 0, 0, 16, 0, 0, 10, 0, 40]].concat(),
        [&pieces[0][..], &[1, 0, 0, 0, 2, 0, 0]].concat(),
    ];
    for bytes in strange {
        let mut handshake = Handshake::new();
        assert_eq!(handshake.hear(&bytes), Heard::Other, "{bytes:?}");
        assert_eq!(handshake.passable(), bytes);
    }
}

#[test]
fn no_more_is_kept_than_a_handshake_has() {
    let mut handshake = Handshake::new();
    let pieces = pieces("orders");
    assert_eq!(handshake.hear(&before_open(&pieces)), Heard::More);
    let mut heard = Heard::More;
    while heard == Heard::More {
        heard = handshake.hear(&HEARTBEAT_FRAME);
        assert!(handshake.bytes().len() <= BYTES_MAX + HEARTBEAT_FRAME.len());
    }
    assert_eq!(heard, Heard::Other);
}

#[test]
fn a_greeting_is_taken_and_what_follows_is_left() {
    let mut said = Vec::new();
    let start = connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties: Table::EMPTY,
        mechanisms: b"PLAIN",
        locales: b"en_US",
    };
    start.write_frame(0, &mut said);
    let of_start = said.len();
    said.extend_from_slice(&HEARTBEAT_FRAME);
    connection::Tune { channel_max: 7, frame_max: 4096, heartbeat: 3 }.write_frame(0, &mut said);
    let of_greeting = said.len();
    connection::OpenOk {}.write_frame(0, &mut said);

    let mut greeting = Greeting::default();
    let mut left = said[..of_start + 3].to_vec();
    greeting.take(&mut left);
    assert_eq!((greeting.stage, left.len()), (Stage::Tune, 3));
    left.extend_from_slice(&said[of_start + 3..of_greeting + 2]);
    greeting.take(&mut left);
    assert_eq!((greeting.stage, left.len()), (Stage::Tuned, 2));
    left.extend_from_slice(&said[of_greeting + 2..]);
    greeting.take(&mut left);
    assert_eq!((greeting.stage, &left[..]), (Stage::Other, &said[of_greeting..]));
}

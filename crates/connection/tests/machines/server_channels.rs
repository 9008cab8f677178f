//! Channels on the server's side: opened, closed from both sides, used again, and their modes.

use courser_codec::*;
use courser_connection::server::{ChannelMode, Config};

use crate::common::*;

fn close_ok(channel: u16) -> Vec<u8> {
    frame(
        channel,
        Method::ChannelClose(channel::Close {
            reply_code: 200,
            reply_text: "bye".try_into().unwrap(),
            class_id: 0,
            method_id: 0,
        }),
    )
}

fn select_confirms(channel: u16) -> Vec<u8> {
    frame(channel, Method::ConfirmSelect(confirm::Select { nowait: false }))
}

/// A connection in use with channel 1 open.
fn with_channel() -> Server {
    let mut server = Server::running();
    server.feed(&open_channel(1));
    server.sent.clear();
    server
}

/// The end of the connection after these bytes on one with channel 1 open.
fn connection_error_after(bytes: &[u8]) -> (u16, u16, String, (u16, u16)) {
    let mut server = with_channel();
    server.feed(bytes);
    server.sent_close()
}

#[test]
fn a_channel_opens_and_closes() {
    let mut server = Server::running();
    assert_eq!(server.feed(&open_channel(5)), [Seen::ChannelOpened(5)]);
    assert!(server.machine.is_channel_open(5) && !server.machine.is_channel_open(4));
    let seen = server.feed(&close_ok(5));
    assert_eq!(
        seen,
        [Seen::ChannelClosed { channel: 5, code: 200, text: "bye".into(), ids: (0, 0) }]
    );
    assert!(!server.machine.is_channel_open(5));
    let names: Vec<_> =
        methods(&server.sent).iter().map(|(channel, method)| (*channel, method.name())).collect();
    assert_eq!(names, [(5, "channel.open-ok"), (5, "channel.close-ok")]);
}

#[test]
fn opening_twice_is_504() {
    let text = "CHANNEL_ERROR - second 'channel.open' seen";
    assert_eq!(connection_error_after(&open_channel(1)), (0, 504, text.to_owned(), (20, 10)));
}

#[test]
fn a_method_on_a_channel_that_is_not_open_is_504() {
    let text = "CHANNEL_ERROR - expected 'channel.open'";
    assert_eq!(
        connection_error_after(&publish_method(2, "q")),
        (0, 504, text.to_owned(), (60, 40))
    );
    let bytes = [close_ok(1), select_confirms(1)].concat();
    let mut server = with_channel();
    server.feed(&bytes[..close_ok(1).len()]);
    server.sent.clear();
    server.feed(&bytes[close_ok(1).len()..]);
    assert_eq!(server.sent_close(), (0, 504, text.to_owned(), (85, 10)));
}

#[test]
fn any_channel_number_will_do_as_long_as_there_are_few_channels() {
    let tune_ok = connection::TuneOk { channel_max: 3, ..default_tune_ok() };
    let mut server = Server::running_tuned(Config::default(), tune_ok);
    for channel in [u16::MAX, 2047, 2048] {
        assert_eq!(server.feed(&open_channel(channel)), [Seen::ChannelOpened(channel)]);
    }
    let seen = server.feed(&publish(u16::MAX, "q", b"hello"));
    assert!(matches!(seen[..], [Seen::Publish { channel: u16::MAX, .. }]), "{seen:?}");
    assert_eq!(server.feed(&close_ok(2048)).len(), 1);
    assert!(!server.machine.is_channel_open(2048) && server.machine.is_channel_open(2047));
    assert_eq!(server.feed(&open_channel(2049)), [Seen::ChannelOpened(2049)]);

    server.sent.clear();
    server.feed(&open_channel(1));
    let text =
        "NOT_ALLOWED - number of channels opened (3) has reached the negotiated channel_max (3)";
    assert_eq!(server.sent_close(), (0, 530, text.to_owned(), (0, 0)));
}

#[test]
fn more_channels_than_agreed_are_530() {
    let tune_ok = connection::TuneOk { channel_max: 3, ..default_tune_ok() };
    let mut server = Server::running_tuned(Config::default(), tune_ok);
    for channel in 1..=3 {
        assert_eq!(server.feed(&open_channel(channel)), [Seen::ChannelOpened(channel)]);
    }
    server.sent.clear();
    server.feed(&open_channel(4));
    let text =
        "NOT_ALLOWED - number of channels opened (3) has reached the negotiated channel_max (3)";
    assert_eq!(server.sent_close(), (0, 530, text.to_owned(), (0, 0)));
}

#[test]
fn all_2047_channels_open_at_once() {
    let mut server = Server::running();
    let bytes: Vec<u8> = (1..=2047).flat_map(open_channel).collect();
    assert_eq!(server.feed(&bytes).len(), 2047);
    assert!(
        !server.machine.is_closing()
            && (1..=2047).all(|channel| server.machine.is_channel_open(channel))
    );
}

#[test]
fn a_channel_opens_and_closes_80000_times() {
    let mut server = Server::running();
    let bytes = [open_channel(9), close_ok(9)].concat();
    for _ in 0..80_000 {
        assert_eq!(server.feed(&bytes).len(), 2);
        server.sent.clear();
    }
    assert_eq!(server.feed(&open_channel(9)), [Seen::ChannelOpened(9)]);
}

#[test]
fn a_channel_error_silences_the_channel_until_close_ok() {
    let mut server = with_channel();
    server.feed(&open_channel(2));
    server.sent.clear();
    server.machine.channel_error(1, 404, "no queue 'q' in vhost '/'", (50, 10), server.now);
    server.feed(&[]);
    let expected = (1, 404, "NOT_FOUND - no queue 'q' in vhost '/'".to_owned(), (50, 10));
    assert_eq!(server.sent_close(), expected);
    assert!(!server.machine.is_channel_open(1));

    // What the client had under way: messages of all sizes, out of order even, and other methods.
    let late = [
        publish(1, "q", b"hello"),
        publish(1, "q", &[1; 50_000]),
        content_header(1, 60, 4),
        body_frame(1, b"x"),
        select_confirms(1),
        open_channel(1),
    ];
    for piece in late.concat().chunks(997) {
        assert_eq!(server.feed(piece), []);
    }
    assert!(server.sent.is_empty());
    assert!(matches!(
        &server.feed(&publish(2, "q", b"other"))[..],
        [Seen::Publish { channel: 2, .. }]
    ));

    let bytes = [frame(1, Method::ChannelCloseOk(channel::CloseOk {})), open_channel(1)].concat();
    assert_eq!(server.feed(&bytes), [Seen::ChannelOpened(1)], "the number is free at once");
    assert!(matches!(
        &server.feed(&publish(1, "q", b"again"))[..],
        [Seen::Publish { channel: 1, .. }]
    ));
}

#[test]
fn both_sides_may_close_a_channel_at_once() {
    let mut server = with_channel();
    server.machine.channel_error(1, 406, "x", (0, 0), server.now);
    assert_eq!(server.feed(&close_ok(1)), []);
    let names: Vec<_> = methods(&server.sent).iter().map(|(_, method)| method.name()).collect();
    assert_eq!(names, ["channel.close", "channel.close-ok"]);
    server.feed(&frame(1, Method::ChannelCloseOk(channel::CloseOk {})));
    assert_eq!(server.feed(&open_channel(1)), [Seen::ChannelOpened(1)]);
}

#[test]
fn an_error_on_a_channel_that_closes_the_connection_does() {
    let mut server = with_channel();
    server.machine.channel_error(1, 530, "attempt to reuse consumer tag 't'", (60, 20), server.now);
    server.feed(&[]);
    let text = "NOT_ALLOWED - attempt to reuse consumer tag 't'";
    assert_eq!(server.sent_close(), (0, 530, text.to_owned(), (60, 20)));
}

#[test]
fn an_error_on_a_channel_that_is_not_open_is_not_told() {
    let mut server = with_channel();
    server.machine.channel_error(2, 404, "x", (0, 0), server.now);
    server.machine.channel_error(0, 404, "x", (0, 0), server.now);
    server.feed(&[]);
    assert!(server.sent.is_empty());
}

#[test]
fn a_long_reply_text_is_cut_to_255_bytes() {
    let mut server = with_channel();
    server.machine.channel_error(
        1,
        404,
        &format!("no queue '{}'", "é".repeat(200)),
        (0, 0),
        server.now,
    );
    server.feed(&[]);
    let (.., text, _) = server.sent_close();
    assert!(text.len() <= 255 && text.len() > 250 && text.ends_with("é..."), "{text}");
}

#[test]
fn confirms_are_numbered_from_1_on_each_channel() {
    let mut server = with_channel();
    server.feed(&open_channel(2));
    let seqs = |seen: &[Seen]| -> Vec<u64> {
        seen.iter()
            .filter_map(
                |event| if let Seen::Publish { seq, .. } = event { Some(*seq) } else { None },
            )
            .collect()
    };
    assert_eq!(seqs(&server.feed(&publish(1, "q", b"x"))), [0]);
    assert!(matches!(&server.feed(&select_confirms(1))[..], [Seen::Request { channel: 1, .. }]));
    assert_eq!(server.machine.channel_mode(1), ChannelMode::Confirm);
    let bytes = [
        publish(1, "q", b"x"),
        publish(1, "q", &[1; 50_000]),
        publish(2, "q", b""),
        publish(1, "q", b""),
    ];
    assert_eq!(seqs(&server.feed(&bytes.concat())), [1, 2, 0, 3]);
    // Select again changes nothing.
    server.feed(&select_confirms(1));
    assert_eq!(seqs(&server.feed(&publish(1, "q", b"x"))), [4]);
    // A new channel of the same number starts anew.
    server.feed(&[close_ok(1), open_channel(1), select_confirms(1)].concat());
    assert_eq!(seqs(&server.feed(&publish(1, "q", b"x"))), [1]);
}

#[test]
fn confirms_and_transactions_do_not_mix() {
    let select = frame(1, Method::TxSelect(tx::Select {}));
    let commit = frame(1, Method::TxCommit(tx::Commit {}));
    let rollback = frame(1, Method::TxRollback(tx::Rollback {}));
    for (bytes, text, ids) in [
        (
            [&select_confirms(1)[..], &select].concat(),
            "cannot switch from confirm to tx mode",
            (90, 10),
        ),
        (
            [&select[..], &select_confirms(1)].concat(),
            "cannot switch from tx to confirm mode",
            (85, 10),
        ),
        (commit.clone(), "channel is not transactional", (90, 20)),
        (rollback.clone(), "channel is not transactional", (90, 30)),
        ([&select_confirms(1)[..], &commit].concat(), "channel is not transactional", (90, 20)),
    ] {
        let mut server = with_channel();
        let seen = server.feed(&bytes);
        let text = format!("PRECONDITION_FAILED - {text}");
        let closed = Seen::ChannelClosed { channel: 1, code: 406, text: text.clone(), ids };
        assert_eq!(seen.last(), Some(&closed));
        assert_eq!(server.sent_close(), (1, 406, text, ids));
        assert!(!server.machine.is_closing());
    }
    let mut server = with_channel();
    assert_eq!(server.feed(&[select, commit, rollback].concat()).len(), 3);
    assert_eq!(server.machine.channel_mode(1), ChannelMode::Transaction);
}

#[test]
fn requests_reach_the_driver_as_they_are() {
    let mut server = with_channel();
    let declare = Method::QueueDeclare(queue::Declare {
        queue: "q".try_into().unwrap(),
        ..Default::default()
    });
    let ack = Method::BasicAck(basic::Ack { delivery_tag: 7, multiple: true });
    let bytes = [frame(1, declare), frame(1, ack)].concat();
    let expected = [
        Seen::Request { channel: 1, payload: frame(1, declare) },
        Seen::Request { channel: 1, payload: frame(1, ack) },
    ];
    assert_eq!(server.feed(&bytes), expected);
    let secret = Method::ConnectionUpdateSecret(connection::UpdateSecret {
        new_secret: b"s",
        reason: ShortStr::EMPTY,
    });
    assert_eq!(
        server.feed(&frame(0, secret)),
        [Seen::Request { channel: 0, payload: frame(0, secret) }]
    );
    // Answers to the server are nothing to act on.
    let answers = [
        frame(1, Method::ChannelFlowOk(channel::FlowOk { active: true })),
        frame(1, Method::BasicCancelOk(basic::CancelOk { consumer_tag: ShortStr::EMPTY })),
    ];
    assert_eq!(server.feed(&answers.concat()), []);
    assert!(!server.machine.is_closing());
}

#[test]
fn a_message_over_the_limit_costs_only_the_channel() {
    let mut server = Server::running_with(Config { max_message_bytes: 1000, ..Config::default() });
    server.feed(&open_channel(1));
    server.sent.clear();
    let text = "PRECONDITION_FAILED - message size 1001 is larger than configured max size 1000"
        .to_owned();
    let seen = server.feed(&publish(1, "q", &[0; 1001]));
    assert_eq!(
        seen,
        [Seen::ChannelClosed { channel: 1, code: 406, text: text.clone(), ids: (60, 40) }]
    );
    assert_eq!(server.sent_close(), (1, 406, text, (60, 40)));
    let bytes = [frame(1, Method::ChannelCloseOk(channel::CloseOk {})), open_channel(1)].concat();
    server.feed(&bytes);
    assert!(matches!(&server.feed(&publish(1, "q", &[0; 1000]))[..], [Seen::Publish { .. }]));
}

#[test]
fn contents_of_several_channels_may_interleave() {
    let mut server = with_channel();
    server.feed(&open_channel(2));
    let ack = Method::BasicAck(basic::Ack { delivery_tag: 1, multiple: false });
    let bytes = [
        publish_method(1, "a"),
        publish_method(2, "b"),
        content_header(2, 60, 4),
        content_header(1, 60, 3),
        body_frame(1, b"x"),
        body_frame(2, b"1234"),
        open_channel(3),
        frame(3, ack),
        body_frame(1, b""),
        body_frame(1, b"yz"),
    ]
    .concat();
    let bodies = |seen: Vec<Seen>| -> Vec<_> {
        let publishes = seen.into_iter().filter_map(|event| match event {
            Seen::Publish { channel, key, body, .. } => {
                Some((channel, key, String::from_utf8(body).unwrap()))
            }
            _ => None,
        });
        publishes.collect()
    };
    let expected = [(2, "b".to_owned(), "1234".to_owned()), (1, "a".to_owned(), "xyz".to_owned())];
    assert_eq!(bodies(server.feed(&bytes)), expected);
}

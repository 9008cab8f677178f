//! However a stream is torn into reads, a machine says the same, keeps little of it, and survives anything.

use std::sync::Arc;
use std::time::Instant;

use courser_codec::*;
use courser_connection::{client, server};
use proptest::prelude::*;

use crate::common::*;

/// One thing that a client may send, good or bad.
#[derive(Clone, Debug)]
enum Op {
    OpenChannel(u16),
    CloseChannel(u16),
    CloseOk(u16),
    Publish { channel: u16, len: usize, piece: usize },
    Method(u16),
    Header { channel: u16, class_id: u16, len: u64 },
    Body { channel: u16, len: usize },
    Ack(u16),
    Heartbeat(u16),
    Confirm(u16),
    Tx(u16),
    Junk(Vec<u8>),
    Close,
    BadEnd(usize),
}

impl Op {
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::OpenChannel(channel) => out.extend(open_channel(channel)),
            Self::CloseChannel(channel) => {
                let close = channel::Close {
                    reply_code: 200,
                    reply_text: ShortStr::EMPTY,
                    class_id: 0,
                    method_id: 0,
                };
                close.write_frame(channel, out);
            }
            Self::CloseOk(channel) => channel::CloseOk {}.write_frame(channel, out),
            Self::Publish { channel, len, piece } => {
                out.extend(publish_cut(channel, "key", &vec![b'x'; len], piece))
            }
            Self::Method(channel) => out.extend(publish_method(channel, "key")),
            Self::Header { channel, class_id, len } => {
                out.extend(content_header(channel, class_id, len))
            }
            Self::Body { channel, len } => out.extend(body_frame(channel, &vec![b'y'; len])),
            Self::Ack(channel) => {
                basic::Ack { delivery_tag: 1, multiple: false }.write_frame(channel, out)
            }
            Self::Heartbeat(channel) => write_frame(FrameKind::Heartbeat, channel, &[], out),
            Self::Confirm(channel) => confirm::Select { nowait: true }.write_frame(channel, out),
            Self::Tx(channel) => tx::Select {}.write_frame(channel, out),
            Self::Junk(ref bytes) => out.extend_from_slice(bytes),
            Self::Close => out.extend(frame(
                0,
                Method::ConnectionClose(connection::Close {
                    reply_code: 200,
                    reply_text: ShortStr::EMPTY,
                    class_id: 0,
                    method_id: 0,
                }),
            )),
            Self::BadEnd(len) => {
                out.extend(publish(1, "key", &vec![b'z'; len]));
                *out.last_mut().expect("a frame's end") = 0;
            }
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    let channel = || prop_oneof![8 => 1u16..4, 1 => Just(0u16), 1 => Just(9u16)];
    let len = || {
        prop_oneof![
            Just(0usize),
            1usize..64,
            4000usize..4200,
            16_300usize..16_500,
            20_000usize..50_000
        ]
    };
    prop_oneof![
        6 => channel().prop_map(Op::OpenChannel),
        2 => channel().prop_map(Op::CloseChannel),
        1 => channel().prop_map(Op::CloseOk),
        12 => (channel(), len(), prop_oneof![Just(131_064usize), 100usize..20_000])
            .prop_map(|(channel, len, piece)| Op::Publish { channel, len, piece }),
        1 => channel().prop_map(Op::Method),
        1 => (channel(), prop_oneof![Just(60u16), Just(61)], prop_oneof![0u64..30_000, Just(u64::MAX)])
            .prop_map(|(channel, class_id, len)| Op::Header { channel, class_id, len }),
        1 => (channel(), len()).prop_map(|(channel, len)| Op::Body { channel, len }),
        4 => channel().prop_map(Op::Ack),
        3 => prop_oneof![8 => Just(0u16), 1 => Just(1u16)].prop_map(Op::Heartbeat),
        2 => channel().prop_map(Op::Confirm),
        1 => channel().prop_map(Op::Tx),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Op::Junk),
        1 => Just(Op::Close),
        1 => len().prop_map(Op::BadEnd),
    ]
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![1]),
        proptest::collection::vec(1usize..30, 1..8),
        proptest::collection::vec(1usize..9000, 1..8)
    ]
}

fn torn<'a>(mut bytes: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = (*sizes.next()?).min(bytes.len());
        let (piece, rest) = bytes.split_at(size);
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The most that a machine may leave in the input.
const LEFT_MAX: usize = 131_072 + 8;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_events_do_not_depend_on_how_the_input_is_torn(
        ops in proptest::collection::vec(op(), 1..25),
        sizes in sizes(),
    ) {
        let mut bytes = open_channel(1);
        ops.iter().for_each(|op| op.encode(&mut bytes));
        let mut whole = Server::running();
        let expected = whole.feed(&bytes);
        let mut pieces = Server::running();
        let mut seen = Vec::new();
        for piece in torn(&bytes, &sizes) {
            seen.extend(pieces.feed(piece));
            prop_assert!(pieces.left.len() <= LEFT_MAX);
        }
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(pieces.sent, whole.sent);
        prop_assert_eq!(pieces.machine.is_closing(), whole.machine.is_closing());
    }

    #[test]
    fn random_bytes_never_panic_a_server(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        is_running in any::<bool>(),
        sizes in sizes(),
    ) {
        let mut server = if is_running { Server::running() } else { Server::new(server::Config::default()) };
        for piece in torn(&bytes, &sizes) {
            server.feed(piece);
        }
    }

    #[test]
    fn bytes_changed_at_random_never_panic_a_server(
        ops in proptest::collection::vec(op(), 1..10),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        sizes in sizes(),
    ) {
        let mut bytes = handshake(client_capabilities(), default_tune_ok());
        bytes.extend(open_channel(1));
        ops.iter().for_each(|op| op.encode(&mut bytes));
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut server = Server::new(server::Config::default());
        for piece in torn(&bytes, &sizes) {
            server.feed(piece);
        }
    }

    #[test]
    fn bytes_changed_at_random_never_panic_a_client(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        sizes in sizes(),
    ) {
        let now = Instant::now();
        let mut bytes = server_stream();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut client = client::Connection::new(Arc::new(client::Config::default()), now);
        let mut left = Vec::new();
        for piece in torn(&bytes, &sizes) {
            left.extend_from_slice(piece);
            let buffer = std::mem::take(&mut left);
            let mut input = &buffer[..];
            while let Some(event) = client.next(&mut input, now) {
                if matches!(event, client::Event::Opened) {
                    prop_assert_eq!(client.open_channel(), Ok(1));
                }
                client.output().clear();
            }
            left = input.to_vec();
            prop_assert!(left.len() <= LEFT_MAX);
        }
    }
}

/// What a server sends to a client that opens a channel and consumes on it.
fn server_stream() -> Vec<u8> {
    let mut out = Vec::new();
    let start = connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties: Table::EMPTY,
        mechanisms: b"PLAIN",
        locales: b"en_US",
    };
    start.write_frame(0, &mut out);
    connection::Tune { channel_max: 2047, frame_max: 131_072, heartbeat: 60 }
        .write_frame(0, &mut out);
    connection::OpenOk {}.write_frame(0, &mut out);
    channel::OpenOk {}.write_frame(1, &mut out);
    for len in [0, 10, 20_000] {
        basic::Deliver { delivery_tag: 1, ..Default::default() }.write_frame(1, &mut out);
        out.extend(content_header(1, 60, len));
        out.extend(body_frame(1, &vec![1; len as usize]));
    }
    basic::Ack { delivery_tag: 3, multiple: true }.write_frame(1, &mut out);
    out
}

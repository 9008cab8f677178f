//! What nodes send each other, as bytes, and members as they are saved.

use bytes::{Bytes, BytesMut};
use courser_cluster::{Members, NodeId, Packet};

/// A packet with one entry: kind, flags, eight numbers, priority, context, entries.
fn append() -> Vec<u8> {
    let mut bytes = vec![1, 0];
    (1..=8u64).for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(&0i64.to_le_bytes());
    bytes.extend_from_slice(&[2, b'h', b'i']);
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.push(1);
    (9..=10u64).for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(&5u32.to_le_bytes());
    bytes.extend_from_slice(b"frame");
    bytes
}

#[test]
fn a_packet_is_written_as_it_was_read() {
    let packet = Packet::decode(append().into()).expect("a packet");
    assert_eq!((packet.to(), packet.from()), (NodeId(1), NodeId(2)));
    assert!(packet.has_entries());
    let mut out = BytesMut::new();
    packet.encode(&mut out);
    assert_eq!(out, append());
    assert_eq!(packet.encoded_len(), out.len());
}

#[test]
fn a_packet_that_is_cut_short_or_too_long_is_refused() {
    let whole = append();
    for len in 0..whole.len() {
        assert!(Packet::decode(Bytes::copy_from_slice(&whole[..len])).is_err(), "{len} bytes");
    }
    let longer = [&whole[..], b"x"].concat();
    assert!(Packet::decode(longer.into()).is_err());
}

#[test]
fn a_packet_that_nodes_do_not_send_is_refused() {
    for (at, value) in [(0, 0), (0, 11), (0, 255), (1, 2), (74, 65), (81, 0), (81, 4)] {
        let mut bytes = append();
        bytes[at] = value;
        assert!(Packet::decode(bytes.into()).is_err(), "{value} at {at}");
    }
    let mut many = append();
    many[77..81].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Packet::decode(many.into()).is_err());
}

#[test]
fn members_are_read_as_they_were_saved() {
    let members = Members {
        voters: vec![NodeId(1), NodeId(2)],
        learners: vec![NodeId(7)],
        voters_outgoing: vec![NodeId(u64::MAX)],
        learners_next: vec![],
        auto_leave: true,
    };
    let saved = members.encode();
    assert_eq!(Members::decode(&saved), Some(members));
    (0..saved.len()).for_each(|len| assert_eq!(Members::decode(&saved[..len]), None));
    assert_eq!(Members::decode(&[&saved[..], &[0]].concat()), None);
}

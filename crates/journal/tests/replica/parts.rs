//! Long pieces, which another copy brings in parts.

use crate::mend::{Two, corrupt};
use courser_journal::replica::{Entry, MendError, Piece, Replica};
use courser_store::StoreError;

/// Bytes that are brought at once.
const PART_BYTES: usize = 1 << 10;
const LONG_BYTES: usize = 9000;
/// The message that is long.
const LONG: usize = 1;

/// A long message between short ones.
fn two() -> Two {
    Two::new(&[100, LONG_BYTES, 100])
}

/// The record of the message, and the frame that it is in, of which the entry consists.
fn pieces(two: &Two) -> [Piece; 2] {
    let is_long = |entry: &&Entry| entry.frame.len() > LONG_BYTES;
    let entry = two.leader.entries.iter().find(is_long).unwrap();
    [two.record(LONG), Piece::Frame(entry.start())]
}

/// Has a copy bring all of a piece.
fn brought(from: &Replica, piece: Piece) -> Vec<u8> {
    let mut bytes = Vec::new();
    while piece.len_of(&bytes).is_none_or(|len| bytes.len() < len) {
        let part = from.part(piece, bytes.len(), PART_BYTES).unwrap().unwrap();
        assert!((1..=PART_BYTES).contains(&part.len()));
        bytes.extend_from_slice(&part);
    }
    bytes
}

#[test]
fn of_a_long_piece_that_is_brought_in_parts_no_more_is_read_than_the_parts() {
    let two = two();
    for piece in pieces(&two) {
        let whole = two.other.replica().stretch(piece).unwrap().unwrap();
        let before = two.other.disk.read_bytes();
        let bytes = brought(two.other.replica(), piece);
        let read_bytes = two.other.disk.read_bytes() - before;
        assert!(read_bytes < 2 * LONG_BYTES as u64, "{read_bytes} bytes were read");
        assert!(bytes == whole[..bytes.len()], "other bytes than all at once");

        corrupt(&two.leader, piece.position().plus(LONG_BYTES as u64 / 2));
        assert!(matches!(two.body(LONG), Err(StoreError::Unread(_))));
        two.leader.replica().mend(piece, &bytes).unwrap();
        assert!(two.body(LONG).unwrap() == two.messages[LONG].1);
    }
}

#[test]
fn a_long_piece_that_is_damaged_there_too_is_not_written_again() {
    let two = two();
    for piece in pieces(&two) {
        let middle = piece.position().plus(LONG_BYTES as u64 / 2);
        [&two.leader, &two.other].into_iter().for_each(|copy| corrupt(copy, middle));
        let bytes = brought(two.other.replica(), piece);
        let written = two.leader.replica().mend(piece, &bytes);
        assert!(matches!(written, Err(MendError::Bad(_))), "{written:?}");
        [&two.leader, &two.other].into_iter().for_each(|copy| corrupt(copy, middle));
    }
}

#[test]
fn a_long_piece_whose_head_is_damaged_there_is_not_brought() {
    let two = two();
    for piece in pieces(&two) {
        corrupt(&two.other, piece.position().plus(3));
        assert_eq!(two.other.replica().part(piece, 0, PART_BYTES).unwrap(), None);
        corrupt(&two.other, piece.position().plus(3));
    }
}

#[test]
fn pieces_that_are_not_long_come_as_a_whole_with_those_that_follow() {
    let two = two();
    for piece in [two.record(0), Piece::Frame(two.leader.entries[1].start())] {
        let (other, most) = (two.other.replica(), 2 * LONG_BYTES);
        let whole = other.stretch(piece).unwrap();
        assert!(other.part(piece, 0, most).unwrap() == whole);
        let rest = whole.map(|whole| whole[100..].to_vec());
        assert!(other.part(piece, 100, most).unwrap() == rest);
    }
}

//! The bytes of a test's log: frames, what stands behind each, and the vote.

use bytes::{BufMut, Bytes};
use courser_cluster::{Entry, EntryId, EntryKind, Vote};

/// Bytes in front of a frame's payload.
const HEAD_LEN: usize = 48;
/// Bytes behind a frame that are this copy's own: what was known to be committed, and a sum.
pub const OWN_LEN: usize = 12;

pub fn encode_frame(
    id: EntryId,
    kind: EntryKind,
    start: u64,
    term_before: u64,
    payload: &[u8],
) -> Bytes {
    let mut frame = vec![0; 8];
    frame[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.put_u64_le(id.term);
    frame.put_u64_le(id.index);
    frame.put_u64_le(start);
    frame.put_u64_le(term_before);
    frame.put_u64_le(kind as u64);
    frame.extend_from_slice(payload);
    let sum = crc32c::crc32c(&frame[4..]);
    frame[..4].copy_from_slice(&sum.to_le_bytes());
    Bytes::from(frame)
}

/// What stands behind a frame that was written when so many entries were committed.
pub fn encode_own(committed: u64) -> Vec<u8> {
    let mut own = committed.to_le_bytes().to_vec();
    own.put_u32_le(crc32c::crc32c(&own));
    own
}

/// What was committed, if the sum is right.
pub fn decode_own(bytes: &[u8]) -> Option<u64> {
    let own = bytes.get(..OWN_LEN)?;
    (own[8..] == crc32c::crc32c(&own[..8]).to_le_bytes()).then(|| number(own, 0))
}

/// What an entry was placed with.
pub fn payload_of(entry: &Entry) -> Bytes {
    entry.frame.slice(HEAD_LEN..)
}

/// Where it begins with the leader that has placed it.
pub fn start_of(entry: &Entry) -> u64 {
    number(&entry.frame, 24)
}

/// The term of the entry in front of it.
pub fn term_before(entry: &Entry) -> u64 {
    number(&entry.frame, 32)
}

pub fn entry_of(frame: Bytes) -> Entry {
    let kind = match number(&frame, 40) & 0xff {
        0 => EntryKind::Batch,
        1 => EntryKind::Start,
        _ => EntryKind::Members,
    };
    let id = EntryId { term: number(&frame, 8), index: number(&frame, 16) };
    Entry { id, kind, frame }
}

/// The frame that begins at `start`, if its sum is right.
pub fn frame_at(bytes: &[u8], start: u64) -> Option<&[u8]> {
    let rest = bytes.get(start as usize..)?;
    let head = rest.get(..HEAD_LEN)?;
    let len = u32::from_le_bytes(head[4..8].try_into().ok()?) as usize;
    let frame = rest.get(..HEAD_LEN.checked_add(len)?)?;
    let sum = u32::from_le_bytes(head[..4].try_into().ok()?);
    (crc32c::crc32c(&frame[4..]) == sum).then_some(frame)
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub fn encode_vote(vote: &Vote) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u64_le(vote.term);
    out.put_u64_le(vote.voted_for);
    out.put_u64_le(vote.members_index);
    out.extend_from_slice(&vote.members);
    let sum = crc32c::crc32c(&out);
    out.put_u32_le(sum);
    out
}

pub fn decode_vote(bytes: &[u8]) -> Vote {
    let (vote, sum) = bytes.split_at(bytes.len() - 4);
    assert_eq!(
        crc32c::crc32c(vote).to_le_bytes(),
        *sum,
        "the vote is saved as a whole or not at all"
    );
    Vote {
        term: number(vote, 0),
        voted_for: number(vote, 8),
        members_index: number(vote, 16),
        members: vote[24..].to_vec(),
    }
}

//! The changes that survive a restart, and their bytes in a log.
//!
//! ```text
//! byte 0  what follows
//!   1  message     u16 number of queues, u64 each, message record (see `record`)
//!   2  settled     u64 queue, then positions: varint of the first, varints of the differences
//!   3  dropped     u64 queue
//!   4  defined     u16 length of the key, key, value
//!   5  forgotten   key
//!   6  spilled     message record: out of memory for room's sake, forgotten by a restart
//!  24  delayed     u64 queue, u64 milliseconds since 1970, message record
//!  16  stream      u64 queue, then varints: first offset, bytes and milliseconds of a page
//!  32  returned    u64 queue, then pairs of a position and how often it came back (see `delayed`); 0 if it was handed out
//! ```
//! What is called a queue here is whatever has messages under a number: the history of an exchange too.
//! Integers are little-endian; a varint has seven bits a byte, the lowest first.

use crate::delayed::PairCoder;
use crate::stream::PageLimits;
use crate::{MessageRef, Position, StoreError};

/// Queues that one message record can name.
pub const QUEUES_PER_RECORD_MAX: usize = u16::MAX as usize;

const MESSAGE: u8 = 1;
const SETTLED: u8 = 2;
const DROPPED: u8 = 3;
const DEFINED: u8 = 4;
const FORGOTTEN: u8 = 5;
const SPILLED: u8 = 6;
const DELAYED: u8 = 24;
const STREAM: u8 = 16;
const RETURNED: u8 = 32;

/// One change that has to survive a restart. Queues are named by numbers that are never used again.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A message for these queues, at most [`QUEUES_PER_RECORD_MAX`].
    Message {
        /// The queues that have it again after a restart.
        queues: &'a [u64],
        /// How many queues hold it now; each releases it once.
        holders: u32,
        /// The message.
        message: MessageRef<'a>,
    },
    /// A queue is done with the messages at these ascending positions of the log.
    Settled {
        /// The queue.
        queue: u64,
        /// The positions.
        positions: &'a [Position],
    },
    /// Messages have come back from consumers of a queue that counts that; or have been handed out, of a log that others have
    /// copies of, and not come back yet.
    Returned {
        /// The queue.
        queue: u64,
        /// The position of each, and how often it has come back by now, which may be never.
        returns: &'a [(Position, u64)],
    },
    /// A queue and all that is in it are gone.
    Dropped {
        /// The queue.
        queue: u64,
    },
    /// A definition is made, or replaced.
    Defined {
        /// What it is known by; at most 65,535 bytes.
        key: &'a [u8],
        /// What it says.
        value: &'a [u8],
    },
    /// A definition is gone.
    Forgotten {
        /// What it was known by.
        key: &'a [u8],
    },
    /// A message that is only here because memory is short, and does not survive a restart.
    Spilled {
        /// The message.
        message: MessageRef<'a>,
    },
    /// A message that waits for its time. What is done with is settled as in any queue.
    Delayed {
        /// The number of where it waits, which is none of a queue's.
        queue: u64,
        /// When it is due, in milliseconds since 1970.
        due_ms: u64,
        /// The message.
        message: MessageRef<'a>,
    },
    /// A queue is a stream, and is done with all messages before an offset.
    Stream {
        /// The queue.
        queue: u64,
        /// The offset of the oldest message that it keeps.
        first_offset: u64,
        /// When its pages end.
        pages: PageLimits,
    },
}

/// A [`Record`] read from a log.
#[derive(Debug)]
pub enum Replayed<'a> {
    /// See [`Record::Message`].
    Message {
        /// The queues.
        queues: Vec<u64>,
        /// Bytes of the message, as [`MessageRef::stored_len`] counts them.
        size_bytes: u64,
        /// The message.
        message: MessageRef<'a>,
    },
    /// See [`Record::Settled`].
    Settled {
        /// The queue.
        queue: u64,
        /// The positions.
        positions: Vec<Position>,
    },
    /// See [`Record::Returned`].
    Returned {
        /// The queue.
        queue: u64,
        /// The position of each, and how often it has come back.
        returns: Vec<(Position, u64)>,
    },
    /// See [`Record::Dropped`].
    Dropped {
        /// The queue.
        queue: u64,
    },
    /// See [`Record::Defined`].
    Defined {
        /// What it is known by.
        key: &'a [u8],
        /// What it says.
        value: &'a [u8],
    },
    /// See [`Record::Forgotten`].
    Forgotten {
        /// What it was known by.
        key: &'a [u8],
    },
    /// See [`Record::Spilled`].
    Spilled,
    /// See [`Record::Delayed`].
    Delayed {
        /// The number of where it waits.
        queue: u64,
        /// When it is due, in milliseconds since 1970.
        due_ms: u64,
    },
    /// See [`Record::Stream`].
    Stream {
        /// The queue.
        queue: u64,
        /// The offset of the oldest message that it keeps.
        first_offset: u64,
        /// When its pages end.
        pages: PageLimits,
    },
}

impl Record<'_> {
    /// The bytes in front of the message, or all bytes of a record without one, onto `head`.
    ///
    /// # Errors
    /// When it names more queues, or has a longer key, than a record can say. `head` is to be thrown away then.
    pub fn encode_head(&self, head: &mut Vec<u8>) -> Result<(), StoreError> {
        match self {
            Record::Message { queues, .. } => {
                head.push(MESSAGE);
                put_count(head, queues.len())?;
                queues.iter().for_each(|queue| head.extend_from_slice(&queue.to_le_bytes()));
            }
            Record::Settled { queue, positions } => {
                head.push(SETTLED);
                head.extend_from_slice(&queue.to_le_bytes());
                put_ascending(head, positions.iter().copied());
            }
            Record::Returned { queue, returns } => {
                head.push(RETURNED);
                head.extend_from_slice(&queue.to_le_bytes());
                let mut coder = PairCoder::default();
                returns.iter().for_each(|(position, count)| coder.put(head, *position, *count));
            }
            Record::Dropped { queue } => {
                head.push(DROPPED);
                head.extend_from_slice(&queue.to_le_bytes());
            }
            Record::Defined { key, value } => {
                head.push(DEFINED);
                put_count(head, key.len())?;
                head.extend_from_slice(key);
                head.extend_from_slice(value);
            }
            Record::Forgotten { key } => {
                head.push(FORGOTTEN);
                head.extend_from_slice(key);
            }
            Record::Spilled { .. } => head.push(SPILLED),
            Record::Delayed { queue, due_ms, .. } => {
                head.push(DELAYED);
                head.extend_from_slice(&queue.to_le_bytes());
                head.extend_from_slice(&due_ms.to_le_bytes());
            }
            Record::Stream { queue, first_offset, pages } => {
                head.push(STREAM);
                head.extend_from_slice(&queue.to_le_bytes());
                put_varint(head, *first_offset);
                put_varint(head, pages.size_bytes);
                put_varint(head, pages.span_ms);
            }
        }
        Ok(())
    }

    /// The message that follows the head.
    pub fn message(&self) -> Option<&MessageRef<'_>> {
        match self {
            Record::Message { message, .. }
            | Record::Spilled { message }
            | Record::Delayed { message, .. } => Some(message),
            _ => None,
        }
    }
}

impl<'a> Replayed<'a> {
    /// Reads a record; none if it is not one.
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let (kind, rest) = record.split_first()?;
        Some(match *kind {
            MESSAGE => {
                let (queues, message) = split_queues(rest)?;
                let size_bytes = message.len() as u64;
                let message = MessageRef::from_record(message)?;
                let queues = queues.as_chunks::<8>().0.iter().copied().map(u64::from_le_bytes);
                Replayed::Message { queues: queues.collect(), size_bytes, message }
            }
            SETTLED => {
                let (queue, positions) = rest.split_first_chunk::<8>()?;
                let queue = u64::from_le_bytes(*queue);
                Replayed::Settled { queue, positions: ascending(positions)? }
            }
            RETURNED => {
                let (queue, rest) = rest.split_first_chunk::<8>()?;
                let returns = crate::delayed::checked_pairs(rest)?;
                Replayed::Returned { queue: u64::from_le_bytes(*queue), returns }
            }
            DROPPED => Replayed::Dropped { queue: u64::from_le_bytes(rest.try_into().ok()?) },
            DEFINED => {
                let (len, rest) = rest.split_first_chunk::<2>()?;
                let (key, value) = rest.split_at_checked(u16::from_le_bytes(*len) as usize)?;
                Replayed::Defined { key, value }
            }
            FORGOTTEN => Replayed::Forgotten { key: rest },
            SPILLED => MessageRef::from_record(rest).map(|_| Replayed::Spilled)?,
            DELAYED => {
                let (queue, rest) = rest.split_first_chunk::<8>()?;
                let (due_ms, message) = rest.split_first_chunk::<8>()?;
                MessageRef::from_record(message)?;
                let (queue, due_ms) = (u64::from_le_bytes(*queue), u64::from_le_bytes(*due_ms));
                Replayed::Delayed { queue, due_ms }
            }
            STREAM => {
                let (queue, mut rest) = rest.split_first_chunk::<8>()?;
                Replayed::Stream {
                    queue: u64::from_le_bytes(*queue),
                    first_offset: take_varint(&mut rest)?,
                    pages: PageLimits {
                        size_bytes: take_varint(&mut rest)?,
                        span_ms: take_varint(&mut rest)?,
                    },
                }
            }
            _ => return None,
        })
    }
}

/// The message in a record of the log, if it has one.
pub fn message_of(record: &[u8]) -> Option<MessageRef<'_>> {
    match record.split_first()? {
        (&MESSAGE, rest) => MessageRef::from_record(split_queues(rest)?.1),
        (&SPILLED, rest) => MessageRef::from_record(rest),
        (&DELAYED, rest) => MessageRef::from_record(rest.get(16..)?),
        _ => None,
    }
}

/// Whether it is a [`Record::Returned`] that this record of the log says.
pub fn tells_of_returns(record: &[u8]) -> bool {
    record.first() == Some(&RETURNED)
}

/// Appends a number that has to fit: cut off, what follows would be read as something else.
fn put_count(head: &mut Vec<u8>, count: usize) -> Result<(), StoreError> {
    let count = u16::try_from(count).map_err(|_| StoreError::TooLarge(count as u64))?;
    head.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

fn split_queues(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (count, rest) = rest.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_le_bytes(*count) as usize * 8)
}

/// Appends ascending positions as a varint of the first and varints of the differences.
pub fn put_ascending(out: &mut Vec<u8>, positions: impl IntoIterator<Item = Position>) {
    let mut before = 0;
    for position in positions {
        put_varint(out, position.0.wrapping_sub(before));
        before = position.0;
    }
}

/// Reads what [`put_ascending`] wrote; none if it is malformed.
pub fn ascending(mut bytes: &[u8]) -> Option<Vec<Position>> {
    let mut positions = Vec::new();
    let mut before = 0u64;
    while !bytes.is_empty() {
        before = before.checked_add(take_varint(&mut bytes)?)?;
        positions.push(Position(before));
    }
    Some(positions)
}

/// Appends a number in seven bits a byte.
pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a varint off the front; none if there is none.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

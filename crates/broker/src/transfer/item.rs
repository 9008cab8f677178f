//! The items of which a vhost on its way consists: written, and read.

use bytes::BytesMut;
use courser_store::change::{Replayed, message_of, tells_of_returns};
use courser_store::{MessageRef, Record, StoreError};

/// Raised when older brokers can't read it.
const VERSION: u32 = 1;

const BEGIN: u8 = 0xf0;
const END: u8 = 0xf1;

/// How much there is of a vhost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub definitions: u64,
    pub messages: u64,
}

/// An item that has been read.
pub(super) enum Item<'a> {
    /// What follows is this vhost.
    Begin(&'a str),
    /// A record, and its message if it has one.
    Record(Replayed<'a>, Option<MessageRef<'a>>),
    End(Totals),
}

fn put(out: &mut BytesMut, parts: &[&[u8]]) -> Result<(), StoreError> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).map_err(|_| StoreError::TooLarge(length as u64))?;
    out.extend_from_slice(&length.to_le_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    Ok(())
}

pub(super) fn put_begin(out: &mut BytesMut, vhost: &str) -> Result<(), StoreError> {
    put(out, &[&[BEGIN], &VERSION.to_le_bytes(), vhost.as_bytes()])
}

pub(super) fn put_end(out: &mut BytesMut, totals: Totals) -> Result<(), StoreError> {
    put(out, &[&[END], &totals.definitions.to_le_bytes(), &totals.messages.to_le_bytes()])
}

pub(super) fn put_record(out: &mut BytesMut, record: &Record<'_>) -> Result<(), StoreError> {
    let mut head = Vec::new();
    record.encode_head(&mut head)?;
    match record.message() {
        Some(message) => {
            let (prefix, [address, header, body]) = message.record_parts()?;
            put(out, &[&head, &prefix, address, header, body])
        }
        None => put(out, &[&head]),
    }
}

/// How many of the first `bytes` are whole items of which all is there. What is noted of a message stands behind it, so the last
/// item is complete when another one begins that is no such note; and the end is.
pub(super) fn complete(bytes: &[u8]) -> usize {
    let (mut rest, mut complete) = (bytes, 0);
    loop {
        let start = bytes.len() - rest.len();
        let Some(item) = take(&mut rest) else { return complete };
        if !tells_of_returns(item) {
            complete = start;
        }
        if item.first() == Some(&END) {
            complete = bytes.len() - rest.len();
        }
    }
}

/// Takes the bytes of a whole item off the front; none if there are none.
pub(super) fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (item, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *bytes = rest;
    Some(item)
}

impl<'a> Item<'a> {
    /// Reads an item; what is wrong if that is none.
    pub fn parse(item: &'a [u8]) -> Result<Self, String> {
        let malformed = || format!("an item of {} bytes is malformed", item.len());
        match item.split_first().ok_or_else(malformed)? {
            (&BEGIN, rest) => {
                let (version, name) = rest.split_first_chunk::<4>().ok_or_else(malformed)?;
                match u32::from_le_bytes(*version) {
                    VERSION => str::from_utf8(name).map(Item::Begin).map_err(|_| malformed()),
                    other => {
                        Err(format!("it is in version {other}, and this node knows {VERSION}"))
                    }
                }
            }
            (&END, rest) => {
                let (definitions, rest) = rest.split_first_chunk::<8>().ok_or_else(malformed)?;
                let messages = rest.try_into().map_err(|_| malformed())?;
                Ok(Item::End(Totals {
                    definitions: u64::from_le_bytes(*definitions),
                    messages: u64::from_le_bytes(messages),
                }))
            }
            _ => {
                let record = Replayed::parse(item).ok_or_else(malformed)?;
                Ok(Item::Record(record, message_of(item)))
            }
        }
    }
}

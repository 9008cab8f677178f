//! What an owner keeps in the journal here: payloads that live until they are acknowledged.

use courser_journal::Lsn;
use std::collections::BTreeMap;

/// A record: a new payload, or the end of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Payload(Vec<u8>),
    Ack(Lsn),
}

impl Entry {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Entry::Payload(bytes) => [b"P", bytes.as_slice()].concat(),
            Entry::Ack(position) => [b"A", position.0.to_le_bytes().as_slice()].concat(),
        }
    }

    pub fn decode(bytes: &[u8]) -> Self {
        match bytes.split_first() {
            Some((b'P', rest)) => Entry::Payload(rest.to_vec()),
            Some((b'A', rest)) => Entry::Ack(Lsn(u64::from_le_bytes(rest.try_into().unwrap()))),
            _ => panic!("a record that was never appended: {bytes:?}"),
        }
    }
}

/// A batch that was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    pub start: Lsn,
    pub end: Lsn,
    pub entries: Vec<(Lsn, Entry)>,
}

/// The payloads that live.
pub type Live = BTreeMap<Lsn, Vec<u8>>;

/// What lives after all of `batches`.
pub fn live_after(batches: &[Appended]) -> Live {
    let mut live = Live::new();
    for (position, entry) in batches.iter().flat_map(|batch| &batch.entries) {
        match entry {
            Entry::Payload(bytes) => drop(live.insert(*position, bytes.clone())),
            Entry::Ack(of) => drop(live.remove(of)),
        }
    }
    live
}

/// The state that goes into a checkpoint: where each payload is.
pub fn encode_state(live: &Live) -> Vec<u8> {
    live.keys().flat_map(|position| position.0.to_le_bytes()).collect()
}

pub fn decode_state(bytes: &[u8]) -> Vec<Lsn> {
    assert!(bytes.len().is_multiple_of(8));
    bytes.chunks(8).map(|lsn| Lsn(u64::from_le_bytes(lsn.try_into().unwrap()))).collect()
}

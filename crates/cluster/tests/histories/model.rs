//! What must hold, whatever happens: one log that only grows, and nothing that was confirmed missing in it.

use crate::copy::Copy;
use bytes::{Buf, Bytes};
use courser_cluster::{Group, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// What a client has in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Record {
    /// A message of this number.
    Message(u64),
    /// Its acknowledgement.
    Acknowledged(u64),
}

impl Record {
    /// The batch with it alone.
    pub fn encode(self) -> Vec<u8> {
        let (kind, number) = match self {
            Record::Message(number) => (0, number),
            Record::Acknowledged(number) => (1, number),
        };
        let mut out = vec![kind];
        out.extend_from_slice(&number.to_le_bytes());
        // Frames of several lengths, so that what is cut off does not end where what replaces it does.
        out.resize(out.len() + (number % 97) as usize, kind);
        out
    }

    /// Reads what [`Record::encode`] wrote.
    pub fn decode(mut batch: Bytes) -> Self {
        match batch.get_u8() {
            0 => Record::Message(batch.get_u64_le()),
            _ => Record::Acknowledged(batch.get_u64_le()),
        }
    }
}

/// What the whole group has done, seen from outside.
#[derive(Default)]
pub struct Model {
    /// The frames that some node holds for committed, and the records in them.
    committed: Vec<(Bytes, Vec<Record>)>,
    /// Records that were confirmed, with their indices.
    confirmed: BTreeMap<Record, u64>,
    /// Who has served in which term.
    served: BTreeMap<u64, NodeId>,
    /// The last index that was confirmed.
    last_confirmed: u64,
}

impl Model {
    /// A node has come from one commit to another.
    pub fn commits<C: Copy>(&mut self, node: NodeId, before: u64, group: &Group<C>) {
        for index in before + 1..=group.committed() {
            let entry = group.log().entry(index).expect("what is committed is in the log");
            let Some((frame, _)) = self.committed.get(index as usize - 1) else {
                assert_eq!(index as usize, self.committed.len() + 1);
                let records = C::records(&entry);
                self.committed.push((entry.frame, records));
                continue;
            };
            assert_eq!(
                *frame, entry.frame,
                "node {node} has another entry {index} than the others"
            );
        }
    }

    /// A client was told that its record survives.
    pub fn confirms(&mut self, node: NodeId, record: Record, index: u64) {
        let entry = self.committed.get(index as usize - 1);
        let (_, kept) = entry.unwrap_or_else(|| {
            panic!("{node} confirms {record:?}, which no node holds for committed")
        });
        assert!(kept.contains(&record), "node {node} confirms at {index} what is not there");
        self.confirmed.insert(record, index);
        self.last_confirmed = self.last_confirmed.max(index);
    }

    /// A node begins to serve.
    pub fn serves<C: Copy>(&mut self, node: NodeId, term: u64, group: &Group<C>) {
        let first = *self.served.entry(term).or_insert(node);
        assert_eq!(first, node, "two nodes serve in term {term}");
        let committed = group.committed();
        assert!(
            committed >= self.last_confirmed,
            "node {node} serves in term {term} with {committed} entries, and {} were confirmed",
            self.last_confirmed
        );
        let live = live(group);
        for record in self.confirmed.keys() {
            match *record {
                Record::Message(number) => assert!(
                    live.contains(&number) || self.holds(Record::Acknowledged(number), committed),
                    "message {number} was confirmed, and node {node} does not have it"
                ),
                Record::Acknowledged(number) => {
                    assert!(!live.contains(&number), "message {number} comes back at node {node}");
                }
            }
        }
    }

    fn holds(&self, record: Record, committed: u64) -> bool {
        self.confirmed.get(&record).is_some_and(|index| *index <= committed)
            || self.committed[..committed as usize]
                .iter()
                .any(|(_, records)| records.contains(&record))
    }

    /// How many records were confirmed.
    pub fn confirmed(&self) -> usize {
        self.confirmed.len()
    }

    /// In how many terms a node served.
    pub fn terms(&self) -> usize {
        self.served.len()
    }

    /// The newest term in which a node served.
    pub fn newest_term(&self) -> u64 {
        self.served.keys().next_back().copied().unwrap_or_default()
    }

    /// The messages that were confirmed and not acknowledged.
    pub fn unacknowledged(&self) -> Vec<u64> {
        let message = |record: &Record| match *record {
            Record::Message(number) => Some(number),
            Record::Acknowledged(_) => None,
        };
        let numbers = self.confirmed.keys().filter_map(message);
        numbers
            .filter(|number| !self.confirmed.contains_key(&Record::Acknowledged(*number)))
            .collect()
    }
}

/// The messages that a node finds in what is committed, as a broker would restore them. In order, and each once.
fn live<C: Copy>(group: &Group<C>) -> BTreeSet<u64> {
    let mut live = BTreeSet::new();
    let mut last = 0;
    for index in 1..=group.committed() {
        let entry = group.log().entry(index).expect("what is committed is in the log");
        for record in C::records(&entry) {
            match record {
                Record::Message(number) => {
                    assert!(last < number, "message {number} comes after {last}");
                    last = number;
                    live.insert(number);
                }
                Record::Acknowledged(number) => {
                    live.remove(&number);
                }
            }
        }
    }
    live
}

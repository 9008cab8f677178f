//! A log on a disk, which other nodes may have copies of: where its messages are, and what the next leader finds in it.

use courser_store::change::{Replayed, message_of};
use courser_store::{
    BodySize, Location, Lsn, MessageRef, Position, Reader, Record, Recovered, StoreError,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The log.
#[derive(Debug, Default)]
pub(super) struct Copies(Mutex<Records>);

#[derive(Debug, Default)]
struct Records {
    by_position: BTreeMap<u64, Arc<[u8]>>,
    /// Where messages are that the next leader has, by what their bodies begin with: their numbers.
    messages: BTreeMap<[u8; 8], u64>,
}

impl Copies {
    /// Adds records, each of which takes one position, from this one on, and tells where their messages are. Returns where
    /// they end.
    pub fn push<'a>(
        &self,
        from: u64,
        added: impl Iterator<Item = Record<'a>>,
        locations: &mut Vec<Location>,
    ) -> Result<u64, StoreError> {
        let (mut records, mut end) = (self.0.lock(), from);
        for record in added {
            let mut bytes = Vec::new();
            record.encode_head(&mut bytes)?;
            if let Some(message) = record.message() {
                let (prefix, parts) = message.record_parts()?;
                bytes.extend_from_slice(&prefix);
                parts.iter().for_each(|part| bytes.extend_from_slice(part));
                let body = BodySize::of(message.body.len());
                locations.push(Location::Log { position: Position(end), body, marks: 0 });
                // What is only spilled is told of and handed out as if it were in memory.
                let survives = matches!(record, Record::Message { .. });
                if let Some(number) = message.body.first_chunk().filter(|_| survives) {
                    records.messages.insert(*number, end);
                }
            }
            records.by_position.insert(end, bytes.into());
            end += 1;
        }
        Ok(end)
    }

    /// What a node finds that comes to lead when the log is committed up to `end`. The rest is cut off.
    pub fn recovered(&self, end: Lsn) -> Recovered {
        let (mut recovered, mut records) = (Recovered::default(), self.0.lock());
        drop(records.by_position.split_off(&end.0));
        records.messages.retain(|_, position| *position < end.0);
        for (position, record) in &records.by_position {
            let change = Replayed::parse(record).expect("a record");
            recovered.apply(Position(*position), change);
        }
        recovered
    }

    /// Where the message of this number is.
    pub fn position(&self, number: u64) -> Option<Position> {
        self.0.lock().messages.get(&number.to_be_bytes()).copied().map(Position)
    }

    /// Something to read its messages with, and those that are in memory.
    pub fn reader(self: &Arc<Self>) -> Box<dyn Reader> {
        Box::new(CopiesReader { copies: Arc::clone(self), record: Arc::default() })
    }
}

#[derive(Debug)]
struct CopiesReader {
    copies: Arc<Copies>,
    record: Arc<[u8]>,
}

impl Reader for CopiesReader {
    fn read_while<'a>(
        &'a mut self,
        location: &'a Location,
        _is_kept: &dyn Fn() -> bool,
    ) -> Result<MessageRef<'a>, StoreError> {
        let lost = || StoreError::Lost("it is not in the log".into());
        let Some(position) = location.position() else {
            return location.in_memory().ok_or_else(lost);
        };
        let record = self.copies.0.lock().by_position.get(&position.0).cloned();
        self.record = record.ok_or_else(lost)?;
        message_of(&self.record).ok_or_else(lost)
    }
}

//! The store that keeps everything in memory and forgets it at exit.

use crate::chunk::ChunkWriter;
use crate::{Location, Lsn, MemoryGauge, MessageRef, Reader, Record, Store, StoreError, Sync};
use std::sync::Arc;
use std::task::Waker;

/// Keeps messages in compact chunks of memory. Everything is "durable" as soon as it is kept: this
/// store promises to survive nothing.
#[derive(Debug, Default)]
pub struct MemoryStore {
    gauge: Arc<MemoryGauge>,
}

impl MemoryStore {
    /// A store that reports the memory it uses to `gauge`.
    pub fn new(gauge: Arc<MemoryGauge>) -> Self {
        MemoryStore { gauge }
    }
}

impl Store for MemoryStore {
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        let before = locations.len();
        let mut writer = ChunkWriter::new(&self.gauge);
        for message in messages {
            if let Err(error) = writer.push(&message, locations) {
                locations.truncate(before);
                return Err(error);
            }
        }
        writer.close(locations);
        Ok(())
    }

    fn append(
        &self,
        records: &[Record<'_>],
        _sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        let mut messages = records.iter().filter_map(|record| match record {
            Record::Message { message, .. } | Record::Delayed { message, .. } => Some(*message),
            _ => None,
        });
        self.keep(&mut messages, locations)?;
        Ok(Lsn::default())
    }

    fn durable(&self) -> Lsn {
        Lsn::default()
    }

    fn when_durable(&self, _lsn: Lsn, waker: &Waker) {
        waker.wake_by_ref();
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(MemoryReader)
    }

    fn hold(&self, _position: u64) {}

    fn release(&self, _position: u64) {}

    fn release_unlogged(&self, _positions: &[u64]) {}

    fn end(&self) -> Lsn {
        Lsn::default()
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn has_room(&self) -> bool {
        true
    }

    fn when_room(&self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

/// Reads what is in memory.
#[derive(Debug)]
struct MemoryReader;

impl Reader for MemoryReader {
    fn read<'a>(&'a mut self, location: &'a Location) -> Result<MessageRef<'a>, StoreError> {
        location
            .in_memory()
            .ok_or_else(|| StoreError::Failed("a message of a log in a store without one".into()))
    }
}

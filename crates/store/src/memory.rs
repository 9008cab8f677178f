//! The store that keeps everything in memory and forgets it at exit.

use crate::chunk::ChunkWriter;
use crate::{Location, Lsn, MemoryGauge, MessageRef, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keeps messages in compact chunks of memory. Everything is "durable" as soon as it is kept: this
/// store promises to survive nothing.
#[derive(Debug, Default)]
pub struct MemoryStore {
    gauge: Arc<MemoryGauge>,
    appended_bytes: AtomicU64,
}

impl MemoryStore {
    /// A store that reports the memory it uses to `gauge`.
    pub fn new(gauge: Arc<MemoryGauge>) -> Self {
        MemoryStore { gauge, appended_bytes: AtomicU64::new(0) }
    }
}

impl Store for MemoryStore {
    fn append(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        let before = locations.len();
        let mut writer = ChunkWriter::new(&self.gauge);
        let mut bytes = 0;
        for message in messages {
            match writer.push(&message, locations) {
                Ok(len) => bytes += len as u64,
                Err(error) => {
                    locations.truncate(before);
                    return Err(error);
                }
            }
        }
        writer.close(locations);
        let start = self.appended_bytes.fetch_add(bytes, Ordering::AcqRel);
        Ok(Lsn(start + bytes))
    }

    fn durable(&self) -> Lsn {
        Lsn(self.appended_bytes.load(Ordering::Acquire))
    }

    fn read<'a>(&self, location: &'a Location) -> Result<MessageRef<'a>, StoreError> {
        Ok(location.message())
    }
}

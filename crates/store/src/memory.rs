//! The store that keeps everything in memory and forgets it at exit.

use crate::chunk::ChunkWriter;
use crate::{
    CheckpointError, CheckpointReport, Location, Log, Lsn, MemoryGauge, MessageRef, Messages,
    OpenReport, OpenShard, Opened, Opening, Position, Progress, Reader, Record, Recovered, Role,
    ShardError, ShardId, ShardState, Shards, Store, StoreError, Sync, Unlogged, Waiter,
};
use parking_lot::{Condvar, Mutex};
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

impl Messages for MemoryStore {
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

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(MemoryReader)
    }

    fn spill_from(&self, _bytes: u64) {}

    fn hold(&self, _position: Position) {}

    fn release(&self, _positions: &[Position]) {}
}

impl Log for MemoryStore {
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

    fn settle(
        &self,
        _records: &[Record<'_>],
        _sync: Sync,
        _positions: &[Position],
    ) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn unlogged(&self) -> Option<&dyn Unlogged> {
        None
    }

    fn when_durable(&self, _lsn: Lsn, waiter: Waiter) {
        waiter.notify(false);
    }

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
    fn read_while<'a>(
        &'a mut self,
        location: &'a Location,
        _is_kept: &dyn Fn() -> bool,
    ) -> Result<MessageRef<'a>, StoreError> {
        location
            .in_memory()
            .ok_or_else(|| StoreError::Failed("a message of a log in a store without one".into()))
    }
}

/// Shards of memory: each opening finds an empty one.
#[derive(Debug, Default)]
pub struct MemoryShards {
    gauge: Arc<MemoryGauge>,
}

impl MemoryShards {
    /// Shards that report the memory they use to `gauge`.
    pub fn new(gauge: Arc<MemoryGauge>) -> Self {
        MemoryShards { gauge }
    }
}

impl Shards for MemoryShards {
    fn open(
        &self,
        _shard: ShardId,
        _opening: Opening,
        _progress: &mut dyn FnMut(Progress),
    ) -> Result<Opened, ShardError> {
        let store = Arc::new(MemoryStore::new(Arc::clone(&self.gauge)));
        let shard =
            Arc::new(MemoryShard { store, stopped: Mutex::new(false), stop: Condvar::new() });
        Ok(Opened { shard, recovered: Recovered::default(), report: OpenReport::default() })
    }

    fn remove(&self, _shard: ShardId) -> Result<(), ShardError> {
        Ok(())
    }
}

/// A shard without a disk: there is nothing to be made durable.
struct MemoryShard {
    store: Arc<MemoryStore>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

impl OpenShard for MemoryShard {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn role(&self) -> Role {
        Role::Leader
    }

    fn wait_for_checkpoint(&self) -> bool {
        let mut stopped = self.stopped.lock();
        self.stop.wait_while(&mut stopped, |stopped| !*stopped);
        false
    }

    fn stop_checkpoints(&self) {
        *self.stopped.lock() = true;
        self.stop.notify_all();
    }

    fn checkpoint(&self, _state: &dyn ShardState) -> Result<CheckpointReport, CheckpointError> {
        Ok(CheckpointReport::default())
    }

    fn has_unlogged(&self) -> bool {
        false
    }

    fn close(&self) -> Result<(), String> {
        Ok(())
    }
}

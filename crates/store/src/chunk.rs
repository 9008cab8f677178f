//! Compact, immutable pieces of memory that hold the records of several messages.
//!
//! A chunk is filled once, from one batch, and freed when the last [`Location`] in it is dropped.
//! Chunks are small ([`CHUNK_TARGET_BYTES`]), so that a message that is never acknowledged pins
//! little besides itself.

use crate::{Location, MemoryGauge, MessageRef, SharedBody, StoreError};
use std::sync::Arc;

/// A chunk is closed when its records reach this size.
pub const CHUNK_TARGET_BYTES: usize = 16 * 1024;

/// What a chunk costs besides its records: its own header and the allocator's rounding.
const CHUNK_OVERHEAD_BYTES: usize = 96;

/// Records of some messages.
#[derive(Debug)]
pub struct Chunk {
    records: Box<[u8]>,
    /// The body of the chunk's only message, if it is kept without a copy.
    beside: Option<SharedBody>,
    gauge: Arc<MemoryGauge>,
}

impl Chunk {
    pub(crate) fn message(&self, offset: u32) -> MessageRef<'_> {
        MessageRef::parse(&self.records, offset as usize, self.beside.as_ref())
    }

    /// Bytes of the body of the message whose record begins here.
    #[inline]
    pub fn body_len(&self, offset: u32) -> u32 {
        MessageRef::body_len_at(&self.records, offset as usize, self.beside.as_ref())
    }

    /// Bytes that it takes itself, and those of the body beside it.
    fn footprint_bytes(&self) -> (usize, usize) {
        let body = self.beside.as_ref().map_or(0, |body| body.len());
        (self.records.len() + CHUNK_OVERHEAD_BYTES, body)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let (own, body) = self.footprint_bytes();
        self.gauge.sub_chunk(own, body);
    }
}

/// Fills chunks from a run of messages.
pub(crate) struct ChunkWriter<'a> {
    gauge: &'a Arc<MemoryGauge>,
    records: Vec<u8>,
    offsets: Vec<u32>,
}

impl<'a> ChunkWriter<'a> {
    pub(crate) fn new(gauge: &'a Arc<MemoryGauge>) -> Self {
        ChunkWriter { gauge, records: Vec::new(), offsets: Vec::new() }
    }

    /// Adds a message; its location appears in `locations` when the chunk is closed.
    pub(crate) fn push(
        &mut self,
        message: &MessageRef<'_>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        let len = message.record_len();
        if message.shares_body() || self.records.len() + len > CHUNK_TARGET_BYTES {
            self.close(locations);
        }
        if self.offsets.capacity() == 0 {
            // As many as fit of such messages, so that a run of them grows it once.
            self.offsets.reserve((CHUNK_TARGET_BYTES / len.max(256)).max(1));
        }
        let offset = self.records.len();
        message.write(&mut self.records)?;
        self.offsets.push(offset as u32);
        if let Some(body) = message.shared_body.filter(|_| message.shares_body()) {
            self.close_with(Some(body.clone()), locations);
        }
        Ok(())
    }

    /// Ends the current chunk, if it holds anything.
    pub(crate) fn close(&mut self, locations: &mut Vec<Location>) {
        if !self.offsets.is_empty() {
            self.close_with(None, locations);
        }
    }

    fn close_with(&mut self, beside: Option<SharedBody>, locations: &mut Vec<Location>) {
        let records = self.records.as_slice().into();
        self.records.clear();
        let chunk = Arc::new(Chunk { records, beside, gauge: Arc::clone(self.gauge) });
        let (own, body) = chunk.footprint_bytes();
        self.gauge.add_chunk(own, body);
        locations.extend(self.offsets.drain(..).map(|offset| Location::Memory {
            chunk: Arc::clone(&chunk),
            offset,
            marks: 0,
        }));
    }
}

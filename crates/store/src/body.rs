//! Large bodies, which are shared instead of copied.
//!
//! One may be in several queues, on its way to many clients, and be kept by none of the queues any more: so it counts by itself,
//! once, until the last who has a part of it lets go.

use crate::{MemoryGauge, MessageRef};
use bytes::Bytes;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// What it costs to count one.
const COUNTED_BYTES: usize = size_of::<Counted>() + 48;

/// A body that is shared, and counted for as long as anyone has some of it.
#[derive(Clone, Debug)]
pub struct SharedBody(Bytes);

impl SharedBody {
    /// Counts this body from now on.
    pub fn new(body: Bytes, gauge: &Arc<MemoryGauge>) -> Self {
        gauge.add(body.len() + COUNTED_BYTES);
        SharedBody(Bytes::from_owner(Counted { body, gauge: Arc::clone(gauge) }))
    }

    /// A part of it.
    pub fn slice(&self, range: Range<usize>) -> Bytes {
        self.0.slice(range)
    }
}

impl Deref for SharedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// What all parts of a body hold together.
struct Counted {
    body: Bytes,
    gauge: Arc<MemoryGauge>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gauge.sub(self.body.len() + COUNTED_BYTES);
    }
}

/// A body that outlives the message it came with: shared if it was, or copied.
#[derive(Clone, Debug)]
pub enum KeptBody {
    /// It counts by itself.
    Shared(SharedBody),
    /// A copy, counted by what keeps it.
    Copied(Bytes),
}

impl KeptBody {
    /// The body of a message.
    pub fn of(message: &MessageRef<'_>) -> Self {
        KeptBody::new(message.body, message.shared_body)
    }

    /// A body, which is the same as `shared` if that is there.
    pub fn new(body: &[u8], shared: Option<&SharedBody>) -> Self {
        match shared {
            Some(shared) => KeptBody::Shared(shared.clone()),
            None => KeptBody::Copied(Bytes::copy_from_slice(body)),
        }
    }

    /// The same as shared memory, if it is.
    pub fn shared(&self) -> Option<&SharedBody> {
        match self {
            KeptBody::Shared(body) => Some(body),
            KeptBody::Copied(_) => None,
        }
    }
}

impl Deref for KeptBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            KeptBody::Shared(body) => body,
            KeptBody::Copied(body) => body,
        }
    }
}

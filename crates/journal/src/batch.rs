//! Collecting the records of a batch.

use crate::Lsn;

/// Records that go into the log together: after a crash all of them are there, or none.
///
/// Made to be used again and again: it keeps its memory. The records' octets are copied and
/// summed by [`Batch::push`], outside the log's lock.
#[derive(Default)]
pub struct Batch {}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one record, the octets of `parts` one behind the other, and returns its index.
    ///
    /// The first push after an append starts a new batch.
    pub fn push(&mut self, parts: &[&[u8]]) -> usize {
        todo!()
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        todo!()
    }

    /// Records in it.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets it takes in the log.
    pub fn size_bytes(&self) -> usize {
        todo!()
    }
}

/// Where an appended batch went.
pub struct Appended<'b> {
    batch: &'b Batch,
    start: Lsn,
    end: Lsn,
}

impl Appended<'_> {
    /// Where the batch starts.
    pub fn start(&self) -> Lsn {
        self.start
    }

    /// The batch is durable when [`Journal::durable`](crate::Journal::durable) has reached this.
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// The position of the record that [`Batch::push`] gave `index`.
    pub fn position(&self, index: usize) -> Lsn {
        todo!()
    }
}

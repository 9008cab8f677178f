//! How many steps ([`courser_store::work`]) what the broker does counts for, and how many a connection may take before
//! others have their turn.

use courser_codec::{FieldTable, FieldValue};
pub(crate) use courser_store::work::count;
pub use courser_store::work::steps;

/// Steps that a connection may take at once: some hundred microseconds.
const BUDGET_STEPS: u64 = 16_384;
/// What a request counts for besides what it looks at.
const STEPS_PER_REQUEST: u64 = 64;
/// Bytes that are read, checked and looked at in the time of a step.
const BYTES_PER_STEP: usize = 64;
/// Bytes of a compiled pattern that a name is matched with in the time of a step. In the worst case it takes many steps' time, but
/// seldom any.
const PATTERN_BYTES_PER_STEP: usize = 256;
/// What it takes to put a message that travels alone into a queue.
const STEPS_PER_COPY: usize = 8;

/// Notes that so many bytes of a message have been read, whatever becomes of it.
#[inline]
pub(crate) fn count_read(bytes: usize) {
    count(1 + bytes / BYTES_PER_STEP);
}

/// Notes that a value of so many bytes is hashed, compared or copied.
#[inline]
pub(crate) fn count_bytes(bytes: usize) {
    count(bytes / BYTES_PER_STEP);
}

/// Notes that a table has been copied, with what lies in tables and arrays in it, and the bytes of its texts.
pub(crate) fn count_values(table: &FieldTable) {
    count(table.iter().map(|(_, value)| values(value)).sum());
}

fn values(value: &FieldValue) -> usize {
    match value {
        FieldValue::Array(elements) => 1 + elements.iter().map(values).sum::<usize>(),
        FieldValue::Table(table) => 1 + table.iter().map(|(_, value)| values(value)).sum::<usize>(),
        FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => 1 + bytes.len() / BYTES_PER_STEP,
        _ => 1,
    }
}

/// Notes that so many messages, and bytes of their bodies, have been handed to consumers, which have to be sent as well.
#[inline]
pub(crate) fn count_handed(messages: u64, bytes: u64) {
    count(messages as usize + bytes as usize / BYTES_PER_STEP);
}

/// Notes that a message that travels alone goes to so many queues.
#[inline]
pub(crate) fn count_copies(queues: usize) {
    count(queues * STEPS_PER_COPY);
}

/// Notes that a name is matched with a pattern of so many bytes.
#[inline]
pub(crate) fn count_match(pattern_bytes: usize) {
    count(1 + pattern_bytes / PATTERN_BYTES_PER_STEP);
}

/// What a connection may do before others get their turn, in steps of the thread that it began on.
///
/// What can't be left half done is done all the same: a budget is spent when its steps have been taken,
/// however many the last thing took.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    ends_at: u64,
}

impl Budget {
    /// A whole one, from now on and on this thread.
    #[must_use]
    pub fn begin() -> Self {
        Self::of_steps(BUDGET_STEPS)
    }

    /// One of so many steps, as [`Budget::begin`].
    #[must_use]
    pub(crate) fn of_steps(most: u64) -> Self {
        Budget { ends_at: steps().saturating_add(most) }
    }

    /// Whether others should have their turn now.
    #[inline]
    pub fn is_spent(&self) -> bool {
        steps() >= self.ends_at
    }

    /// Notes a request, which costs something however little it looks at.
    #[inline]
    pub fn note_request(&mut self) {
        self.ends_at = self.ends_at.saturating_sub(STEPS_PER_REQUEST);
    }
}

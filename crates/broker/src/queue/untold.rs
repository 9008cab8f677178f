//! Ends of messages that the log had no room to be told of, in a queue that holds no two of the same.
//!
//! A crash before the next checkpoint brings these messages back, and the queue would hold two of the same. So what identifies them
//! stays until the log is told, which is before others are published to the queue.

use super::Queue;
use crate::gate;
use courser_store::blocking::Lock;
use courser_store::{Position, Record, Store, StoreError, Sync};
use std::collections::VecDeque;
use std::sync::Arc;

/// Positions that the log is told of at once when it has room again.
const TOLD_AT_ONCE: usize = 1 << 14;

/// Where those messages are in the log.
#[derive(Debug, Default)]
pub(super) struct Untold {
    positions: VecDeque<Position>,
    /// Held while the log is told of the first of them. Others who publish wait until it has been told.
    telling: Arc<Lock<()>>,
}

impl Untold {
    /// Bytes that it uses.
    pub fn used_bytes(&self) -> usize {
        self.positions.capacity() * size_of::<Position>()
    }

    pub fn add(&mut self, positions: &[Position]) {
        self.positions.extend(positions);
    }

    /// What is held while the log is told, if there is anything to tell.
    pub fn telling(&self) -> Option<Arc<Lock<()>>> {
        (!self.positions.is_empty()).then(|| Arc::clone(&self.telling))
    }

    /// Those that the log is told of next.
    pub fn first(&self) -> Vec<Position> {
        self.positions.iter().take(TOLD_AT_ONCE).copied().collect()
    }

    /// The log has been told of so many.
    pub fn remove_first(&mut self, count: usize) {
        self.positions.drain(..count.min(self.positions.len()));
        if self.positions.is_empty() {
            self.positions = VecDeque::new();
        }
    }
}

impl Queue {
    /// Tells the log of the messages that have gone while it had no room for that. Called before others go into the log for this
    /// queue, with the gate held and without any lock but `posting`.
    ///
    /// # Errors
    /// If there still is no room, or the store has failed.
    pub(crate) fn tell_untold(&self, store: &dyn Store) -> Result<(), StoreError> {
        if !self.holds_no_two() {
            return Ok(());
        }
        let telling = self.state.lock().notes.as_ref().and_then(|notes| notes.untold()?.telling());
        let Some(telling) = telling else { return Ok(()) };
        gate::assert_inside("messages are settled");
        // What identifies them stays as long as another thread tells of them: what is the same as one of these would be dropped.
        let _telling = telling.lock();
        loop {
            let state = self.state.lock();
            let untold = state.notes.as_ref().and_then(|notes| notes.untold());
            let some = untold.map_or_else(Vec::new, Untold::first);
            drop(state);
            if some.is_empty() {
                return Ok(());
            }
            let mut positions = some.clone();
            positions.sort_unstable();
            let settled = Record::Settled { queue: self.id, positions: &positions };
            store.append(&[settled], Sync::Later, &mut Vec::new())?;
            if let Some(notes) = &mut self.state.lock().notes {
                notes.leave_untold(&some);
            }
        }
    }
}

//! The end of a queue: what it depends on, and what it leaves behind.

use super::{Consumer, Queue, QueueStatus};
use crate::fault::Fault;
use crate::memory::Use;
use crate::timers::TimerKind;
use courser_store::{Location, Position};
use std::sync::atomic::Ordering;

/// What a deletion may depend on.
pub(crate) struct BeforeDeletion {
    pub status: QueueStatus,
    /// Its lease is over (`x-expires`).
    pub is_unused: bool,
}

/// What is left of a deleted queue.
pub(crate) struct Remains {
    /// How many messages waited in it.
    pub messages: usize,
    /// The consumers that have to be told.
    pub consumers: Vec<Consumer>,
    /// The positions in the log of its messages, to be released once the log knows that it is gone.
    pub positions: Vec<Position>,
}

impl Queue {
    /// Whether it is gone, and takes nothing any more.
    pub(crate) fn is_deleted(&self) -> bool {
        self.state.lock().deleted
    }

    /// Marks the queue as gone if `condition` agrees. What it leaves behind is the caller's.
    pub(crate) fn delete(
        &self,
        condition: impl FnOnce(BeforeDeletion) -> Result<(), Fault>,
    ) -> Result<Remains, Fault> {
        let mut state = self.state.lock();
        let (status, is_unused) = (self.status_of(&state), state.is_unused(self.now_ms()));
        condition(BeforeDeletion { status, is_unused })?;
        state.deleted = true;
        // What keeps it from now on is deliveries that wait for an acknowledgement, and routes that are remembered.
        state.charge.count_as(Use::Sessions);
        state.return_passed_over();
        self.end_lease(&mut state);
        self.end_expiry(&mut state);
        self.timers.disarm(&mut state.serving, (self.id, TimerKind::Serve));
        let dying = self.take_dying(&mut state);
        self.timers.disarm(&mut state.read_ahead, (self.id, TimerKind::ReadAhead));
        state.reader.close();
        state.notes = None;
        self.end_delayed(&mut state);
        let delayed = state.delayed.take_all();
        let messages = state.ready.take_all();
        let unacked = state.unacked.take_all();
        let consumers = state.consumers.take_all();
        self.backlog.store(0, Ordering::Relaxed);
        self.active_consumers.store(0, Ordering::Relaxed);
        drop(state);
        let mut positions = Vec::new();
        messages.logged().for_each_run(&mut |run| {
            positions.extend(run.iter().map(|(position, ..)| position));
        });
        positions.extend(unacked.values().filter_map(Location::position));
        positions.extend(dying.locations().filter_map(Location::position));
        let mut count = messages.len() + delayed.len();
        positions.extend(delayed.values().filter_map(Location::position));
        if let Some(stream) = self.stream() {
            let (in_stream, mut places) = stream.delete(&self.timers);
            count += in_stream as usize;
            positions.append(&mut places);
        }
        Ok(Remains { messages: count, consumers, positions })
    }
}

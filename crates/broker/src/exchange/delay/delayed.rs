//! A message on its way into the waiting room of an exchange.

use super::Delay;
use crate::queue::SPILLED;
use courser_store::{Location, MessageRef, Position, Record, Store, StoreError, Sync};
use std::sync::Arc;

/// A message that is about to wait.
pub(crate) struct Delayed<'m> {
    pub(super) delay: Arc<Delay>,
    pub(super) message: MessageRef<'m>,
    /// The content header that it leaves with.
    pub(super) header: Vec<u8>,
    pub(super) due_ms: u64,
    pub(super) persistent: bool,
    /// Where it is kept, if it does not survive a restart.
    pub(super) transient: Option<Location>,
}

impl Delayed<'_> {
    fn message(&self) -> MessageRef<'_> {
        MessageRef { header: &self.header, ..self.message }
    }

    /// What the log is told, if the message survives a restart.
    pub fn record(&self) -> Option<Record<'_>> {
        let (queue, due_ms) = (self.delay.number, self.due_ms);
        self.persistent.then(|| Record::Delayed { queue, due_ms, message: self.message() })
    }

    /// Keeps the message if it does not survive a restart: in the place where another exchange keeps the same, or in one of its own,
    /// which it leaves in `kept`.
    pub fn keep_transient(
        &mut self,
        kept: &mut Option<Location>,
        store: &dyn Store,
    ) -> Result<(), StoreError> {
        if !self.persistent {
            if kept.is_none() {
                *kept = store.keep_one(self.message())?;
            }
            self.transient = kept.clone();
        }
        Ok(())
    }

    /// Its place in the log, where it is as there was no memory for it.
    pub fn spilled(&self) -> Option<Position> {
        self.transient.as_ref().and_then(Location::position)
    }

    /// The message waits from now on. If it survives, its place is the next of `appended`.
    pub fn admit_from(mut self, appended: &mut impl Iterator<Item = Location>) {
        let transient = self.transient.take();
        let location = if self.persistent { appended.next() } else { transient };
        location.into_iter().for_each(|location| self.admit(location));
    }

    fn admit(&self, mut location: Location) {
        let delay = &self.delay;
        if let (Some(position), false) = (location.position(), self.persistent) {
            delay.context.store.hold(position);
            *location.marks_mut() |= SPILLED;
        }
        let mut state = delay.state.lock();
        if state.closed {
            drop(state);
            return self.refuse(&location);
        }
        state.wheel.insert(self.due_ms, location, delay.context.timers.now_ms());
        delay.rearm(&mut state);
    }

    /// Lets go of a message that has come when the exchange was gone, though the log may have it there.
    fn refuse(&self, location: &Location) {
        let (store, positions) = (&self.delay.context.store, location.position());
        let positions = positions.as_slice();
        if !self.persistent {
            return store.release(positions);
        }
        let settled = Record::Settled { queue: self.delay.number, positions };
        // If the store has failed, its owner ends the broker.
        drop(store.settle(&[settled], Sync::Later, positions));
    }
}

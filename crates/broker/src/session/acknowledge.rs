//! Acknowledgements and what comes back.

use super::Session;
use crate::fault::Fault;
use crate::outbox::OutboxState;
use crate::queue::{Queue, Settled};
use crate::unacked::Unacked;
use std::sync::Arc;

/// Runs of deliveries from the same queue.
type Runs = Vec<(Arc<Queue>, Vec<Settled>)>;

impl Session {
    /// `basic.ack`; takes effect when the batch is flushed.
    pub fn ack(&mut self, number: u16, tag: u64, multiple: bool) -> Result<(), Fault> {
        let mut runs = std::mem::take(&mut self.settling);
        let taken = self.take_unacked(number, tag, multiple, &mut runs);
        self.settling = runs;
        taken
    }

    /// `basic.nack` and `basic.reject`.
    pub(super) fn nack(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
        requeue: bool,
    ) -> Result<(), Fault> {
        if !requeue {
            return self.ack(number, tag, multiple);
        }
        self.settle_acknowledged();
        let mut returned = Runs::new();
        self.take_unacked(number, tag, multiple, &mut returned)?;
        self.requeue(returned)
    }

    /// `basic.recover` with requeue: everything unacknowledged on the channel returns.
    pub(super) fn recover(&mut self, number: u16) -> Result<(), Fault> {
        self.settle_acknowledged();
        let mut returned = Runs::new();
        self.take_unacked(number, 0, true, &mut returned)?;
        self.requeue(returned)
    }

    /// Returns everything unacknowledged on a channel that is being closed.
    pub(super) fn requeue_all(&mut self, number: u16) {
        // Nothing is left of the channel that an error could be reported to.
        let recovered = self.recover(number);
        drop(recovered);
    }

    /// Takes deliveries out of the channel's books, oldest first.
    fn take_unacked(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
        runs: &mut Runs,
    ) -> Result<(), Fault> {
        let mut outbox = self.outbox.lock();
        let state: &mut OutboxState = &mut outbox;
        let Some(channel) = state.channel(number) else { return Ok(()) };
        let shared_limit = channel.prefetch != 0;
        if multiple {
            if tag != 0 && !channel.unacked.contains(tag) {
                return Err(unknown_tag(tag));
            }
            let mut taken = Vec::new();
            channel.unacked.take_through(tag, |unacked| taken.push(unacked));
            for unacked in taken {
                book(channel, unacked, runs);
            }
        } else {
            let unacked = channel.unacked.take(tag).ok_or_else(|| unknown_tag(tag))?;
            book(channel, unacked, runs);
        }
        channel.sweep_slots();
        if shared_limit {
            // The limit is all consumers' together, so each of them may have been waiting for this.
            for slot in channel.consumers() {
                if !self.resuming.iter().any(|known| Arc::ptr_eq(known, &slot.queue)) {
                    self.resuming.push(Arc::clone(&slot.queue));
                }
            }
        }
        Ok(())
    }

    /// Lets the queues know what has been acknowledged since the last time.
    pub(super) fn settle_acknowledged(&mut self) {
        let store = &*self.broker.store;
        for (queue, settled) in &mut self.settling {
            // A store that can't read has poisoned itself; its owner ends the broker.
            drop(queue.acknowledge(settled, store, &mut self.wakes));
            settled.clear();
        }
        // The usual case, one queue, keeps the memory of its run for the next batch.
        self.settling.truncate(1);
        for queue in std::mem::take(&mut self.resuming) {
            drop(queue.resume(&self.outbox, store, &mut self.wakes));
        }
    }

    fn requeue(&mut self, returned: Runs) -> Result<(), Fault> {
        let store = &*self.broker.store;
        for (queue, settled) in returned {
            queue.requeue(settled.into_iter(), store, &mut self.wakes).map_err(|error| {
                Fault::internal_error(format_args!("queue '{}': {error}", queue.name))
            })?;
        }
        for queue in std::mem::take(&mut self.resuming) {
            drop(queue.resume(&self.outbox, store, &mut self.wakes));
        }
        Ok(())
    }
}

/// Moves a delivery from the channel's books to the run of its queue.
#[inline]
fn book(channel: &mut crate::outbox::ChannelOut, unacked: Unacked, runs: &mut Runs) {
    let Unacked { slot, sequence, location } = unacked;
    let Some((queue, consumer)) = channel.settled(slot) else { return };
    let settled = Settled { sequence, location, consumer };
    match runs.last_mut() {
        Some((last, run)) if Arc::ptr_eq(last, queue) => run.push(settled),
        _ => runs.push((Arc::clone(queue), vec![settled])),
    }
}

fn unknown_tag(tag: u64) -> Fault {
    Fault::precondition_failed(format_args!("unknown delivery tag {tag}"))
}

//! Acknowledgements and what comes back.

use super::Session;
use crate::fault::{Fault, store_fault};
use crate::outbox::ChannelOut;
use crate::outbox::Unacked;
use crate::queue::{Queue, Settled};
use std::sync::Arc;

/// Runs of deliveries from the same queue.
pub(super) type Runs = Vec<(Arc<Queue>, Vec<Settled>)>;

/// What a batch's acknowledgements leave to be done at its end.
#[derive(Default)]
pub(super) struct Settling {
    /// Deliveries acknowledged, in runs of the same queue.
    pub acknowledged: Runs,
    /// Channels whose consumers share a limit, which may leave them something again.
    resuming: Vec<u16>,
}

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    /// It is done with.
    Done,
    /// It returns to its queue.
    Requeue,
    /// Its consumer refuses it for good: a dead letter, where its queue wants that.
    Reject,
}

impl Session {
    /// `basic.ack`; takes effect when the batch is flushed.
    pub fn ack(&mut self, number: u16, tag: u64, multiple: bool) -> Result<(), Fault> {
        self.settle(number, tag, multiple, Settlement::Done)
    }

    /// `basic.nack` and `basic.reject`.
    pub(super) fn nack(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
        requeue: bool,
    ) -> Result<(), Fault> {
        let settlement = if requeue { Settlement::Requeue } else { Settlement::Reject };
        self.settle(number, tag, multiple, settlement)
    }

    /// `basic.recover` with requeue: everything unacknowledged on the channel returns.
    pub(super) fn recover(&mut self, number: u16) -> Result<(), Fault> {
        self.settle_acknowledged();
        let taken = self.take_unacked(number, 0, true)?;
        self.apply(number, taken, Settlement::Requeue)
    }

    /// Ends a channel in the outbox; what is unacknowledged on it is added to `returned`.
    pub(super) fn give_up(&mut self, number: u16, returned: &mut Runs) {
        let Some(mut channel) = self.outbox.lock().close_channel(number) else { return };
        let mut taken = Vec::new();
        channel.unacked.take_through(0, |_, unacked| taken.push(unacked));
        for unacked in taken {
            book(&mut channel, unacked, returned);
        }
    }

    fn settle(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
        settlement: Settlement,
    ) -> Result<(), Fault> {
        if !multiple && settlement == Settlement::Done && !self.is_transactional(number) {
            return self.settle_one(number, tag);
        }
        let taken = self.take_unacked(number, tag, multiple)?;
        match self.transaction(number) {
            Some(transaction) => {
                let settled = taken.into_iter().map(|(tag, one)| (tag, one, settlement));
                transaction.settle(settled);
                Ok(())
            }
            None => self.apply(number, taken, settlement),
        }
    }

    /// The usual case: a single ack. Does what `take_unacked` and `apply` do, in one go.
    fn settle_one(&mut self, number: u16, tag: u64) -> Result<(), Fault> {
        let mut outbox = self.outbox.lock();
        let Some(channel) = outbox.channel(number) else { return Ok(()) };
        let unacked = channel.unacked.take(tag).ok_or_else(|| unknown_tag(tag))?;
        channel.counts().deliveries.acknowledged += 1;
        book(channel, unacked, &mut self.settling.acknowledged);
        if channel.starved_len() > 0 {
            note(number, &mut self.settling.resuming);
        }
        Ok(())
    }

    /// Takes deliveries out of the channel's list, oldest first.
    fn take_unacked(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
    ) -> Result<Vec<(u64, Unacked)>, Fault> {
        let mut outbox = self.outbox.lock();
        let mut taken = Vec::new();
        let Some(channel) = outbox.channel(number) else { return Ok(taken) };
        if !multiple {
            let unacked = channel.unacked.take(tag).ok_or_else(|| unknown_tag(tag))?;
            taken.push((tag, unacked));
        } else if tag == 0 || channel.unacked.contains(tag) {
            channel.unacked.take_through(tag, |tag, unacked| taken.push((tag, unacked)));
        } else {
            return Err(unknown_tag(tag));
        }
        Ok(taken)
    }

    /// Takes deliveries out of the channel's books that the log knows to be done with.
    pub(super) fn apply_logged(&mut self, number: u16, taken: &[Unacked]) -> Result<(), Fault> {
        let mut runs = Runs::new();
        if let Some(channel) = self.outbox.lock().channel(number) {
            channel.counts().deliveries.acknowledged += taken.len() as u64;
            taken.iter().for_each(|unacked| book(channel, *unacked, &mut runs));
            if channel.starved_len() > 0 {
                note(number, &mut self.settling.resuming);
            }
        }
        let store = &*self.shard.store;
        for (queue, settled) in runs {
            let acknowledged = queue.acknowledge(&settled, true, store, &mut self.wakes);
            acknowledged.map_err(store_fault)?;
        }
        Ok(())
    }

    /// Takes deliveries out of the channel's books; acks wait for the end of the batch, what is
    /// requeued returns at once.
    pub(super) fn apply(
        &mut self,
        number: u16,
        taken: Vec<(u64, Unacked)>,
        settlement: Settlement,
    ) -> Result<(), Fault> {
        let mut returned = Runs::new();
        if settlement == Settlement::Requeue {
            // Before there is credit for them: what returns goes out ahead of what has been waiting.
            self.settle_acknowledged();
        }
        {
            let mut outbox = self.outbox.lock();
            let Some(channel) = outbox.channel(number) else { return Ok(()) };
            let runs = match settlement {
                Settlement::Done => {
                    channel.counts().deliveries.acknowledged += taken.len() as u64;
                    &mut self.settling.acknowledged
                }
                Settlement::Requeue | Settlement::Reject => &mut returned,
            };
            for (_, unacked) in taken {
                book(channel, unacked, runs);
            }
            if channel.starved_len() > 0 {
                note(number, &mut self.settling.resuming);
            }
        }
        match settlement {
            _ if returned.is_empty() => Ok(()),
            Settlement::Reject => self.reject(returned),
            _ => self.requeue(returned),
        }
    }

    /// Lets the queues know what has been acknowledged since the last time.
    pub(super) fn settle_acknowledged(&mut self) {
        if self.settling.acknowledged.is_empty() && self.settling.resuming.is_empty() {
            return;
        }
        if self.settling.acknowledged.iter().any(|(_, settled)| !settled.is_empty()) {
            self.settling.acknowledged.retain(|(_, settled)| !settled.is_empty());
        }
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        let store = &*shard.store;
        for (queue, settled) in &mut self.settling.acknowledged {
            if settled.is_empty() {
                continue;
            }
            // A store that can't read has poisoned itself; its owner ends the broker.
            drop(queue.acknowledge(settled, false, store, &mut self.wakes));
            settled.clear();
        }
        // The usual case, one queue, keeps the memory of its run for the next batch.
        self.settling.acknowledged.truncate(1);
        self.resume_starved();
        shard.post_dead_letters(&mut self.wakes);
    }

    /// Lets consumers take turns with what the limits of whole channels leave them. Called with the
    /// gate held.
    fn resume_starved(&mut self) {
        for number in std::mem::take(&mut self.settling.resuming) {
            let waiting = self.outbox.lock().channel(number).map_or(0, |one| one.starved_len());
            // Who gets something, or can't take it, is behind the others from then on.
            for _ in 0..waiting {
                let next = self.outbox.lock().channel(number).and_then(ChannelOut::next_starved);
                let Some(queue) = next else { break };
                // A store that can't read has poisoned itself; its owner ends the broker.
                drop(queue.resume(&self.outbox, &*self.shard.store, &mut self.wakes));
            }
        }
    }

    /// Ends deliveries that are refused for good.
    fn reject(&mut self, refused: Runs) -> Result<(), Fault> {
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        let store = &*shard.store;
        for (queue, settled) in merge(refused) {
            queue.reject(&settled, store, &mut self.wakes).map_err(store_fault)?;
        }
        shard.post_dead_letters(&mut self.wakes);
        Ok(())
    }

    /// Puts deliveries back to their places, and hands out what can be handed out then.
    pub(super) fn requeue(&mut self, returned: Runs) -> Result<(), Fault> {
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        let store = &*shard.store;
        for (queue, settled) in merge(returned) {
            let settled = settled.into_iter();
            queue.requeue(settled, store, &mut self.wakes).map_err(store_fault)?;
        }
        self.resume_starved();
        shard.post_dead_letters(&mut self.wakes);
        Ok(())
    }
}

/// Moves a delivery from the channel's books to the run of its queue.
#[inline]
fn book(channel: &mut ChannelOut, unacked: Unacked, runs: &mut Runs) {
    let Some((queue, consumer)) = channel.settled(unacked.slot) else { return };
    let settled = Settled { sequence: unacked.sequence, consumer };
    match runs.last_mut() {
        Some((last, run)) if Arc::ptr_eq(last, queue) => run.push(settled),
        _ => runs.push((Arc::clone(queue), vec![settled])),
    }
    channel.free_if_done(unacked.slot);
}

/// Makes one run of all runs of a queue: everything is back in its place before any of it is handed
/// out again.
fn merge(mut runs: Runs) -> Runs {
    runs.sort_by_key(|(queue, _)| queue.id);
    runs.dedup_by(|(later, more), (queue, run)| {
        let same = Arc::ptr_eq(later, queue);
        if same {
            run.append(more);
        }
        same
    });
    runs
}

/// Consumers of a channel have waited for others of it to acknowledge something.
#[cold]
fn note(number: u16, resuming: &mut Vec<u16>) {
    if !resuming.contains(&number) {
        resuming.push(number);
    }
}

fn unknown_tag(tag: u64) -> Fault {
    Fault::precondition_failed(format_args!("unknown delivery tag {tag}"))
}

//! Acknowledgements and what comes back.

use super::Session;
use crate::fault::{Fault, store_fault};
use crate::outbox::{ChannelOut, Turn, Unacked};
use crate::queue::{Freed, Lots, Outcome, Queue, SETTLED_AT_ONCE, Settled};
use courser_codec::basic;
use courser_store::{StoreError, blocking};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs of deliveries from the same queue.
pub(super) type Runs = Vec<(Arc<Queue>, Vec<Settled>)>;

/// What comes back from channels that close.
#[derive(Default)]
pub(super) struct Returned {
    sent: Runs,
    /// What their client has never been sent.
    unsent: Runs,
}

/// Queues whose consumers on one channel share its limit, and have their turns in one go.
const STARVED_AT_ONCE: usize = 256;

/// Room for so many deliveries of a run is kept for the next batch.
const KEPT_SETTLED: usize = 4096;
/// Room for so many runs.
const KEPT_RUNS: usize = 64;

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    /// It is done with.
    Done,
    /// It returns to its queue, which may count that against it.
    Requeue { counts: bool },
    /// Its consumer refuses it for good: a dead letter, where its queue wants that, which may say that it failed.
    Reject { counts: bool },
}

impl Settlement {
    fn back(requeue: bool, counts: bool) -> Self {
        if requeue { Settlement::Requeue { counts } } else { Settlement::Reject { counts } }
    }
}

impl Session {
    /// `basic.ack`; takes effect when the batch is flushed.
    pub fn ack(&mut self, number: u16, tag: u64, multiple: bool) -> Result<(), Fault> {
        self.settle(number, tag, multiple, Settlement::Done)
    }

    /// `basic.reject`.
    pub(super) fn reject(&mut self, number: u16, tag: u64, requeue: bool) -> Result<(), Fault> {
        self.settle(number, tag, false, Settlement::back(requeue, true))
    }

    /// `basic.nack`: what it names has not failed.
    pub(super) fn nack(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
        requeue: bool,
    ) -> Result<(), Fault> {
        self.settle(number, tag, multiple, Settlement::back(requeue, false))
    }

    /// `basic.recover`: everything unacknowledged on the channel returns. The answer parts what its client has had before, which
    /// is taken back, from what comes (again) afterwards: nothing else may get between the two.
    pub(super) fn recover(
        &mut self,
        number: u16,
        requeue: bool,
        is_answered: bool,
    ) -> Result<(), Fault> {
        if !requeue {
            return Err(Fault::not_implemented("requeue=false"));
        }
        self.settle_acknowledged();
        let mut taken = Vec::new();
        {
            let mut outbox = self.outbox.lock();
            let Some(channel) = outbox.channel(number) else { return Ok(()) };
            channel.unacked.take_through(0, |tag, unacked| taken.push((tag, unacked)));
            if is_answered {
                let ok = basic::RecoverOk;
                outbox.put(number, |wire| ok.write_frame(number, wire.bytes_mut()));
            }
        }
        self.apply(number, taken, Settlement::Requeue { counts: false })
    }

    /// Ends a channel in the outbox; what is unacknowledged on it is added to `returned`.
    pub(super) fn give_up(&mut self, number: u16, returned: &mut Returned) {
        let Some((mut channel, unsent)) = self.outbox.lock().close_channel(number) else { return };
        let mut unsent = unsent.into_iter().peekable();
        let mut taken = Vec::new();
        channel.unacked.take_through(0, |tag, unacked| taken.push((tag, unacked)));
        for (tag, unacked) in taken {
            while unsent.next_if(|tags| *tags.end() < tag).is_some() {}
            let is_unsent = unsent.peek().is_some_and(|tags| tags.contains(&tag));
            let runs = if is_unsent { &mut returned.unsent } else { &mut returned.sent };
            // Its consumers have gone already, and those of other clients may have their keys.
            if let Some(settled) = book(&mut channel, unacked, runs) {
                settled.freed = Freed::Nothing;
            }
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
        book(channel, unacked, &mut self.acknowledged);
        if channel.has_starved() {
            outbox.stall(Turn::Channel(number));
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

    /// Takes deliveries out of the channel's books that the log knows to be done with: all of them, also if the store fails meanwhile.
    pub(super) fn apply_logged(&mut self, number: u16, taken: &[Unacked]) -> Result<(), Fault> {
        let mut runs = Runs::new();
        for some in taken.chunks(SETTLED_AT_ONCE) {
            if let Some(channel) = self.outbox.lock().channel(number) {
                channel.counts().deliveries.acknowledged += some.len() as u64;
                for unacked in some {
                    book(channel, *unacked, &mut runs);
                }
            }
        }
        self.outbox.lock().resume_starved(number);
        let (store, mut done) = (&*self.shard.store, Ok(()));
        for (queue, settled) in runs {
            done = done.and(queue.acknowledge(&settled, true, store, &mut self.wakes));
        }
        done.map_err(store_fault)
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
        if let Settlement::Requeue { .. } = settlement {
            // Before there is credit for them: what returns goes out ahead of what has been waiting.
            self.settle_acknowledged();
        }
        // A queue that delivers to this connection waits for its outbox, and others for the queue.
        for some in taken.chunks(SETTLED_AT_ONCE) {
            let mut outbox = self.outbox.lock();
            let Some(channel) = outbox.channel(number) else { return Ok(()) };
            let runs = match settlement {
                Settlement::Done => {
                    channel.counts().deliveries.acknowledged += some.len() as u64;
                    &mut self.acknowledged
                }
                Settlement::Requeue { .. } | Settlement::Reject { .. } => &mut returned,
            };
            for (_, unacked) in some {
                book(channel, *unacked, runs);
            }
        }
        self.outbox.lock().resume_starved(number);
        match settlement {
            _ if returned.is_empty() => Ok(()),
            Settlement::Done => Ok(()),
            Settlement::Requeue { counts } => {
                self.put_back([(returned, Outcome::Requeued { counts })], false)
            }
            Settlement::Reject { counts } => self.reject_all(returned, counts),
        }
    }

    /// Lets the queues know what has been acknowledged since the last time.
    pub(super) fn settle_acknowledged(&mut self) {
        if self.acknowledged.is_empty() {
            return;
        }
        if self.acknowledged.iter().any(|(_, settled)| !settled.is_empty()) {
            self.acknowledged.retain(|(_, settled)| !settled.is_empty());
        }
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        let store = &*shard.store;
        for (queue, settled) in &mut self.acknowledged {
            if settled.is_empty() {
                continue;
            }
            // What fails is an append: the store is of no use any more, and its owner ends the broker.
            drop(queue.acknowledge(settled, false, store, &mut self.wakes));
            settled.clear();
            settled.shrink_to(KEPT_SETTLED);
        }
        // The usual case, one queue, keeps the memory of its run for the next batch.
        self.acknowledged.truncate(1);
        self.acknowledged.shrink_to(KEPT_RUNS);
        shard.post_dead_letters(&mut self.wakes);
    }

    /// Lets consumers of a channel take turns with what its limit leaves them. Called with the gate held.
    pub(super) fn resume_starved(&mut self, number: u16) {
        for _ in 0..STARVED_AT_ONCE {
            let next = self.outbox.lock().channel(number).and_then(ChannelOut::next_starved);
            let Some(queue) = next else { return };
            let channel = (&self.outbox, number);
            // As in `settle_acknowledged`.
            drop(queue.resume_channel(channel, &*self.shard.store, &mut self.wakes));
        }
        self.outbox.lock().stall(Turn::Channel(number));
        // What has been asked may have had nothing, so that nothing that is sent brings the next turn.
        self.outbox.wake_to_go_on();
    }

    /// Ends deliveries that are refused for good.
    fn reject_all(&mut self, refused: Runs, counts: bool) -> Result<(), Fault> {
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        let store = &*shard.store;
        let mut done = Ok(());
        for (queue, settled) in merge(refused) {
            done = done.and(queue.reject(&settled, counts, store, &mut self.wakes));
        }
        // Not behind each portion: one request posts no more letters than go at once.
        shard.post_dead_letters(&mut self.wakes);
        done.map_err(store_fault)
    }

    /// Puts back what comes back as its channel is closed.
    pub(super) fn return_closed(&mut self, returned: Returned) -> Result<(), Fault> {
        let Returned { sent, unsent } = returned;
        let returned = [(sent, Outcome::Requeued { counts: true }), (unsent, Outcome::Untouched)];
        self.put_back(returned, true)
    }

    /// Puts deliveries back to their places, and hands out what can be handed out when all of a queue are there. Where another
    /// client's come before these, they may follow by themselves, unless `until_all` are to be in their places.
    fn put_back<const N: usize>(
        &mut self,
        returned: [(Runs, Outcome); N],
        until_all: bool,
    ) -> Result<(), Fault> {
        let mut queues = BTreeMap::new();
        for (runs, outcome) in returned {
            for (queue, run) in merge(runs) {
                let (_, lots) =
                    queues.entry(queue.id).or_insert_with(|| (queue, Lots::with_capacity(N)));
                lots.push((run, outcome));
            }
        }
        let mut done = Ok(());
        for (queue, lots) in queues.into_values() {
            done = done.and(self.put_into(&queue, lots, until_all));
        }
        done.map_err(store_fault)
    }

    /// The same for one queue, in portions between which others have their turns.
    fn put_into(
        &mut self,
        queue: &Arc<Queue>,
        lots: Lots,
        until_all: bool,
    ) -> Result<(), StoreError> {
        let own: usize = lots.iter().map(|(run, _)| run.len()).sum();
        let mut goes_on = self.put_portion(queue, lots)?;
        for _ in 1..own.div_ceil(SETTLED_AT_ONCE) {
            goes_on = goes_on && self.put_portion(queue, Lots::new())?;
        }
        if until_all && goes_on {
            // What another client has left there comes first: it was not asked whether that takes long.
            return blocking::wait(|| {
                while self.put_portion(queue, Lots::new())? {}
                Ok(())
            });
        }
        Ok(())
    }

    /// Puts a portion of what comes back to a queue to its place. Returns whether there is more.
    fn put_portion(&mut self, queue: &Arc<Queue>, lots: Lots) -> Result<bool, StoreError> {
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        let goes_on = queue.take_back(lots, &*shard.store, &mut self.wakes);
        shard.post_dead_letters(&mut self.wakes);
        goes_on
    }
}

/// Moves a delivery from the channel's books to the run of its queue. Returns it there.
#[inline]
fn book<'r>(
    channel: &mut ChannelOut,
    unacked: Unacked,
    runs: &'r mut Runs,
) -> Option<&'r mut Settled> {
    let (queue, freed) = channel.settled(unacked.slot)?;
    let settled = Settled { sequence: unacked.sequence, freed };
    match runs.last_mut() {
        Some((last, run)) if Arc::ptr_eq(last, queue) => run.push(settled),
        _ => runs.push((Arc::clone(queue), vec![settled])),
    }
    channel.free_if_done(unacked.slot);
    runs.last_mut()?.1.last_mut()
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

fn unknown_tag(tag: u64) -> Fault {
    Fault::precondition_failed(format_args!("unknown delivery tag {tag}"))
}

//! What a client is told only when it is durable: publisher confirms, and answers that wait.

use super::{Batch, Channel, Session};
use crate::counts::PublishCounts;
use crate::fault::Fault;
use crate::outbox::wire::WireBuffer;
use crate::outbox::{Next, OutboxState, Until};
use crate::work::{self, Budget};
use courser_codec::basic;
use courser_store::{Lsn, Waiter};
use std::sync::Arc;

/// What a session has to tell its client once the store is durable.
#[derive(Debug, Default)]
pub(super) struct Confirms {
    /// Channels with publishes in this batch that have to be confirmed.
    pub confirming: Vec<u16>,
    /// How far the store has to be durable for the publishes of this batch.
    batch_lsn: Lsn,
    /// Channels with something to be confirmed once it is durable.
    awaiting: Vec<u16>,
    /// At what the store will wake this connection.
    wake_at: Next,
    /// What the store notifies then, if not the connection's task.
    waiter: Option<Waiter>,
}

impl Confirms {
    /// The publishes of this batch are confirmed when the store is durable up to `lsn`, or later.
    pub fn not_before(&mut self, lsn: Lsn) {
        self.batch_lsn = self.batch_lsn.max(lsn);
    }

    /// Nothing is said on channels that are closed: those with these ascending numbers.
    pub fn forget_channels(&mut self, closed: &[u16]) {
        work::count(self.confirming.len() + self.awaiting.len());
        self.confirming.retain(|number| closed.binary_search(number).is_err());
        self.awaiting.retain(|number| closed.binary_search(number).is_err());
    }
}

/// Room for so many confirms is kept once they are written.
const KEPT_CONFIRMS: usize = 64;

/// Something that hangs on the store's durable LSN.
#[derive(Debug)]
pub(super) struct Confirm {
    lsn: Lsn,
    what: Due,
}

#[derive(Debug)]
enum Due {
    /// `count` publishes up to and with this confirm sequence number.
    Publishes { through: u64, count: u64 },
    /// The publish with this confirm sequence number, which a queue has refused.
    Refused(u64),
    /// A commit of which a queue has refused something; all else has taken effect.
    CommitInPart,
}

/// Publishes that one ack confirms.
#[derive(Default)]
struct Run {
    through: u64,
    count: u64,
}

impl Run {
    fn add(&mut self, through: u64, count: u64) {
        self.through = through;
        self.count += count;
    }

    /// Confirms the run, and begins another one. Returns how many publishes that is.
    fn write(&mut self, number: u16, out: &mut Vec<u8>) -> u64 {
        let Run { through, count } = std::mem::take(self);
        if count > 0 {
            let ack = basic::Ack { delivery_tag: through, multiple: count > 1 };
            ack.write_frame(number, out);
        }
        count
    }
}

impl Channel {
    /// What has been taken in since the last run is confirmed when the store is durable up to `lsn`.
    fn end_run_of_confirms(&mut self, lsn: Lsn) {
        let count = std::mem::take(&mut self.unconfirmed_count);
        if count > 0 {
            let through = self.unconfirmed_through;
            self.confirms.push_back(Confirm { lsn, what: Due::Publishes { through, count } });
        }
    }

    /// Counts the room of what is to be said.
    fn count_confirms(&mut self) {
        self.confirms_charge.set(self.confirms.capacity() * size_of::<Confirm>());
    }

    /// Gives back room for many that have been written.
    #[cold]
    fn shrink_confirms(&mut self) {
        self.confirms.shrink_to(KEPT_CONFIRMS.max(2 * self.confirms.len()));
        self.count_confirms();
    }

    /// Writes the confirms of what is durable up to `durable`, and counts them. Returns also whether the
    /// channel has to be closed for a commit.
    fn write_due(&mut self, number: u16, durable: Lsn, out: &mut Vec<u8>) -> (PublishCounts, bool) {
        let mut in_part = false;
        let mut run = Run::default();
        let mut answered = PublishCounts::default();
        while let Some(due) = self.confirms.pop_front_if(|front| front.lsn <= durable) {
            match due.what {
                Due::Publishes { through, count } => run.add(through, count),
                Due::Refused(seq) => {
                    answered.confirmed += run.write(number, out);
                    answered.refused += 1;
                    let (multiple, requeue) = (false, false);
                    let nack = basic::Nack { delivery_tag: seq, multiple, requeue };
                    nack.write_frame(number, out);
                }
                Due::CommitInPart => in_part = true,
            }
        }
        answered.confirmed += run.write(number, out);
        let room = self.confirms.capacity();
        if room > KEPT_CONFIRMS && self.confirms.len() < room / 4 {
            self.shrink_confirms();
        }
        (answered, in_part)
    }
}

impl Session {
    /// Notes that a publish of this batch has to be confirmed.
    pub(super) fn confirm_later(&mut self, number: u16, seq: u64) -> Result<(), Fault> {
        let channel = self.channel(number)?;
        let first = channel.unconfirmed_count == 0;
        channel.unconfirmed_through = seq;
        channel.unconfirmed_count += 1;
        channel.to_confirm += 1;
        if first {
            self.confirms.confirming.push(number);
        }
        Ok(())
    }

    /// Tells the publishers of a run which of its messages some queue has refused; the others have
    /// to be confirmed. In order: clients take an ack of many for all that it covers, also for what
    /// was refused before. A refusal waits until what it refuses can't come back after a crash.
    pub(super) fn confirm_or_refuse(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault> {
        if batch.run.is_logged() && batch.run.has_refused() {
            self.confirms.not_before(self.shard.store.end());
        }
        for (index, (number, seq)) in batch.publishers.drain(..).enumerate() {
            if seq == 0 {
                continue;
            }
            if batch.run.is_refused(index) {
                self.refuse(number, seq)?;
            } else {
                self.confirm_later(number, seq)?;
            }
        }
        Ok(())
    }

    /// Notes that a publish of this batch was refused, behind those that came before it.
    pub(super) fn refuse(&mut self, number: u16, seq: u64) -> Result<(), Fault> {
        let lsn = self.confirms.batch_lsn;
        let channel = self.channel(number)?;
        channel.end_run_of_confirms(lsn);
        channel.to_confirm += 1;
        channel.confirms.push_back(Confirm { lsn, what: Due::Refused(seq) });
        if self.confirms.confirming.last() != Some(&number) {
            self.confirms.confirming.push(number);
        }
        Ok(())
    }

    /// Confirms nothing more of this batch: the store has not taken some of it, which ends the connection.
    #[cold]
    pub(super) fn forget_unconfirmed(&mut self) {
        for number in std::mem::take(&mut self.confirms.confirming) {
            if let Some(channel) = self.channels.get_mut(number) {
                channel.unconfirmed_count = 0;
            }
        }
    }

    /// Ends a batch: its publishes are confirmed now if they are durable, or when they are.
    pub(super) fn confirm(&mut self) {
        let lsn = std::mem::take(&mut self.confirms.batch_lsn);
        if self.confirms.confirming.is_empty() && !self.outbox.holds_back() {
            return;
        }
        for number in std::mem::take(&mut self.confirms.confirming) {
            let Some(channel) = self.channels.get_mut(number) else { continue };
            channel.end_run_of_confirms(lsn);
            channel.count_confirms();
            if std::mem::take(&mut channel.has_unlogged) {
                self.hold_answer(number);
            }
            self.await_confirms(number);
        }
        self.confirm_durable();
    }

    /// Closes the channel of a commit when the store is durable up to `lsn`: a queue has refused some.
    pub(super) fn fail_when_durable(&mut self, number: u16, lsn: Lsn) {
        let Some(channel) = self.channels.get_mut(number) else { return };
        channel.has_failed_commit = true;
        channel.confirms.push_back(Confirm { lsn, what: Due::CommitInPart });
        self.await_confirms(number);
        self.confirm_durable();
    }

    /// Whether a channel is about to be closed for a commit. Its client, which has not waited for the answer, must not take that
    /// of the next commit for it.
    pub(super) fn has_failed_commit(&self, number: u16) -> bool {
        self.channels.get(number).is_some_and(|channel| channel.has_failed_commit)
    }

    fn await_confirms(&mut self, number: u16) {
        let Some(channel) = self.channels.get_mut(number) else { return };
        if !std::mem::replace(&mut channel.awaits_confirms, true) {
            self.confirms.awaiting.push(number);
        }
    }

    /// Confirms and answers everything that is durable by now, with one ack a channel. To be called
    /// whenever the connection's task runs.
    pub fn confirm_durable(&mut self) {
        if !self.stream_readers.is_empty() {
            self.pump_streams(&Budget::begin());
            self.wakes.wake_all();
        }
        if self.confirms.awaiting.is_empty() && !self.outbox.holds_back() {
            return;
        }
        self.broker.check_failure();
        let now = self.reached();
        if self.confirms.wake_at.durable.is_some_and(|at| at > now.durable)
            && self.nothing_due(now.durable)
        {
            return;
        }
        let outbox = Arc::clone(&self.outbox);
        let (next, has_failed) = self.write_due(now, &mut outbox.lock());
        self.wait_for(next);
        if has_failed {
            self.close_failed();
        }
    }

    /// Has the connection close channels that have a fault, as not all of a commit has taken effect.
    #[cold]
    fn close_failed(&self) {
        self.outbox.note_faults();
        // It may have looked for such in this turn already.
        self.outbox.wake_to_go_on();
    }

    /// As [`Session::confirm_durable`], and takes what is to be sent into `wire`, which must be empty.
    /// For the thread that has made something durable: it waits for no other thread, and takes none of the
    /// locks that publishers hold while they wait for the store. False if there is more to be done, or the
    /// outbox is locked: then the connection's task has to do it.
    pub fn try_confirm(&mut self, wire: &mut WireBuffer) -> bool {
        if !self.stream_readers.is_empty() {
            return false;
        }
        let outbox = Arc::clone(&self.outbox);
        let Some(mut state) = outbox.try_lock() else { return false };
        let (next, has_failed) = self.write_due(self.reached(), &mut state);
        let taken = state.take_plain(wire);
        drop(state);
        self.wait_for(next);
        if has_failed {
            self.close_failed();
        }
        taken && !has_failed
    }

    /// How far the store is. Only answers wait for proofs of its lead, and for removals.
    fn reached(&self) -> Until {
        let store = &*self.shard.store;
        match self.outbox.holds_back() {
            true => Until::reached_by(store, &self.vhost.removals),
            false => Until::durable(store.durable()),
        }
    }

    /// Writes what can be said as the store is as far as `now`. Returns what the rest waits for, and whether a channel has to be
    /// closed for a commit.
    fn write_due(&mut self, now: Until, outbox: &mut OutboxState) -> (Next, bool) {
        let durable = now.durable;
        let mut has_failed = false;
        let mut next = outbox.release_held(now);
        self.outbox.note_holding_back(!next.is_none());
        let mut all = PublishCounts::default();
        self.confirms.awaiting.retain(|number| {
            let Some(channel) = self.channels.get_mut(*number) else { return false };
            let mut answered = PublishCounts::default();
            let mut in_part = false;
            outbox.put(*number, |wire| {
                (answered, in_part) = channel.write_due(*number, durable, wire.bytes_mut());
            });
            if in_part {
                let fault = Fault::precondition_failed("partial tx completion");
                has_failed |= outbox.fail_channel(*number, fault);
            }
            if answered != PublishCounts::default() {
                if let Some(channel) = outbox.channel(*number) {
                    channel.counts().publishes += &answered;
                }
                all += &answered;
            }
            let front = channel.confirms.front().map(|front| front.lsn);
            front.into_iter().for_each(|lsn| next.await_durable(lsn));
            channel.awaits_confirms = front.is_some();
            channel.awaits_confirms
        });
        self.vhost.counts().publishes.add(&all);
        (next, has_failed)
    }

    /// Has the store say when `next` is reached, unless it will already.
    fn wait_for(&mut self, next: Next) {
        let before = std::mem::replace(&mut self.confirms.wake_at, next);
        if let Some(lsn) = next.durable.filter(|_| next.durable != before.durable) {
            self.shard.store.when_durable(lsn, self.waiter());
        }
        if let Some(proof) = next.lead.filter(|_| next.lead != before.lead) {
            self.shard.store.when_proven(proof, self.waiter());
        }
        if let Some(removal) = next.removal.filter(|_| next.removal != before.removal) {
            self.vhost.removals.when_over(removal, self.waiter());
        }
    }

    fn waiter(&self) -> Waiter {
        self.confirms.waiter.clone().unwrap_or_else(|| self.outbox.own_waiter())
    }

    /// Has `waiter` notified, in the place of the connection's task, when something can be confirmed.
    /// It may call [`Session::try_confirm`] there and then.
    pub fn notify_when_durable(&mut self, waiter: Waiter) {
        self.outbox.notify(waiter.clone());
        self.confirms.waiter = Some(waiter);
    }

    /// Whether no channel has anything that is durable. Of what the outbox holds back it is not known.
    fn nothing_due(&self, durable: Lsn) -> bool {
        !self.outbox.holds_back()
            && self.confirms.awaiting.iter().all(|number| match self.channels.get(*number) {
                Some(channel) => channel.confirms.front().is_none_or(|front| front.lsn > durable),
                None => true,
            })
    }
}

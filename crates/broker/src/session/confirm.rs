//! What a client is told only when it is durable: publisher confirms and `tx.commit-ok`.

use super::{Batch, Session};
use crate::fault::Fault;
use courser_codec::{basic, tx};
use courser_store::Lsn;
use std::sync::Arc;
use std::task::Waker;

/// Something that hangs on the store's durable LSN.
#[derive(Debug)]
pub(super) struct Confirm {
    lsn: Lsn,
    what: Due,
}

#[derive(Debug)]
enum Due {
    /// `count` publishes up to and with this confirm sequence number.
    Publishes {
        through: u64,
        count: u64,
    },
    CommitOk,
}

impl Session {
    /// Notes that a publish of this batch has to be confirmed.
    pub(super) fn confirm_later(&mut self, number: u16, seq: u64) -> Result<(), Fault> {
        let channel = self.channel(number)?;
        let first = channel.unconfirmed_count == 0;
        channel.unconfirmed_through = seq;
        channel.unconfirmed_count += 1;
        if first {
            self.confirming.push(number);
        }
        Ok(())
    }

    /// Tells the publishers of a run which of its messages some queue has refused; the others have
    /// to be confirmed.
    pub(super) fn confirm_or_refuse(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault> {
        for (index, (number, seq)) in batch.publishers.drain(..).enumerate() {
            if seq == 0 {
                continue;
            }
            if batch.stash.is_refused(index) {
                let nack = basic::Nack { delivery_tag: seq, multiple: false, requeue: false };
                nack.write_frame(number, self.outbox.lock().wire_mut().bytes_mut());
            } else {
                self.confirm_later(number, seq)?;
            }
        }
        Ok(())
    }

    /// Ends a batch: its publishes are confirmed now if they are durable, or when they are.
    pub(super) fn confirm(&mut self) {
        let lsn = std::mem::take(&mut self.batch_lsn);
        if self.confirming.is_empty() {
            return;
        }
        for number in std::mem::take(&mut self.confirming) {
            let Some(channel) = self.channels.get_mut(number) else { continue };
            let (through, count) = (channel.unconfirmed_through, channel.unconfirmed_count);
            channel.unconfirmed_count = 0;
            channel.confirms.push_back(Confirm { lsn, what: Due::Publishes { through, count } });
            if !self.awaiting.contains(&number) {
                self.awaiting.push(number);
            }
        }
        self.confirm_durable();
    }

    /// Answers a commit when the store is durable up to `lsn`.
    pub(super) fn reply_when_durable(&mut self, number: u16, lsn: Lsn) {
        let Some(channel) = self.channels.get_mut(number) else { return };
        channel.confirms.push_back(Confirm { lsn, what: Due::CommitOk });
        if !self.awaiting.contains(&number) {
            self.awaiting.push(number);
        }
        self.confirm_durable();
    }

    /// Confirms everything that is durable by now, with one ack a channel. To be called whenever the
    /// connection's task runs.
    pub fn confirm_durable(&mut self) {
        if !self.stream_readers.is_empty() {
            self.pump_streams();
            self.wakes.wake_all();
        }
        if self.awaiting.is_empty() {
            return;
        }
        self.broker.check_failure();
        let durable = self.broker.store.durable();
        if self.wake_at.is_some_and(|at| at > durable) && self.nothing_due(durable) {
            return;
        }
        let mut outbox = self.outbox.lock();
        let out = outbox.wire_mut().bytes_mut();
        let mut next: Option<Lsn> = None;
        self.awaiting.retain(|number| {
            let Some(channel) = self.channels.get_mut(*number) else { return false };
            let (mut through, mut count) = (0, 0);
            while let Some(due) = channel.confirms.pop_front_if(|front| front.lsn <= durable) {
                match due.what {
                    Due::Publishes { through: last, count: more } => {
                        through = last;
                        count += more;
                    }
                    Due::CommitOk => tx::CommitOk {}.write_frame(*number, out),
                }
            }
            if count > 0 {
                let ack = basic::Ack { delivery_tag: through, multiple: count > 1 };
                ack.write_frame(*number, out);
            }
            let front = channel.confirms.front().map(|front| front.lsn);
            next = next.into_iter().chain(front).min();
            front.is_some()
        });
        drop(outbox);
        self.wake_at = next;
        if let Some(lsn) = next {
            let waker = Waker::from(Arc::clone(&self.outbox));
            self.broker.store.when_durable(lsn, &waker);
        }
    }

    /// Whether no channel has anything that is durable.
    fn nothing_due(&self, durable: Lsn) -> bool {
        self.awaiting.iter().all(|number| match self.channels.get(*number) {
            Some(channel) => channel.confirms.front().is_none_or(|front| front.lsn > durable),
            None => true,
        })
    }
}

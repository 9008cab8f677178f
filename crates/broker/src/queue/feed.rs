//! How messages and consumers meet.

use super::backlog::REDELIVERED;
use super::consumers::{Consumer, Consumers};
use super::expiry::read;
use super::handed_out::HandedOut;
use super::returns::{count_of, put_count};
use super::settle::Settling;
use super::source::{Next, Publishing, Source, Waiting};
use super::{Queue, State};
use crate::counts::{DeliveryCounts, Handed, QueueCounts};
use crate::dead_letter::Reason;
use crate::outbox::{Blocked, Outbox};
use crate::posting::PublishRun;
use crate::trace::Traced;
use crate::wakes::Wakes;
use courser_store::{MessageRef, Store, StoreError, Sync};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What came of a consumer's turn.
struct Turn {
    handed: Handed,
    /// It can take no more for now.
    blocked: bool,
}

/// The oldest message, and what `basic.get-ok` says of it.
pub(crate) struct Polled<'a> {
    pub message: MessageRef<'a>,
    pub redelivered: bool,
    /// Messages behind it.
    pub left: usize,
}

/// What becomes of a message offered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    ForGood,
    UntilAcked,
    Nothing,
}

impl Queue {
    /// Adds the messages of `run`: handed to consumers at once where possible.
    pub(crate) fn publish(
        self: &Arc<Self>,
        run: &mut PublishRun<'_>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        if self.takes_specially {
            return self.publish_specially(run, store, wakes);
        }
        self.publish_locked::<false>(self.state.lock(), run, store, wakes)
    }

    /// The same for a queue that does not take messages as most do.
    #[cold]
    fn publish_specially(
        self: &Arc<Self>,
        run: &mut PublishRun<'_>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        match self.stream() {
            Some(stream) => {
                self.count_published(&mut self.state.lock(), run, wakes);
                stream.append(run, self.timers.now_ms(), store, wakes)
            }
            None => self.publish_apart(run, store, wakes),
        }
    }

    /// What [`Queue::publish`] does under the lock; in a queue that keeps its messages apart, if so.
    #[inline]
    pub(super) fn publish_locked<const APART: bool>(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        run: &mut PublishRun<'_>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        if state.deleted {
            settling.positions.extend((0..run.len()).filter_map(|index| run.position(index)));
            drop(state);
            return self.settle(settling, Sync::Later, store);
        }
        self.count_published(&mut state, run, wakes);
        let State { ready, consumers, unacked, counts, .. } = &mut *state;
        let mut next = 0;
        if ready.is_empty() {
            let unacked_before = if APART { unacked.len() } else { 0 };
            let mut source = Publishing { run, next, store, ready };
            self.feed(consumers, &mut source, (unacked, counts), &mut settling, wakes)?;
            next = source.next;
            if APART {
                state.leave_passed(run, next, unacked_before);
            }
        }
        let bounds = state.traits.as_ref().and_then(|traits| traits.bounds);
        if let Some(bounds) = bounds {
            self.enqueue_within(bounds, &mut state, next, run, &mut settling, store, wakes)?;
        } else if next < run.len() {
            let State { ready, .. } = &mut *state;
            run.keep_from(next, store)?;
            for index in next..run.len() {
                if let Some(location) = run.location(index, store) {
                    let rank = ready.rank(run.message(index));
                    ready.push(location, rank);
                }
            }
            self.backlog.store(ready.len(), Ordering::Relaxed);
        }
        state.expiry.watching |= run.may_expire();
        if state.expiry.watching {
            self.expire(&mut state, &mut settling, store, wakes)?;
        }
        drop(state);
        self.settle(settling, Sync::Later, store)
    }

    /// Hands messages from `source` to consumers until either runs out.
    fn feed(
        self: &Arc<Self>,
        consumers: &mut Consumers,
        source: &mut impl Source,
        (unacked, counts): (&mut HandedOut, &mut Option<Box<QueueCounts>>),
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        if self.is_paused() {
            return Ok(());
        }
        let mut handed = 0;
        let mut deliveries = DeliveryCounts::default();
        while !source.is_empty() {
            let Some((key, alone)) = consumers.next() else { break };
            let Some(consumer) = consumers.get(key) else { break };
            let turn = self.feed_one(consumer, alone, source, unacked, settling, wakes)?;
            handed += turn.handed.messages;
            deliveries.add_handed(consumer.no_ack, &turn.handed);
            if turn.blocked {
                consumers.block_next();
            } else if turn.handed.messages > 0 {
                // Who got nothing, as all has expired, keeps its turn.
                consumers.rotate();
            }
        }
        if handed > 0 {
            self.consumed.fetch_add(handed, Ordering::Relaxed);
            self.count_deliveries(counts, &deliveries, wakes);
        }
        Ok(())
    }

    /// One consumer's turn: one message, or as many as it can take if nobody else wants any.
    #[inline]
    fn feed_one(
        self: &Arc<Self>,
        consumer: &Consumer,
        alone: bool,
        source: &mut impl Source,
        unacked: &mut HandedOut,
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) -> Result<Turn, StoreError> {
        let mut turn = Turn { handed: Handed::default(), blocked: false };
        let high_bytes = consumer.outbox.high_bytes();
        let traced = self.is_traced();
        let (number, slot) = (consumer.channel, consumer.slot);
        let mut outbox = consumer.outbox.lock();
        while !source.is_empty() {
            let ready = match turn.handed.messages {
                0 => outbox.check(number, slot, high_bytes),
                _ => outbox.check_again(number, slot, consumer.no_ack, high_bytes),
            };
            if let Err(blocked) = ready {
                if blocked == Blocked::OutboxFull {
                    outbox.stall(self);
                }
                turn.blocked = true;
                break;
            }
            if !consumer.no_ack {
                source.prepare_keep()?;
            }
            let next = match source.peek() {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(StoreError::Lost(_)) => {
                    // It must not stop those behind it.
                    settling.positions.extend(source.pass());
                    continue;
                }
                Err(error) => return Err(error),
            };
            if next.expired {
                source.pass_expired();
                continue;
            }
            let Next { message, redelivered, .. } = next;
            if !outbox.deliver(consumer.channel, consumer.slot, &message, redelivered) {
                turn.blocked = true;
                break;
            }
            turn.handed.add(message.body.len(), redelivered);
            if traced {
                self.trace(&consumer.outbox, consumer.channel, &message, redelivered, wakes);
            }
            if consumer.no_ack {
                settling.positions.extend(source.pass());
            } else if let Some((sequence, location)) = source.take()
                && let Some(channel) = outbox.channel(consumer.channel)
            {
                channel.await_ack(consumer.slot, sequence, self.now_ms());
                unacked.insert(sequence, location, (&consumer.outbox, consumer.channel));
            }
            if !alone {
                break;
            }
        }
        if turn.handed.messages > 0
            && let Some(channel) = outbox.channel(consumer.channel)
        {
            channel.counts().deliveries.add_handed(consumer.no_ack, &turn.handed);
        }
        if outbox.has_news() && outbox.claim_wake() {
            wakes.push(&consumer.outbox);
        }
        Ok(turn)
    }

    /// Notes a copy of a message that a client gets.
    #[cold]
    fn trace(
        &self,
        outbox: &Outbox,
        channel: u16,
        message: &MessageRef<'_>,
        redelivered: bool,
        wakes: &mut Wakes,
    ) {
        if let Some(copy) = Traced::delivery(self, outbox, channel, message, redelivered) {
            wakes.push_traced(copy);
        }
    }

    /// Hands waiting messages to whoever can take them.
    pub(super) fn feed_waiting(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        if state.ready.is_empty() {
            return Ok(());
        }
        let moment = self.moment(state);
        let State { ready, reader, consumers, unacked, ready_bytes, notes, counts, .. } = state;
        let open = reader.get_or_insert_with(|| store.reader());
        let mut waiting = Waiting {
            ready,
            reader: &mut **open,
            moment,
            expired: Vec::new(),
            ready_bytes,
            peeked_bytes: 0,
            header: Vec::new(),
            notes: notes.as_deref_mut(),
        };
        self.feed(consumers, &mut waiting, (unacked, counts), settling, wakes)?;
        let expired = waiting.expired;
        if ready.is_empty() {
            *reader = None;
        }
        self.backlog.store(ready.len(), Ordering::Relaxed);
        if moment.is_some() {
            for location in expired {
                self.bury(state, location, Reason::Expired, settling, wakes);
            }
            self.expire(state, settling, store, wakes)?;
        }
        Ok(())
    }

    /// The connection of some consumers can send again, or the flow of its channels was resumed.
    pub(crate) fn resume(
        self: &Arc<Self>,
        outbox: &Arc<Outbox>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.consumers.unblock_outbox(outbox);
        self.feed_and_settle(state, store, wakes)
    }

    pub(super) fn feed_and_settle(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        self.feed_waiting(&mut state, &mut settling, store, wakes)?;
        drop(state);
        self.settle(settling, Sync::Later, store)
    }

    /// Offers the oldest message, for a `basic.get` by `holder`, to `with`, which says what becomes of
    /// it. Returns whether there was one. What has expired has to have been dropped before, see
    /// [`Queue::expire_before_poll`].
    pub(crate) fn poll(
        self: &Arc<Self>,
        holder: (&Arc<Outbox>, u16),
        store: &dyn Store,
        wakes: &mut Wakes,
        with: impl FnOnce(u64, Polled<'_>) -> Taking,
    ) -> Result<bool, StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        self.renew_lease(&mut state);
        let State { ready, reader, notes, .. } = &mut *state;
        let reader = reader.get_or_insert_with(|| store.reader());
        while let Some((_, location)) = ready.front()
            && location.in_memory().is_none()
            && let Err(StoreError::Lost(_)) = reader.read(location)
        {
            // It must not stop those behind it.
            let lost = ready.pop().and_then(|(_, lost)| lost.position());
            if let (Some(position), Some(notes)) = (lost, &mut *notes) {
                notes.leave_position(position);
            }
            settling.positions.extend(lost);
        }
        let Some((sequence, location)) = ready.pop() else {
            state.reader = None;
            self.count_got_empty(&mut state, wakes);
            drop(state);
            self.settle(settling, Sync::Later, store)?;
            return Ok(false);
        };
        // What is behind it and has expired is not left.
        let watching = state.expiry.watching;
        if watching && let Err(error) = self.expire(&mut state, &mut settling, store, wakes) {
            state.ready.put_back(sequence, location);
            return Err(error);
        }
        let State { ready, reader, unacked, ready_bytes, notes, .. } = &mut *state;
        let left = ready.len();
        let mut message = match read(&location, reader, store) {
            Ok(message) => message,
            Err(error) => {
                state.ready.put_back(sequence, location);
                return Err(error);
            }
        };
        let redelivered = location.marks() & REDELIVERED != 0;
        let size_bytes = message.body.len() as u64;
        let (count, mut header) = (count_of(&location, notes.as_deref()), Vec::new());
        if count > 0 && put_count(&message, count, &mut header).is_ok() {
            message.header = &header;
        }
        let taking = with(sequence, Polled { message, redelivered, left });
        if taking != Taking::Nothing && self.is_traced() {
            self.trace(holder.0, holder.1, &message, redelivered, wakes);
        }
        match taking {
            Taking::UntilAcked => unacked.insert(sequence, location, holder),
            Taking::ForGood => {
                if let Some(notes) = notes {
                    notes.leave(&location);
                }
                settling.add(location);
            }
            Taking::Nothing => ready.put_back(sequence, location),
        }
        if taking != Taking::Nothing {
            *ready_bytes = ready_bytes.saturating_sub(size_bytes);
            self.backlog.store(left, Ordering::Relaxed);
            self.consumed.fetch_add(1, Ordering::Relaxed);
            let mut got = DeliveryCounts::default();
            got.add_got(taking == Taking::ForGood, redelivered, size_bytes as usize);
            self.count_deliveries(&mut state.counts, &got, wakes);
            if left == 0 {
                state.reader = None;
            }
        }
        // It may return, or has not gone.
        state.expiry.watching |= watching && taking != Taking::ForGood;
        drop(state);
        self.settle(settling, Sync::Later, store)?;
        Ok(true)
    }
}

//! How messages and consumers meet.

use super::consumers::{Consumer, Consumers, Place};
use super::handed_out::HandedOut;
use super::settle::Settling;
use super::source::{Next, Publishing, Source, Waiting};
use super::{Queue, State};
use crate::counts::{DeliveryCounts, Handed, QueueCounts};
use crate::dead_letter::Reason;
use crate::outbox::{Blocked, Outbox, Turn as Due};
use crate::posting::PublishRun;
use crate::trace::Traced;
use crate::wakes::Wakes;
use crate::work;
use courser_store::{BodySize, MessageRef, Store, StoreError, Sync};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Turns and messages of one section under the lock; the next section follows at once.
const FED_AT_ONCE: u64 = 8192;

/// What came of a consumer's turn.
struct Turn {
    handed: Handed,
    /// Why it can take no more for now, if so.
    blocked: Option<Blocked>,
    /// Bytes of the next message's content header, which does not fit its frames.
    unfit: Option<usize>,
    /// The next message is to be fetched first.
    is_away: bool,
    /// Why the turn ended early, if it did.
    failed: Option<StoreError>,
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
        let taken_in = self.take_run::<APART>(&mut state, run, &mut settling, store, wakes);
        self.serve(&mut state, &mut settling, store, wakes);
        drop(state);
        // Also what has been settled before something failed.
        let settled = self.settle(settling, Sync::Later, store);
        taken_in.and(settled)
    }

    /// Takes in the messages of a run: hands out what consumers can take, and keeps the rest.
    #[inline]
    fn take_run<const APART: bool>(
        self: &Arc<Self>,
        state: &mut State,
        run: &mut PublishRun<'_>,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        self.count_published(state, run, wakes);
        let mut next = 0;
        if state.ready.is_empty()
            && !state.is_returning()
            && !(run.is_refusable() && state.is_full_of_letters())
        {
            let State { ready, consumers, unacked, counts, .. } = &mut *state;
            let unacked_before = if APART { unacked.len() } else { 0 };
            let commits = self.commits(store);
            let mut source = Publishing { run, next, store, ready, commits };
            self.feed(consumers, &mut source, (unacked, counts), settling, wakes)?;
            next = source.next;
            if APART {
                state.leave_passed(run, next, unacked_before);
            }
        }
        state.expiry.watching |= run.may_expire();
        let bounds = state.traits.as_ref().and_then(|traits| traits.bounds);
        if let Some(bounds) = bounds {
            return self.enqueue_within(bounds, state, next, run, settling, store, wakes);
        }
        if next < run.len() {
            let State { ready, .. } = &mut *state;
            run.keep_from(next, store)?;
            for index in next..run.len() {
                if let Some(location) = run.location(index, store) {
                    // Its bytes count only where they are bounded.
                    let rank = ready.rank(run.message(index));
                    ready.push(location, rank, 0);
                }
            }
        }
        Ok(())
    }

    /// Hands messages from `source` to consumers until either runs out, or it is enough for one section.
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
        let (mut handed, mut turns, mut failed) = (0, 0, None);
        let mut deliveries = DeliveryCounts::default();
        // One for what does not fit the frames of the one whose turn it is.
        let mut chosen = None;
        while !source.is_empty() && turns + handed < FED_AT_ONCE && failed.is_none() {
            let next = chosen.take().map(|key| (key, false)).or_else(|| consumers.next());
            let Some((key, alone)) = next else { break };
            let Some(consumer) = consumers.get(key) else { break };
            // The disk is waited for here, and not with the outbox locked: others need that.
            if !consumer.no_ack
                && let Err(error) = source.prepare_keep()
            {
                failed = Some(error);
                break;
            }
            let is_followed = consumers.is_followed(consumer);
            let turn = self.feed_one(consumer, alone, source, unacked, settling, wakes);
            // One that ends as a message is fetched goes on with that message.
            turns += u64::from(!turn.is_away);
            handed += turn.handed.messages;
            failed = turn.failed;
            if turn.is_away {
                match source.fetch() {
                    // It must not stop those behind it.
                    Err(StoreError::Lost(_)) => settling.positions.extend(source.pass_lost()),
                    fetched => failed = fetched.err(),
                }
            }
            deliveries.add_handed(consumer.no_ack, &turn.handed);
            if let Some(header_len) = turn.unfit {
                match self.pass_on(header_len, consumers, source, unacked) {
                    Ok((next, asked)) => (chosen, turns) = (next, turns + asked),
                    Err(error) => failed = Some(error),
                }
                continue;
            }
            match turn.blocked {
                Some(Blocked::Starved) => consumers.leave_ring(key, Place::Starved),
                Some(why) => {
                    consumers.leave_ring(key, Place::Blocked);
                    if is_followed && why == Blocked::NoCredit {
                        self.promote_other(key, consumers);
                    }
                }
                // Who got nothing, as all has expired, keeps its turn.
                None if turn.handed.messages == 0 => {}
                None if is_followed => self.make_way(key, consumers),
                None => consumers.rotate(key),
            }
        }
        // A turn hands one message, or more where the consumer is alone.
        work::count_handed(turns.max(handed), deliveries.delivered_bytes);
        if handed > 0 {
            self.consumed.fetch_add(handed, Ordering::Relaxed);
            self.count_deliveries(counts, &deliveries, wakes);
        }
        failed.map_or(Ok(()), Err)
    }

    /// One consumer's turn: one message, or as many as it can take if no other consumer wants any.
    #[inline]
    fn feed_one(
        self: &Arc<Self>,
        consumer: &Consumer,
        alone: bool,
        source: &mut impl Source,
        unacked: &mut HandedOut,
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) -> Turn {
        let handed = Handed::default();
        let mut turn = Turn { handed, blocked: None, unfit: None, is_away: false, failed: None };
        let high_bytes = consumer.outbox.high_bytes();
        let traced = self.is_traced();
        let (number, slot) = (consumer.channel, consumer.slot);
        let (mut outbox, within) = consumer.outbox.lock_to_deliver();
        while !source.is_empty() {
            let ready = match turn.handed.messages {
                0 => outbox.check(number, slot, high_bytes),
                _ => outbox.check_again(number, slot, consumer.no_ack, high_bytes),
            };
            if let Err(blocked) = ready {
                if blocked == Blocked::OutboxFull {
                    outbox.stall(Due::of(self));
                }
                turn.blocked = Some(blocked);
                break;
            }
            if !source.is_at_hand() {
                turn.is_away = true;
                break;
            }
            let next = match source.peek() {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(StoreError::Lost(_)) => {
                    // It must not stop those behind it.
                    settling.positions.extend(source.pass_lost());
                    continue;
                }
                Err(error) => {
                    turn.failed = Some(error);
                    break;
                }
            };
            if next.expired {
                source.pass_expired();
                continue;
            }
            let Next { message, redelivered, sent_at, .. } = next;
            if consumer.outbox.defers(&mut outbox, &message, high_bytes) {
                outbox.stall(Due::of(self));
                turn.blocked = Some(Blocked::OutboxFull);
                break;
            }
            if !outbox.deliver((number, slot), &message, redelivered, sent_at) {
                let header_len = message.header.len();
                turn.unfit = (!outbox.fits(header_len)).then_some(header_len);
                turn.blocked = turn.unfit.is_none().then_some(Blocked::Gone);
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
                unacked.insert(sequence, location, &consumer.receiver());
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
        drop(within);
        if let Some(commits) = source.commits() {
            consumer.outbox.wake_when_committed(outbox, commits.store);
        }
        turn
    }

    /// Notes a copy of a message that a client gets.
    #[cold]
    pub(crate) fn trace(
        &self,
        outbox: &Outbox,
        channel: u16,
        message: &MessageRef<'_>,
        redelivered: bool,
        wakes: &mut Wakes,
    ) {
        let Some(vhost) = self.namespace() else { return };
        if let Some(copy) = Traced::delivery(&*vhost, self, outbox, channel, message, redelivered) {
            vhost.copies().push(copy, wakes);
        }
    }

    /// Hands waiting messages to the consumers that can take them.
    #[inline]
    pub(super) fn feed_waiting(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        if state.ready.is_empty() || state.consumers.next().is_none() || self.is_paused() {
            return Ok(());
        }
        let moment = self.moment(state);
        let State { ready, reader, consumers, unacked, notes, counts, .. } = state;
        let mut waiting = Waiting {
            ready,
            reader: reader.open(store),
            moment,
            expired: Vec::new(),
            unconsumed: 0,
            unconsumed_bytes: 0,
            header: Vec::new(),
            is_quorum: self.is_quorum,
            notes: notes.as_deref_mut(),
            seen: BodySize::UNKNOWN,
            seen_bytes: 0,
            commits: self.commits(store),
        };
        let fed = self.feed(consumers, &mut waiting, (unacked, counts), settling, wakes);
        let expired = waiting.expired;
        if ready.is_empty() {
            reader.close();
        }
        for one in expired {
            self.bury(state, one, Reason::Expired, settling, wakes);
        }
        fed
    }
}

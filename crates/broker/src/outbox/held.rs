//! What waits until what it tells of is durable and current: answers, deliveries of messages that are not committed, and
//! what has to stay behind them.
//!
//! Nearly always there is none. While there is some, everything that its channel has to say goes behind it; other
//! channels go on.

use super::{Next, Outbox, OutboxState, Until};
use crate::memory::Charge;
use crate::outbox::wire::{self, WireBuffer};
use courser_store::{Lsn, Store, Waiter};
use parking_lot::MutexGuard;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

/// What waits, by channel. It outlives the channel: the reason why that was closed comes behind, and what the queues are done
/// with, as its delivery needs no acknowledgement, is sent before.
#[derive(Debug, Default)]
pub(super) struct Held {
    channels: BTreeMap<u16, VecDeque<Part>>,
    bytes: usize,
    deliveries_bytes: usize,
    /// Bytes of bodies that count for themselves.
    shared_bytes: usize,
    /// The connection has asked to be woken for it, or a delivery has.
    is_awaited: bool,
    charge: Charge,
}

/// Deliveries of one kind, or an answer and what follows it, up to what waits for longer.
#[derive(Debug)]
struct Part {
    until: Until,
    kind: Kind,
    /// The tags of the first and the last message in it that its channel is delivered; none if there is none.
    tags: Option<(u64, u64)>,
    wire: WireBuffer,
}

/// What a part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Answers, to `basic.get` too, and what else a channel has to say.
    Answers,
    /// Deliveries that return to their queues with their channel.
    Deliveries,
    /// Deliveries that need no acknowledgement.
    SettledDeliveries,
}

/// The tags of what a channel was delivered, and was not sent.
pub(crate) type Unsent = Vec<RangeInclusive<u64>>;

/// What a part costs besides its frames: it and their allocation.
const PART_BYTES: usize = size_of::<Part>() + 32;

impl Part {
    fn is_deliveries(&self) -> bool {
        self.kind != Kind::Answers
    }
}

impl Held {
    pub fn has(&self, channel: u16) -> bool {
        self.channels.contains_key(&channel)
    }

    /// Bytes that it uses, shared bodies included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that it uses, but for deliveries.
    pub fn answers_bytes(&self) -> usize {
        self.bytes - self.deliveries_bytes
    }

    /// Puts an answer behind everything that waits on its channel, until the store has reached `until`.
    pub fn put_answer(&mut self, channel: u16, until: Until, write: impl FnOnce(&mut WireBuffer)) {
        self.put_into(channel, until, (Kind::Answers, None), write);
    }

    /// The same for a message that gets this tag.
    pub fn put_message(
        &mut self,
        channel: u16,
        until: Until,
        (kind, tag): (Kind, u64),
        write: impl FnOnce(&mut WireBuffer),
    ) {
        self.put_into(channel, until, (kind, Some(tag)), write);
    }

    /// Puts something behind what waits on its channel, if something does.
    pub fn put(&mut self, channel: u16, write: impl FnOnce(&mut WireBuffer)) {
        self.put_answer(channel, Until::default(), write);
    }

    fn put_into(
        &mut self,
        channel: u16,
        until: Until,
        (kind, tag): (Kind, Option<u64>),
        write: impl FnOnce(&mut WireBuffer),
    ) {
        let parts = self.channels.entry(channel).or_default();
        let goes_with = |last: &Part| until.is_reached(last.until) && last.kind == kind;
        let mut added = 0;
        if !parts.back().is_some_and(goes_with) {
            parts.push_back(Part { until, kind, tags: None, wire: WireBuffer::default() });
            added = PART_BYTES;
        }
        let Some(last) = parts.back_mut() else { return };
        let before = (last.wire.len(), last.wire.shared_bytes());
        write(&mut last.wire);
        // An answer that says nothing itself holds what comes behind it.
        if last.wire.is_empty() && last.until == Until::default() {
            parts.pop_back();
            return;
        }
        if let Some(tag) = tag {
            last.tags = Some((last.tags.map_or(tag, |(first, _)| first), tag));
        }
        added += last.wire.len() - before.0;
        self.shared_bytes += last.wire.shared_bytes() - before.1;
        self.count(added, kind != Kind::Answers);
    }

    fn count(&mut self, added: usize, is_deliveries: bool) {
        self.bytes += added;
        self.deliveries_bytes += if is_deliveries { added } else { 0 };
        self.charge.set(self.bytes - self.shared_bytes);
    }

    fn uncount(&mut self, part: &Part) {
        let bytes = part.wire.len() + PART_BYTES;
        self.bytes -= bytes;
        self.deliveries_bytes -= if part.is_deliveries() { bytes } else { 0 };
        self.shared_bytes -= part.wire.shared_bytes();
        self.charge.set(self.bytes - self.shared_bytes);
    }

    /// Moves what need not wait any more, as the store is as far as `now`, to the end of `out`. Returns how many bytes of it
    /// are deliveries.
    fn release(&mut self, now: Until, out: &mut WireBuffer) -> usize {
        let mut deliveries_bytes = 0;
        let mut channels = std::mem::take(&mut self.channels);
        channels.retain(|_, parts| {
            let is_reached = |part: &mut Part| {
                part.until.let_removals_end(now);
                part.until.is_reached(now)
            };
            while let Some(part) = parts.pop_front_if(is_reached) {
                self.uncount(&part);
                deliveries_bytes += if part.is_deliveries() { part.wire.len() } else { 0 };
                out.append(part.wire);
            }
            !parts.is_empty()
        });
        self.channels = channels;
        deliveries_bytes
    }

    /// What it waits for in a store that is as far as `now`.
    fn next(&self, now: Until) -> Next {
        let mut next = Next::default();
        let fronts = self.channels.values().filter_map(VecDeque::front);
        fronts.for_each(|part| next.await_until(part.until, now));
        next
    }

    /// How far the store has to be for the first delivery, but for those behind answers. For these the session waits: one that
    /// is durable, and not proven yet, would wake the connection again and again.
    fn next_delivery(&self) -> Option<Lsn> {
        let fronts = self.channels.values().filter_map(VecDeque::front);
        fronts.filter(|part| part.is_deliveries()).map(|part| part.until.durable).min()
    }

    /// A channel is closed: forgets what returns to the queues. Returns what of it was not sent.
    fn forget_deliveries(&mut self, channel: u16) -> Unsent {
        let Some(parts) = self.channels.remove(&channel) else { return Unsent::new() };
        let (mut left, mut unsent) = (VecDeque::with_capacity(parts.len()), Unsent::new());
        for mut part in parts {
            // The next channel of this number counts from 1 again.
            let tags = part.tags.take();
            match part.kind {
                Kind::Deliveries => {
                    self.uncount(&part);
                    unsent.extend(tags.map(|(first, last)| first..=last));
                }
                Kind::Answers | Kind::SettledDeliveries => left.push_back(part),
            }
        }
        if !left.is_empty() {
            self.channels.insert(channel, left);
        }
        unsent
    }

    /// What of a channel is not sent, and never is, as its connection is over.
    fn unsent(&self, channel: u16) -> Unsent {
        let parts = self.channels.get(&channel).into_iter().flatten();
        parts.filter_map(|part| part.tags.map(|(first, last)| first..=last)).collect()
    }
}

impl OutboxState {
    /// What waits for the store: something is about to.
    pub(super) fn held_mut(&mut self) -> &mut Held {
        let OutboxState { held, wire, .. } = self;
        held.get_or_insert_with(|| {
            Box::new(Held { charge: wire.another_charge(), ..Held::default() })
        })
    }

    /// Whether something waits on this channel, behind which all else has to stay.
    #[inline]
    pub(super) fn holds(&self, number: u16) -> bool {
        self.held.as_ref().is_some_and(|held| held.has(number))
    }

    /// Bytes that wait to be sent, or for the store.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.wire.len() + self.held.as_ref().map_or(0, |held| held.bytes())
    }

    /// Writes what a channel has to say: behind everything before it, between the deliveries.
    #[inline]
    pub(crate) fn put(&mut self, number: u16, write: impl FnOnce(&mut WireBuffer)) {
        match &mut self.held {
            Some(held) if held.has(number) => held.put(number, write),
            _ => {
                write(&mut self.wire);
                self.wire.count();
            }
        }
    }

    /// Writes an answer, which is to be sent when the store has reached `until`, with whatever its channel says after it.
    pub(crate) fn put_answer(
        &mut self,
        number: u16,
        until: Until,
        write: impl FnOnce(&mut WireBuffer),
    ) {
        self.held_mut().put_answer(number, until, write);
    }

    /// Lets go of what need not wait any more, as the store is as far as `now`. Returns what the rest waits for, of which
    /// the connection has to be told.
    pub(crate) fn release_held(&mut self, now: Until) -> Next {
        let Some(held) = self.held.as_mut() else { return Next::default() };
        self.deliveries_bytes += held.release(now, &mut self.wire);
        let next = held.next(now);
        held.is_awaited = next.durable.is_some();
        if next.is_none() {
            self.held = None;
        }
        next
    }

    /// A channel is closed: what it was to be delivered and returns to the queues is not sent; its tags are returned. What the
    /// channel has been told besides, and the reason, need not wait for that.
    pub(super) fn forget_deliveries(&mut self, number: u16) -> Unsent {
        let Some(held) = &mut self.held else { return Unsent::new() };
        if self.closed {
            return held.unsent(number);
        }
        let unsent = held.forget_deliveries(number);
        self.deliveries_bytes += held.release(Until::default(), &mut self.wire);
        unsent
    }

    /// Writes whole frames, each behind what its channel has said before.
    pub fn put_frames(&mut self, mut frames: &[u8]) {
        while self.held.is_some()
            && let Some((channel, frame, rest)) = wire::split_frame(frames)
        {
            self.put(channel, |wire| wire.bytes_mut().extend_from_slice(frame));
            frames = rest;
        }
        self.wire.put_frames(frames);
    }
}

impl Outbox {
    /// Whether something waits for the store. The connection's task finds out what that still is.
    #[inline]
    pub(crate) fn holds_back(&self) -> bool {
        self.holds_back.load(Ordering::Acquire)
    }

    /// Notes whether something does.
    pub(crate) fn note_holding_back(&self, holds_back: bool) {
        self.holds_back.store(holds_back, Ordering::Release);
    }

    /// Sees to it that the connection is woken when `store` has committed what it was delivered, unless that has been seen
    /// to already. `state` is its own, locked.
    #[cold]
    pub(crate) fn wake_when_committed(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, OutboxState>,
        store: &dyn Store,
    ) {
        let Some(held) = state.held.as_mut().filter(|held| !held.is_awaited) else { return };
        let Some(lsn) = held.next_delivery() else { return };
        held.is_awaited = true;
        self.note_holding_back(true);
        let waiter = state.waiter.clone();
        drop(state);
        store.when_durable(lsn, waiter.unwrap_or_else(|| self.own_waiter()));
    }

    /// Wakes the connection's task.
    pub(crate) fn own_waiter(self: &Arc<Self>) -> Waiter {
        Waker::from(Arc::clone(self)).into()
    }
}

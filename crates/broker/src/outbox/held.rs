//! Answers that wait until what they tell of is durable, and what has to stay behind them.
//!
//! Nearly always there is none. While there is one, everything that its channel has to say goes
//! behind it; other channels go on.

use super::{OutboxState, Stalled, Turn};
use crate::outbox::wire::{self, WireBuffer};
use courser_store::Lsn;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What waits, by channel. It outlives the channel: the reason why that was closed comes behind.
#[derive(Debug, Default)]
pub(super) struct Held {
    channels: BTreeMap<u16, VecDeque<Part>>,
    bytes: usize,
    /// Queues that have something for consumers on these channels.
    stalled: Stalled,
}

/// An answer and what follows it, up to the next answer that waits for longer.
#[derive(Debug)]
struct Part {
    /// How far the store has to be durable.
    lsn: Lsn,
    wire: WireBuffer,
}

/// What a part costs besides its frames: it and their allocation.
const PART_BYTES: usize = size_of::<Part>() + 32;

impl Held {
    pub fn has(&self, channel: u16) -> bool {
        self.channels.contains_key(&channel)
    }

    /// Bytes that it uses.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts an answer behind everything that waits on its channel, until the store is durable up to
    /// `lsn`.
    pub fn put_answer(&mut self, channel: u16, lsn: Lsn, write: impl FnOnce(&mut WireBuffer)) {
        let parts = self.channels.entry(channel).or_default();
        if parts.back().is_none_or(|last| last.lsn < lsn) {
            parts.push_back(Part { lsn, wire: WireBuffer::default() });
            self.bytes += PART_BYTES;
        }
        self.put(channel, write);
    }

    /// Puts something behind what waits on its channel. False if nothing does.
    pub fn put(&mut self, channel: u16, write: impl FnOnce(&mut WireBuffer)) -> bool {
        let Some(last) = self.channels.get_mut(&channel).and_then(VecDeque::back_mut) else {
            return false;
        };
        let before = last.wire.len();
        write(&mut last.wire);
        self.bytes += last.wire.len() - before;
        true
    }

    /// Remembers to give something its turn when something is released.
    pub fn stall(&mut self, turn: Turn) {
        self.stalled.push(turn);
    }

    /// Moves what need not wait any more, as the store is durable up to `durable`, to the end of
    /// `out`. Returns the LSN at which there is more.
    pub fn release(&mut self, durable: Lsn, out: &mut WireBuffer) -> Option<Lsn> {
        let Held { channels, bytes, .. } = self;
        let mut next: Option<Lsn> = None;
        channels.retain(|_, parts| {
            while let Some(part) = parts.pop_front_if(|part| part.lsn <= durable) {
                *bytes -= part.wire.len() + PART_BYTES;
                out.append(part.wire);
            }
            let front = parts.front().map(|part| part.lsn);
            next = next.into_iter().chain(front).min();
            front.is_some()
        });
        next
    }

    /// Takes what is to be asked for more.
    pub fn take_stalled(&mut self) -> Stalled {
        std::mem::take(&mut self.stalled)
    }
}

impl OutboxState {
    /// Writes what a channel has to say: behind everything before it, between the deliveries.
    #[inline]
    pub(crate) fn put(&mut self, number: u16, write: impl FnOnce(&mut WireBuffer)) {
        match &mut self.held {
            Some(held) if held.has(number) => {
                held.put(number, write);
            }
            _ => write(&mut self.wire),
        }
    }

    /// Writes an answer, which is to be sent when the store is durable up to `lsn`, with whatever its
    /// channel says after it.
    pub(crate) fn put_answer(
        &mut self,
        number: u16,
        lsn: Lsn,
        write: impl FnOnce(&mut WireBuffer),
    ) {
        self.held.get_or_insert_default().put_answer(number, lsn, write);
    }

    /// Lets go of answers that tell of nothing behind `durable`. Returns for how far the next one
    /// waits.
    pub(crate) fn release_answers(&mut self, durable: Lsn) -> Option<Lsn> {
        let held = self.held.as_mut()?;
        let next = held.release(durable, &mut self.wire);
        self.stalled.append(held.take_stalled());
        if next.is_none() {
            self.held = None;
        }
        next
    }

    /// Writes whole frames, each behind what its channel has said before.
    pub fn put_frames(&mut self, mut frames: &[u8]) {
        while self.held.is_some()
            && let Some((channel, frame, rest)) = wire::split_frame(frames)
        {
            self.put(channel, |wire| wire.bytes_mut().extend_from_slice(frame));
            frames = rest;
        }
        self.wire.bytes_mut().extend_from_slice(frames);
    }

    /// Whether what is delivered to the consumer in `slot` would have to stay behind an answer that
    /// waits for the store. Its queue is asked for more when that is sent.
    #[cold]
    pub(super) fn waits_behind_answer(&mut self, number: u16, slot: u32) -> bool {
        let Some(held) = self.held.as_mut().filter(|held| held.has(number)) else { return false };
        let slot = self.channels.get_mut(number).and_then(|channel| channel.slot(slot));
        slot.into_iter().for_each(|slot| held.stall(Turn::Queue(Arc::clone(&slot.queue))));
        true
    }
}

//! Messages that a client can't be given, as their content headers do not fit a frame of the size that it
//! has agreed to. They hold up nothing: a `basic.get` passes them over, and where no consumer whose turn it
//! could be accepts such frames, they are set aside. They return to their places when a consumer that accepts them
//! comes or may take more, or a client polls that does, or when the last consumer has gone.

use super::consumers::Consumers;
use super::expiry::read;
use super::handed_out::HandedOut;
use super::message_notes::MessageNotes;
use super::returns::put_counts;
use super::settle::Settling;
use super::source::Source;
use super::{Queue, State};
use crate::kept_reader::KeptReader;
use crate::outbox::Outbox;
use crate::outbox::wire::WireBuffer;
use crate::work;
use courser_store::{Location, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Messages that one `basic.get` passes over; behind as many, or as many bytes, it finds the queue empty.
const PASSED_OVER_MAX: usize = 256;
/// Bytes of these messages; the last one may be larger than what is left, so that no single one hides what is behind it.
const PASSED_OVER_BYTES_MAX: usize = 16 << 20;
/// Messages that are offered at once to a client that accepts their frames: more than an outbox takes.
const OFFERED_AT_ONCE: usize = 256;
/// Messages that return in one section under the lock when the last consumer has gone; the next section follows at once.
const RETURNED_AT_ONCE: usize = 1024;

impl State {
    /// A client may take something: puts back into their places what is set aside and fits its frames.
    #[inline]
    pub(super) fn offer_aside(&mut self, outbox: &Outbox) {
        if self.unacked.has_aside() {
            let frame_max = outbox.lock().frame_max();
            self.return_aside(OFFERED_AT_ONCE, |len| WireBuffer::fits(len, frame_max));
        }
    }

    /// The same for the client of the consumer with this key.
    #[inline]
    pub(super) fn offer_aside_to(&mut self, key: u32) {
        if self.unacked.has_aside()
            && let Some(outbox) = self.consumers.get(key).map(|one| Arc::clone(&one.outbox))
        {
            self.offer_aside(&outbox);
        }
    }

    /// The same for the client of the consumer whose turn it is, where it may be one that had none before.
    pub(super) fn offer_aside_to_next(&mut self) {
        if let Some((key, _)) = self.consumers.next() {
            self.offer_aside_to(key);
        }
    }

    /// Whether some are set aside, and nothing consumes any more.
    #[inline]
    pub(super) fn has_unclaimed(&self) -> bool {
        self.unacked.has_aside() && self.consumers.len() == 0
    }

    /// Puts back into their places as many as that of those that are set aside and whose content headers fit.
    #[cold]
    fn return_aside(&mut self, most: usize, fits: impl Fn(usize) -> bool) {
        for _ in 0..most {
            let Some((sequence, location)) = self.unacked.take_aside(&fits) else { break };
            work::count(1);
            let bytes = location.body_size().bytes();
            self.ready.put_back(sequence, location, bytes);
        }
    }
}

impl Queue {
    /// How often a client could not be given a message, since the broker was started.
    pub(crate) fn unfit(&self) -> u64 {
        self.unfit.load(Ordering::Relaxed)
    }

    /// Puts some of what is set aside back into its place if nothing consumes any more; the next section goes on.
    pub(super) fn return_unclaimed(&self, state: &mut State) {
        if state.has_unclaimed() {
            state.return_aside(RETURNED_AT_ONCE, |_| true);
            self.watch_head(state);
            self.finish(state, Ok(()));
        }
    }

    /// Counts a message that a client could not be given.
    pub(crate) fn count_unfit(&self) {
        self.unfit.fetch_add(1, Ordering::Relaxed);
    }

    /// The consumer whose turn it is can't be given the next message, with a content header of so many
    /// bytes: it is the turn of one that can, or the message is set aside. Returns which one that is, and how
    /// many have been asked.
    #[cold]
    pub(super) fn pass_on(
        &self,
        header_len: usize,
        consumers: &mut Consumers,
        source: &mut impl Source,
        unacked: &mut HandedOut,
    ) -> Result<(Option<u32>, u64), StoreError> {
        let (next, asked) = consumers.pass_turn(|other| other.outbox.lock().fits(header_len));
        if next.is_none() {
            source.prepare_keep()?;
            if let Some((sequence, location)) = source.pass_unfit() {
                unacked.set_aside(sequence, location, header_len);
                self.count_unfit();
            }
        }
        Ok((next, asked))
    }

    /// Takes the first message that `outbox` can be given, for a `basic.get`: its number, its place, and the
    /// bytes of its body where they are counted. Those in front of it stay where they are.
    pub(super) fn pop_for(
        &self,
        outbox: &Outbox,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
    ) -> Result<Option<(u64, Location, Option<u32>)>, StoreError> {
        let frame_max = outbox.lock().frame_max();
        let State { ready, reader, notes, .. } = state;
        let (mut passed_over, mut passed_bytes) = (Vec::new(), 0);
        let popped = loop {
            let Some((_, location)) = ready.front() else { break Ok(None) };
            match self.lengths(location, reader, notes.as_deref(), store) {
                Ok((len, _)) if WireBuffer::fits(len, frame_max) => {
                    let bytes = ready.front_bytes();
                    break Ok(ready.pop().map(|(at, location)| (at, location, bytes)));
                }
                Ok(_)
                    if passed_over.len() == PASSED_OVER_MAX
                        || passed_bytes >= PASSED_OVER_BYTES_MAX =>
                {
                    break Ok(None);
                }
                Ok((_, read_bytes)) => {
                    passed_bytes += read_bytes;
                    let bytes = ready.front_bytes();
                    passed_over.extend(ready.pop().map(|(at, location)| (at, location, bytes)));
                    self.count_unfit();
                }
                Err(StoreError::Lost(_)) => {
                    // It must not stop those behind it.
                    let lost = ready.pop().and_then(|(_, lost)| lost.position());
                    if let (Some(position), Some(notes)) = (lost, &mut *notes) {
                        notes.leave_position(position);
                    }
                    settling.positions.extend(lost);
                }
                Err(error) => break Err(error),
            }
        };
        for (sequence, location, bytes) in passed_over {
            ready.put_back(sequence, location, bytes);
        }
        popped
    }

    /// Bytes of the content header that a message is delivered with, and how many are read for that.
    fn lengths(
        &self,
        location: &Location,
        reader: &mut KeptReader,
        notes: Option<&MessageNotes>,
        store: &dyn Store,
    ) -> Result<(usize, usize), StoreError> {
        let message = read(location, reader, store)?;
        let read_bytes = message.header.len() + message.body.len();
        work::count_read(read_bytes);
        let mut header = Vec::new();
        let is_counted = put_counts(&message, (location, notes), self.is_quorum, &mut header);
        Ok((if is_counted { header.len() } else { message.header.len() }, read_bytes))
    }
}

//! Polling: one message at a time, for `basic.get`.

use super::backlog::REDELIVERED;
use super::expiry::{EXPIRED_AT_ONCE, read};
use super::handed_out::Receiver;
use super::returns::put_counts;
use super::settle::Settling;
use super::{Queue, State};
use crate::outbox::Outbox;
use crate::wakes::Wakes;
use courser_store::{BodySize, Lsn, MessageRef, Store, StoreError, Sync};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// The oldest message, and what `basic.get-ok` says of it.
pub(crate) struct Polled<'a> {
    pub message: MessageRef<'a>,
    pub redelivered: bool,
    /// Messages behind it.
    pub left: usize,
    /// How far the log has to be durable until it may be sent.
    pub sent_at: Lsn,
}

/// Who polls.
#[derive(Clone, Copy)]
pub(crate) struct Poller<'a> {
    pub outbox: &'a Arc<Outbox>,
    pub channel: u16,
    /// It gets what it polls, which is counted and traced. What is purged is got by none.
    pub gets: bool,
}

impl<'a> Poller<'a> {
    fn receiver(self) -> Receiver<'a> {
        Receiver::polling((self.outbox, self.channel))
    }
}

/// What becomes of a message offered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    ForGood,
    UntilAcked,
    Nothing,
}

/// What came of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll {
    /// A message was offered.
    Offered,
    /// Nothing waits.
    Empty,
    /// Some messages that no client gets have left the front, and there may be more of them, or some are on the way to their
    /// places: to be asked again once dead letters are posted.
    Again,
}

impl Queue {
    /// Offers the oldest message to `with`, which says what becomes of it.
    ///
    /// # Errors
    /// When it can't be read; it stays where it is.
    pub(crate) fn poll(
        self: &Arc<Self>,
        poller: Poller<'_>,
        store: &dyn Store,
        wakes: &mut Wakes,
        with: &mut dyn FnMut(u64, Polled<'_>) -> Taking,
    ) -> Result<Poll, StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        self.renew_lease(&mut state);
        if state.is_returning() {
            drop(state);
            return self.take_back(Vec::new(), store, wakes).map(|_| Poll::Again);
        }
        state.offer_aside(poller.outbox);
        let polled = self.poll_locked(&mut state, &mut settling, poller, store, wakes, with);
        self.finish(&mut state, polled.clone().map(drop));
        match polled {
            // It comes back at once: who waits is before it.
            Ok(Poll::Again) => MutexGuard::unlock_fair(state),
            _ => drop(state),
        }
        self.settle(settling, Sync::Later, store)?;
        polled
    }

    fn poll_locked(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        poller: Poller<'_>,
        store: &dyn Store,
        wakes: &mut Wakes,
        with: &mut dyn FnMut(u64, Polled<'_>) -> Taking,
    ) -> Result<Poll, StoreError> {
        if self.expire(state, settling, store, wakes)? || self.drop_lost(state, settling, store)? {
            return Ok(Poll::Again);
        }
        let popped = self.pop_for(poller.outbox, state, settling, store)?;
        let Some((sequence, mut location, bytes)) = popped else {
            state.reader.close();
            if poller.gets {
                self.count_got_empty(state, wakes);
            }
            return Ok(Poll::Empty);
        };
        // What is behind it and has expired is not left.
        let watching = state.expiry.watching;
        let behind = self.expire(state, settling, store, wakes);
        let State { ready, reader, unacked, notes, .. } = &mut *state;
        let left = ready.len();
        let mut message = match read(&location, reader, store) {
            Ok(message) => message,
            Err(error) => {
                state.ready.put_back(sequence, location, bytes);
                return Err(error);
            }
        };
        let redelivered = location.marks() & REDELIVERED != 0;
        let size_bytes = message.body.len();
        let (place, mut header) = ((&location, notes.as_deref()), Vec::new());
        if put_counts(&message, place, self.is_quorum, &mut header) {
            message.header = &header;
        }
        let commits = self.commits(store);
        let sent_at = commits.map_or(Lsn::default(), |at| at.awaited_by(location.position()));
        let taking = with(sequence, Polled { message, redelivered, left, sent_at });
        if poller.gets && taking != Taking::Nothing && self.is_traced() {
            self.trace(poller.outbox, poller.channel, &message, redelivered, wakes);
        }
        location.set_body_size(BodySize::of(size_bytes));
        match taking {
            Taking::UntilAcked => unacked.insert(sequence, location, &poller.receiver()),
            Taking::ForGood => {
                if let Some(notes) = notes {
                    notes.leave_to_settle(&location);
                }
                settling.add(location);
            }
            Taking::Nothing => ready.put_back(sequence, location, bytes),
        }
        if poller.gets && taking != Taking::Nothing {
            self.count_got(state, taking == Taking::ForGood, redelivered, size_bytes, wakes);
        }
        if taking != Taking::Nothing && left == 0 {
            state.reader.close();
        }
        // It may return, or has not gone.
        state.expiry.watching |= watching && taking != Taking::ForGood;
        if let Err(error) = behind {
            // The message itself has been offered.
            self.finish(state, Err(error));
        }
        Ok(Poll::Offered)
    }

    /// Drops messages from the front that are lost, which must not stop those behind them: some of them.
    /// Returns whether there may be more.
    fn drop_lost(
        &self,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
    ) -> Result<bool, StoreError> {
        for _ in 0..EXPIRED_AT_ONCE {
            let State { ready, reader, .. } = &mut *state;
            let Some((_, location)) = ready.front() else { return Ok(false) };
            match read(location, reader, store) {
                Err(StoreError::Lost(_)) => {}
                read => return read.map(|_| false),
            }
            if let Some((_, location)) = state.ready.pop() {
                state.leave(&location);
                settling.add(location);
            }
        }
        Ok(true)
    }
}

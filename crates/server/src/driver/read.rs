//! The way in: from the socket to the machine, one read at a time.

use super::deferred::next_append;
use super::newcomer;
use super::paced::Paced;
use super::{BUFFERS_KEPT, ClientStream, Driver, HANG_UP_INTERVAL};
use crate::blocking::in_place_if;
use crate::clock;
use crate::gather;
use crate::read_buffers;
use courser_broker::admin::ConnectionState;
use courser_broker::{Batch, Budget, Pace, Session};
use courser_codec::Method;
use courser_connection::server::Event;
use courser_store::critical::{self, Work};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::ReadBuf;

/// Bytes asked for in one read.
const READ_BYTES: usize = 256 * 1024;

thread_local! {
    /// The memory of the last batch, for the next one.
    static BATCH: Cell<Option<Batch<'static>>> = const { Cell::new(None) };
}

impl<S: ClientStream> Driver<S> {
    /// Reads once and acts on it. Returns how many bytes came; 0 at the end of the stream.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.keep_pace_with_store();
        if self.paced.as_ref().is_some_and(Paced::is_long_for_disk) && self.stream.has_hung_up() {
            // What it has sent was promised nothing, and its place is another client's.
            return Poll::Ready(Ok(0));
        }
        let waits = self.login.is_some() || self.untold.is_some() || self.paced.is_some();
        // A client that is gone sends no more than its socket still holds: that is read to its end.
        let is_held_back = self.held_back && !self.stream.has_hung_up();
        if waits || is_held_back || self.has_unread_answers() {
            return Poll::Pending;
        }
        if std::mem::take(&mut self.is_deferred) {
            let input = std::mem::take(&mut self.carry);
            self.receive(&input);
            return Poll::Ready(Ok(input.len()));
        }
        let carried = self.carry.len();
        read_buffers::lend(&read_buffers::INPUT, carried + READ_BYTES, |buffer| {
            let is_new = self.newcomer.is_some();
            let most = if is_new { newcomer::READ_BYTES } else { READ_BYTES };
            let mut read = ReadBuf::new(&mut buffer[carried..carried + most]);
            critical::check(Work::Socket);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            let count = read.filled().len();
            if count > 0 {
                buffer[..carried].copy_from_slice(&self.carry);
                if let Some(session) = &self.session {
                    session.note_received(count);
                }
                self.receive(&buffer[..carried + count]);
            }
            Poll::Ready(Ok(count))
        })
    }

    /// Acts on everything complete in `input` and keeps the rest.
    pub(super) fn receive(&mut self, input: &[u8]) {
        let now = clock::now();
        self.budget = Budget::begin();
        self.shared.broker.set_time(self.shared.clock.now_ms());
        let mut rest = input;
        let mut batch = BATCH.take().unwrap_or_default().recycle();
        let (mut events, mut is_awaited, mut is_cut) = (0, false, false);
        let may_defer = self.session.as_ref().is_some_and(Session::store_is_behind);
        let mut deferred = None;
        loop {
            if may_defer {
                deferred = self.pace_before(rest);
            }
            if deferred.is_some() || is_cut {
                break;
            }
            let Some(event) = self.machine.next(&mut rest, now) else { break };
            events += 1;
            is_awaited |= self.is_awaited(&event);
            self.handle(event, &mut batch, now);
            self.collect_output();
            // What has come is dear: others get their turn before the rest of it.
            is_cut = self.budget.is_spent() && !rest.is_empty();
        }
        self.is_deferred = is_cut;
        gather::note_read(events, is_awaited);
        self.collect_output();
        if let Some(session) = &mut self.session {
            let takes_long = batch.takes_long() || session.has_much_to_settle();
            match in_place_if(takes_long, || session.flush(&mut batch)) {
                Ok(pace) => {
                    self.is_deferred |= deferred.is_some();
                    if let Some(pace) = deferred.or(pace) {
                        self.stop_reading(pace, now);
                    }
                }
                Err(fault) => self.connection_fault(&fault, (0, 0), now),
            }
        }
        BATCH.set(Some(batch.recycle()));
        self.carry.clear();
        if self.newcomer.is_some() {
            // It may be anyone: no room for more than it has sent.
            self.carry.reserve_exact(rest.len());
        }
        self.carry.extend_from_slice(rest);
        self.count_incomplete(now);
        if self.carry.capacity() > 0 {
            self.release_at = Some(now + BUFFERS_KEPT);
        }
    }

    /// With whom to keep pace before what comes next is read.
    fn pace_before(&self, input: &[u8]) -> Option<Pace> {
        self.session.as_ref()?.pace_before(next_append(input)?)
    }

    /// Counts what is kept of messages and frames that have come in part, and ends the connection if that is too much.
    pub(super) fn count_incomplete(&mut self, now: Instant) {
        let kept = self.carry.capacity();
        if let Some(newcomer) = &mut self.newcomer {
            let most = self.shared.broker.admin().newcomers_max_bytes();
            return self.place.keep_bytes(newcomer.count(kept), most);
        }
        let Some(session) = &mut self.session else { return };
        // A client that waits for the disk is not to blame for what could not be taken in.
        let (carried, unread) = if self.is_deferred { (0, kept) } else { (kept, 0) };
        session.hold_unread(unread);
        let incomplete = self.machine.incomplete_bytes() as usize + carried;
        if let Err(fault) = session.hold_incomplete(incomplete) {
            self.connection_fault(&fault, (0, 0), now);
        }
    }

    /// Whether the client waits until this is answered or followed by a delivery.
    fn is_awaited(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::Publish(_) | Event::PublishBegun { .. } | Event::LargePublish(_) => false,
            Event::Request { method, .. } => match method {
                Method::BasicAck(_) | Method::BasicNack(_) | Method::BasicReject(_) => {
                    self.takes_few_at_once
                }
                Method::BasicQos(qos) => {
                    self.takes_few_at_once =
                        (1..=gather::PREFETCH_OF_WAITERS).contains(&qos.prefetch_count);
                    true
                }
                _ => true,
            },
            _ => true,
        }
    }

    /// A publisher is not read while the store is behind, also if it was not when the last batch ended.
    fn keep_pace_with_store(&mut self) {
        if self.paced.is_none()
            && let Some(pace) = self.session.as_ref().and_then(Session::pace_with_store)
        {
            self.stop_reading(pace, clock::now());
        }
    }

    fn stop_reading(&mut self, pace: Pace, now: Instant) {
        self.note_state(ConnectionState::Flow);
        self.paced = Some(Paced::start(pace, &self.shared));
        self.note_reading(now);
    }

    /// Takes note of whether the client is read now. One that is not is not to be missed for its heartbeats.
    pub(super) fn note_reading(&mut self, now: Instant) {
        let waits = self.untold.is_some() || self.paced.is_some();
        let is_read = !waits && !self.held_back && !self.full_of_answers;
        self.machine.set_reading(is_read, now);
    }

    /// Takes note of whether an alarm keeps this connection from being read. Returns whether that has changed: the client
    /// is to be told at once.
    pub(super) fn note_alarm(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        let reason = session.hold_back();
        if reason.is_some() == self.held_back {
            return false;
        }
        self.held_back = reason.is_some();
        match reason {
            Some(reason) => self.machine.blocked(reason),
            None => self.machine.unblocked(),
        }
        self.note_state(match self.held_back {
            true => ConnectionState::Blocked,
            false if self.paced.is_some() => ConnectionState::Flow,
            false => ConnectionState::Running,
        });
        let now = clock::now();
        self.note_reading(now);
        self.hang_up_at = self.held_back.then(|| now + HANG_UP_INTERVAL);
        self.collect_output();
        true
    }

    /// Whether the client does not take the answers to what it has asked: it gets to ask more when
    /// it does, or when the store has what they tell of, so that they can't fill the memory. Called
    /// when the socket has taken what it can.
    fn has_unread_answers(&mut self) -> bool {
        let is_full = self.session.as_ref().is_some_and(|session| {
            let may_be = !self.sending.is_empty() || session.holds_back();
            may_be && session.outbox().is_full_of_answers()
        });
        if is_full != self.full_of_answers {
            self.full_of_answers = is_full;
            self.note_reading(clock::now());
        }
        is_full
    }
}

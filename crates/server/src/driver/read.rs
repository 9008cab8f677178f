//! The way in: from the socket to the machine, one read at a time.

use super::{BUFFERS_KEPT, Driver, PACE_INTERVAL, aside};
use crate::timers;
use courser_broker::Batch;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Octets asked for in one read.
const READ_BYTES: usize = 256 * 1024;

thread_local! {
    /// The buffer that this thread's connections read into, one after the other.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The memory of the last batch, for the next one.
    static BATCH: Cell<Option<Batch<'static>>> = const { Cell::new(None) };
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Driver<S> {
    /// Reads once and acts on it. Returns how many octets came; 0 at the end of the stream.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.pace.is_some() || self.is_held_back() || self.has_unread_answers() {
            return Poll::Pending;
        }
        READ_BUFFER.with_borrow_mut(|buffer| {
            let carried = self.carry.len();
            if buffer.len() < carried + READ_BYTES {
                buffer.resize(carried + READ_BYTES, 0);
            }
            let mut read = ReadBuf::new(&mut buffer[carried..]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            let count = read.filled().len();
            if count > 0 {
                buffer[..carried].copy_from_slice(&self.carry);
                self.receive(&buffer[..carried + count]);
            }
            Poll::Ready(Ok(count))
        })
    }

    /// Acts on everything complete in `input` and keeps the rest.
    fn receive(&mut self, input: &[u8]) {
        let now = Instant::now();
        self.shared.broker.set_time(timers::now_ms());
        let mut rest = input;
        let mut batch = BATCH.take().unwrap_or_default().recycle();
        while let Some(event) = self.machine.next(&mut rest, now) {
            self.handle(event, &mut batch, now);
            self.collect_output();
        }
        self.collect_output();
        if let Some(session) = &mut self.session {
            match aside(batch.takes_long(), || session.flush(&mut batch)) {
                Ok(Some(pace)) => {
                    self.pace = Some((pace, Box::pin(tokio::time::sleep(PACE_INTERVAL))));
                    // A client that is not read is not to be missed for its heartbeats.
                    self.machine.set_reading(false, now);
                }
                Ok(None) => {}
                Err(fault) => self.connection_fault(&fault, (0, 0), now),
            }
        }
        BATCH.set(Some(batch.recycle()));
        self.carry.clear();
        self.carry.extend_from_slice(rest);
        if self.carry.capacity() > 0 {
            self.release_at = Some(now + BUFFERS_KEPT);
        }
    }

    /// Whether an alarm keeps this connection from being read, and tells it when that changes.
    fn is_held_back(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        let reason = session.hold_back();
        if reason.is_some() != self.held_back {
            self.held_back = reason.is_some();
            match reason {
                Some(reason) => self.machine.blocked(reason),
                None => self.machine.unblocked(),
            }
            self.machine.set_reading(!self.held_back, Instant::now());
            self.collect_output();
        }
        self.held_back
    }

    /// Whether the client does not take the answers to what it has asked: it gets to ask more when
    /// it does, so that they can't fill the memory. Called when the socket has taken what it can.
    fn has_unread_answers(&self) -> bool {
        match &self.session {
            Some(session) if !self.sending.is_empty() => session.outbox().is_full_of_answers(),
            _ => false,
        }
    }
}

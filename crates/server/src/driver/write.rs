//! The way out: what the outbox holds, to the socket.

use super::{BUFFERS_KEPT, ClientStream, Driver};
use crate::clock;
use courser_store::critical::{self, Work};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

/// Pieces handed to the system in one write.
const SLICES_MAX: usize = 64;

impl<S> Driver<S> {
    /// The connection is over: nothing more is sent.
    pub(super) fn forget_unsent(&mut self) {
        self.sending.release();
        self.tail.release();
        self.kept_below.set(0);
    }
}

impl<S: ClientStream> Driver<S> {
    /// Sends until nothing is left or the socket takes no more. Returns whether all has been sent:
    /// a stream that encrypts may hold some of what it took.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut wrote = false;
        let sent_all = loop {
            if self.sending.is_empty() && !self.refill() {
                break true;
            }
            match self.poll_write(cx) {
                Poll::Ready(written) => written?,
                Poll::Pending => break false,
            }
            wrote = true;
        };
        if wrote {
            self.note_sent();
        }
        let sent_all = sent_all && self.poll_flush(cx)?.is_ready();
        match sent_all {
            true => self.note_all_sent(),
            false => self.note_stalled(),
        }
        Ok(sent_all)
    }

    /// Nothing is left to be sent. A flush may end without anything more to write.
    fn note_all_sent(&mut self) {
        if self.stalled_at.take().is_some() {
            // What the client has been slow to take was not given back.
            self.release_at = Some(clock::now() + BUFFERS_KEPT);
        }
        self.kept_below.set(0);
        let broker = &self.shared.broker;
        if broker.alarm().is_some() || broker.is_short_of_room_for_clients() {
            self.release_sent();
        }
    }

    /// Not all of what there is can be sent now.
    fn note_stalled(&mut self) {
        let passed_on = self.stream.passed_on();
        if self.stalled_at.is_none() || passed_on != self.passed_on {
            (self.stalled_at, self.passed_on) = (Some(clock::now()), passed_on);
        }
        self.kept_below.set(self.stream.keeps());
        self.shared.broker.check_alarms();
    }

    /// An idle connection gives its buffers back.
    pub(super) fn release_buffers(&mut self, cx: &mut Context<'_>) {
        self.release_at = None;
        self.stream.release_memory(cx);
        if self.carry.is_empty() {
            self.carry = Vec::new();
            self.count_incomplete(clock::now());
        }
        if let Some(session) = &mut self.session {
            session.release_memory();
        }
        self.release_sent();
    }

    /// Gives back the memory of what has been sent, which may end an alarm.
    fn release_sent(&mut self) {
        if self.sending.is_empty() {
            self.sending.release();
        }
        if let Some(session) = &self.session {
            session.outbox().release_memory();
        }
        if self.shared.broker.alarm().is_some() {
            self.shared.broker.check_alarms();
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        critical::check(Work::Socket);
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(flushed) => flushed.map(Poll::Ready),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    pub(super) fn note_sent(&mut self) {
        let now = clock::now();
        self.stalled_at = None;
        self.machine.bytes_sent(now);
        self.release_at = Some(now + BUFFERS_KEPT);
    }

    /// Sends some of the lot that has been taken from the outbox.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        critical::check(Work::Socket);
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let filled = self.sending.slices_from(&self.sent, &mut slices);
        let stream = Pin::new(&mut self.stream);
        let count = ready!(stream.poll_write_vectored(cx, &slices[..filled]))?;
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        if let Some(session) = &self.session {
            session.note_sent(count);
        }
        if self.sending.advance(&mut self.sent, count) {
            self.sending.clear();
            self.sent = Default::default();
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the next lot from the outbox. Returns whether there was anything.
    fn refill(&mut self) -> bool {
        if self.session.is_some() && self.sending.is_empty() && !self.tail.is_empty() {
            // What was said before the session began, such as that it has.
            self.sending.append(std::mem::take(&mut self.tail));
            return true;
        }
        // What has had its turn while nothing was to be sent is taken at once.
        for _ in 0..2 {
            let Some(session) = self.session.as_mut().filter(|_| self.sending.is_empty()) else {
                break;
            };
            let taken = session.outbox().take(&mut self.sending);
            match taken.stalled {
                stalled if stalled.is_empty() => {}
                stalled if self.has_resumed && self.budget.is_spent() => {
                    session.resume_later(stalled);
                }
                stalled => {
                    self.has_resumed = true;
                    session.resume(stalled);
                }
            }
        }
        if self.sending.is_empty() && !self.tail.is_empty() {
            self.sending.append(std::mem::take(&mut self.tail));
        }
        !self.sending.is_empty()
    }

    /// Puts what the machine has to say behind everything that is to be sent already.
    pub(super) fn collect_output(&mut self) {
        let output = self.machine.output();
        if output.is_empty() {
            return;
        }
        match &self.session {
            Some(session) => {
                session.outbox().lock().put_frames(output);
            }
            None => self.tail.put_frames(output),
        }
        *output = Vec::new();
    }

    /// When a socket that takes nothing has done so for too long.
    pub(super) fn stalled_until(&self) -> Option<Instant> {
        Some(self.stalled_at? + self.send_timeout?)
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled_until().is_some_and(|until| clock::now() >= until)
    }

    #[cold]
    pub(super) fn lost_stalled(&mut self) -> Poll<()> {
        if let Some(suppressed) = self.shared.throttles.connections.allow(clock::now()) {
            let timeout_ms = self.send_timeout.map(|timeout| timeout.as_millis() as u64);
            tracing::warn!(
                peer = %self.peer,
                timeout_ms,
                suppressed,
                "disconnected: the client does not read what it is sent"
            );
        }
        self.lost(&io::ErrorKind::TimedOut.into())
    }
}

//! Pings to a WebSocket that nothing is heard from.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// When to send pings, and what has come of the last one.
pub(super) struct Pings {
    interval: Duration,
    due: Pin<Box<Sleep>>,
    /// One was sent, and nothing is heard since.
    is_awaited: bool,
    /// That was so for a whole interval. The answer may have come, and not been read.
    is_unanswered: bool,
    /// The socket takes no more.
    is_full: bool,
    /// Bytes that it had taken by then.
    taken: u64,
}

impl Pings {
    pub fn new(interval: Duration) -> Self {
        let due = Box::pin(tokio::time::sleep(interval));
        let (is_awaited, is_unanswered) = (false, false);
        Pings { interval, due, is_awaited, is_unanswered, is_full: false, taken: 0 }
    }

    /// The client is there.
    pub fn heard(&mut self) {
        self.is_awaited = false;
        self.is_unanswered = false;
    }

    pub fn sent(&mut self) {
        self.is_awaited = true;
    }

    /// Whether one was sent, and nothing heard since, for too long.
    pub fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// Takes note whether the socket takes more, and how many bytes it has taken. One that was full and has taken more has a
    /// client that reads.
    pub fn note_room(&mut self, has_room: bool, taken: u64) {
        if self.is_full && taken > self.taken {
            self.heard();
        }
        (self.is_full, self.taken) = (!has_room, taken);
    }

    /// Waits until the next one is due.
    pub fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.due.as_mut().poll(cx));
        self.is_unanswered |= std::mem::take(&mut self.is_awaited);
        self.due.as_mut().reset(Instant::now() + self.interval);
        Poll::Ready(())
    }
}

//! The turns of a connection: how much it does before others on the same thread have theirs.

use super::{ClientStream, Driver, Task};
use crate::blocking::in_place_if;
use courser_broker::{Budget, Session};
use std::sync::Arc;
use std::task::{Context, Poll};

impl<S> Drop for Task<S> {
    fn drop(&mut self) {
        // Another thread that has the driver now must not be the one to end its session.
        let (sessions, broker) = {
            let mut driver = self.0.lock();
            driver.forget_unsent();
            (driver.take_sessions(), Arc::clone(&driver.shared.broker))
        };
        drop(sessions);
        // What was not sent may have raised one.
        broker.check_alarms();
    }
}

impl<S> Driver<S> {
    /// Its sessions, to be ended with nothing locked: the one that goes on, and the one that is ending.
    pub(super) fn take_sessions(&mut self) -> [Option<Session>; 2] {
        [self.session.take(), self.ending.take()]
    }
}

impl<S: ClientStream> Driver<S> {
    /// A turn. Ready when the connection is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.budget = Budget::begin();
        self.has_resumed = false;
        if self.go_on_ending() && !self.is_over {
            self.is_over = self.poll_open(cx).is_ready();
        }
        if self.ending.is_some() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Ends the session; what it still had to say is sent when nothing is left of it.
    pub(super) fn end_session(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        in_place_if(session.takes_long_to_end(), || session.close_quietly(&mut self.tail));
        self.ending = Some(session);
        self.paced = None;
        // Nothing may follow the close: whatever comes of a renewal is not said any more.
        self.renewal = None;
        self.held_back = false;
        self.hang_up_at = None;
        self.go_on_ending();
    }

    /// Removes what is left of a session that has ended, as far as the budget goes. Returns whether nothing is.
    fn go_on_ending(&mut self) -> bool {
        let is_done = self.ending.as_mut().is_none_or(|session| {
            in_place_if(session.takes_long_to_go_on(), || session.end(&mut self.budget))
        });
        if is_done {
            self.ending = None;
        }
        is_done
    }
}

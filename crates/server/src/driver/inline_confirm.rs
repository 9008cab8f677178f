//! Confirms that the journal's thread sends itself.
//!
//! Where messages come one by one, each confirm would cost two changes of threads after its sync: to
//! a worker of the runtime, and to a second one that the runtime wakes beside it. So the log thread,
//! while nobody else waits for it, writes the confirm to the socket before it goes to sleep. It never
//! waits: if the connection's task is at work, or the socket takes no more, that task is woken as
//! for anything else.

use super::Driver;
use courser_broker::Outbox;
use courser_store::{InPlace, Waiter};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite};

/// What the store notifies when something of a connection is durable.
pub(super) struct InlineConfirm<S> {
    driver: Weak<Mutex<Driver<S>>>,
    outbox: Arc<Outbox>,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> InlineConfirm<S> {
    pub fn waiter(driver: Weak<Mutex<Driver<S>>>, outbox: &Arc<Outbox>) -> Waiter {
        Waiter::InPlace(Arc::new(InlineConfirm { driver, outbox: Arc::clone(outbox) }))
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> InPlace for InlineConfirm<S> {
    fn run(&self) -> bool {
        let Some(driver) = self.driver.upgrade() else { return true };
        driver.try_lock().is_some_and(|mut driver| driver.confirm())
    }

    fn wake(&self) {
        self.outbox.wake();
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Driver<S> {
    /// Sends what is durable. Returns false if there is something left for the task.
    fn confirm(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        // The task has to set the timer that gives the buffers back, if none is set yet, and to read
        // on when there is room for more answers.
        if self.release_at.is_none() || !self.sending.is_empty() || self.full_of_answers {
            return false;
        }
        if !session.try_confirm(&mut self.sending) {
            return false;
        }
        if self.sending.is_empty() {
            return true;
        }
        // The task registers its own waker when it finds that not all is sent.
        let mut nobody = Context::from_waker(Waker::noop());
        while !self.sending.is_empty() {
            if !matches!(self.poll_write(&mut nobody), Poll::Ready(Ok(()))) {
                return false;
            }
        }
        self.note_sent();
        matches!(self.poll_flush(&mut nobody), Ok(Poll::Ready(())))
    }
}

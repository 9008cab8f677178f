//! Confirms that the journal's thread sends itself.
//!
//! Where messages come one by one, each confirm would cost two changes of threads after its sync: to
//! a worker of the runtime, and to a second one that the runtime wakes beside it. So the log thread,
//! while no thread waits for it, writes the confirm to the socket before it goes to sleep. It never
//! waits: if the connection's task is at work, or the socket takes no more, that task is woken as
//! for anything else. Nor does a fault of one connection reach the log thread: streams other than
//! sockets are left to their tasks, and a panic ends the connection alone.

use super::{ClientStream, Driver};
use courser_broker::Outbox;
use courser_store::critical::{self, Work};
use courser_store::{InPlace, Waiter};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

/// What the store notifies when something of a connection is durable.
struct InlineConfirm<S> {
    driver: Weak<Mutex<Driver<S>>>,
    outbox: Arc<Outbox>,
}

impl<S: ClientStream> InPlace for InlineConfirm<S> {
    fn run(&self) -> bool {
        let _confirm = critical::begin(Work::Confirm);
        // The last to let go of the driver drops it: that is within, too.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let Some(driver) = self.driver.upgrade() else { return true };
            driver.try_lock().is_some_and(|mut driver| {
                // Until it is through.
                driver.is_broken = true;
                let is_done = driver.confirm();
                driver.is_broken = false;
                is_done
            })
        }));
        // Its task is woken, finds it broken, and ends it.
        ran.unwrap_or(false)
    }

    fn wake(&self) {
        self.outbox.wake();
    }
}

impl<S: ClientStream> Driver<S> {
    /// Who is told when something of this connection is durable.
    pub(super) fn confirmer(&self, outbox: &Arc<Outbox>) -> Waiter {
        let outbox = Arc::clone(outbox);
        match self.stream.is_written_anywhere() {
            true => Waiter::InPlace(Arc::new(InlineConfirm {
                driver: Weak::clone(&self.myself),
                outbox,
            })),
            false => Waiter::Task(Waker::from(outbox)),
        }
    }

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
        let mut no_waker = Context::from_waker(Waker::noop());
        while !self.sending.is_empty() {
            if !matches!(self.poll_write(&mut no_waker), Poll::Ready(Ok(()))) {
                return false;
            }
        }
        self.note_sent();
        matches!(self.poll_flush(&mut no_waker), Ok(Poll::Ready(())))
    }
}

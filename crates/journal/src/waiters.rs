//! Who waits for the log to become durable.

use crate::{Failure, Lsn, core::Core};
use courser_store::{Waiter, critical};
use parking_lot::Mutex;
use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    sync::Arc,
    task::{Poll, Wake, Waker},
    thread::{self, Thread},
};

/// Wakers that are taken out together.
const LOT: usize = 16;
/// Most wakers that the log thread lets do some work of their own: it is needed for other things.
const FEW: usize = 2;

/// Wakers, each with the position that it waits for.
#[derive(Default)]
pub struct Waiters {
    heap: Mutex<BinaryHeap<Waiting>>,
}

struct Waiting {
    lsn: Lsn,
    waiter: Waiter,
}

impl Waiters {
    /// Remembers to notify `waiter` when `lsn` is reached.
    pub fn push(&self, lsn: Lsn, waiter: Waiter) {
        self.heap.lock().push(Waiting { lsn, waiter });
    }

    /// Wakes everybody who waits for `durable` or less; a few are told that the thread `is_free`.
    pub fn wake_up_to(&self, durable: Lsn, is_free: bool) {
        // A few at a time, and without the lock: a waker may run code of any kind.
        loop {
            let mut due = [const { None }; LOT];
            let mut count = 0;
            let mut heap = self.heap.lock();
            while count < due.len() && heap.peek().is_some_and(|waiting| waiting.lsn <= durable) {
                due[count] = heap.pop();
                count += 1;
            }
            drop(heap);
            let may_run = is_free && count <= FEW;
            due.into_iter().flatten().for_each(|waiting| waiting.waiter.notify(may_run));
            if count < LOT {
                return;
            }
        }
    }
}

// A heap has its greatest element on top; the one due first has to be there.
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.lsn.cmp(&self.lsn)
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.lsn == other.lsn
    }
}

impl Eq for Waiting {}

impl Core {
    /// See [`Journal::poll_durable`](crate::Journal::poll_durable).
    pub fn poll_durable(&self, lsn: Lsn, waker: &Waker, epoch: u64) -> Poll<Result<(), Failure>> {
        if let Some(result) = self.is_durable(lsn, epoch) {
            return Poll::Ready(result);
        }
        self.waiters.push(lsn, waker.clone().into());
        self.ask_sync(lsn);
        // It may have become durable before the waker was there to be woken.
        self.is_durable(lsn, epoch).map_or(Poll::Pending, Poll::Ready)
    }

    /// See [`Journal::when_durable`](crate::Journal::when_durable).
    pub fn when_durable(&self, lsn: Lsn, waiter: Waiter, epoch: u64) {
        if self.is_durable(lsn, epoch).is_some() {
            return waiter.notify(false);
        }
        self.waiters.push(lsn, waiter.clone());
        self.ask_sync(lsn);
        if self.is_durable(lsn, epoch).is_some() {
            // It may have become durable before the waiter was there to be notified.
            waiter.notify(false);
        }
    }

    /// See [`Journal::wait_durable`](crate::Journal::wait_durable).
    pub fn wait_durable(&self, lsn: Lsn, epoch: u64) -> Result<(), Failure> {
        if !self.options.threads {
            return self.flush_until_durable(lsn, epoch);
        }
        critical::assert_outside("the disk is waited for");
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            match self.poll_durable(lsn, &waker, epoch) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }

    fn flush_until_durable(&self, lsn: Lsn, epoch: u64) -> Result<(), Failure> {
        loop {
            if let Some(result) = self.is_durable(lsn, epoch) {
                return result;
            }
            self.ask_sync(lsn);
            if !self.flush_once() && self.replica.is_some() {
                return Err(self.not_committed());
            }
        }
    }

    fn is_durable(&self, lsn: Lsn, epoch: u64) -> Option<Result<(), Failure>> {
        if self.durable_for(epoch) >= lsn {
            return Some(Ok(()));
        }
        let failed = self.failed.get().cloned();
        failed.or_else(|| self.deposed(epoch)).map(Err)
    }
}

/// Wakes a blocked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

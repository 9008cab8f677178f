//! Who waits for the log to become durable.

use crate::{Failure, Lsn, core::Core};
use parking_lot::Mutex;
use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    sync::Arc,
    task::{Poll, Wake, Waker},
    thread::{self, Thread},
};

/// Wakers, each with the position that it waits for.
#[derive(Default)]
pub struct Waiters {
    heap: Mutex<BinaryHeap<Waiter>>,
}

struct Waiter {
    lsn: Lsn,
    waker: Waker,
}

impl Waiters {
    /// Remembers to wake `waker` when `lsn` is reached.
    pub fn push(&self, lsn: Lsn, waker: Waker) {
        self.heap.lock().push(Waiter { lsn, waker });
    }

    /// Wakes everybody who waits for `durable` or less.
    pub fn wake_up_to(&self, durable: Lsn) {
        // A few at a time, and without the lock: a waker may run code of any kind.
        loop {
            let mut due = [const { None }; 16];
            let mut heap = self.heap.lock();
            for slot in &mut due {
                if heap.peek().is_none_or(|waiter| waiter.lsn > durable) {
                    break;
                }
                *slot = heap.pop();
            }
            drop(heap);
            let full = due[due.len() - 1].is_some();
            due.into_iter().flatten().for_each(|waiter| waiter.waker.wake());
            if !full {
                return;
            }
        }
    }
}

// A heap has its greatest element on top; the one due first has to be there.
impl Ord for Waiter {
    fn cmp(&self, other: &Self) -> Ordering {
        other.lsn.cmp(&self.lsn)
    }
}

impl PartialOrd for Waiter {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiter {
    fn eq(&self, other: &Self) -> bool {
        self.lsn == other.lsn
    }
}

impl Eq for Waiter {}

impl Core {
    /// See [`Journal::poll_durable`](crate::Journal::poll_durable).
    pub fn poll_durable(&self, lsn: Lsn, waker: &Waker) -> Poll<Result<(), Failure>> {
        if let Some(result) = self.is_durable(lsn) {
            return Poll::Ready(result);
        }
        self.waiters.push(lsn, waker.clone());
        self.ask_sync(lsn);
        // It may have become durable before the waker was there to be woken.
        self.is_durable(lsn).map_or(Poll::Pending, Poll::Ready)
    }

    /// See [`Journal::wait_durable`](crate::Journal::wait_durable).
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), Failure> {
        if !self.options.threads {
            return self.flush_until_durable(lsn);
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            match self.poll_durable(lsn, &waker) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }

    fn flush_until_durable(&self, lsn: Lsn) -> Result<(), Failure> {
        loop {
            if let Some(result) = self.is_durable(lsn) {
                return result;
            }
            self.ask_sync(lsn);
            self.flush_once();
        }
    }

    fn is_durable(&self, lsn: Lsn) -> Option<Result<(), Failure>> {
        if self.durable() >= lsn {
            return Some(Ok(()));
        }
        self.failed.get().map(|failure| Err(failure.clone()))
    }
}

/// Wakes a blocked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

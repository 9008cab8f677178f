//! Queues between a connection and those who take messages from it, bounded by bytes.
//!
//! A mailbox that holds more than its limit stops the connection's reading until half of it is taken: then the server's
//! writes fill up, and the server stops sending. So at most the limit, one read and one message are held.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::error::Error;

/// Mailboxes of a connection that are over their limits.
#[derive(Default)]
pub(crate) struct Stall {
    over: AtomicUsize,
    driver: Mutex<Option<Waker>>,
}

impl Stall {
    /// Whether the connection may read. If not, the waker is called as soon as it may.
    pub fn poll_may_read(&self, cx: &Context<'_>) -> bool {
        if self.over.load(Ordering::Acquire) == 0 {
            return true;
        }
        *self.driver.lock() = Some(cx.waker().clone());
        // The last mailbox may have been emptied before the waker was there.
        self.over.load(Ordering::Acquire) == 0
    }

    fn leave(&self) {
        if self.over.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(driver) = self.driver.lock().take()
        {
            driver.wake();
        }
    }
}

/// What a message counts for beside its bytes.
const ITEM_OVERHEAD_BYTES: usize = 128;

/// A bounded queue with one taker.
pub(crate) struct Mailbox<T> {
    inner: Mutex<Inner<T>>,
    stall: Arc<Stall>,
    limit_bytes: usize,
}

struct Inner<T> {
    items: VecDeque<(T, usize)>,
    held_bytes: usize,
    is_over: bool,
    /// Set when nothing more will come, with the error that is told once, behind the items.
    end: Option<Option<Error>>,
    /// The receiver is gone: no item is taken any more.
    is_abandoned: bool,
    taker: Option<Waker>,
}

impl<T> std::fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.inner.lock();
        write!(f, "{} waiting, {} bytes", inner.items.len(), inner.held_bytes)
    }
}

impl<T> Mailbox<T> {
    pub fn new(stall: Arc<Stall>, limit_bytes: usize) -> Self {
        let inner = Inner {
            items: VecDeque::new(),
            held_bytes: 0,
            is_over: false,
            end: None,
            is_abandoned: false,
            taker: None,
        };
        Self { inner: Mutex::new(inner), stall, limit_bytes }
    }

    /// Puts an item of so many bytes in. Gives it back if the mailbox is closed or its receiver gone. The waker is to be
    /// called when no lock is held.
    pub fn push(&self, item: T, size_bytes: usize) -> Result<Option<Waker>, T> {
        let size_bytes = size_bytes + ITEM_OVERHEAD_BYTES;
        let mut inner = self.inner.lock();
        if inner.is_abandoned || inner.end.is_some() {
            return Err(item);
        }
        inner.items.push_back((item, size_bytes));
        inner.held_bytes += size_bytes;
        if !inner.is_over && inner.held_bytes > self.limit_bytes {
            inner.is_over = true;
            self.stall.over.fetch_add(1, Ordering::AcqRel);
        }
        Ok(inner.taker.take())
    }

    /// Takes the next item; behind the last one the error, if there is any, and then nothing.
    pub fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Result<T, Error>>> {
        let mut inner = self.inner.lock();
        if let Some((item, size_bytes)) = inner.items.pop_front() {
            inner.held_bytes -= size_bytes;
            let leaves = inner.is_over && inner.held_bytes <= self.limit_bytes / 2;
            inner.is_over &= !leaves;
            drop(inner);
            if leaves {
                self.stall.leave();
            }
            return Poll::Ready(Some(Ok(item)));
        }
        match &mut inner.end {
            Some(error) => Poll::Ready(error.take().map(Err)),
            None => {
                inner.taker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Waits until nothing more will come. It takes nothing; who waits for the next item meanwhile is forgotten.
    pub fn poll_ended(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.inner.lock();
        if inner.end.is_some() {
            return Poll::Ready(());
        }
        inner.taker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Nothing more will come. What is there can still be taken, and does not hold up the connection any more.
    pub fn end(&self, error: Option<Error>) {
        let mut inner = self.inner.lock();
        if inner.end.is_none() {
            inner.end = Some(error);
        }
        let taker = inner.taker.take();
        let leaves = std::mem::take(&mut inner.is_over);
        drop(inner);
        if leaves {
            self.stall.leave();
        }
        if let Some(taker) = taker {
            taker.wake();
        }
    }

    /// Nothing will be taken any more. Gives what is left.
    pub fn abandon(&self) -> impl Iterator<Item = T> + use<T> {
        self.inner.lock().is_abandoned = true;
        self.take_all()
    }

    /// Takes what is there.
    pub fn take_all(&self) -> impl Iterator<Item = T> + use<T> {
        let mut inner = self.inner.lock();
        inner.held_bytes = 0;
        let items = std::mem::take(&mut inner.items);
        let leaves = std::mem::take(&mut inner.is_over);
        drop(inner);
        if leaves {
            self.stall.leave();
        }
        items.into_iter().map(|(item, _)| item)
    }
}

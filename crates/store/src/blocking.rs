//! What blocks a thread: an append for which the log has no room, a read of what the system has not in memory, and a lock that
//! is held meanwhile.
//!
//! A runtime's thread has other tasks, which would stand still. The owner of the threads says here, once for the process, what
//! they do when they block.

use crate::critical::{self, Work};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Calls the function that it is given, which blocks.
pub type Handler = fn(&mut dyn FnMut());

static HANDLER: OnceLock<Handler> = OnceLock::new();

/// How many threads wait for the disk at present.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// So long a lock is waited for as any other: longer than a section takes that reads and appends nothing, as to have another
/// thread go on costs more than such a wait.
const AT_FIRST: Duration = Duration::from_millis(20);
/// The same while a thread waits for the disk: it may be the one that holds the lock.
const AT_FIRST_BESIDE: Duration = Duration::from_millis(1);

/// So long a look at what a lock guards waits for it: much longer than it is held as a rule where nothing is appended or read.
const LOOK: Duration = Duration::from_millis(200);
/// The same behind a look that has waited in vain while a thread waits for the disk: there may be many such locks, and many looks
/// at each.
const NEXT_LOOK: Duration = Duration::from_millis(1);
/// For so many looks: those of a list of very many queues.
const NEXT_LOOKS: usize = 2000;
/// How many are left of these.
static LOOKS_LEFT: AtomicUsize = AtomicUsize::new(0);

/// Has whatever blocks from now on called by this handler. The first one stays.
pub fn set_handler(handler: Handler) {
    HANDLER.get_or_init(|| handler);
}

/// Calls what may block.
pub fn wait<T>(block: impl FnOnce() -> T) -> T {
    let Some(handler) = HANDLER.get() else { return block() };
    let (mut block, mut done) = (Some(block), None);
    handler(&mut || {
        if let Some(block) = block.take() {
            done = Some(block());
        }
    });
    done.unwrap_or_else(|| unreachable!("a handler calls what it is given"))
}

/// Calls what may wait for the disk.
pub fn wait_for_disk<T>(block: impl FnOnce() -> T) -> T {
    let _waiting = Waiting::begin();
    wait(block)
}

/// A thread that waits for the disk.
struct Waiting;

impl Waiting {
    fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

fn at_first() -> Duration {
    if WAITING.load(Ordering::Relaxed) > 0 { AT_FIRST_BESIDE } else { AT_FIRST }
}

/// A lock that may be held for as long as an append or a read waits.
#[derive(Debug, Default)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// A lock that is free.
    pub const fn new(value: T) -> Self {
        Lock(Mutex::new(value))
    }

    /// Waits until it is free.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        critical::check(Work::Lock);
        self.0.try_lock().unwrap_or_else(|| self.await_free())
    }

    /// Locks it if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock()
    }

    /// Waits so long at most until it is free.
    pub fn try_lock_for(&self, at_most: Duration) -> Option<MutexGuard<'_, T>> {
        critical::check(Work::Lock);
        self.0.try_lock_for(at_most)
    }

    /// Locks it to show what it guards; nothing if it is held for so long that its holder may wait for the disk.
    pub fn look(&self) -> Option<MutexGuard<'_, T>> {
        critical::check(Work::Lock);
        self.0.try_lock().or_else(|| self.look_again())
    }

    #[cold]
    fn look_again(&self) -> Option<MutexGuard<'_, T>> {
        let is_next = WAITING.load(Ordering::Relaxed) > 0
            && LOOKS_LEFT
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok();
        let locked = self.0.try_lock_for(if is_next { NEXT_LOOK } else { LOOK });
        if locked.is_none() && !is_next {
            LOOKS_LEFT.store(NEXT_LOOKS, Ordering::Relaxed);
        }
        locked
    }

    #[cold]
    fn await_free(&self) -> MutexGuard<'_, T> {
        self.0.try_lock_for(at_first()).unwrap_or_else(|| wait(|| self.0.lock()))
    }
}

/// Locks what may be held for as long, shared with others.
#[inline]
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    critical::check(Work::Lock);
    let soon = lock.try_read().or_else(|| lock.try_read_for(at_first()));
    soon.unwrap_or_else(|| wait(|| lock.read()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::thread;

    const OTHER: &str = "the other thread";
    static BLOCKED: AtomicUsize = AtomicUsize::new(0);

    thread_local! {
        static CALLS: Cell<usize> = const { Cell::new(0) };
    }

    /// Waits until the other thread has blocked so often.
    fn await_blocked(count: usize) {
        while BLOCKED.load(Ordering::Acquire) < count {
            thread::yield_now();
        }
    }

    #[test]
    fn only_what_blocks_is_called_by_the_handler() {
        let calls = || CALLS.get();
        assert_eq!((wait(|| 1), calls()), (1, 0), "nothing was said yet");
        set_handler(|block| {
            CALLS.set(CALLS.get() + 1);
            if thread::current().name() == Some(OTHER) {
                BLOCKED.fetch_add(1, Ordering::Release);
            }
            block();
        });
        set_handler(|_| panic!("the first one stays"));
        assert_eq!(at_first(), AT_FIRST);
        assert_eq!((wait(at_first), calls()), (AT_FIRST, 1));
        assert_eq!((wait_for_disk(at_first), calls()), (AT_FIRST_BESIDE, 2));
        assert_eq!(at_first(), AT_FIRST);
        let mutex = Lock::new(3);
        assert_eq!((*mutex.lock(), calls()), (3, 2));
        let shared = RwLock::new(4);
        assert_eq!((*read(&shared), calls()), (4, 2));
        let (alone, held) = (shared.write(), mutex.lock());
        thread::scope(|scope| {
            let other = thread::Builder::new().name(OTHER.into());
            let sum = other.spawn_scoped(scope, || *mutex.lock() + *read(&shared));
            await_blocked(1);
            drop(held);
            await_blocked(2);
            drop(alone);
            assert!(matches!(sum.map(|sum| sum.join()), Ok(Ok(7))));
        });
    }
}

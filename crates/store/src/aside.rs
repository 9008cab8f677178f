//! Waits on threads that have more to do: a runtime's, whose other tasks stand still meanwhile.
//!
//! An append waits for the disk where the log has no room, and what is held then is waited for as long. The owner of the
//! threads says here, once for the process, how they wait.

use parking_lot::{Mutex, MutexGuard};
use std::sync::OnceLock;

/// Calls the function that it is given, which waits.
pub type Aside = fn(&mut dyn FnMut());

static ASIDE: OnceLock<Aside> = OnceLock::new();

/// Has all threads wait so from now on. What was said first counts.
pub fn set(aside: Aside) {
    ASIDE.get_or_init(|| aside);
}

/// Waits.
pub fn wait<T>(wait: impl FnOnce() -> T) -> T {
    let Some(aside) = ASIDE.get() else { return wait() };
    let (mut wait, mut done) = (Some(wait), None);
    aside(&mut || done = wait.take().map(|wait| wait()));
    match (done, wait) {
        (Some(done), _) => done,
        (None, Some(wait)) => wait(),
        (None, None) => unreachable!("it has waited"),
    }
}

/// Locks what may be held for as long as an append waits.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.try_lock().unwrap_or_else(|| wait(|| mutex.lock()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static CALLS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn only_what_waits_is_done_aside() {
        let calls = || CALLS.get();
        assert_eq!((wait(|| 1), calls()), (1, 0), "nothing was said yet");
        set(|wait| {
            CALLS.set(CALLS.get() + 1);
            wait();
        });
        set(|_| panic!("it came first"));
        assert_eq!((wait(|| 2), calls()), (2, 1));
        let mutex = Mutex::new(3);
        assert_eq!((*lock(&mutex), calls()), (3, 1));
        let held = mutex.lock();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| (*lock(&mutex), CALLS.get()));
            drop(held);
            assert!(matches!(waiting.join(), Ok((3, 0 | 1))));
        });
    }
}

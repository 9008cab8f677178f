//! Where no password may be hashed, as that takes tens of milliseconds.

/// As long as one lives, others wait for its thread. Debug builds, and with them all tests, panic if that hashes a password with
/// argon2id meanwhile; other builds check nothing.
#[must_use]
#[derive(Debug)]
pub struct NoHashing(std::marker::PhantomData<*const ()>);

#[cfg(debug_assertions)]
thread_local! {
    static HELD: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl NoHashing {
    /// From now on.
    #[inline]
    pub fn begin() -> Self {
        #[cfg(debug_assertions)]
        HELD.set(HELD.get() + 1);
        NoHashing(std::marker::PhantomData)
    }
}

#[cfg(debug_assertions)]
impl Drop for NoHashing {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// A password is hashed.
#[inline]
pub(super) fn check() {
    #[cfg(debug_assertions)]
    assert!(HELD.get() == 0 || std::thread::panicking(), "a password is hashed while others wait");
}

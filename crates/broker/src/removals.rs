//! Removals that a log has yet to be told of.
//!
//! What is removed is missing before the log is told so, and a change of leader would bring it back. So an answer that tells of
//! what is missing waits for the removals that were under way when it was read, and then for what they have told the log. Nothing
//! blocks: they wake who waits.

use crate::log_end::LogEnd;
use courser_store::{Lsn, Waiter};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The removals under way in a vhost, or in all of a shard. They are numbered as they begin, from 1.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    /// The last one, while any is under way; else 0.
    last: AtomicU64,
    /// All up to this one are over.
    over: AtomicU64,
    /// Where the log ends that has been told of all that are over.
    told: LogEnd,
    under_way: Mutex<UnderWay>,
}

#[derive(Debug, Default)]
struct UnderWay {
    /// How many have begun.
    begun: u64,
    /// Those that are not over, in ascending order.
    numbers: Vec<u64>,
    /// What is woken when all up to a number are over.
    waiters: Vec<(u64, Waiter)>,
}

/// All removals up to one. It is over, with what was told of it, or has to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpTo {
    pub number: u64,
    /// Where the log ends that has been told of them, where they are over.
    pub told: Lsn,
}

/// A removal: from before anything is missing until the log is told.
#[derive(Debug)]
pub(crate) struct Removal<'a> {
    all: &'a Removals,
    number: u64,
    told: Lsn,
}

impl Removals {
    /// Something is about to be removed.
    pub fn begin(&self) -> Removal<'_> {
        let mut under_way = self.under_way.lock();
        under_way.begun += 1;
        let number = under_way.begun;
        under_way.numbers.push(number);
        self.last.store(number, Ordering::Release);
        Removal { all: self, number, told: Lsn::default() }
    }

    /// Those under way. What they have removed may have been found missing before this call; where the log ends, for those that
    /// are over, is to be read after it.
    pub fn under_way(&self) -> UpTo {
        UpTo { number: self.last.load(Ordering::Acquire), told: Lsn::default() }
    }

    /// Those that are over.
    pub fn over(&self) -> UpTo {
        let number = self.over.load(Ordering::Acquire);
        UpTo { number, told: self.told.lsn() }
    }

    /// Lets `waiter` know, once, when all up to this number are over.
    pub fn when_over(&self, number: u64, waiter: Waiter) {
        let mut under_way = self.under_way.lock();
        if self.over.load(Ordering::Acquire) < number {
            under_way.waiters.push((number, waiter));
            return;
        }
        drop(under_way);
        waiter.notify(false);
    }
}

impl Removal<'_> {
    /// Its end: the log is told, up to there.
    pub fn told(mut self, lsn: Lsn) {
        self.told = lsn;
    }
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        let all = self.all;
        let mut under_way = all.under_way.lock();
        under_way.numbers.retain(|number| *number != self.number);
        let over = under_way.numbers.first().map_or(under_way.begun, |first| first - 1);
        all.told.reach(self.told);
        all.over.store(over, Ordering::Release);
        if under_way.numbers.is_empty() {
            all.last.store(0, Ordering::Release);
        }
        let waits = |(number, _): &mut (u64, Waiter)| *number <= over;
        let woken: Vec<_> = under_way.waiters.extract_if(.., waits).collect();
        drop(under_way);
        woken.into_iter().for_each(|(_, waiter)| waiter.notify(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn who_waits_is_woken_when_all_are_over_that_were_under_way() {
        let (removals, wakes) = (Removals::default(), Arc::<Wakes>::default());
        let woken = || wakes.0.load(Ordering::SeqCst);
        let waiter = || Waker::from(Arc::clone(&wakes)).into();
        assert_eq!(removals.under_way(), UpTo::default());
        let (first, second) = (removals.begin(), removals.begin());
        let until = removals.under_way().number;
        removals.when_over(until, waiter());
        let third = removals.begin();
        second.told(Lsn(7));
        assert!(removals.over().number < until);
        drop(first);
        assert_eq!(woken(), 1);
        assert_eq!(removals.over(), UpTo { number: until, told: Lsn(7) });
        removals.when_over(until, waiter());
        assert_eq!(woken(), 2, "at once");
        assert!(removals.under_way().number > until);
        drop(third);
        assert_eq!(removals.under_way(), UpTo::default());
    }
}

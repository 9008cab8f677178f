//! Looks at what is locked while a thread waits for the disk.

use courser_store::blocking::{self, Lock};
use std::time::{Duration, Instant};

const LOCKS: usize = 200;
/// All locks would take twice as long if each look waited as long as one does for a lock that is free soon.
const MUCH: Duration = Duration::from_secs(20);

#[test]
#[allow(clippy::disallowed_methods, reason = "how long it takes is what is asked")]
fn looks_at_many_locks_wait_for_the_disk_once() {
    let locks: Vec<_> = (0..LOCKS).map(|_| Lock::new(0)).collect();
    let held: Vec<_> = locks.iter().map(Lock::lock).collect();
    let free = Lock::new(0);
    let looked = blocking::wait_for_disk(|| {
        let before = Instant::now();
        for lock in &locks {
            assert!(lock.look().is_none());
            assert!(free.look().is_some());
        }
        before.elapsed()
    });
    assert!(looked < MUCH, "{looked:?}");
    drop(held);
    assert!(locks.iter().all(|lock| lock.look().is_some()));
}

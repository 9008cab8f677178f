//! The buffers that a thread lends to what it reads, for one connection after the other.
//!
//! A thread that blocks has another one look after its tasks, and may have none for the rest of its life: it keeps no buffer. There may
//! be very many such threads, and their buffers count towards no limit.

use std::cell::Cell;
use std::thread::LocalKey;

/// A buffer of each thread.
pub(crate) type Buffer = LocalKey<Cell<Vec<u8>>>;

thread_local! {
    /// For what connections read.
    pub(crate) static INPUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// For what TLS reads from its sockets.
    pub(crate) static RECORDS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// How often this thread has let go of its buffers.
    static RELEASES: Cell<u64> = const { Cell::new(0) };
}

/// Calls `read` with so many bytes, or more, of this thread's buffer.
pub(crate) fn lend<T>(lent: &'static Buffer, bytes: usize, read: impl FnOnce(&mut [u8]) -> T) -> T {
    let (mut buffer, releases) = (lent.take(), RELEASES.get());
    if buffer.len() < bytes {
        buffer = vec![0; bytes];
    }
    let read = read(&mut buffer);
    if RELEASES.get() == releases {
        lent.set(buffer);
    }
    read
}

/// This thread blocks: lets go of its buffers, and of what it lends right now when that comes back.
pub(crate) fn release() {
    RELEASES.set(RELEASES.get() + 1);
    drop((INPUT.take(), RECORDS.take()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::in_place;

    fn kept_bytes() -> usize {
        [&INPUT, &RECORDS]
            .map(|lent| {
                let buffer = lent.take();
                let bytes = buffer.capacity();
                lent.set(buffer);
                bytes
            })
            .iter()
            .sum()
    }

    fn lend_both(read: impl Fn()) {
        lend(&INPUT, 1000, |_| read());
        lend(&RECORDS, 100, |_| read());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_thread_that_has_handed_over_its_tasks_keeps_no_buffer() {
        let task = async {
            lend_both(|| {});
            assert!(kept_bytes() >= 1100, "for the next read");
            in_place(|| ());
            assert_eq!(kept_bytes(), 0);
            lend_both(|| in_place(|| ()));
            assert_eq!(kept_bytes(), 0);
        };
        tokio::spawn(task).await.expect("no panic");
    }
}

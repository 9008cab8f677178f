//! Publishes that are not confirmed yet: when each should have been sent, and how many there may be.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The outstanding confirms of one producer.
pub struct Window {
    outstanding: Mutex<Outstanding>,
    freed: Notify,
    limit: u32,
}

struct Outstanding {
    /// By the publish's number modulo the length; 0 for one that is not outstanding.
    sent_ns: Vec<u64>,
    count: u32,
}

impl Outstanding {
    fn at(&mut self, seq: u64) -> &mut u64 {
        let len = self.sent_ns.len() as u64;
        &mut self.sent_ns[(seq % len) as usize]
    }
}

impl Window {
    /// A window of `limit` confirms, at least 1.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        let outstanding = Outstanding { sent_ns: vec![0; limit as usize], count: 0 };
        Self { outstanding: Mutex::new(outstanding), freed: Notify::new(), limit }
    }

    /// How many can be published now, from the number `next_seq` on.
    #[must_use]
    pub fn room(&self, next_seq: u64) -> u64 {
        let mut outstanding = self.outstanding.lock();
        let left = u64::from(self.limit - outstanding.count);
        // An old publish that is confirmed late keeps its place, which a new one would need.
        (next_seq..next_seq + left).take_while(|&seq| *outstanding.at(seq) == 0).count() as u64
    }

    /// The publish with this number is about to be sent.
    pub fn open(&self, seq: u64, sent_ns: u64) {
        let mut outstanding = self.outstanding.lock();
        outstanding.count += 1;
        *outstanding.at(seq) = sent_ns.max(1);
    }

    /// The publishes from `first` on were not sent after all.
    pub fn withdraw(&self, first: u64, count: u64) {
        self.close(first, first + count - 1, |_| ());
    }

    /// The publishes from `first` to `last` are answered; `each` gets the times at which they should have been sent.
    pub fn close(&self, first: u64, last: u64, mut each: impl FnMut(u64)) {
        let mut outstanding = self.outstanding.lock();
        for seq in first..=last {
            let sent_ns = std::mem::take(outstanding.at(seq));
            if sent_ns != 0 {
                outstanding.count -= 1;
                each(sent_ns);
            }
        }
        drop(outstanding);
        self.freed.notify_one();
    }

    /// Waits until something was answered since this was asked last.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    /// How many are outstanding.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.outstanding.lock().count
    }

    /// The numbers of those that are outstanding, when `next_seq` would be the next one.
    #[must_use]
    pub fn unanswered(&self, next_seq: u64) -> Vec<u64> {
        let mut outstanding = self.outstanding.lock();
        let oldest = next_seq.saturating_sub(outstanding.sent_ns.len() as u64).max(1);
        (oldest..next_seq).filter(|&seq| *outstanding.at(seq) != 0).collect()
    }
}

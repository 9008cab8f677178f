//! A connection that is not read for a while, because it publishes faster than its messages are taken.

use super::{HANG_UP_INTERVAL, Shared};
use courser_broker::Pace;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// How often such a connection looks whether it may go on, at most.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Where there are many, each looks less often: together they look once in this time.
const INTERVAL_PER_CONNECTION: Duration = Duration::from_micros(100);
const INTERVAL_MAX: Duration = Duration::from_millis(100);

/// What it waits for, and when it looks next.
pub(super) struct Paced {
    pace: Pace,
    begun: Instant,
    sleep: Pin<Box<Sleep>>,
    shared: Arc<Shared>,
}

impl Paced {
    pub fn start(pace: Pace, shared: &Arc<Shared>) -> Self {
        let count = shared.paced.fetch_add(1, Relaxed) + 1;
        let sleep = Box::pin(tokio::time::sleep(interval(count)));
        Paced { pace, begun: Instant::now(), sleep, shared: Arc::clone(shared) }
    }

    /// Whether it has waited for the disk for so long that the client may be gone.
    pub fn is_long_for_disk(&self) -> bool {
        self.pace.is_for_store() && self.begun.elapsed() >= HANG_UP_INTERVAL
    }

    /// Ready when it has looked: with whether to wait on, for which it has to be polled again.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        ready!(self.sleep.as_mut().poll(cx));
        let waits_on = self.pace.wait_on(self.begun.elapsed());
        if waits_on {
            let next = Instant::now() + interval(self.shared.paced.load(Relaxed));
            self.sleep.as_mut().reset(next);
        }
        Poll::Ready(waits_on)
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.shared.paced.fetch_sub(1, Relaxed);
    }
}

fn interval(count: usize) -> Duration {
    let share = INTERVAL_PER_CONNECTION * u32::try_from(count).unwrap_or(u32::MAX / 64);
    share.clamp(INTERVAL_MIN, INTERVAL_MAX)
}

//! When the next sync starts: at once for who waits for each, in company where many come.
//!
//! A sync costs the processor about the same for one record as for a thousand, and so do the wakes that
//! follow it. A log that syncs as soon as it can makes many small syncs of a stream of small batches.
//! So it leaves a gap between two syncs, for more to come in: longer where a sync takes longer and where
//! threads have to wait for a processor, none where syncs carry one record each, and soon none again
//! where nothing comes in meanwhile because its publishers wait for this very sync.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

/// Records a sync makes durable, on average, from which on the next one waits for company.
const CROWD_MIN: f64 = 1.5;
/// The gap where there are processors to spare, in times of what a sync takes: with it, what comes at
/// any time is durable after at most 1.3 times as long as without, on average.
const GAP_PER_SYNC: f64 = 1.5;
/// What is added to it, in times of how long a thread waits for a processor: every sync makes about so
/// many threads runnable.
const GAP_PER_DELAY: f64 = 10.0;
/// A gap shorter than this is not worth a sleep.
const GAP_MIN: Duration = Duration::from_micros(20);
/// The shortest sleep within a gap.
const SLEEP_MIN: Duration = Duration::from_micros(50);
/// How fast patience comes back, with each sleep that has gathered something and with each sync.
const PATIENCE_GAINED: f64 = 1.0 / 8.0;
const PATIENCE_REGAINED: f64 = 1.0 / 1024.0;
/// Syncs after which the waits for a processor are looked at again.
const LOOK_EVERY: u32 = 32;

/// What the log thread knows about its syncs.
#[derive(Debug)]
pub struct Pace {
    longest: Duration,
    /// Averages: what a sync takes, how many records it makes durable, and how long a thread that could
    /// run waits for a processor.
    sync_ns: f64,
    crowd: f64,
    delay_ns: f64,
    /// How much of the gap is used, 0 to 1.
    patience: f64,
    last_end: Option<Instant>,
}

impl Pace {
    /// Leaves gaps of at most `longest`.
    pub fn new(longest: Duration) -> Self {
        Pace { longest, sync_ns: 0.0, crowd: 0.0, delay_ns: 0.0, patience: 1.0, last_end: None }
    }

    /// When the next sync starts, if what waits for it now is to wait for company.
    pub fn next_start(&self) -> Option<Instant> {
        if self.crowd < CROWD_MIN {
            return None;
        }
        let gap = self.gap();
        (gap >= GAP_MIN).then(|| self.last_end.map(|end| end + gap))?
    }

    /// How long to sleep before the next look at whether anything has come in.
    pub fn sleep(&self) -> Duration {
        (self.gap() / 2).max(SLEEP_MIN)
    }

    fn gap(&self) -> Duration {
        let whole = GAP_PER_SYNC * self.sync_ns + GAP_PER_DELAY * self.delay_ns;
        // A sync that takes long gathers enough by itself.
        let most = self.longest.as_nanos() as f64 - self.sync_ns;
        Duration::from_nanos((whole.min(most) * self.patience).max(0.0) as u64)
    }

    /// Notes whether a sleep has gathered anything; where not, publishers wait rather than send.
    pub fn slept(&mut self, has_gathered: bool) {
        if has_gathered {
            self.patience = (self.patience + PATIENCE_GAINED).min(1.0);
        } else {
            self.patience /= 2.0;
        }
    }

    /// Notes a sync that took from `start` to `end`, for as many `records`.
    pub fn synced(&mut self, start: Instant, end: Instant, records: u64) {
        let took_ns = end.duration_since(start).as_nanos() as f64;
        // A single slow one, which may have begun a segment, says little of the next.
        let took_ns = took_ns.min(4.0 * self.sync_ns + 1e6);
        self.sync_ns += (took_ns - self.sync_ns) / 16.0;
        self.crowd += (records as f64 - self.crowd) / 8.0;
        self.patience = (self.patience + PATIENCE_REGAINED).min(1.0);
        self.last_end = Some(end);
    }

    /// Notes how long this thread has lately waited for a processor when it could run, on average.
    pub fn delayed(&mut self, mean: Duration) {
        self.delay_ns += (mean.as_nanos() as f64 - self.delay_ns) / 4.0;
    }
}

/// How long this thread waits for a processor, as far as the system says.
pub struct Delays {
    file: Option<File>,
    waited_ns: u64,
    runs: u64,
    syncs: u32,
}

impl Delays {
    /// Of the calling thread.
    pub fn of_this_thread() -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        let mut delays = Delays { file, waited_ns: 0, runs: 0, syncs: 0 };
        let _ = delays.read();
        delays
    }

    /// The average wait since the last answer, once in some syncs.
    pub fn after_sync(&mut self) -> Option<Duration> {
        self.syncs += 1;
        if self.syncs < LOOK_EVERY {
            return None;
        }
        self.syncs = 0;
        self.read()
    }

    /// Three numbers: nanoseconds on a processor, nanoseconds of waiting for one, and how many times it
    /// got one.
    fn read(&mut self) -> Option<Duration> {
        let mut text = [0; 96];
        let len = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..len]).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        let (_, waited_ns, runs) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let waited = waited_ns.saturating_sub(self.waited_ns);
        let times = runs.saturating_sub(self.runs).max(1);
        (self.waited_ns, self.runs) = (waited_ns, runs);
        Some(Duration::from_nanos(waited / times))
    }
}

//! A pause before a thread waits for its sockets, on a machine whose processors are busy.
//!
//! Most clients write each message by itself. Threads that get a processor at once then read, route,
//! wake and write for each message, and take from the clients the processor that these need to send
//! more. So a thread that has nothing left to do sleeps for a moment first: one turn serves all that
//! comes in meanwhile. Only where that pays: the processors are busy, a turn has more than one thing to
//! do, but not so much that it is a large batch already, and no client waits for each single answer.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// Publishes and requests that a thread handles in one turn, on average, where a pause pays: with
/// fewer it would gather nothing, with more they come in batches without it.
const EVENTS_MIN: f32 = 2.0;
const EVENTS_MAX: f32 = 256.0;
/// How much of the past counts in that average.
const TURNS: f32 = 8.0;
/// Pauses begin where processors have been busy for this share of their time, and end below the other:
/// they make the broker need less.
const BUSY_MIN: f64 = 0.85;
const BUSY_AGAIN: f64 = 0.5;
/// How often to look how busy the processors are.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long no thread pauses after a client was seen that waits for each answer.
const PROMPT_FOR: Duration = Duration::from_millis(10);

/// A consumer with at most this prefetch waits for each message.
pub(crate) const PREFETCH_OF_WAITERS: u16 = 4;

/// What a thread has done since it last waited.
#[derive(Clone, Copy)]
struct Turn {
    events: u32,
    is_awaited: bool,
    /// The average of events in a turn that had any.
    average: f32,
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn { events: 0, is_awaited: false, average: 0.0 }) };
}

/// Notes what the thread has read from a socket: how many publishes and requests, and whether the
/// client waits for the answer to one before it sends the next.
pub(crate) fn note_read(events: u32, is_awaited: bool) {
    let mut turn = TURN.get();
    turn.events = turn.events.saturating_add(events);
    turn.is_awaited |= is_awaited;
    TURN.set(turn);
}

/// The pauses of a runtime's threads.
#[derive(Debug)]
pub struct Gather {
    pause: Duration,
    load: Load,
    begun: Instant,
    /// Times in microseconds since then: until when no thread pauses, and when to look at the load next.
    prompt_until_us: AtomicU64,
    look_at_us: AtomicU64,
    /// Whether processors are busy.
    is_busy: AtomicBool,
    pauses: AtomicU64,
}

impl Gather {
    /// Pauses of this length, by how busy the machine's processors are.
    pub fn new(pause: Duration) -> Self {
        Gather::by_load(pause, Load::of_the_machine())
    }

    /// The same as if processors were busy for this share of their time, 0 to 1.
    pub fn assuming(pause: Duration, busy_share: f64) -> Self {
        Gather::by_load(pause, Load::Fixed(busy_share))
    }

    fn by_load(pause: Duration, load: Load) -> Self {
        Gather {
            pause,
            load,
            begun: Instant::now(),
            prompt_until_us: AtomicU64::new(0),
            look_at_us: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            pauses: AtomicU64::new(0),
        }
    }

    /// Has the threads of the runtime pause. Replaces what was set to be called when a thread starts or parks.
    pub fn install(self: Arc<Self>, runtime: &mut Builder) {
        if self.pause.is_zero() {
            return;
        }
        runtime.on_thread_start(sleep_precisely);
        runtime.on_thread_park(move || self.before_waiting());
    }

    /// How many pauses there were.
    pub fn pauses(&self) -> u64 {
        self.pauses.load(Relaxed)
    }

    /// A thread has nothing more to do.
    fn before_waiting(&self) {
        let mut turn = TURN.get();
        if turn.events > 0 {
            turn.average += (turn.events as f32 - turn.average) / TURNS;
        }
        let is_awaited = turn.is_awaited;
        (turn.events, turn.is_awaited) = (0, false);
        TURN.set(turn);
        if !(EVENTS_MIN..EVENTS_MAX).contains(&turn.average) {
            return;
        }
        let now_us = self.begun.elapsed().as_micros() as u64;
        if is_awaited {
            self.prompt_until_us.store(now_us + PROMPT_FOR.as_micros() as u64, Relaxed);
        }
        if now_us < self.prompt_until_us.load(Relaxed) || !self.is_busy(now_us) {
            return;
        }
        self.pauses.fetch_add(1, Relaxed);
        std::thread::sleep(self.pause);
    }

    fn is_busy(&self, now_us: u64) -> bool {
        let due = self.look_at_us.load(Relaxed);
        let next = now_us + LOOK_EVERY.as_micros() as u64;
        // Of several threads, one looks.
        if now_us >= due && self.look_at_us.compare_exchange(due, next, Relaxed, Relaxed).is_ok() {
            let was_busy = self.is_busy.load(Relaxed);
            let least = if was_busy { BUSY_AGAIN } else { BUSY_MIN };
            let is_busy = self.load.busy_share().is_some_and(|share| share >= least);
            self.is_busy.store(is_busy, Relaxed);
        }
        self.is_busy.load(Relaxed)
    }
}

/// Lets the calling thread sleep no longer than it asks for; the kernel rounds up by 50 us otherwise.
fn sleep_precisely() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1000));
}

/// How busy processors are.
#[derive(Debug)]
enum Load {
    /// As the kernel counts it: `/proc/stat`, and how much of it was idle and anything when last looked.
    Counted { file: File, idle: AtomicU64, all: AtomicU64 },
    /// Always this share of their time.
    Fixed(f64),
    /// Not known.
    Unknown,
}

impl Load {
    fn of_the_machine() -> Self {
        match File::open("/proc/stat") {
            Ok(file) => Load::Counted { file, idle: AtomicU64::new(0), all: AtomicU64::new(0) },
            Err(_) => Load::Unknown,
        }
    }

    /// The share of their time for which processors were busy since this was last asked.
    fn busy_share(&self) -> Option<f64> {
        match self {
            Load::Fixed(share) => Some(*share),
            Load::Unknown => None,
            Load::Counted { file, idle, all } => {
                let mut text = [0; 160];
                let len = file.read_at(&mut text, 0).ok()?;
                let (idle_now, all_now) = processor_times(std::str::from_utf8(&text[..len]).ok()?)?;
                let idle = idle_now.saturating_sub(idle.swap(idle_now, Relaxed));
                let all = all_now.saturating_sub(all.swap(all_now, Relaxed));
                (all > 0).then(|| 1.0 - idle as f64 / all as f64)
            }
        }
    }
}

/// Idle time and all time of all processors, in the kernel's ticks, from the first line of `/proc/stat`.
fn processor_times(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal; what follows is contained in these.
    let mut times = [0; 8];
    let words = line.split_ascii_whitespace();
    for (time, word) in times.iter_mut().zip(words) {
        *time = word.parse().ok()?;
    }
    Some((times[3] + times[4], times.iter().sum()))
}

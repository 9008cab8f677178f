//! How many threads of the runtime serve connections at a time: as many as the load keeps busy.
//!
//! A thread of the runtime that has found two things to do wakes another one for the second. Where both are small, as with clients that
//! write each message by itself, waking costs more than what there is to do, and takes the processor from the clients. So all threads but one
//! are held until those that serve have not come to rest for two ticks, and are held again when the broker needs less of the processors than
//! fewer threads can use.
//!
//! The runtime has no means to change the number of its threads. A thread is held by a task that does not return: others take what is in its
//! queue, and no thread wakes it. What others can't take is given to them first.

use parking_lot::{Condvar, Mutex};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};

/// How often to look what the threads do.
const TICK: Duration = Duration::from_millis(5);
/// After so many ticks in which no serving thread came to rest there are twice as many.
const RESTLESS_TICKS: u32 = 2;
/// Ticks over which it is counted how much of the processors the broker needs.
const WINDOW_TICKS: u32 = 20;
/// Windows until fewer threads serve after more were needed, at most.
const PATIENCE_MAX: u32 = 64;
/// How much of a processor each thread may need, on average, if fewer serve.
const SHARE: f64 = 0.7;
/// After so many ticks in which no thread woke, it is not looked at them until one does.
const QUIET_TICKS: u32 = 4;
/// Nor longer than this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The threads of a runtime, of which as many serve as are needed. Dropped, all do.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// For the thread that looks.
    look: Condvar,
    /// For those that are held.
    released: Condvar,
    /// No one looks until a thread wakes.
    is_quiet: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// How many threads are held, and how many are to be.
    held: usize,
    to_hold: usize,
    /// One was held that may have had more to do.
    just_held: bool,
    stop: bool,
}

impl Workers {
    /// To be told of a runtime with [`Workers::install`] and [`Workers::start`].
    pub fn new() -> Self {
        Workers { shared: Arc::default(), thread: None }
    }

    /// Replaces what was set to be called when a thread of the runtime wakes.
    pub fn install(&self, runtime: &mut Builder) {
        let shared = Arc::clone(&self.shared);
        runtime.on_thread_unpark(move || shared.wake());
    }

    /// Begins to hold threads of the runtime that was built.
    ///
    /// # Errors
    /// When there is no thread to be had that looks after them.
    pub fn start(&mut self, runtime: &Handle) -> io::Result<()> {
        let count = runtime.metrics().num_workers();
        if count > 1 && self.thread.is_none() {
            let watch = Watch::new(runtime.clone(), Arc::clone(&self.shared), count);
            let thread = thread::Builder::new().name("workers".into());
            self.thread = Some(thread.spawn(move || watch.run())?);
        }
        Ok(())
    }

    /// How many threads are held.
    pub fn held(&self) -> usize {
        self.shared.state.lock().held
    }
}

impl Default for Workers {
    fn default() -> Self {
        Workers::new()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that looks after the others has panicked");
        }
    }
}

impl Shared {
    /// A thread of the runtime has woken.
    fn wake(&self) {
        if self.is_quiet.load(SeqCst) && self.is_quiet.swap(false, SeqCst) {
            let _state = self.state.lock();
            self.look.notify_one();
        }
    }

    fn stop(&self) {
        let mut state = self.state.lock();
        state.stop = true;
        state.to_hold = 0;
        self.look.notify_one();
        self.released.notify_all();
    }

    /// Holds the thread that calls it for as long as so many are to be held.
    fn hold(&self) {
        let mut state = self.state.lock();
        if state.held >= state.to_hold {
            return;
        }
        state.held += 1;
        state.just_held = true;
        self.look.notify_one();
        while state.held <= state.to_hold {
            self.released.wait(&mut state);
        }
        state.held -= 1;
    }
}

/// What looks after the threads.
struct Watch {
    runtime: Handle,
    shared: Arc<Shared>,
    /// How often each thread has come to rest and woken. Even: it is awake.
    rests: Vec<u64>,
    /// How many serve.
    serving: usize,
    restless_ticks: u32,
    quiet_ticks: u32,
    /// Ticks of this window; when it began, and what the processors had done for the broker then.
    window_ticks: u32,
    window: (Instant, Duration),
    /// Windows until fewer threads may serve. It begins with as many as `patience` says, which grows each time that more were needed
    /// before they had passed.
    wait_windows: u32,
    patience: u32,
}

impl Watch {
    fn new(runtime: Handle, shared: Arc<Shared>, count: usize) -> Self {
        Watch {
            runtime,
            shared,
            rests: vec![0; count],
            serving: count,
            restless_ticks: 0,
            quiet_ticks: 0,
            window_ticks: 0,
            window: (Instant::now(), processor_time()),
            wait_windows: 0,
            patience: 1,
        }
    }

    fn run(mut self) {
        while self.wait() {
            let (awake, has_changed) = self.look();
            self.quiet_ticks = if has_changed { 0 } else { self.quiet_ticks + 1 };
            // Those that are held are awake as well.
            let is_restless = awake == self.rests.len();
            self.restless_ticks = if is_restless { self.restless_ticks + 1 } else { 0 };
            if self.restless_ticks >= RESTLESS_TICKS {
                self.serve_more();
            }
            self.window_ticks += 1;
            if self.window_ticks >= WINDOW_TICKS {
                self.end_window();
            }
        }
    }

    /// Waits for a tick, or for a thread to wake. Returns whether to go on.
    fn wait(&mut self) -> bool {
        let mut state = self.shared.state.lock();
        if !state.stop && !state.just_held {
            let is_quiet = self.quiet_ticks >= QUIET_TICKS && self.restless_ticks == 0;
            self.shared.is_quiet.store(is_quiet, SeqCst);
            let limit = if is_quiet { LOOK_AGAIN } else { TICK };
            self.shared.look.wait_for(&mut state, limit);
            self.shared.is_quiet.store(false, SeqCst);
        }
        if state.just_held {
            state.just_held = false;
            drop(state);
            // The thread that this wakes looks at the queues of the others as well.
            drop(self.runtime.spawn(async {}));
            return true;
        }
        !state.stop
    }

    /// How many threads have not come to rest since this was last asked, and whether any has done or begun something.
    fn look(&mut self) -> (usize, bool) {
        let metrics = self.runtime.metrics();
        let (mut awake, mut has_changed) = (0, false);
        for (worker, before) in self.rests.iter_mut().enumerate() {
            let now = metrics.worker_park_unpark_count(worker);
            awake += usize::from(now == *before && now.is_multiple_of(2));
            has_changed |= now != *before;
            *before = now;
        }
        (awake, has_changed)
    }

    fn serve_more(&mut self) {
        self.restless_ticks = 0;
        if self.serving == self.rests.len() {
            return;
        }
        self.patience =
            if self.wait_windows == 0 { 1 } else { (self.patience * 2).min(PATIENCE_MAX) };
        self.wait_windows = self.patience;
        self.serve_with((self.serving * 2).min(self.rests.len()));
    }

    fn end_window(&mut self) {
        let now = (Instant::now(), processor_time());
        let passed = now.0.duration_since(self.window.0).as_secs_f64();
        let needed = now.1.saturating_sub(self.window.1).as_secs_f64();
        (self.window, self.window_ticks) = (now, 0);
        if self.wait_windows > 0 {
            self.wait_windows -= 1;
            return;
        }
        let suffice = ((needed / passed / SHARE).ceil() as usize).max(1);
        if suffice < self.serving {
            self.wait_windows = self.patience;
            self.serve_with(suffice);
        }
    }

    fn serve_with(&mut self, count: usize) {
        self.serving = count;
        let to_hold = self.rests.len() - count;
        let mut state = self.shared.state.lock();
        let more = to_hold.saturating_sub(state.to_hold);
        state.to_hold = to_hold;
        self.shared.released.notify_all();
        drop(state);
        for _ in 0..more {
            let shared = Arc::clone(&self.shared);
            drop(self.runtime.spawn(async move {
                // Others take neither the tasks that have yielded on this thread, which it wakes when it has nothing else to do, nor the
                // one that it would run next. This puts all of them into its queue. The runtime starts another thread to go on here;
                // in the rare case that it comes before this one is back, it serves in the place of this one, and none is held.
                tokio::task::block_in_place(|| ());
                shared.hold();
            }));
        }
    }
}

/// What the processors have done for this process.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

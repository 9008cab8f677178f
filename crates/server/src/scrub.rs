//! Reads all that the journals have on the disk now and then, to find what that has damaged before it is needed.
//!
//! One thread reads one journal after the other, and nothing else waits for it. A pass takes about as long as the settings
//! say; one that an operator has asked for is as fast as it may be.

mod pass;

use crate::clock::Clock;
use crate::notices::Notices;
use courser_journal::{Part, Pass, Scrubbing};
use courser_management::{Scrub, ScrubState};
use parking_lot::{Condvar, Mutex};
use pass::Reading;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a broker serves before the first pass begins by itself, and how soon one is tried again that was not completed.
const FIRST_AFTER: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A journal that is read.
pub(crate) trait Readable: Send + Sync {
    /// Estimate of the bytes that it has.
    fn bytes(&self) -> u64;
    /// Reads it.
    fn scrub(&self, by: &mut dyn Scrubbing) -> Pass;
}

/// Those that there are, by the names that operators know.
pub(crate) type Journals = Box<dyn Fn() -> Vec<(String, Arc<dyn Readable>)> + Send + Sync>;

/// The thread that reads. Ends when it is dropped.
pub(crate) struct ScrubThread {
    scrubber: Arc<Scrubber>,
    thread: Option<JoinHandle<()>>,
}

/// What is known of the passes, and what they are told.
pub(crate) struct Scrubber {
    clock: Clock,
    notices: Arc<Notices>,
    state: Mutex<State>,
    called: Condvar,
}

#[derive(Default)]
struct State {
    /// The thread is to end.
    stop: bool,
    /// An operator wants a pass now.
    asked: bool,
    shown: ScrubState,
    /// What was found to be damaged and is told, by the name of the journal.
    told: BTreeSet<(String, Part)>,
}

impl ScrubThread {
    /// Starts to read these every so many days; 0 for only when an operator asks. None if there is no thread, of which
    /// the log tells.
    pub fn start(
        journals: Journals,
        days: u32,
        clock: &Clock,
        notices: &Arc<Notices>,
    ) -> Option<Self> {
        let scrubber = Arc::new(Scrubber {
            clock: clock.clone(),
            notices: Arc::clone(notices),
            state: Mutex::default(),
            called: Condvar::new(),
        });
        let of_thread = Arc::clone(&scrubber);
        let thread = std::thread::Builder::new()
            .name("scrub".into())
            .spawn(move || of_thread.run(&journals, DAY * days));
        match thread {
            Ok(thread) => Some(ScrubThread { scrubber, thread: Some(thread) }),
            Err(error) => {
                tracing::warn!(%error, "no thread for scrubbing: the journal is not read for damage");
                None
            }
        }
    }

    /// What operators ask.
    pub fn scrubber(&self) -> Arc<Scrubber> {
        Arc::clone(&self.scrubber)
    }
}

impl Drop for ScrubThread {
    fn drop(&mut self) {
        self.scrubber.state.lock().stop = true;
        self.scrubber.called.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that reads the journal for damage has panicked");
        }
    }
}

impl Scrubber {
    fn run(&self, journals: &Journals, period: Duration) {
        let mut due = (!period.is_zero()).then(|| Instant::now() + FIRST_AFTER);
        while let Some(is_asked) = self.wait_until(due) {
            let began = Instant::now();
            let is_complete = self.pass(journals, (!is_asked).then_some(period));
            let rest = if is_complete { period } else { FIRST_AFTER.min(period) };
            due = due.map(|_| began + rest);
        }
    }

    /// Waits until a pass is due, or an operator wants one, which is said; none when the thread is to end.
    fn wait_until(&self, due: Option<Instant>) -> Option<bool> {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return None;
            }
            if state.asked {
                state.asked = false;
                self.begin(&mut state, true);
                return Some(true);
            }
            match due {
                None => self.called.wait(&mut state),
                Some(due) if Instant::now() >= due => {
                    self.begin(&mut state, false);
                    return Some(false);
                }
                Some(due) => drop(self.called.wait_until(&mut state, due)),
            }
        }
    }

    fn begin(&self, state: &mut State, hurries: bool) {
        let shown = &mut state.shown;
        (shown.running, shown.hurries) = (true, hurries);
        shown.began_ms = Some(self.clock.now_ms());
        (shown.read_bytes, shown.total_bytes, shown.damaged) = (0, 0, 0);
    }

    /// Reads all journals, in as long as is said, or at full speed. Returns whether all of them were read.
    fn pass(&self, journals: &Journals, takes: Option<Duration>) -> bool {
        let journals = journals();
        let total: u64 = journals.iter().map(|(_, journal)| journal.bytes()).sum();
        self.state.lock().shown.total_bytes = total;
        let mut reading = Reading::new(self, total, takes);
        let mut is_complete = true;
        for (name, journal) in &journals {
            reading.begin(name);
            is_complete &= journal.scrub(&mut reading) == Pass::Complete;
        }
        let found = reading.finish();
        let mut state = self.state.lock();
        (state.shown.running, state.shown.hurries) = (false, false);
        if is_complete {
            state.shown.completed_ms = Some(self.clock.now_ms());
            self.notices.journal_is_damaged(!found.is_empty());
            tracing::info!(
                bytes = state.shown.read_bytes,
                damaged = state.shown.damaged,
                "the journal was read for damage"
            );
            state.told = found;
        }
        is_complete
    }
}

impl Scrub for Scrubber {
    fn start(&self) {
        let mut state = self.state.lock();
        if !state.shown.hurries {
            state.asked = true;
            self.called.notify_all();
        }
    }

    fn state(&self) -> ScrubState {
        let state = self.state.lock();
        // One that was asked for counts as running before the thread is there.
        ScrubState { running: state.shown.running || state.asked, ..state.shown.clone() }
    }
}

//! Reads all that the journals have on the disk now and then, to find what that has damaged before it is needed.
//!
//! One thread reads one journal after the other, and nothing else waits for it. A pass takes about as long as the settings
//! say; one that an operator has asked for is as fast as it may be.

mod pass;

use crate::clock::Clock;
use crate::notices::Notices;
pub(crate) use courser_journal::replica::Piece;
pub(crate) use courser_journal::{Part, Pass, Scrubbing};
use courser_management::{Scrub, ScrubState};
use parking_lot::{Condvar, Mutex};
use pass::{Pace, Reading};
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
    /// Writes a damaged part again, if it can be had from elsewhere. Returns whether it is whole again.
    fn repair(&self, part: Part) -> bool;
}

/// Gets a journal, if it can be read now.
pub(crate) type Open = Box<dyn Fn() -> Option<Arc<dyn Readable>>>;
/// Those that there are, by the names that operators know.
pub(crate) type Journals = Box<dyn Fn() -> Vec<(String, Open)> + Send + Sync>;

/// A damaged part, with the name of its journal.
type Named = (String, Part);

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
    /// The journal that the thread has hold of, and whether it is to let go of it.
    held: Option<String>,
    let_go: bool,
    /// Damage that operators see: what the last complete pass and those since have found, and nothing has repaired.
    told: BTreeSet<Named>,
    /// What the last pass has found of it.
    found: BTreeSet<Named>,
    /// What was found just now and is being repaired; none when that is done at another place meanwhile.
    in_repair: Option<Named>,
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

    /// Has the thread end, without waiting for that: it may be waiting for the disk, or for another node.
    pub fn stop(&self) {
        self.scrubber.state.lock().stop = true;
        self.scrubber.called.notify_all();
    }
}

impl Drop for ScrubThread {
    fn drop(&mut self) {
        self.stop();
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

    /// Does something with a journal, if it can be had, so that [`Scrubber::let_go`] knows of it.
    fn with<T>(&self, name: &str, open: &Open, work: impl FnOnce(&dyn Readable) -> T) -> Option<T> {
        self.state.lock().held = Some(name.to_owned());
        let _held = Held(self);
        open().map(|journal| work(&*journal))
    }

    /// Says whether other nodes of the cluster have found damage that nothing has repaired.
    pub fn is_damaged_elsewhere(&self, is_damaged: bool) {
        self.notices.journal_is_damaged_elsewhere(is_damaged);
    }

    /// Waits until the thread has no hold of a journal, which it can't get any more. Blocks.
    pub fn let_go(&self, name: &str) {
        let mut state = self.state.lock();
        while state.held.as_deref() == Some(name) {
            state.let_go = true;
            self.called.notify_all();
            self.called.wait(&mut state);
        }
        // What comes in its place has none of this.
        state.told.retain(|(journal, _)| journal != name);
        state.found.retain(|(journal, _)| journal != name);
        self.tell(&state);
    }

    /// A part of a journal, which may have been told, is written again.
    pub fn is_repaired(&self, name: &str, part: Part) {
        let (mut state, named) = (self.state.lock(), (name.to_owned(), part));
        if state.in_repair.as_ref() == Some(&named) {
            // The pass counts it.
            state.in_repair = None;
        } else if state.told.remove(&named) {
            state.shown.repaired_total += 1;
            state.shown.repaired += u64::from(state.found.remove(&named));
            self.tell(&state);
        }
    }

    /// As if a pass had found this, and nothing had repaired it.
    #[cfg(test)]
    pub fn note_damaged(&self, name: &str, part: Part) {
        let mut state = self.state.lock();
        state.told.insert((name.to_owned(), part));
        self.tell(&state);
    }

    /// Has operators see whether something is damaged.
    fn tell(&self, state: &State) {
        self.notices.journal_is_damaged(!state.told.is_empty());
    }

    fn begin(&self, state: &mut State, hurries: bool) {
        let shown = &mut state.shown;
        (shown.running, shown.hurries) = (true, hurries);
        shown.began_ms = Some(self.clock.now_ms());
        (shown.read_bytes, shown.total_bytes) = (0, 0);
        (shown.damaged, shown.repaired) = (0, 0);
        state.found.clear();
    }

    /// Reads all journals, in as long as is said, or at full speed. Returns whether all of them were read.
    fn pass(&self, journals: &Journals, takes: Option<Duration>) -> bool {
        let journals = journals();
        let bytes = |(name, open): &(String, Open)| self.with(name, open, |one| one.bytes());
        let total: u64 = journals.iter().filter_map(bytes).sum();
        self.state.lock().shown.total_bytes = total;
        let mut pace = Pace::new(total, takes);
        let mut is_complete = true;
        for (name, open) in &journals {
            let pass = self.with(name, open, |journal| {
                let pace = &mut pace;
                journal.scrub(&mut Reading { scrubber: self, name, journal, pace })
            });
            is_complete &= pass == Some(Pass::Complete);
        }
        let mut state = self.state.lock();
        (state.shown.running, state.shown.hurries) = (false, false);
        if is_complete {
            state.shown.completed_ms = Some(self.clock.now_ms());
            state.told = state.found.clone();
            self.tell(&state);
            tracing::info!(
                bytes = state.shown.read_bytes,
                damaged = state.shown.damaged,
                repaired = state.shown.repaired,
                "the journal was read for damage"
            );
        }
        is_complete
    }
}

/// The thread has hold of a journal.
struct Held<'a>(&'a Scrubber);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        (state.held, state.let_go) = (None, false);
        self.0.called.notify_all();
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
        let running = state.shown.running || state.asked;
        let unrepaired = state.told.len() as u64;
        ScrubState { running, unrepaired, ..state.shown.clone() }
    }
}

#[cfg(test)]
mod tests;

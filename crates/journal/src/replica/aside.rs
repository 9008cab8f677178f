//! Entries that are read on a thread of their own: consensus does not wait for the disk to send a follower what it lacks.

use super::{Entry, ReadEntryError, entries::Place, read::Found};
use crate::{Lsn, core::Core};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// Bytes that are read at once, and one entry: more than what asks for them takes.
const AHEAD_BYTES: u64 = 1 << 20;
/// What may wait to be read, and what may wait to be taken; what comes beyond is to be asked for again. A leader asks for one
/// stretch of entries for each follower.
const STRETCHES_MAX: usize = 8;
/// For how many ticks what was read is kept without being taken: the follower that lacked it has it, or is gone.
const KEPT_TICKS: u32 = 20;

/// What is read aside.
#[derive(Default)]
pub struct Aside {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// Where entries are to be read from, and before which one to end.
    wanted: VecDeque<(u64, u64)>,
    reading: Option<u64>,
    read: VecDeque<Stretch>,
    /// How often everything was forgotten.
    forgotten: u64,
    stop: bool,
}

/// What was read for a follower, in the order of the log.
struct Stretch {
    /// What it is asked for next, and by this it is found: another follower, which may lack some of the same, has its own.
    from: u64,
    entries: Result<VecDeque<Entry>, ReadEntryError>,
    /// For how long it was not asked for.
    ticks: u32,
}

impl Stretch {
    /// The next entries, as many as bytes allow, and one at least.
    fn take(&mut self, to: u64, max_bytes: u64) -> Vec<Entry> {
        let (mut taken, mut left) = (Vec::new(), max_bytes);
        let Ok(entries) = &mut self.entries else { return taken };
        while let Some(entry) = entries.pop_front_if(|entry| {
            entry.id.index < to && (taken.is_empty() || entry.frame.len() as u64 <= left)
        }) {
            self.from = entry.id.index + 1;
            left = left.saturating_sub(entry.frame.len() as u64);
            taken.push(entry);
        }
        taken
    }
}

impl Aside {
    /// Takes what was read; else asks for it.
    fn take(
        &self,
        from: u64,
        to: u64,
        max_bytes: u64,
    ) -> Option<Result<Vec<Entry>, ReadEntryError>> {
        let mut state = self.state.lock();
        if let Some(at) = state.read.iter().position(|stretch| stretch.from == from) {
            let stretch = &mut state.read[at];
            stretch.ticks = 0;
            let taken = stretch.take(to, max_bytes);
            if stretch.entries.as_ref().is_ok_and(|left| !left.is_empty()) {
                return Some(Ok(taken));
            }
            let whole = state.read.remove(at)?;
            return Some(whole.entries.map(|_| taken));
        }
        let is_wanted = state.reading == Some(from)
            || state.wanted.iter().any(|(wanted, _)| *wanted == from)
            || state.wanted.len() == STRETCHES_MAX;
        if !is_wanted {
            state.wanted.push_back((from, to));
            self.work.notify_one();
        }
        None
    }

    /// A tick has passed.
    pub fn tick(&self) {
        self.state.lock().read.retain_mut(|stretch| {
            stretch.ticks += 1;
            stretch.ticks <= KEPT_TICKS
        });
    }

    /// Forgets what was asked for, and what was read: the log is cut.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        (state.wanted, state.reading, state.read) = <_>::default();
        state.forgotten += 1;
    }

    /// Has [`Core::run_reads`] end.
    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.work.notify_one();
    }
}

impl Core {
    /// See [`Replica::fetch`](super::Replica::fetch).
    pub fn fetch_entries(
        &self,
        from: u64,
        to: u64,
        max_bytes: u64,
    ) -> Result<Option<Vec<Entry>>, ReadEntryError> {
        let Some(replica) = self.replica.as_ref().filter(|_| self.options.threads) else {
            return self.read_entries(from, to, max_bytes).map(Some);
        };
        let buffered = self.buffered_entries(from, to, max_bytes);
        if !buffered.is_empty() {
            return Ok(Some(buffered));
        }
        replica.aside.take(from, to, max_bytes).transpose()
    }

    /// Those of the entries that are not written yet.
    fn buffered_entries(&self, from: u64, to: u64, max_bytes: u64) -> Vec<Entry> {
        let (mut found, mut left) = (Vec::new(), max_bytes);
        for index in from..to {
            let place = self.replica.as_ref().and_then(|one| one.entries.lock().place(index));
            let Some(place) = place else { break };
            let len = place.end.0 - place.start.0;
            if !found.is_empty() && len > left {
                break;
            }
            let Some(bytes) = self.buffered_bytes(place) else { break };
            let entry = Found { index, end: place.end, bytes };
            // What is wrong with it is found again by who reads it from the disk.
            let Ok(entry) = self.checked(entry, place.start) else { break };
            left = left.saturating_sub(len);
            found.push(entry);
        }
        found
    }

    fn buffered_bytes(&self, place: Place) -> Option<Vec<u8>> {
        let len = (place.end.0 - place.start.0) as usize;
        let log = self.log.lock();
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let rest = log.buffer.find(Lsn(place.start.0 + bytes.len() as u64))?;
            bytes.extend_from_slice(&rest[..rest.len().min(len - bytes.len())]);
        }
        Some(bytes)
    }

    /// The thread that reads aside.
    pub fn run_reads(&self) {
        let Some(replica) = &self.replica else { return };
        let Aside { state, work } = &replica.aside;
        let mut state = state.lock();
        while !state.stop {
            let Some((from, to)) = state.wanted.pop_front() else {
                work.wait(&mut state);
                continue;
            };
            state.reading = Some(from);
            let forgotten = state.forgotten;
            drop(state);
            let entries = self.read_entries(from, to, AHEAD_BYTES).map(VecDeque::from);
            state = replica.aside.state.lock();
            if state.forgotten != forgotten {
                continue;
            }
            state.reading = None;
            state.read.push_back(Stretch { from, entries, ticks: 0 });
            if state.read.len() > STRETCHES_MAX {
                state.read.pop_front();
            }
            drop(state);
            replica.events.fetched();
            state = replica.aside.state.lock();
        }
    }
}

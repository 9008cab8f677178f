//! What the broker has to do at a certain time, and what time it is.
//!
//! Nothing here reads a clock: the time comes in through [`Timers::set_time`], milliseconds since
//! 1970. Whatever needs to be called later keeps a [`Timer`] behind its own lock and arms it here;
//! `Broker::tick` calls what is due, or `tick_promptly` and, for what may have to read the disk or takes long, `tick_reading`. Lock order: the
//! owner's lock, then this one's.

use crate::wakes::Wakes;
use courser_store::Store;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// What a timer is for: everything that can be called later has at most one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKind {
    /// A queue may have been unused for as long as it may be.
    Unused,
    /// A queue has more to do than one section under its lock may, or could not read something; or a vhost has more copies of
    /// what is traced than are posted in one go.
    Serve,
    /// The time of a queue's oldest message may be over.
    Expiry,
    /// A queue's consumer may have taken too long to acknowledge.
    AckTimeout,
    /// Dead letters of a queue that could not be delivered are to be tried again.
    DeadLetters,
    /// Messages of a stream may be too old.
    Age,
    /// Messages of a delayed exchange are due, or those of a queue that wait for their next try.
    Delayed,
    /// What a queue has read ahead may not be needed any more.
    ReadAhead,
}

/// Something that wants to be called at a certain time.
pub(crate) trait Timed: Send + Sync {
    /// Does what is due at `now_ms`, or a bounded part of it, and arms its timer again if something
    /// is left or comes later. `fired_ms` is what the timer was armed for. Called without any lock
    /// held but the gate of its shard.
    fn fire(
        self: Arc<Self>,
        kind: TimerKind,
        fired_ms: u64,
        now_ms: u64,
        store: &dyn Store,
        wakes: &mut Wakes,
    );

    /// Whether it has to wait with what is due until [`Timers::let_go`].
    fn is_still(&self) -> bool;

    /// Whether what is due may have to be read from the disk, or takes long. Called without any lock held.
    fn may_take_long(&self, kind: TimerKind) -> bool;
}

/// When something will be called, if it will. Belongs behind the lock of what is to be called.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    deadline_ms: Option<u64>,
}

impl Timer {
    /// When it fires, if it is armed.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.deadline_ms
    }

    /// Takes note that it has fired, unless it has been armed anew in the meantime.
    pub fn fired(&mut self, deadline_ms: u64) {
        if self.deadline_ms == Some(deadline_ms) {
            self.deadline_ms = None;
        }
    }
}

/// Time, the owner's shard and its number there, and what for.
type Key = (u64, u64, u64, TimerKind);

/// A timer that is due, or has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due(Key);

/// The timers of a shard, among those of the broker.
#[derive(Clone, Default)]
pub(crate) struct Timers {
    /// Of the shards that have been open.
    shard: u64,
    all: Arc<All>,
}

/// Those that were due at one time, of which each gets its turn before any that is due later. So one that is due again and
/// again, as it never gets to its end, holds up no other.
#[derive(Default)]
struct Turn {
    /// The last that had its turn.
    last: Option<Key>,
    /// What was due then.
    until_ms: u64,
}

/// Where a timer is fired. Each is called by one thread, so that one that waits holds up its own lane alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane {
    /// Where all begin.
    Prompt,
    /// Where the disk may be waited for, and what takes long is done: those that are left to it.
    Reading,
}

/// The timers of a lane, and whose turn it is.
#[derive(Default)]
struct Line {
    timers: BTreeMap<Key, Weak<dyn Timed>>,
    turn: Turn,
    /// The one that has its turn now.
    serving: Option<Key>,
}

/// All armed timers.
#[derive(Default)]
struct Armed {
    prompt: Line,
    reading: Line,
}

impl Armed {
    fn of(&mut self, lane: Lane) -> &mut Line {
        match lane {
            Lane::Prompt => &mut self.prompt,
            Lane::Reading => &mut self.reading,
        }
    }

    fn remove(&mut self, key: &Key) {
        self.prompt.timers.remove(key);
        self.reading.timers.remove(key);
    }
}

impl Line {
    /// Of those that are due, and the one that has its turn, the one that was due first.
    fn first_due(&self, now_ms: u64) -> Option<Key> {
        let first = self.timers.first_key_value().map(|(key, _)| *key);
        first
            .filter(|(deadline_ms, ..)| *deadline_ms <= now_ms)
            .into_iter()
            .chain(self.serving)
            .min()
    }

    /// The next whose turn it is.
    fn next_due(&mut self, now_ms: u64) -> Option<Key> {
        let Turn { last, until_ms } = self.turn;
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.timers.range((after, Bound::Unbounded)).next();
        let next = match next.filter(|(key, _)| key.0 <= until_ms.min(now_ms)) {
            Some((key, _)) => *key,
            // All have had their turn.
            None => {
                self.turn.until_ms = now_ms;
                *self.timers.first_key_value().filter(|(key, _)| key.0 <= now_ms)?.0
            }
        };
        self.turn.last = Some(next);
        Some(next)
    }
}

/// The timer that was taken out of this lane last has its turn as long as it lives.
pub(crate) struct Serving<'a>(&'a Mutex<Armed>, Lane);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.lock().of(self.1).serving = None;
    }
}

/// A timer that was due.
pub(crate) struct Fired {
    pub deadline_ms: u64,
    /// The instance of the shard that it belongs to.
    pub shard: u64,
    owner: u64,
    pub kind: TimerKind,
    pub target: Weak<dyn Timed>,
}

impl Fired {
    fn key(&self) -> Key {
        (self.deadline_ms, self.shard, self.owner, self.kind)
    }
}

/// All armed timers of a broker, and the time.
#[derive(Default)]
struct All {
    now_ms: AtomicU64,
    /// Shards that have been open.
    shards: AtomicU64,
    armed: Mutex<Armed>,
    /// Since when what is due has not been served for too long; 0 if that is not so.
    unserved_since_ms: AtomicU64,
    /// Those that were due while what they are for stood still.
    held: Mutex<Vec<Fired>>,
    /// Called when something has become due earlier than everything else.
    on_earlier: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Timers {
    /// Timers of another shard of the same broker.
    pub fn of_another_shard(&self) -> Self {
        let shard = self.all.shards.fetch_add(1, Ordering::Relaxed) + 1;
        Timers { shard, all: Arc::clone(&self.all) }
    }

    /// Which shard they belong to, of all that have been open.
    pub fn shard_instance(&self) -> u64 {
        self.shard
    }

    /// Makes no timer of this shard fire any more.
    pub fn forget_shard(&self) {
        let mut armed = self.all.armed.lock();
        for lane in [Lane::Prompt, Lane::Reading] {
            armed.of(lane).timers.retain(|(_, shard, ..), _| *shard != self.shard);
        }
        drop(armed);
        self.all.held.lock().retain(|timer| timer.shard != self.shard);
    }

    /// The time, as it was last told.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.all.now_ms.load(Ordering::Relaxed)
    }

    /// Says what time it is.
    #[inline]
    pub fn set_time(&self, now_ms: u64) {
        // The line that this lies on is read by everybody; most of the time it is right already.
        if self.now_ms() != now_ms {
            self.all.now_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Has `call` called when there is a deadline before all those known so far. It is called with
    /// locks held and must not call back.
    pub fn on_earlier(&self, call: impl Fn() + Send + Sync + 'static) {
        // The first one given stays.
        let _ = self.all.on_earlier.set(Box::new(call));
    }

    /// Arms `timer`, which is the `kind` of the thing with the number `owner`, instead of what it
    /// was armed for before. One that is due at once comes behind all that have been due before, so
    /// that what has much to do holds up nothing else.
    pub fn arm(
        &self,
        timer: &mut Timer,
        deadline_ms: u64,
        (owner, kind): (u64, TimerKind),
        target: Weak<dyn Timed>,
    ) {
        let now_ms = self.now_ms();
        let deadline_ms = deadline_ms.max(now_ms);
        let before = timer.deadline_ms;
        if before == Some(deadline_ms)
            || deadline_ms == now_ms && before.is_some_and(|at| at < now_ms)
        {
            return;
        }
        timer.deadline_ms = Some(deadline_ms);
        let mut armed = self.all.armed.lock();
        if let Some(before) = before {
            armed.remove(&(before, self.shard, owner, kind));
        }
        let timers = &mut armed.prompt.timers;
        let first = timers.first_key_value().is_none_or(|((first, ..), _)| deadline_ms < *first);
        timers.insert((deadline_ms, self.shard, owner, kind), target);
        drop(armed);
        if first && let Some(call) = self.all.on_earlier.get() {
            call();
        }
    }

    /// Makes a timer never fire.
    pub fn disarm(&self, timer: &mut Timer, (owner, kind): (u64, TimerKind)) {
        if let Some(before) = timer.deadline_ms.take() {
            self.all.armed.lock().remove(&(before, self.shard, owner, kind));
        }
    }

    /// Takes a timer out of `lane`, of any shard, that is due: each has its turn before one that has had it has another.
    pub fn pop_due(&self, lane: Lane, now_ms: u64) -> Option<Fired> {
        let mut armed = self.all.armed.lock();
        let line = armed.of(lane);
        let key = line.next_due(now_ms)?;
        let target = line.timers.remove(&key)?;
        line.serving = Some(key);
        let (deadline_ms, shard, owner, kind) = key;
        Some(Fired { deadline_ms, shard, owner, kind, target })
    }

    /// Has it known which timer of `lane` has its turn.
    pub fn serve(&self, lane: Lane) -> Serving<'_> {
        Serving(&self.all.armed, lane)
    }

    /// Leaves a timer that was due to the lane of those that may take long.
    pub fn leave_to_reading(&self, timer: Fired) {
        self.all.armed.lock().reading.timers.insert(timer.key(), timer.target);
    }

    /// Of the timers that are due, and the one that has its turn, the one that was due first.
    pub fn first_due(&self, now_ms: u64) -> Option<Due> {
        let armed = self.all.armed.lock();
        let firsts = [armed.prompt.first_due(now_ms), armed.reading.first_due(now_ms)];
        firsts.into_iter().flatten().min().map(Due)
    }

    /// Since when what is due has not been served for too long.
    pub fn unserved_since_ms(&self) -> Option<u64> {
        match self.all.unserved_since_ms.load(Ordering::Relaxed) {
            0 => None,
            since_ms => Some(since_ms),
        }
    }

    /// Says since when that is so.
    pub fn note_unserved(&self, since_ms: Option<u64>) {
        self.all.unserved_since_ms.store(since_ms.unwrap_or(0), Ordering::Relaxed);
    }

    /// Puts a timer that was due aside if `target`, which is what it is for, stands still.
    pub fn hold_if_still(&self, timer: Fired, target: &Arc<dyn Timed>) -> Option<Fired> {
        // Locked while it is asked, so that [`Timers::let_go`] finds the timer here.
        let mut held = self.all.held.lock();
        if !target.is_still() {
            return Some(timer);
        }
        held.push(timer);
        None
    }

    /// Lets those go on that were put aside, and whose targets do not stand still any more.
    pub fn let_go(&self) {
        let mut go_on = Vec::new();
        self.all.held.lock().retain(|timer| {
            let Some(target) = timer.target.upgrade() else { return false };
            let is_still = target.is_still();
            if !is_still {
                go_on.push((timer.key(), Weak::clone(&timer.target)));
            }
            is_still
        });
        if go_on.is_empty() {
            return;
        }
        self.all.armed.lock().prompt.timers.extend(go_on);
        if let Some(call) = self.all.on_earlier.get() {
            call();
        }
    }

    /// When the next timer of `lane`, of any shard, is due.
    pub fn next_ms(&self, lane: Lane) -> Option<u64> {
        let mut armed = self.all.armed.lock();
        armed.of(lane).timers.first_key_value().map(|((deadline_ms, ..), _)| *deadline_ms)
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("now_ms", &self.now_ms()).finish_non_exhaustive()
    }
}

//! `x-delayed-retry-type`: a message that comes back waits before its next try.
//!
//! Meanwhile it is in the queue and counts towards the queue's limits, but no client gets it. When its time has come, it returns to
//! its place. The time is only in memory: a restart finds the message in its place. No consumer makes what waits less, so it has a
//! share of memory; beyond that, each further message has the one that is due first return at once.

use super::amounts::Amounts;
use super::logged::{Entry, logged};
use super::priority::Ends;
use super::returns::count_of;
use super::{Queue, State};
use crate::arguments::{MAX_EXPIRY_MS, QueueType};
use crate::memory::Charge;
use crate::timers::{Timer, TimerKind};
use crate::wakes::Wakes;
use crate::work;
use courser_codec::{FieldTable, FieldValue};
use courser_store::{Location, Store, StoreError};
use imbl::OrdMap;
use std::fmt;
use std::sync::Arc;

/// Messages whose time has come that return in one section under the lock; the next section follows at once.
const RETRIED_AT_ONCE: usize = 1024;
/// What a message that waits uses: time, number, place, and its part of a tree's nodes that are half full.
const DELAYED_BYTES: usize = 2 * (size_of::<((u64, u64), Location)>() + 8);
/// The entries of a node, whose memory is counted together.
const NODE_ENTRIES: usize = 16;

/// No message waits for longer.
const WAIT_MAX_MS: u64 = MAX_EXPIRY_MS as u64;

/// How long messages wait that come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedRetry {
    /// Which of them wait (`x-delayed-retry-type`).
    pub of: Retried,
    /// The wait after the first failure, in milliseconds, to which each further one adds as much (`x-delayed-retry-min`).
    pub min_ms: u64,
    /// The longest wait, in milliseconds (`x-delayed-retry-max`); where it is below the shortest one, all waits.
    pub max_ms: u64,
}

/// Which of the messages that come back wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// All.
    All,
    /// Those that a client may have failed on, which count for a delivery limit.
    Failed,
    /// Those that come back unharmed.
    Returned,
}

/// The messages of a queue that wait for their next try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayedStatus {
    /// How many they are.
    pub messages: usize,
    /// When the first of them is due, in milliseconds since 1970.
    pub next_ms: Option<u64>,
    /// When the last of them is due, in milliseconds since 1970.
    pub last_ms: Option<u64>,
}

impl Retried {
    /// The choice of this name; none if nothing waits.
    fn named(name: &str) -> Option<Self> {
        let all = [Retried::All, Retried::Failed, Retried::Returned];
        all.into_iter().find(|one| one.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Retried::All => "all",
            Retried::Failed => "failed",
            Retried::Returned => "returned",
        }
    }
}

impl fmt::Display for DelayedRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DelayedRetry { of, min_ms, max_ms } = self;
        write!(f, "{} (min: {min_ms}ms, max: {max_ms}ms)", of.name())
    }
}

impl DelayedRetry {
    /// What the arguments of a queue ask for. Without a shortest wait nothing waits; without a longest one, or with one of 0 or less,
    /// all wait for the shortest.
    pub(super) fn asked_by(arguments: &FieldTable) -> Option<Self> {
        if QueueType::of(arguments) != QueueType::Quorum {
            return None;
        }
        let time_ms = |name| {
            let number = arguments.get(name).and_then(FieldValue::as_integer)?;
            u64::try_from(number).ok().filter(|time_ms| *time_ms > 0)
        };
        let of = arguments.get("x-delayed-retry-type").and_then(FieldValue::as_str)?;
        let min_ms = time_ms("x-delayed-retry-min")?;
        let max_ms = time_ms("x-delayed-retry-max").unwrap_or(min_ms).min(WAIT_MAX_MS);
        Some(DelayedRetry { of: Retried::named(of)?, min_ms, max_ms })
    }

    /// How long a message waits that has failed `failures` times, the last time or before.
    fn wait_ms(&self, has_failed: bool, failures: u64) -> Option<u64> {
        let waits = match self.of {
            Retried::All => true,
            Retried::Failed => has_failed,
            Retried::Returned => !has_failed,
        };
        waits.then(|| self.min_ms.saturating_mul(failures.max(1)).min(self.max_ms))
    }
}

/// Places of messages, by the time at which each is due and its number in the queue. A clone shares them.
pub(super) type Waiting = OrdMap<(u64, u64), Location>;

/// Messages that wait for their next try.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    waiting: Waiting,
    amounts: Amounts,
    timer: Timer,
    charge: Charge,
}

impl Delayed {
    /// None wait. What they will use is counted by `charge`.
    pub fn new(charge: Charge) -> Self {
        Delayed { charge, ..Delayed::default() }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn status(&self) -> DelayedStatus {
        DelayedStatus {
            messages: self.len(),
            next_ms: self.waiting.get_min().map(|((due_ms, _), _)| *due_ms),
            last_ms: self.waiting.get_max().map(|((due_ms, _), _)| *due_ms),
        }
    }

    /// How many messages they are, and how large.
    pub fn amounts(&self) -> &Amounts {
        &self.amounts
    }

    /// Bytes of memory that their places use.
    pub fn used_bytes(&self) -> usize {
        self.charge.bytes()
    }

    /// All as they are now, to be looked at without the queue's lock.
    pub fn share(&self) -> Waiting {
        self.waiting.clone()
    }

    fn insert(&mut self, due_ms: u64, sequence: u64, location: Location) {
        self.amounts.add(&location);
        self.waiting.insert((due_ms, sequence), location);
        self.count_memory();
    }

    /// Takes the message that is due first, if that is at `now_ms` or before: its number and its place.
    fn pop_due(&mut self, now_ms: u64) -> Option<(u64, Location)> {
        let next =
            self.waiting.get_min().map(|(key, _)| *key).filter(|(due_ms, _)| *due_ms <= now_ms)?;
        let location = self.waiting.remove(&next)?;
        self.amounts.sub(&location);
        self.count_memory();
        Some((next.1, location))
    }

    /// Takes the message that is due first, whenever that is.
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        self.pop_due(u64::MAX)
    }

    /// Takes `most` at most of those that had come to the queue before `ends`, and calls `each` with them.
    pub fn take_before(&mut self, ends: &Ends, most: usize, each: &mut dyn FnMut(Location)) {
        let keys = self.waiting.keys().filter(|(_, number)| ends.are_behind(*number));
        let keys: Vec<_> = keys.take(most).copied().collect();
        for key in keys {
            if let Some(location) = self.waiting.remove(&key) {
                self.amounts.sub(&location);
                each(location);
            }
        }
        self.count_memory();
    }

    /// Takes all, by their times and numbers. The caller drops them, better without the queue's lock.
    pub fn take_all(&mut self) -> Waiting {
        self.amounts = Amounts::default();
        let all = std::mem::take(&mut self.waiting);
        self.count_memory();
        all
    }

    fn count_memory(&mut self) {
        self.charge.set(self.len().next_multiple_of(NODE_ENTRIES) * DELAYED_BYTES);
    }

    /// Whether those of all queues use more memory than they may.
    fn are_too_many(&self) -> bool {
        self.charge.memory().is_some_and(|memory| memory.has_too_many_retries())
    }
}

/// Those of what waits that are in the log, by their numbers in the queue.
pub(super) fn logged_of(waiting: &Waiting) -> impl Iterator<Item = (u64, Entry)> {
    waiting.iter().filter_map(|((_, sequence), location)| Some((*sequence, logged(location)?)))
}

impl Queue {
    /// A message that was delivered returns to its place: at once, or when it has waited. Where too many wait, the one that is due
    /// first returns early.
    pub(super) fn retry(
        &self,
        state: &mut State,
        (sequence, location): (u64, Location),
        has_failed: bool,
    ) {
        let retry = state.traits.as_ref().and_then(|traits| traits.delayed_retry);
        let wait_ms = retry.and_then(|retry| {
            let failures = count_of(&location, state.notes.as_deref());
            retry.wait_ms(has_failed, failures)
        });
        let Some(wait_ms) = wait_ms else {
            return Self::put_into_place(state, sequence, location);
        };
        let due_ms = self.now_ms().saturating_add(wait_ms);
        state.delayed.insert(due_ms, sequence, location);
        if state.delayed.are_too_many()
            && let Some((sequence, location)) = state.delayed.pop()
        {
            Self::put_into_place(state, sequence, location);
        }
        self.watch_delayed(state);
    }

    /// Has those that are due return in time.
    fn watch_delayed(&self, state: &mut State) {
        let Delayed { waiting, timer, .. } = &mut state.delayed;
        if let Some(((due_ms, _), _)) = waiting.get_min()
            && timer.deadline_ms().is_none_or(|at| *due_ms < at)
        {
            self.timers.arm(timer, *due_ms, (self.id, TimerKind::Delayed), self.timed());
        }
    }

    /// The timer for `fired_ms` has fired: returns those that are due to their places, a bounded number of them.
    pub(super) fn retry_due(
        self: &Arc<Self>,
        fired_ms: u64,
        now_ms: u64,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        self.section(store, wakes, |state| {
            state.delayed.timer.fired(fired_ms);
            for _ in 0..RETRIED_AT_ONCE {
                let Some((sequence, location)) = state.delayed.pop_due(now_ms) else { break };
                work::count(1);
                Self::put_into_place(state, sequence, location);
            }
            self.watch_delayed(state);
        })
    }

    /// The queue is gone: nothing is due any more.
    pub(super) fn end_delayed(&self, state: &mut State) {
        self.timers.disarm(&mut state.delayed.timer, (self.id, TimerKind::Delayed));
    }
}

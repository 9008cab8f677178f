//! Messages of an `x-delayed-message` exchange that wait for their time.
//!
//! What waits is kept as in a queue: the message in the store, its place here, by the time at which
//! it is due ([`wheel`]). A persistent message of a durable exchange is in the log together with
//! that time, so that a restart finds it again without reading it. When its time has come, it is
//! routed like any other publish; the new message and the end of the old one go into the store in
//! one append, so that a crash neither loses nor doubles it.

mod bucket;
mod delayed;
mod header;
mod overdue;
mod wheel;

pub(crate) use delayed::Delayed;
pub(crate) use header::delay_ms;
pub use overdue::Overdue;

use crate::exchange::{Context, Exchange};
use crate::memory::Use;
use crate::persistence::gone::HoldsPlaces;
use crate::posting::{InternalPublish, post};
use crate::queue::SPILLED;
use crate::timers::{Timed, Timer, TimerKind};
use crate::wakes::Wakes;
use crate::work::Budget;
use courser_codec::ContentHeader;
use courser_store::blocking::Lock;
use courser_store::{Location, Lsn, MessageRef, Position, Store, StoreError};
use overdue::{RETRY_MS, Stays, TOO_LARGE_RETRY_MS};
use std::fmt;
use std::sync::{Arc, Weak};
use wheel::{DueKey, Wheel};

/// Messages, and bytes of them, that go on in one append: one message at least.
const PER_APPEND: usize = 128;
const APPEND_BYTES: usize = 1 << 20;
/// Messages that one call moves from coarse to fine.
const MOVED_AT_ONCE: usize = 1 << 15;
/// Steps that the routes of messages take that go into one append, and what goes to the queues of these; one route more may be
/// begun.
const STEPS_PER_APPEND: u64 = 1 << 20;
/// Pairs handed to a checkpoint at once.
const PAIRS_PER_RUN: usize = 1 << 14;

/// Called with the positions and times of some messages.
pub(crate) type EachRun<'a> = &'a mut dyn FnMut(&[(Position, u64)]);

/// The waiting room of one exchange.
pub(crate) struct Delay {
    /// What the store knows it by; it is never used again.
    pub number: u64,
    durable: bool,
    exchange: Weak<Exchange>,
    context: Context,
    me: Weak<Delay>,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    wheel: Wheel,
    timer: Timer,
    /// Some are on their way from here to the queues; a checkpoint has to find them here until they
    /// have arrived.
    releasing: bool,
    /// There was no room for what is due; not to be tried before.
    blocked_until_ms: u64,
    overdue: Option<Overdue>,
    closed: bool,
}

impl State {
    /// Has the first of what is due wait for `pause_ms`, and takes note of why.
    fn put_off(&mut self, first: &DueKey, why: &StoreError, (now_ms, pause_ms): (u64, u64)) {
        let until_ms = now_ms.saturating_add(pause_ms);
        self.wheel.put_off(first, until_ms);
        let before = self.overdue.take();
        self.overdue = Some(Overdue::after(before, why, (now_ms, until_ms)));
    }
}

impl Delay {
    /// The waiting room of `exchange`, empty.
    pub fn new(
        number: u64,
        durable: bool,
        exchange: Weak<Exchange>,
        context: Context,
    ) -> Arc<Self> {
        let wheel = Wheel::new(context.memory.charge(Use::Places, 0));
        Arc::new_cyclic(|me| Delay {
            number,
            durable,
            exchange,
            context,
            me: Weak::clone(me),
            state: Lock::new(State { wheel, ..State::default() }),
        })
    }

    /// Messages that wait.
    pub fn len(&self) -> usize {
        self.state.lock().wheel.len()
    }

    /// That messages stay whose delay is over, if some do; not told while its lock is held for long.
    pub fn overdue(&self) -> Option<Overdue> {
        let now_ms = self.context.timers.now_ms();
        self.state.look()?.overdue.clone().filter(|overdue| overdue.is_still(now_ms))
    }

    /// A message as it is to wait here; none if it does not want to.
    pub fn prepare<'m>(&self, message: &MessageRef<'m>, persistent: bool) -> Option<Delayed<'m>> {
        let properties = ContentHeader::parse(message.header).ok()?.properties;
        let delay_ms = delay_ms(properties)?;
        Some(Delayed {
            delay: self.me.upgrade()?,
            message: *message,
            header: header::with_delay_over(message.header, delay_ms)?,
            due_ms: self.context.timers.now_ms().saturating_add(delay_ms),
            persistent: persistent && self.durable,
            transient: None,
        })
    }

    fn rearm(&self, state: &mut State) {
        if state.releasing {
            // Done when they have arrived.
            return;
        }
        let key = (self.number, TimerKind::Delayed);
        match state.wheel.next_ms() {
            Some(next_ms) => {
                let deadline_ms = next_ms.max(state.blocked_until_ms);
                let target = Weak::<Delay>::clone(&self.me);
                self.context.timers.arm(&mut state.timer, deadline_ms, key, target);
            }
            None => self.context.timers.disarm(&mut state.timer, key),
        }
    }

    /// Takes back what waited before a restart: the position of each message, and when it is due.
    /// Returns how many that are.
    pub fn restore(&self, pairs: impl Iterator<Item = (Position, u64)>) -> usize {
        let now_ms = self.context.timers.now_ms();
        let mut state = self.state.lock();
        for (position, due_ms) in pairs {
            state.wheel.insert(due_ms, Location::logged(position), now_ms);
        }
        self.rearm(&mut state);
        state.wheel.len()
    }

    /// Takes in what waited in another broker.
    pub fn take_in(&self, due_ms: u64, location: Location) {
        let mut state = self.state.lock();
        state.wheel.insert(due_ms, location, self.context.timers.now_ms());
        self.rearm(&mut state);
    }

    /// The positions and the times of the messages that survive a restart, and how many messages there
    /// are. Those that are due at the same time are in the order in which they will go.
    pub fn surviving(&self) -> (impl Iterator<Item = (Position, u64)> + Send + use<>, usize) {
        let state = self.state.lock();
        let all = state.wheel.logged().into_entries();
        let surviving = all.filter(|(.., marks)| marks & SPILLED == 0);
        (surviving.map(|(position, due_ms, _)| (position, due_ms)), state.wheel.len())
    }

    /// Calls `each` with the positions below `end` and the times of the messages in the log: of all,
    /// or only of those that survive a restart.
    pub fn for_each_run_below(&self, end: Lsn, only_surviving: bool, each: EachRun<'_>) {
        let logged = self.state.lock().wheel.logged();
        let mut run = Vec::with_capacity(PAIRS_PER_RUN);
        for (position, due_ms, marks) in logged.into_entries() {
            if position.is_before(end) && !(only_surviving && marks & SPILLED != 0) {
                run.push((position, due_ms));
                if run.len() == PAIRS_PER_RUN {
                    each(&run);
                    run.clear();
                }
            }
        }
        each(&run);
    }

    /// Whether what waits here, and is persistent, survives a restart.
    pub fn survives(&self) -> bool {
        self.durable
    }

    /// The exchange is gone, and what waits with it. Returns where that is in the log.
    pub fn close(&self) -> impl HoldsPlaces + use<> {
        let mut state = self.state.lock();
        state.closed = true;
        self.context.timers.disarm(&mut state.timer, (self.number, TimerKind::Delayed));
        std::mem::take(&mut state.wheel)
    }

    /// Sends the first of `due` on their way, as many as go into one append, with copies for the exchanges
    /// that keep some. Returns how many are done with.
    ///
    /// # Errors
    /// If the store does not take them, or the first can't be read now; then nothing has happened.
    fn release(
        &self,
        due: &[(DueKey, Location)],
        with_copies: bool,
        now_ms: u64,
        wakes: &mut Wakes,
    ) -> Result<usize, Stays> {
        let (Some(vhost), Some(exchange)) =
            (self.context.namespace.upgrade(), self.exchange.upgrade())
        else {
            return Ok(due.len());
        };
        let mut reader = self.context.store.reader();
        let mut publishes = Vec::new();
        let (mut gone, mut bytes) = (0, 0);
        let budget = Budget::of_steps(STEPS_PER_APPEND);
        for (_, location) in due {
            let read = match location.in_memory() {
                Some(message) => Ok(message),
                None => reader.read(location),
            };
            let message = match read {
                Ok(message) => message,
                // It must not stop those behind it.
                Err(StoreError::Lost(_)) => {
                    gone += 1;
                    continue;
                }
                Err(error) if gone == 0 => return Err(Stays::First(error, RETRY_MS)),
                Err(_) => break,
            };
            bytes += message.header.len() + message.body.len();
            if gone > 0 && (bytes > APPEND_BYTES || budget.is_spent()) {
                break;
            }
            gone += 1;
            let publish = InternalPublish::sent_on_by(&exchange, &message, &*vhost, now_ms);
            publishes.extend(publish.map(|publish| match with_copies {
                true => publish,
                false => publish.without_copies(),
            }));
        }
        let logged = due[..gone].iter().filter(|(_, location)| location.marks() & SPILLED == 0);
        let mut settled: Vec<Position> =
            logged.filter_map(|(_, location)| location.position()).collect();
        settled.sort_unstable();
        post(&*vhost, &publishes, self.number, &settled, wakes)?;
        Ok(gone)
    }

    /// Sends some of `due` on their way: only the first if the store takes no more, and even without
    /// the copies that exchanges on its way keep. Returns how many are done with.
    fn release_some(
        &self,
        due: &[(DueKey, Location)],
        now_ms: u64,
        wakes: &mut Wakes,
    ) -> Result<usize, Stays> {
        let mut too_large = StoreError::TooLarge(0);
        for (due, with_copies) in [(due, true), (&due[..1], true), (&due[..1], false)] {
            match self.release(due, with_copies, now_ms, wakes) {
                Err(Stays::All(error @ StoreError::TooLarge(_))) => too_large = error,
                released => return released,
            }
        }
        // It must not stop those behind it.
        Err(Stays::First(too_large, TOO_LARGE_RETRY_MS))
    }
}

impl Timed for Delay {
    fn is_still(&self) -> bool {
        self.context.namespace.upgrade().is_some_and(|vhost| vhost.is_still())
    }

    fn may_take_long(&self, _: TimerKind) -> bool {
        self.state.lock().wheel.has_logged()
    }

    fn fire(
        self: Arc<Self>,
        _: TimerKind,
        fired_ms: u64,
        now_ms: u64,
        _: &dyn Store,
        wakes: &mut Wakes,
    ) {
        let due = {
            let mut state = self.state.lock();
            state.timer.fired(fired_ms);
            let is_open = state.wheel.advance(now_ms, MOVED_AT_ONCE);
            let due = if is_open { state.wheel.due(now_ms, PER_APPEND) } else { Vec::new() };
            state.releasing = !due.is_empty();
            due
        };
        let released = match &due[..] {
            [] => Ok(0),
            due => self.release_some(due, now_ms, wakes),
        };
        let mut state = self.state.lock();
        state.releasing = false;
        match released {
            Ok(gone) => {
                // What the log has spilled is known to it by its holders alone. A closed exchange has
                // let go of what it had.
                let gone = due[..gone].iter().filter_map(|(key, _)| state.wheel.remove(key));
                let positions: Vec<Position> =
                    gone.filter_map(|location| location.position()).collect();
                self.context.store.release(&positions);
            }
            Err(Stays::First(error, pause_ms)) => {
                if let Some((first, _)) = due.first() {
                    state.put_off(first, &error, (now_ms, pause_ms));
                }
            }
            // No room on the disk, if it is not the end of the broker.
            Err(Stays::All(_)) => state.blocked_until_ms = now_ms.saturating_add(RETRY_MS),
        }
        if !state.closed {
            self.rearm(&mut state);
        }
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delay").field("number", &self.number).finish_non_exhaustive()
    }
}

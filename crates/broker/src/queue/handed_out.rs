//! Messages that have been handed out and not acknowledged; and where that may not last forever
//! (`x-consumer-timeout`), since when.

use super::Queue;
use crate::fault::Fault;
use crate::memory::Charge;
use crate::outbox::Outbox;
use crate::timers::{Timed, Timer, TimerKind, Timers};
use crate::wakes::Wakes;
use courser_store::Location;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

/// Places that are kept once nothing is handed out.
const KEPT_PLACES: usize = 1024;

/// By their numbers in the queue, where the messages are.
#[derive(Debug, Default)]
pub(super) struct HandedOut {
    locations: FxHashMap<u64, Location>,
    watch: Option<Box<Watch>>,
    /// The numbers of those that are set aside, as their content headers do not fit the frames of any
    /// consumer that could take them: behind the bytes of these, so that the shortest is the first.
    aside: BTreeSet<(usize, u64)>,
    charge: Charge,
    /// For how many messages room is charged, and for how many of these that are set aside.
    charged: (usize, usize),
}

/// What the number of a message that is set aside uses, in a tree's nodes that are half full.
const ASIDE_BYTES: usize = 2 * size_of::<(usize, u64)>();

/// Who has a message.
struct Holder {
    outbox: Weak<Outbox>,
    channel: u16,
}

impl HandedOut {
    /// Empty books, whose memory is charged.
    pub fn new(charge: Charge) -> Self {
        HandedOut { charge, ..HandedOut::default() }
    }

    /// Counts the room for so many messages.
    #[cold]
    fn count_memory(&mut self, messages: usize, aside: usize) {
        self.charged = (messages, aside);
        // Number, place and control byte, in a table of which an eighth stays free.
        let entry = (size_of::<(u64, Location)>() + 1) * 8 / 7;
        let watched = if self.watch.is_some() { WATCHED_BYTES } else { 0 };
        self.charge.set(messages * (entry + watched) + aside * ASIDE_BYTES);
    }

    #[inline]
    pub fn insert(
        &mut self,
        sequence: u64,
        location: Location,
        (outbox, channel): (&Arc<Outbox>, u16),
    ) {
        self.hold(sequence, location);
        if let Some(watch) = &mut self.watch {
            watch.begin(sequence, Holder { outbox: Arc::downgrade(outbox), channel });
        }
    }

    /// Notes where a message is that no client has: there is no time within which it has to be acknowledged.
    #[inline]
    pub fn hold(&mut self, sequence: u64, location: Location) {
        self.locations.insert(sequence, location);
        let (messages, aside) = self.charged;
        if self.locations.len() > messages {
            self.count_memory(self.locations.len().next_power_of_two(), aside);
        }
    }

    /// Sets a message aside that has a content header of so many bytes.
    pub fn set_aside(&mut self, sequence: u64, location: Location, header_len: usize) {
        self.hold(sequence, location);
        self.aside.insert((header_len, sequence));
        let (messages, aside) = self.charged;
        if self.aside.len() > aside {
            self.count_memory(messages, self.aside.len().next_power_of_two());
        }
    }

    /// Whether any are set aside.
    #[inline]
    pub fn has_aside(&self) -> bool {
        !self.aside.is_empty()
    }

    /// Takes one of those that are set aside whose content header `fits`, if there is any: its number and its
    /// place.
    pub fn take_aside(&mut self, fits: impl Fn(usize) -> bool) -> Option<(u64, Location)> {
        let (_, sequence) = self.aside.first().copied().filter(|(len, _)| fits(*len))?;
        self.aside.pop_first();
        if self.aside.is_empty() {
            self.count_memory(self.charged.0, 0);
        }
        Some((sequence, self.remove(sequence)?))
    }

    #[inline]
    pub fn remove(&mut self, sequence: u64) -> Option<Location> {
        if let Some(watch) = &mut self.watch {
            watch.current.remove(&sequence);
        }
        self.locations.remove(&sequence)
    }

    pub fn get(&self, sequence: u64) -> Option<&Location> {
        self.locations.get(&sequence)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &Location)> {
        self.locations.iter().map(|(sequence, location)| (*sequence, location))
    }

    pub fn values(&self) -> impl Iterator<Item = &Location> {
        self.locations.values()
    }

    pub fn len(&self) -> usize {
        self.locations.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.locations.is_empty()
    }

    /// Gives memory back once nothing is handed out.
    #[inline]
    pub fn shrink_if_empty(&mut self) {
        if self.locations.is_empty() && self.charged.0 > KEPT_PLACES {
            self.locations.shrink_to(KEPT_PLACES);
            if let Some(watch) = &mut self.watch {
                watch.shrink();
            }
            self.count_memory(KEPT_PLACES, 0);
        }
    }

    /// Takes everything; nobody is watched any more.
    pub fn take_all(&mut self) -> Self {
        if let Some(watch) = &mut self.watch {
            watch.timers.disarm(&mut watch.timer, (watch.queue, TimerKind::AckTimeout));
        }
        std::mem::take(self)
    }

    /// Gives whoever gets a message from now on this long for it, or any time.
    pub fn set_timeout(
        &mut self,
        timeout_ms: Option<u64>,
        queue: u64,
        timers: &Arc<Timers>,
        target: impl FnOnce() -> Weak<dyn Timed>,
    ) {
        match (&mut self.watch, timeout_ms) {
            (Some(watch), Some(timeout_ms)) => {
                watch.timeout_ms = timeout_ms;
                watch.arm_for_oldest();
            }
            (Some(watch), None) => {
                watch.timers.disarm(&mut watch.timer, (queue, TimerKind::AckTimeout));
                self.watch = None;
                self.count_memory(self.charged.0, self.charged.1);
            }
            (None, None) => {}
            (None, Some(timeout_ms)) => {
                self.watch = Some(Box::new(Watch {
                    timeout_ms,
                    queue,
                    timers: Arc::clone(timers),
                    target: target(),
                    timer: Timer::default(),
                    current: FxHashMap::default(),
                    order: VecDeque::new(),
                    next_number: 0,
                }));
                self.count_memory(self.charged.0, self.charged.1);
            }
        }
    }

    /// The timer that was armed for `fired_ms` has fired: how long everybody has, and who has had a
    /// message for longer.
    fn overdue(&mut self, fired_ms: u64, now_ms: u64) -> (u64, Vec<Holder>) {
        match &mut self.watch {
            Some(watch) => (watch.timeout_ms, watch.overdue(fired_ms, now_ms)),
            None => (0, Vec::new()),
        }
    }
}

impl Queue {
    /// Closes the channels that have had a message for too long.
    pub(super) fn fail_overdue(&self, fired_ms: u64, now_ms: u64, wakes: &mut Wakes) {
        let (timeout_ms, overdue) = self.state.lock().unacked.overdue(fired_ms, now_ms);
        for Holder { outbox, channel } in overdue {
            let Some(outbox) = outbox.upgrade() else { continue };
            let fault = Fault::precondition_failed(format_args!(
                "delivery acknowledgement on channel {channel} timed out. Timeout value used: \
                 {timeout_ms} ms. This timeout value can be configured, see consumers doc guide to \
                 learn more"
            ));
            outbox.fail_channel(channel, fault);
            wakes.push(&outbox);
        }
    }
}

/// Since when messages have been handed out.
struct Watch {
    timeout_ms: u64,
    queue: u64,
    timers: Arc<Timers>,
    target: Weak<dyn Timed>,
    timer: Timer,
    /// For each message that is handed out now, the number of its last delivery.
    current: FxHashMap<u64, u64>,
    /// Deliveries, oldest first; those that are settled fall out at the front or by sweeping.
    order: VecDeque<Delivery>,
    next_number: u64,
}

struct Delivery {
    number: u64,
    sequence: u64,
    at_ms: u64,
    holder: Holder,
}

/// What it takes to watch a message: its last delivery in a table, and deliveries up to twice as many as
/// there are messages.
const WATCHED_BYTES: usize = (size_of::<(u64, u64)>() + 1) * 8 / 7 + 2 * size_of::<Delivery>();

/// Fewer deliveries than this are not worth sweeping.
const SWEEP_MIN: usize = 64;

impl Watch {
    fn begin(&mut self, sequence: u64, holder: Holder) {
        let (number, at_ms) = (self.next_number, self.timers.now_ms());
        self.next_number += 1;
        self.current.insert(sequence, number);
        if self.order.len() >= SWEEP_MIN && self.order.len() > self.current.len() * 2 {
            let current = &self.current;
            self.order.retain(|one| current.get(&one.sequence) == Some(&one.number));
        }
        self.order.push_back(Delivery { number, sequence, at_ms, holder });
        if self.timer.deadline_ms().is_none() {
            self.arm(at_ms);
        }
    }

    /// Nothing is handed out: gives memory back.
    fn shrink(&mut self) {
        self.current.shrink_to(KEPT_PLACES);
        self.order.clear();
        self.order.shrink_to(KEPT_PLACES);
    }

    fn arm(&mut self, since_ms: u64) {
        let deadline_ms = since_ms.saturating_add(self.timeout_ms);
        let key = (self.queue, TimerKind::AckTimeout);
        self.timers.arm(&mut self.timer, deadline_ms, key, Weak::clone(&self.target));
    }

    /// Arms the timer for the delivery that is out longest, or was.
    fn arm_for_oldest(&mut self) {
        if let Some(oldest) = self.order.front() {
            self.arm(oldest.at_ms);
        }
    }

    fn overdue(&mut self, fired_ms: u64, now_ms: u64) -> Vec<Holder> {
        self.timer.fired(fired_ms);
        let mut overdue: Vec<Holder> = Vec::new();
        while let Some(oldest) = self.order.front() {
            let is_current = self.current.get(&oldest.sequence) == Some(&oldest.number);
            let since_ms = oldest.at_ms;
            if is_current && now_ms < since_ms.saturating_add(self.timeout_ms) {
                self.arm(since_ms);
                break;
            }
            if let Some(Delivery { holder, .. }) = self.order.pop_front()
                && is_current
                && !overdue.iter().any(|known| known.is(&holder))
            {
                overdue.push(holder);
            }
        }
        overdue
    }
}

impl Holder {
    fn is(&self, other: &Holder) -> bool {
        self.channel == other.channel && Weak::ptr_eq(&self.outbox, &other.outbox)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("timeout_ms", &self.timeout_ms).finish_non_exhaustive()
    }
}

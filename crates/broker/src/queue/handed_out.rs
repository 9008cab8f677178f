//! Messages that have been handed out and not acknowledged; and where that may not last forever
//! (`x-consumer-timeout`), since when.

use super::amounts::Amounts;
use super::returning::SETTLED_AT_ONCE;
use super::unnoted::Unnoted;
use crate::memory::Charge;
use crate::outbox::{NO_SLOT, Outbox};
use crate::timers::{Timed, Timer, TimerKind, Timers};
use crate::work;
use courser_store::{Location, Lsn, Position};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

/// Places that are kept once nothing is handed out.
const KEPT_PLACES: usize = 1024;

/// By their numbers in the queue, where the messages are.
#[derive(Debug, Default)]
pub(super) struct HandedOut {
    locations: FxHashMap<u64, Location>,
    amounts: Amounts,
    watch: Option<Box<Watch>>,
    /// Those that the log has yet to be told of; there if it is.
    unnoted: Option<Unnoted>,
    /// The numbers of those that are set aside, as their content headers do not fit the frames of any
    /// consumer that could take them: behind the bytes of these, so that the shortest is the first.
    aside: BTreeSet<(usize, u64)>,
    charge: Charge,
    /// For how many messages room is charged, and for how many of these that are set aside.
    charged: (usize, usize),
}

/// What the number of a message that is set aside uses, in a tree's nodes that are half full.
const ASIDE_BYTES: usize = 2 * size_of::<(usize, u64)>();

/// Who is to have a message.
pub(super) struct Receiver<'a> {
    pub outbox: &'a Arc<Outbox>,
    pub channel: u16,
    /// The channel's slot of the consumer; [`NO_SLOT`] for what is polled.
    pub slot: u32,
    /// How long it has for the message, if that is its own matter.
    pub timeout_ms: Option<u64>,
}

impl<'a> Receiver<'a> {
    /// Who polls.
    pub fn polling((outbox, channel): (&'a Arc<Outbox>, u16)) -> Self {
        Receiver { outbox, channel, slot: NO_SLOT, timeout_ms: None }
    }
}

/// Who has a message.
pub(super) struct Holder {
    pub outbox: Weak<Outbox>,
    pub channel: u16,
    /// As in [`Receiver`].
    pub slot: u32,
}

impl HandedOut {
    /// Empty books, whose memory is charged. The log is told of what is handed out where it has copies on other machines.
    pub fn new(charge: Charge, is_copied: bool) -> Self {
        HandedOut { charge, unnoted: is_copied.then(Unnoted::default), ..HandedOut::default() }
    }

    /// Counts the room for so many messages.
    #[cold]
    fn count_memory(&mut self, messages: usize, aside: usize) {
        self.charged = (messages, aside);
        // Number, place and control byte, in a table of which an eighth stays free.
        let entry = (size_of::<(u64, Location)>() + 1) * 8 / 7;
        let watched = self.watch.as_ref().map_or(0, |watch| watch.bytes_each());
        let unnoted = if self.unnoted.is_some() { 2 * size_of::<u64>() } else { 0 };
        self.charge.set(messages * (entry + watched + unnoted) + aside * ASIDE_BYTES);
    }

    #[inline]
    pub fn insert(&mut self, sequence: u64, location: Location, receiver: &Receiver<'_>) {
        if let Some(unnoted) = &mut self.unnoted {
            unnoted.add(sequence, &location, &self.locations);
        }
        self.hold(sequence, location);
        if let Some(watch) = &mut self.watch
            && watch.begin(sequence, receiver)
        {
            self.count_memory(self.charged.0, self.charged.1);
        }
    }

    /// Adds to `returns` the positions of messages that have been handed out since the last time, and have not come back.
    pub fn take_unnoted(&mut self, returns: &mut Vec<(Position, u64)>) {
        if let Some(unnoted) = &mut self.unnoted {
            unnoted.take(&self.locations, returns);
        }
    }

    /// The positions below `end` of messages that the next leader is to mark as redelivered: those that clients have, and not `others`.
    pub fn noted_below(&self, end: Lsn, others: impl Iterator<Item = u64>) -> Vec<(Position, u64)> {
        let others = self.aside.iter().map(|(_, number)| *number).chain(others);
        let unnoted = self.unnoted.as_ref();
        unnoted.map_or_else(Vec::new, |_| Unnoted::all_below(end, self.iter(), others))
    }

    /// Notes where a message is that no client has: there is no time within which it has to be acknowledged.
    #[inline]
    pub fn hold(&mut self, sequence: u64, location: Location) {
        self.amounts.add(&location);
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
        let location = self.locations.remove(&sequence)?;
        self.amounts.sub(&location);
        Some(location)
    }

    /// How many messages they are, and how large.
    pub fn amounts(&self) -> &Amounts {
        &self.amounts
    }

    /// Bytes of memory that these books use.
    pub fn used_bytes(&self) -> usize {
        self.charge.bytes()
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

    /// Takes everything; no delivery is timed any more.
    pub fn take_all(&mut self) -> Self {
        if let Some(watch) = &mut self.watch {
            watch.timers.disarm(&mut watch.timer, (watch.queue, TimerKind::AckTimeout));
        }
        std::mem::take(self)
    }

    /// Gives consumers this long to acknowledge a message that they get from now on, or any time.
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
                    own: BTreeMap::new(),
                    has_own: false,
                    next_number: 0,
                }));
                self.count_memory(self.charged.0, self.charged.1);
            }
        }
    }

    /// The timer that was armed for `fired_ms` has fired: who has had a message for too long, each with the
    /// time that was allowed. Looks at a portion of the messages; for the others the timer fires again.
    pub fn overdue(&mut self, fired_ms: u64, now_ms: u64) -> Vec<(u64, Holder)> {
        self.watch.as_mut().map_or_else(Vec::new, |watch| watch.overdue(fired_ms, now_ms))
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
    /// The same of consumers with a time of their own, by its end and their numbers.
    own: BTreeMap<(u64, u64), Delivery>,
    /// There has been one.
    has_own: bool,
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

/// What it takes besides where consumers have a time of their own: a place in a tree whose nodes are half full.
const OWN_BYTES: usize = 4 * size_of::<((u64, u64), Delivery)>();

/// Fewer deliveries than this are not worth sweeping.
const SWEEP_MIN: usize = 64;

impl Watch {
    fn bytes_each(&self) -> usize {
        WATCHED_BYTES + if self.has_own { OWN_BYTES } else { 0 }
    }

    /// Returns whether it uses more for each message from now on.
    fn begin(&mut self, sequence: u64, receiver: &Receiver<'_>) -> bool {
        let (number, at_ms) = (self.next_number, self.timers.now_ms());
        self.next_number += 1;
        self.current.insert(sequence, number);
        self.sweep();
        let Receiver { outbox, channel, slot, timeout_ms } = *receiver;
        let holder = Holder { outbox: Arc::downgrade(outbox), channel, slot };
        let delivery = Delivery { number, sequence, at_ms, holder };
        let deadline_ms = at_ms.saturating_add(timeout_ms.unwrap_or(self.timeout_ms));
        if timeout_ms.is_some() {
            self.own.insert((deadline_ms, number), delivery);
        } else {
            // The clock was ahead when these were handed out, or they would hold up all that follow.
            let ahead = self.order.iter_mut().rev().take_while(|one| one.at_ms > at_ms);
            ahead.for_each(|one| one.at_ms = at_ms);
            self.order.push_back(delivery);
        }
        if self.timer.deadline_ms().is_none_or(|armed_ms| deadline_ms < armed_ms) {
            self.arm(deadline_ms);
        }
        timeout_ms.is_some() && !std::mem::replace(&mut self.has_own, true)
    }

    /// Drops what is settled where that is more than half.
    fn sweep(&mut self) {
        let known = self.order.len() + self.own.len();
        if known >= SWEEP_MIN && known > self.current.len() * 2 {
            let current = &self.current;
            let is_current = |one: &Delivery| current.get(&one.sequence) == Some(&one.number);
            self.order.retain(is_current);
            self.own.retain(|_, one| is_current(one));
        }
    }

    fn is_current(&self, delivery: &Delivery) -> bool {
        self.current.get(&delivery.sequence) == Some(&delivery.number)
    }

    /// Nothing is handed out: gives memory back.
    fn shrink(&mut self) {
        self.current.shrink_to(KEPT_PLACES);
        self.order.clear();
        self.order.shrink_to(KEPT_PLACES);
        self.own.clear();
    }

    fn arm(&mut self, deadline_ms: u64) {
        let key = (self.queue, TimerKind::AckTimeout);
        self.timers.arm(&mut self.timer, deadline_ms, key, Weak::clone(&self.target));
    }

    /// Arms the timer for the delivery whose time ends first, or was to.
    fn arm_for_oldest(&mut self) {
        let oldest = self.order.front().map(|one| one.at_ms.saturating_add(self.timeout_ms));
        let own = self.own.first_key_value().map(|((deadline_ms, _), _)| *deadline_ms);
        if let Some(deadline_ms) = oldest.into_iter().chain(own).min() {
            self.arm(deadline_ms);
        }
    }

    fn overdue(&mut self, fired_ms: u64, now_ms: u64) -> Vec<(u64, Holder)> {
        self.timer.fired(fired_ms);
        let (mut overdue, mut known) = (Vec::new(), FxHashSet::default());
        let mut add = |timeout_ms, holder: Holder| {
            if known.insert((holder.outbox.as_ptr().addr(), holder.channel, holder.slot)) {
                overdue.push((timeout_ms, holder));
            }
        };
        let mut left = SETTLED_AT_ONCE;
        while left > 0
            && let Some(oldest) = self.order.front()
        {
            let is_current = self.is_current(oldest);
            if is_current && now_ms < oldest.at_ms.saturating_add(self.timeout_ms) {
                break;
            }
            left -= 1;
            if let Some(Delivery { holder, .. }) = self.order.pop_front()
                && is_current
            {
                add(self.timeout_ms, holder);
            }
        }
        while left > 0
            && let Some(((deadline_ms, _), first)) = self.own.first_key_value()
        {
            let is_current = self.is_current(first);
            if is_current && now_ms < *deadline_ms {
                break;
            }
            left -= 1;
            if let Some(((deadline_ms, _), Delivery { at_ms, holder, .. })) = self.own.pop_first()
                && is_current
            {
                add(deadline_ms - at_ms, holder);
            }
        }
        work::count(SETTLED_AT_ONCE - left);
        self.arm_for_oldest();
        overdue
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("timeout_ms", &self.timeout_ms).finish_non_exhaustive()
    }
}

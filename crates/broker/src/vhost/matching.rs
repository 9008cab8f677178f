//! What it takes to find out which policies count for what is durable in a vhost.
//!
//! A start has to find that out for all of it, one name after the other, before any client is served, and so has the next leader
//! of a group. What all names of a vhost take together is bounded therefore: a declare, or a change of policies by a client, that
//! would take it beyond the bound is refused. What is there already stays, be it from a version that had no such bound, from the
//! configuration or from another group: the vhost may have a little more than that.
//!
//! What counts is the time of a processor that each match has really had, on the thread that did it. The most that a pattern may
//! cost, times the number of names, would not do: of two patterns with look-around, one may fail at the first byte of every name,
//! and the other go back a thousand times, but they may cost the same. And the engines do not count their steps.
//!
//! What is declared is matched with the policies that hold, and with those that are announced while it is found out what they
//! take. Neither change until it is there, or refused: a change waits for those that match at that moment ([`StayingPolicies`]).

use super::{Names, Vhost};
use crate::arguments::QueueType;
use crate::exchange::{Destination, Exchange};
use crate::fault::{Fault, Resource};
use crate::limits::Limits;
use crate::policy::{Counting, ExchangePolicy, Policies, PolicyError, QueuePolicies, Takes, Took};
use crate::queue::Queue;
use courser_codec::ShortString;
use courser_store::blocking;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How long names are matched once more before one that is declared is refused; at least one is.
const AGAIN: Duration = Duration::from_millis(10);

/// The time that the names of a vhost take.
pub(super) struct Matching {
    /// What the current thread has had of a processor so far.
    thread_time: fn() -> Duration,
    /// The most that they may take, and what that is where there was not more already.
    most_us: AtomicU64,
    usual_most_us: u64,
    taken_us: Arc<AtomicU64>,
    /// The policies that it may have next, while it is found out what they take. Neither these nor those that it has change
    /// while this is locked for reading. Locked before the gate and the write lock.
    next: RwLock<Option<Arc<NextPolicies>>>,
    /// How many of what is there come before what is matched once more next.
    again: AtomicUsize,
}

/// What the names of a vhost take, and the most that they may.
#[derive(Clone, Copy)]
pub(super) struct Room {
    taken_us: u64,
    most_us: u64,
}

/// Policies that a vhost may have next.
pub(super) struct NextPolicies {
    policies: Arc<Policies>,
    /// What the names that there are take with them, and those that come meanwhile, as long as they are there.
    taken_us: Arc<AtomicU64>,
    most_us: u64,
}

impl Matching {
    pub fn new(limits: &Limits) -> Self {
        let most_us = limits.policy_matching_max.as_micros().try_into().unwrap_or(u64::MAX);
        Matching {
            thread_time: limits.thread_time,
            most_us: AtomicU64::new(most_us),
            usual_most_us: most_us,
            taken_us: Arc::default(),
            next: RwLock::default(),
            again: AtomicUsize::default(),
        }
    }

    /// What `find` finds with these policies, and the microseconds that it has taken.
    fn measured<T>(&self, policies: &Policies, find: impl FnOnce() -> T) -> (T, u32) {
        if policies.is_empty() {
            return (find(), 0);
        }
        let before = (self.thread_time)();
        let found = find();
        let took = (self.thread_time)().saturating_sub(before);
        (found, took.as_micros().try_into().unwrap_or(u32::MAX))
    }

    fn most_us(&self) -> u64 {
        self.most_us.load(Ordering::Relaxed)
    }

    fn taken_us(&self) -> u64 {
        self.taken_us.load(Ordering::Relaxed)
    }

    /// Has the names take no more than this, or what is usual if they take no more than that.
    fn set_most(&self, most_us: u64) {
        let usual_most_us = self.usual_most_us;
        let most_us = if self.taken_us() > usual_most_us { most_us } else { usual_most_us };
        self.most_us.store(most_us, Ordering::Relaxed);
    }
}

impl NextPolicies {
    /// Whether all names together take no longer than they may.
    fn has_time(&self) -> bool {
        self.taken_us.load(Ordering::Relaxed) <= self.most_us
    }
}

/// The policies that a vhost has, and those that it may have next, until this is dropped: long enough to match something with them
/// and make it. Others that do the same do not wait.
pub(super) struct StayingPolicies<'a> {
    vhost: &'a Vhost,
    pub now: Arc<Policies>,
    next: RwLockReadGuard<'a, Option<Arc<NextPolicies>>>,
}

impl StayingPolicies<'_> {
    /// Which of them count for a queue that is declared.
    pub fn of_queue(
        &self,
        name: &ShortString,
        queue_type: QueueType,
        survives: bool,
    ) -> QueuePolicies {
        let mut found = self.vhost.find_for_queue(&self.now, name, queue_type, survives);
        found.took.next = self.measure_next(survives, |next| {
            next.of_queue(name.as_bytes(), queue_type);
        });
        found
    }

    /// Likewise for an exchange.
    pub fn of_exchange(&self, name: &ShortString, survives: bool) -> ExchangePolicy {
        let mut found = self.vhost.find_for_exchange(&self.now, name, survives);
        found.took.next = self.measure_next(survives, |next| {
            next.of_exchange(name.as_bytes());
        });
        found
    }

    /// What is declared is not refused if it takes too long with policies that may come: these are.
    fn measure_next(&self, survives: bool, find: impl FnOnce(&Policies)) -> Took {
        let Some(next) = self.next.as_ref().filter(|_| survives) else { return Took::default() };
        let ((), took_us) = self.vhost.matching.measured(&next.policies, || find(&next.policies));
        Took::new(&next.taken_us, took_us)
    }

    /// Before something is refused that takes this, some of what is there is matched once more, others each time: it may have been
    /// noted with more than it takes, as the machine was busy. Returns whether there is time now.
    pub fn make_time_for(&self, took: &Took) -> bool {
        let (vhost, matching) = (self.vhost, &self.vhost.matching);
        let (queues, exchanges) = (vhost.ordered_queues(), vhost.ordered_exchanges());
        let count = queues.len() + exchanges.len();
        let from = matching.again.load(Ordering::Relaxed) % count;
        let starting_at = |from: usize| {
            let exchanges = exchanges.starting_at(from.saturating_sub(queues.len()));
            let queues = queues.starting_at(from).cloned().map(Destination::Queue);
            queues.chain(exchanges.cloned().map(Destination::Exchange))
        };
        let begun = (matching.thread_time)();
        let mut matched = 0;
        for one in starting_at(from).chain(starting_at(0)).take(count) {
            self.match_again(&one);
            matched += 1;
            let has_had = (matching.thread_time)().saturating_sub(begun);
            if vhost.has_time_for(took) || has_had >= AGAIN {
                break;
            }
        }
        matching.again.store(from + matched, Ordering::Relaxed);
        vhost.has_time_for(took)
    }

    fn match_again(&self, one: &Destination) {
        match one {
            Destination::Queue(queue) if queue.settings.survives() => {
                let took_us = self.vhost.measure_queue(&self.now, queue);
                queue.matched.is_matched_again(took_us);
            }
            Destination::Exchange(exchange) if exchange.settings.durable => {
                let took_us = self.vhost.measure_exchange(&self.now, exchange);
                exchange.matched.is_matched_again(took_us);
            }
            _ => {}
        }
    }
}

/// Policies that have been announced, until it is decided whether the vhost has them.
pub(super) struct Announced<'a> {
    vhost: &'a Vhost,
    next: Arc<NextPolicies>,
    /// What there was then. What comes later is measured with both the policies that are and those that may come.
    names: Arc<Names>,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        // Nothing waits here for what is declared, unless the policies were refused: see `change_policies`.
        let is_announced = self.vhost.matching.next.read().is_some();
        if is_announced {
            *self.vhost.matching.next.write() = None;
        }
    }
}

impl Announced<'_> {
    /// Refuses the policies if all that is durable would take too long with them. That may take as long as it may: nothing is
    /// locked.
    pub fn try_all(&self) -> Result<(), PolicyError> {
        let (vhost, policies) = (self.vhost, &*self.next.policies);
        for queue in self.names.queues.values().filter(|queue| queue.settings.survives()) {
            let took_us = vhost.measure_queue(policies, queue);
            self.admit(&queue.name, &queue.matched, took_us)?;
        }
        for exchange in self.names.exchanges.values().filter(|exchange| exchange.settings.durable) {
            let took_us = vhost.measure_exchange(policies, exchange);
            self.admit(&exchange.name, &exchange.matched, took_us)?;
        }
        Ok(())
    }

    fn admit(
        &self,
        name: &ShortString,
        matched: &Counting,
        took_us: u32,
    ) -> Result<(), PolicyError> {
        matched.add_next(Took::new(&self.next.taken_us, took_us));
        match self.next.has_time() {
            true => Ok(()),
            false => Err(PolicyError::TooSlow(self.vhost.too_slow(&self.next.policies, name))),
        }
    }

    /// Likewise, once more in the section that gives it the policies: names have come meanwhile.
    pub fn still_may(&self) -> Result<(), PolicyError> {
        match self.next.has_time() {
            true => Ok(()),
            false => Err(PolicyError::TooSlow(format!(
                "names that are declared in vhost '{}' at this moment take too long with these policies: try again",
                self.vhost.name
            ))),
        }
    }
}

impl Vhost {
    /// Says that it may have these policies next: what is declared from now on is measured with them too. The caller changes
    /// policies, and is the only one.
    pub(super) fn announce(&self, policies: &Arc<Policies>) -> Announced<'_> {
        let next = Arc::new(NextPolicies {
            policies: Arc::clone(policies),
            taken_us: Arc::default(),
            most_us: self.matching.most_us(),
        });
        let mut announced = self.stop_matching();
        *announced = Some(Arc::clone(&next));
        Announced { vhost: self, next, names: self.names.load_full() }
    }

    /// The policies as they are, and as they may be next, stay until this is dropped. The caller has locked nothing.
    pub(super) fn staying_policies(&self) -> StayingPolicies<'_> {
        // Another declaration holds it while it waits for the log, and a change of policies waits behind that.
        let next = blocking::read(&self.matching.next);
        StayingPolicies { vhost: self, now: self.policies_now(), next }
    }

    /// Waits until nothing that is declared is matched any more. Until this is dropped nothing more is; what it says of the policies
    /// that may come next may be changed. The caller changes policies, and has locked nothing else.
    pub(super) fn stop_matching(&self) -> RwLockWriteGuard<'_, Option<Arc<NextPolicies>>> {
        self.matching.next.write()
    }

    /// Whether it may take long to match something that is declared: if its patterns cost more than this, or it has to wait.
    pub(crate) fn costs_more_to_match(&self, cost: usize) -> bool {
        let next = self.matching.next.try_read();
        next.is_none_or(|next| {
            let next_cost = next.as_ref().map_or(0, |next| next.policies.cost());
            self.policies_now().cost() + next_cost > cost
        })
    }

    fn measure_queue(&self, policies: &Policies, queue: &Queue) -> u32 {
        let queue_type = QueueType::of(&queue.settings.arguments);
        self.matching.measured(policies, || policies.of_queue(queue.name.as_bytes(), queue_type)).1
    }

    fn measure_exchange(&self, policies: &Policies, exchange: &Exchange) -> u32 {
        self.matching.measured(policies, || policies.of_exchange(exchange.name.as_bytes())).1
    }

    /// Which of these policies count for a queue. What that has taken counts once the queue follows them, if it is found again by a
    /// start.
    pub(super) fn find_for_queue(
        &self,
        policies: &Policies,
        name: &ShortString,
        queue_type: QueueType,
        survives: bool,
    ) -> QueuePolicies {
        let find = || policies.of_queue(name.as_bytes(), queue_type);
        let (mut found, took_us) = self.matching.measured(policies, find);
        if survives {
            found.took.now = Took::new(&self.matching.taken_us, took_us);
        }
        found
    }

    /// Likewise for an exchange.
    pub(super) fn find_for_exchange(
        &self,
        policies: &Policies,
        name: &ShortString,
        survives: bool,
    ) -> ExchangePolicy {
        let find = || policies.of_exchange(name.as_bytes());
        let (policy, took_us) = self.matching.measured(policies, find);
        let mut found = ExchangePolicy { policy, took: Takes::default() };
        if survives {
            found.took.now = Took::new(&self.matching.taken_us, took_us);
        }
        found
    }

    /// Whether all names take no longer than they may with one that is declared, and which has taken this.
    pub(super) fn has_time_for(&self, took: &Took) -> bool {
        let taken_us = self.matching.taken_us() + u64::from(took.us());
        took.us() == 0 || taken_us <= self.matching.most_us()
    }

    /// What a client is told that declares it otherwise. The caller is outside the gate.
    pub(super) fn no_time_for(
        &self,
        declared: Resource<'_>,
        name: &ShortString,
        policies: &Policies,
    ) -> Fault {
        let why = self.too_slow(policies, name);
        Fault::precondition_failed(format_args!("cannot declare {declared}: {why}"))
    }

    /// What a start, or a move, has brought may stay, whatever it takes, and what follows may take a little longer: no two times
    /// are the same.
    pub(super) fn admit_what_has_come(&self) {
        self.matching.set_most(with_an_eighth(self.matching.taken_us()));
    }

    /// What there is may stay also with other policies of the configuration. The vhost had this room before. What was not left of
    /// it then does not come again: clients would fill it each time that the configuration is read.
    pub(super) fn admit_what_stays(&self, before: Room) {
        let taken_us = self.matching.taken_us();
        let with_an_eighth = with_an_eighth(taken_us);
        let most_us = match u128::from(before.taken_us) {
            taken if taken <= u128::from(self.matching.usual_most_us) => with_an_eighth,
            taken => {
                let in_proportion = u128::from(taken_us) * u128::from(before.most_us) / taken;
                let most_us = u64::try_from(in_proportion).unwrap_or(u64::MAX);
                most_us.clamp(taken_us, with_an_eighth)
            }
        };
        self.matching.set_most(most_us);
    }

    /// What its names take now, and may take.
    pub(super) fn room(&self) -> Room {
        Room { taken_us: self.matching.taken_us(), most_us: self.matching.most_us() }
    }

    /// What a client is told whose names and policies take too long together. The policies are those that take longest for one
    /// of the names.
    fn too_slow(&self, policies: &Policies, name: &ShortString) -> String {
        let longest = policies.slowest(name.as_bytes(), self.matching.thread_time);
        format!(
            "each start of the broker would take more than {:?} of a processor to match all durable queues and exchanges of vhost \
             '{}' with the patterns of its policies, of which those of {longest} take longest: make these simpler, or delete queues",
            Duration::from_micros(self.matching.most_us()),
            self.name
        )
    }
}

fn with_an_eighth(us: u64) -> u64 {
    us.saturating_add(us / 8)
}

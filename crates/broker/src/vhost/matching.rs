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

use super::{Names, Vhost};
use crate::arguments::QueueType;
use crate::fault::{Fault, Resource};
use crate::limits::Limits;
use crate::policy::{ExchangePolicy, Policies, PolicyError, QueuePolicies, Took};
use courser_codec::ShortString;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that the names of a vhost take.
pub(super) struct Matching {
    /// What the current thread has had of a processor so far.
    thread_time: fn() -> Duration,
    /// The most that they may take, and what that is where there was not more already.
    most_us: AtomicU64,
    usual_most_us: u64,
    taken_us: Arc<AtomicU64>,
    /// The policies that it may have next, while it is found out what they take.
    next: Mutex<Option<Arc<NextPolicies>>>,
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
    /// What the names that there are take with them, and those that come meanwhile.
    taken_us: AtomicU64,
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
            next: Mutex::default(),
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
    /// Adds what another name takes. Returns whether all together take no longer than they may. What is declared is not refused if
    /// they do not: the policies are.
    pub fn add(&self, took_us: u32) -> bool {
        let before_us = self.taken_us.fetch_add(took_us.into(), Ordering::Relaxed);
        before_us + u64::from(took_us) <= self.most_us
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
        *self.vhost.matching.next.lock() = None;
    }
}

impl Announced<'_> {
    /// Refuses the policies if all that is durable would take too long with them. That may take as long as it may: nothing is
    /// locked.
    pub fn try_all(&self) -> Result<(), PolicyError> {
        let (vhost, policies) = (self.vhost, &*self.next.policies);
        for queue in self.names.queues.values().filter(|queue| queue.settings.survives()) {
            let queue_type = QueueType::of(&queue.settings.arguments);
            let (_, took_us) = vhost
                .matching
                .measured(policies, || policies.of_queue(queue.name.as_bytes(), queue_type));
            self.admit(&queue.name, took_us)?;
        }
        for exchange in self.names.exchanges.values().filter(|exchange| exchange.settings.durable) {
            let name = exchange.name.as_bytes();
            let (_, took_us) = vhost.matching.measured(policies, || policies.of_exchange(name));
            self.admit(&exchange.name, took_us)?;
        }
        Ok(())
    }

    fn admit(&self, name: &ShortString, took_us: u32) -> Result<(), PolicyError> {
        match self.next.add(took_us) {
            true => Ok(()),
            false => Err(PolicyError::TooSlow(self.vhost.too_slow(&self.next.policies, name))),
        }
    }

    /// Likewise, once more in the section that gives it the policies: names have come meanwhile.
    pub fn still_may(&self) -> Result<(), PolicyError> {
        match self.next.add(0) {
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
            taken_us: AtomicU64::new(0),
            most_us: self.matching.most_us(),
        });
        let _write = self.write.lock();
        *self.matching.next.lock() = Some(Arc::clone(&next));
        Announced { vhost: self, next, names: self.names.load_full() }
    }

    /// The policies that it may have next, if any.
    pub(super) fn next_policies(&self) -> Option<Arc<NextPolicies>> {
        self.matching.next.lock().clone()
    }

    /// Whether it still has these policies, and those next.
    pub(super) fn has_policies(
        &self,
        policies: &Arc<Policies>,
        next: Option<&Arc<NextPolicies>>,
    ) -> bool {
        let next_now = self.matching.next.lock();
        Arc::ptr_eq(&self.policies.read(), policies)
            && next_now.as_ref().map(Arc::as_ptr) == next.map(Arc::as_ptr)
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
            found.took = Took::new(&self.matching.taken_us, took_us);
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
        let mut found = ExchangePolicy { policy, took: Took::default() };
        if survives {
            found.took = Took::new(&self.matching.taken_us, took_us);
        }
        found
    }

    /// What something durable that is declared would take with the policies that may come, with which `find` finds those of them
    /// that would count for it.
    pub(super) fn measure_next<T>(
        &self,
        next: Option<&NextPolicies>,
        find: impl FnOnce(&Policies) -> T,
    ) -> u32 {
        next.map_or(0, |next| self.matching.measured(&next.policies, || find(&next.policies)).1)
    }

    /// Whether all names take no longer than they may with one that is declared, and which has taken this.
    pub(super) fn has_time_for(&self, took: &Took) -> bool {
        let taken_us = self.matching.taken_us() + u64::from(took.us());
        took.us() == 0 || taken_us <= self.matching.most_us()
    }

    /// What a client is told that declares it otherwise. Nothing may be locked.
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
    pub(crate) fn admit_what_has_come(&self) {
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

//! The policies that were found to count for a queue or an exchange.

use super::of_vhost::CompiledPolicy;
use super::{Policy, PolicyKind, effective};
use crate::arguments::QueueType;
use courser_codec::FieldTable;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The policies that count for a queue: the user's and the operator's.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueuePolicies {
    pub(super) user: Option<Arc<CompiledPolicy>>,
    pub(super) operator: Option<Arc<CompiledPolicy>>,
    /// What it has taken to find them, where that is kept, until the queue counts it ([`Counting`]).
    pub took: Takes,
}

/// The policy that counts for an exchange.
#[derive(Debug, Default)]
pub(crate) struct ExchangePolicy {
    pub policy: Option<Arc<CompiledPolicy>>,
    /// What it has taken to find it, where that is kept, until the exchange counts it ([`Counting`]).
    pub took: Takes,
}

/// What it takes to match one name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Takes {
    /// With the policies that hold.
    pub now: Took,
    /// With those that may hold next, while it is found out what these take.
    pub next: Took,
}

impl Takes {
    fn counted(self) -> Self {
        Takes { now: self.now.counted(), next: self.next.counted() }
    }
}

/// What it takes to match a queue or an exchange counts here, until it is gone.
#[derive(Debug)]
pub(crate) struct Counting(Mutex<Option<Takes>>);

impl Counting {
    pub fn begin(takes: Takes) -> Self {
        Counting(Mutex::new(Some(takes.counted())))
    }

    /// It follows other policies from now on.
    pub fn follow(&self, takes: Takes) {
        if let Some(counting) = &mut *self.0.lock() {
            // First without the one from before: it would count twice.
            *counting = Takes::default();
            *counting = takes.counted();
        }
    }

    /// It has been matched with policies that it may follow next.
    pub fn add_next(&self, took: Took) {
        if let Some(counting) = &mut *self.0.lock() {
            counting.next = took.counted();
        }
    }

    /// It has been matched once more with the policies that it follows. The shorter time counts: on a busy machine it takes
    /// longer.
    pub fn is_matched_again(&self, took_us: u32) {
        if let Some(counting) = &mut *self.0.lock() {
            counting.now.shorten(took_us);
        }
    }

    /// No start finds it again.
    pub fn end(&self) {
        *self.0.lock() = None;
    }
}

/// What it has taken to match one name. It is part of a sum from when what was found holds, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Took {
    sum_us: Option<Arc<AtomicU64>>,
    us: u32,
    counts: bool,
}

impl Took {
    /// This many microseconds, that count for nothing yet.
    pub fn new(sum_us: &Arc<AtomicU64>, us: u32) -> Self {
        Took { sum_us: Some(Arc::clone(sum_us)), us, counts: false }
    }

    /// Counts from now on. What the same name took before has to be dropped first: it would count twice.
    fn counted(mut self) -> Self {
        if let Some(sum_us) = &self.sum_us
            && !self.counts
        {
            sum_us.fetch_add(self.us.into(), Ordering::Relaxed);
            self.counts = true;
        }
        self
    }

    pub fn us(&self) -> u32 {
        self.us
    }

    fn shorten(&mut self, us: u32) {
        let less_us = self.us.saturating_sub(us);
        self.us -= less_us;
        if let Some(sum_us) = self.sum_us.as_ref().filter(|_| self.counts) {
            sum_us.fetch_sub(less_us.into(), Ordering::Relaxed);
        }
    }
}

/// A copy counts for nothing.
impl Clone for Took {
    fn clone(&self) -> Self {
        Took::default()
    }
}

impl Drop for Took {
    fn drop(&mut self) {
        if let Some(sum_us) = &self.sum_us
            && self.counts
        {
            sum_us.fetch_sub(self.us.into(), Ordering::Relaxed);
        }
    }
}

impl QueuePolicies {
    /// The one of this kind.
    pub fn of_kind(&self, kind: PolicyKind) -> Option<&Policy> {
        let found = match kind {
            PolicyKind::User => &self.user,
            PolicyKind::Operator => &self.operator,
        };
        found.as_ref().map(|found| &found.policy)
    }

    /// The name of the one of this kind.
    pub fn name(&self, kind: PolicyKind) -> Option<String> {
        self.of_kind(kind).map(|policy| policy.name.clone())
    }

    /// What the two ask for together.
    pub fn definition(&self) -> FieldTable {
        let definition = |kind| self.of_kind(kind).map(|policy| policy.definition.clone());
        effective::merge(
            definition(PolicyKind::User).unwrap_or_default(),
            &definition(PolicyKind::Operator).unwrap_or_default(),
        )
    }

    /// What a queue with these arguments does; none if that is just what its arguments say.
    pub fn effective(&self, arguments: &FieldTable) -> Option<FieldTable> {
        if self.user.is_none() && self.operator.is_none() {
            return None;
        }
        Some(effective::apply(arguments, &self.definition(), QueueType::of(arguments)))
    }
}

//! The policies that were found to count for a queue or an exchange.

use super::of_vhost::CompiledPolicy;
use super::{Policy, PolicyKind, effective};
use crate::arguments::QueueType;
use courser_codec::FieldTable;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The policies that count for a queue: the user's and the operator's.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueuePolicies {
    pub(super) user: Option<Arc<CompiledPolicy>>,
    pub(super) operator: Option<Arc<CompiledPolicy>>,
    /// What it has taken to find them, where that is kept.
    pub took: Took,
}

/// The policy that counts for an exchange.
#[derive(Debug, Default)]
pub(crate) struct ExchangePolicy {
    pub policy: Option<Arc<CompiledPolicy>>,
    /// What it has taken to find it, where that is kept.
    pub took: Took,
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
    pub fn counted(mut self) -> Self {
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
    /// What it has taken to find them counts from now on ([`Took::counted`]).
    pub fn counted(mut self) -> Self {
        self.took = mem::take(&mut self.took).counted();
        self
    }

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

//! The policies that were found to count for a queue or an exchange.

use super::of_vhost::CompiledPolicy;
use super::{Policy, PolicyKind, effective};
use crate::arguments::QueueType;
use courser_codec::FieldTable;
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

/// What it has taken to match one name, which is part of a sum as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct Took {
    sum_us: Option<Arc<AtomicU64>>,
    us: u32,
}

impl Took {
    /// Counts this many microseconds.
    pub fn count(sum_us: &Arc<AtomicU64>, us: u32) -> Self {
        if us == 0 {
            return Took::default();
        }
        sum_us.fetch_add(us.into(), Ordering::Relaxed);
        Took { sum_us: Some(Arc::clone(sum_us)), us }
    }

    /// Whether it counts for nothing.
    pub fn is_nothing(&self) -> bool {
        self.us == 0
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
        if let Some(sum_us) = &self.sum_us {
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

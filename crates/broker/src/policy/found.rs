//! The policies that were found to count for a queue.

use super::of_vhost::CompiledPolicy;
use super::{Policy, PolicyKind, effective};
use crate::arguments::QueueType;
use courser_codec::FieldTable;
use std::sync::Arc;

/// The policies that count for a queue: the user's and the operator's.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueuePolicies {
    pub(super) user: Option<Arc<CompiledPolicy>>,
    pub(super) operator: Option<Arc<CompiledPolicy>>,
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

//! What a policy would change, before it is set.

use super::Admin;
use crate::arguments::QueueType;
use crate::policy::{CompiledPolicy, Policies, Policy, PolicyError, PolicyKind, QueuePolicies};
use courser_codec::{FieldTable, ShortString};
use std::sync::Arc;

/// Queues, and exchanges, that are shown; of the others it is said how many they are.
const SHOWN_MAX: usize = 50;

/// What a policy would change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyPreview {
    /// Queues that its pattern matches and whose type it is for.
    pub matching_queues: usize,
    /// Queues for which something would change.
    pub changed_queues: usize,
    /// The first of those.
    pub queues: Vec<PreviewedQueue>,
    /// Exchanges for which something would change.
    pub changed_exchanges: usize,
    /// The first of those.
    pub exchanges: Vec<PreviewedExchange>,
}

/// A queue for which a policy would change something.
#[derive(Clone, Debug, PartialEq)]
pub struct PreviewedQueue {
    /// Its name.
    pub name: ShortString,
    /// The policy that counts for it now.
    pub policy_before: Option<String>,
    /// The policy that would count.
    pub policy_after: Option<String>,
    /// The arguments that it has with its policies now.
    pub before: FieldTable,
    /// Those that it would have.
    pub after: FieldTable,
}

/// An exchange for which a policy would change something.
#[derive(Clone, Debug, PartialEq)]
pub struct PreviewedExchange {
    /// Its name.
    pub name: ShortString,
    /// The policy that counts for it now.
    pub policy_before: Option<String>,
    /// The policy that would count.
    pub policy_after: Option<String>,
}

impl Admin {
    /// What would change if this policy were set in place of the one of its name. Nothing is set.
    ///
    /// # Errors
    /// When there is no such vhost, something in the policy is wrong, or there is no room for it.
    pub fn preview_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Result<PolicyPreview, PolicyError> {
        let vhost =
            self.broker.vhost(vhost).ok_or_else(|| PolicyError::NoVhost(vhost.to_owned()))?;
        policy.check(kind)?;
        let after = vhost.policies_now().with(kind, policy.clone())?;
        let mut preview = PolicyPreview::default();
        let matching = Policies::default().with(kind, policy)?;
        for queue in vhost.ordered_queues().starting_at(0) {
            let (name, arguments) = (queue.name.as_bytes(), &queue.settings.arguments);
            let queue_type = QueueType::of(arguments);
            let (before, after) = (queue.policies(), after.of_queue(name, queue_type));
            let matches = matching.of_queue(name, queue_type).of_kind(kind).is_some();
            preview.matching_queues += usize::from(matches);
            let effective = |policies: &QueuePolicies| {
                policies.effective(arguments).unwrap_or_else(|| arguments.clone())
            };
            let changed = PreviewedQueue {
                name: queue.name.clone(),
                policy_before: before.name(kind),
                policy_after: after.name(kind),
                before: effective(&before),
                after: effective(&after),
            };
            if changed.before == changed.after && changed.policy_before == changed.policy_after {
                continue;
            }
            preview.changed_queues += 1;
            if preview.queues.len() < SHOWN_MAX {
                preview.queues.push(changed);
            }
        }
        for exchange in vhost.ordered_exchanges().starting_at(0) {
            let (was, would_be) = (exchange.policy(), after.of_exchange(exchange.name.as_bytes()));
            let policy = |found: &Option<Arc<CompiledPolicy>>| {
                found.as_ref().map(|found| found.policy.clone())
            };
            let (was, would_be) = (policy(&was), policy(&would_be));
            if was == would_be {
                continue;
            }
            preview.changed_exchanges += 1;
            if preview.exchanges.len() < SHOWN_MAX {
                preview.exchanges.push(PreviewedExchange {
                    name: exchange.name.clone(),
                    policy_before: was.map(|policy| policy.name),
                    policy_after: would_be.map(|policy| policy.name),
                });
            }
        }
        Ok(preview)
    }
}

//! What a vhost has, in the order of names, for whoever pages through it.

use super::{PREDEFINED, Vhost};
use crate::arguments::QueueType;
use crate::exchange::Exchange;
use crate::monitor::{Ordered, Snapshot};
use crate::queue::Queue;
use courser_codec::{FieldTable, ShortString};
use std::sync::atomic::Ordering;

/// Kept in step with the names by whoever holds the write lock.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub queues: Ordered<Queue>,
    pub exchanges: Ordered<Exchange>,
}

/// The policies that count for a queue.
pub(crate) struct QueuePolicies {
    pub user: Option<String>,
    pub operator: Option<String>,
    /// What they ask for together.
    pub definition: FieldTable,
}

/// Whether every vhost has an exchange of this name.
pub(crate) fn is_predefined(name: &ShortString) -> bool {
    PREDEFINED.iter().any(|(predefined, _)| *name == *predefined)
}

impl Vhost {
    /// All queues, by name.
    pub(crate) fn ordered_queues(&self) -> Snapshot<Queue> {
        self.listed.queues.snapshot()
    }

    /// All exchanges, by name.
    pub(crate) fn ordered_exchanges(&self) -> Snapshot<Exchange> {
        self.listed.exchanges.snapshot()
    }

    /// Bindings, those by name at the default exchange not counted.
    pub(crate) fn binding_count(&self) -> usize {
        self.bindings.load(Ordering::Relaxed)
    }

    /// The policies that count for a queue, and what they ask for.
    pub(crate) fn policies_for_queue(&self, queue: &Queue) -> QueuePolicies {
        let policies = self.policies.read();
        let queue_type = QueueType::of(&queue.settings.arguments);
        let (user, operator) = policies.of_queue(queue.name.as_bytes(), queue_type);
        QueuePolicies {
            user: user.map(|policy| policy.name.clone()),
            operator: operator.map(|policy| policy.name.clone()),
            definition: policies.definition_for_queue(queue.name.as_bytes(), queue_type),
        }
    }

    /// The name of the policy that counts for a queue.
    pub(crate) fn policy_of_queue(&self, queue: &Queue) -> Option<String> {
        let policies = self.policies.read();
        let queue_type = QueueType::of(&queue.settings.arguments);
        policies.of_queue(queue.name.as_bytes(), queue_type).0.map(|policy| policy.name.clone())
    }

    /// The name of the operator policy that counts for a queue.
    pub(crate) fn operator_policy_of_queue(&self, queue: &Queue) -> Option<String> {
        let policies = self.policies.read();
        let queue_type = QueueType::of(&queue.settings.arguments);
        policies.of_queue(queue.name.as_bytes(), queue_type).1.map(|policy| policy.name.clone())
    }

    /// What the policies that count for a queue ask for together.
    pub(crate) fn effective_definition_of_queue(&self, queue: &Queue) -> FieldTable {
        let queue_type = QueueType::of(&queue.settings.arguments);
        self.policies.read().definition_for_queue(queue.name.as_bytes(), queue_type)
    }

    /// The name of the policy that counts for an exchange.
    pub(crate) fn policy_of_exchange(&self, exchange: &Exchange) -> Option<String> {
        let policies = self.policies.read();
        policies.of_exchange(exchange.name.as_bytes()).map(|policy| policy.name.clone())
    }
}

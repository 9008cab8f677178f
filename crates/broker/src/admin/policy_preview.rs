//! What a policy would change, before it is set.

use super::Admin;
use crate::arguments::QueueType;
use crate::exchange::Exchange;
use crate::monitor::Snapshot;
use crate::policy::{Policies, Policy, PolicyError, PolicyKind, QueuePolicies};
use crate::queue::Queue;
use crate::work::{self, Budget};
use courser_codec::{FieldTable, ShortString};
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// Queues, and exchanges, that are shown; of the others it is said how many they are.
const SHOWN_MAX: usize = 50;
/// Steps of a portion: some hundred names with usual patterns, and one with the costliest, which may take tens of milliseconds.
const PORTION_STEPS: u64 = 2048;
/// Bytes of a pattern for each that it costs: its compiled form, and twice as many to match it faster.
const BYTES_OF_COST: usize = 3;

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

/// A look at what a policy would change, in portions: patterns may take long to match all names with.
pub struct PolicyPreviewing {
    wanted: Wanted,
    queues: Snapshot<Queue>,
    exchanges: Snapshot<Exchange>,
    /// How many of those, queues first.
    looked_at: usize,
    found: Found,
    bytes: usize,
}

/// What would be.
struct Wanted {
    kind: PolicyKind,
    /// All policies of the vhost.
    after: Policies,
    /// The new one without the others.
    alone: Policies,
}

/// What has been found so far. Arguments are put together at the end: they may be large.
#[derive(Default)]
struct Found {
    matching_queues: usize,
    changed_queues: usize,
    /// The first of those, with what counts for each now and what would.
    queues: Vec<(Arc<Queue>, QueuePolicies, QueuePolicies)>,
    changed_exchanges: usize,
    exchanges: Vec<PreviewedExchange>,
}

impl Admin {
    /// Begins to look what would change if this policy were set in place of the one of its name. Nothing is set.
    ///
    /// # Errors
    /// When there is no such vhost, something in the policy is wrong, or there is no room for it.
    pub fn preview_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Result<PolicyPreviewing, PolicyError> {
        let vhost =
            self.broker.vhost(vhost).ok_or_else(|| PolicyError::NoVhost(vhost.to_owned()))?;
        policy.check(kind)?;
        let (name, bytes) = (policy.name.clone(), policy.bytes());
        let after = vhost.policies_now().with(kind, policy)?;
        // Compiled once: it may be large.
        let alone = after.only(kind, &name);
        Ok(PolicyPreviewing {
            bytes: bytes + BYTES_OF_COST * alone.cost(),
            wanted: Wanted { kind, after, alone },
            queues: vhost.ordered_queues(),
            exchanges: vhost.ordered_exchanges(),
            looked_at: 0,
            found: Found::default(),
        })
    }
}

impl PolicyPreviewing {
    /// Looks at some more queues and exchanges. Returns whether there are more.
    pub fn go_on(&mut self) -> bool {
        let PolicyPreviewing { wanted, queues, exchanges, looked_at, found, .. } = self;
        let budget = Budget::of_steps(PORTION_STEPS);
        for queue in queues.starting_at(*looked_at) {
            if budget.is_spent() {
                return true;
            }
            *looked_at += 1;
            wanted.look_at_queue(queue, found);
        }
        for exchange in exchanges.starting_at(*looked_at - queues.len()) {
            if budget.is_spent() {
                return true;
            }
            *looked_at += 1;
            wanted.look_at_exchange(exchange, found);
        }
        false
    }

    /// Bytes that it keeps for its policy, from its beginning to its end.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many queues and exchanges it has looked at, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        (self.looked_at, self.queues.len() + self.exchanges.len())
    }

    /// What it has found so far.
    pub fn found(&self) -> PolicyPreview {
        let (found, kind) = (&self.found, self.wanted.kind);
        let shown = found.queues.iter().map(|(queue, before, after)| PreviewedQueue {
            name: queue.name.clone(),
            policy_before: before.name(kind),
            policy_after: after.name(kind),
            before: effective(queue, before),
            after: effective(queue, after),
        });
        PolicyPreview {
            matching_queues: found.matching_queues,
            changed_queues: found.changed_queues,
            queues: shown.collect(),
            changed_exchanges: found.changed_exchanges,
            exchanges: found.exchanges.clone(),
        }
    }
}

impl Wanted {
    fn look_at_queue(&self, queue: &Arc<Queue>, found: &mut Found) {
        work::count(1);
        let (name, arguments) = (queue.name.as_bytes(), &queue.settings.arguments);
        let queue_type = QueueType::of(arguments);
        let matches = self.alone.of_queue(name, queue_type).of_kind(self.kind).is_some();
        found.matching_queues += usize::from(matches);
        let (before, after) = (queue.policies(), self.after.of_queue(name, queue_type));
        if are_same(&before, &after) {
            return;
        }
        work::count_values(arguments);
        if before.name(self.kind) == after.name(self.kind)
            && effective(queue, &before) == effective(queue, &after)
        {
            return;
        }
        found.changed_queues += 1;
        if found.queues.len() < SHOWN_MAX {
            found.queues.push((Arc::clone(queue), before, after));
        }
    }

    fn look_at_exchange(&self, exchange: &Exchange, found: &mut Found) {
        work::count(1);
        let (was, would_be) = (exchange.policy(), self.after.of_exchange(exchange.name.as_bytes()));
        let (was, would_be) =
            (was.as_ref().map(|one| &one.policy), would_be.as_ref().map(|one| &one.policy));
        if was == would_be {
            return;
        }
        found.changed_exchanges += 1;
        if found.exchanges.len() < SHOWN_MAX {
            found.exchanges.push(PreviewedExchange {
                name: exchange.name.clone(),
                policy_before: was.map(|policy| policy.name.clone()),
                policy_after: would_be.map(|policy| policy.name.clone()),
            });
        }
    }
}

/// Whether they are the very same policies, so that nothing has to be compared.
fn are_same(before: &QueuePolicies, after: &QueuePolicies) -> bool {
    [PolicyKind::User, PolicyKind::Operator].into_iter().all(|kind| {
        let of = |policies: &QueuePolicies| policies.of_kind(kind).map(ptr::from_ref);
        of(before) == of(after)
    })
}

/// The arguments that a queue has with these policies.
fn effective(queue: &Queue, policies: &QueuePolicies) -> FieldTable {
    let arguments = &queue.settings.arguments;
    policies.effective(arguments).unwrap_or_else(|| arguments.clone())
}

impl fmt::Debug for PolicyPreviewing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyPreviewing")
            .field("looked_at", &self.looked_at)
            .finish_non_exhaustive()
    }
}

//! The policies of a vhost, in the order in which they are looked at.

use super::pattern::NamePattern;
use super::{ApplyTo, Policy, PolicyError, PolicyKind, QueuePolicies, Takes, invalid};
use crate::arguments::{ALTERNATE_EXCHANGE, QueueType};
use courser_auth::PATTERN_COMPILED_BYTES_MAX;
use courser_codec::ShortString;
use courser_store::critical;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

/// Policies of one kind in one vhost.
const POLICIES_MAX: usize = 1000;
/// Bytes of the names, patterns and definitions of all policies of a vhost.
const POLICIES_BYTES_MAX: usize = 1 << 20;
/// What matching a name with all policies of a vhost may cost, as [`NamePattern::cost`]: twenty of the costliest patterns.
const POLICIES_COST_MAX: usize = 20 * PATTERN_COMPILED_BYTES_MAX;

/// Policies that are named where all of them take too long.
const SLOWEST: usize = 3;

/// A policy that can be matched.
#[derive(Debug)]
pub(crate) struct CompiledPolicy {
    kind: PolicyKind,
    /// From the configuration, and gone when it is no longer there.
    configured: bool,
    pub policy: Policy,
    pattern: NamePattern,
}

impl CompiledPolicy {
    /// One that has been set before, maybe under larger bounds. It is kept in any case: a pattern that was taken once keeps
    /// no broker from starting.
    pub fn restored(kind: PolicyKind, policy: Policy) -> Self {
        let pattern = NamePattern::restore(&policy.pattern);
        CompiledPolicy { kind, configured: false, policy, pattern }
    }

    /// Why it matches nothing, if its pattern can't be compiled any more.
    pub fn refused(&self) -> Option<&str> {
        self.pattern.refused()
    }

    /// Of all that match, the least one counts. No two have the same rank.
    fn rank(&self) -> (PolicyKind, Reverse<i64>, bool, &str) {
        (self.kind, Reverse(self.policy.priority), self.configured, &self.policy.name)
    }

    fn is(&self, kind: PolicyKind, configured: bool, name: &str) -> bool {
        self.kind == kind && self.configured == configured && self.policy.name == name
    }

    /// The alternate exchange that it gives to exchanges.
    pub fn alternate_exchange(&self) -> Option<ShortString> {
        let name = self.policy.definition.get(ALTERNATE_EXCHANGE)?;
        ShortString::new(name.as_long_str()?).ok()
    }
}

/// The policies of a vhost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    /// Those that count before others first.
    ranked: Vec<Arc<CompiledPolicy>>,
}

impl Policies {
    /// Takes a policy in, which has been found good, in place of the one of its name.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn insert(&mut self, kind: PolicyKind, policy: Policy) -> Result<(), PolicyError> {
        let pattern = NamePattern::new(&policy.pattern)?;
        let compiled = CompiledPolicy { kind, configured: false, policy, pattern };
        self.check_room(&compiled)?;
        self.put(compiled);
        Ok(())
    }

    /// Those that match nothing, as their patterns can't be compiled any more: their names, and why.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ranked.iter().filter_map(|one| Some((one.policy.name.as_str(), one.refused()?)))
    }

    /// These with one more, in place of the one of its name.
    pub fn with(&self, kind: PolicyKind, policy: Policy) -> Result<Self, PolicyError> {
        let mut with = self.clone();
        with.insert(kind, policy)?;
        Ok(with)
    }

    /// One of them without the others, which shares its pattern.
    pub fn only(&self, kind: PolicyKind, name: &str) -> Self {
        let set = self.ranked.iter().filter(|one| one.is(kind, false, name));
        Policies { ranked: set.map(Arc::clone).collect() }
    }

    fn check_room(&self, new: &CompiledPolicy) -> Result<(), PolicyError> {
        let is_replaced = |one: &CompiledPolicy| one.is(new.kind, new.configured, &new.policy.name);
        let others = || self.ranked.iter().filter(|one| !is_replaced(one));
        if others().filter(|one| one.kind == new.kind).count() >= POLICIES_MAX {
            return Err(PolicyError::TooMany(POLICIES_MAX));
        }
        let bytes: usize = others().map(|one| one.policy.bytes()).sum();
        if bytes + new.policy.bytes() > POLICIES_BYTES_MAX {
            return Err(PolicyError::TooLarge(POLICIES_BYTES_MAX));
        }
        let cost = others().map(|one| one.pattern.cost()).sum::<usize>() + new.pattern.cost();
        // What is there already may be changed, as long as that costs no more.
        if cost > POLICIES_COST_MAX.max(self.cost()) {
            let (most, largest) = (POLICIES_COST_MAX >> 10, PATTERN_COMPILED_BYTES_MAX >> 10);
            let why = format!(
                "is too costly: those of a vhost's policies may take {most} KiB together once they are compiled, and one with look-around or back-references counts as {largest} KiB"
            );
            return Err(invalid("pattern", why));
        }
        Ok(())
    }

    /// What matching a name with all of them may cost, as [`NamePattern::cost`].
    pub fn cost(&self) -> usize {
        self.ranked.iter().map(|one| one.pattern.cost()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ranked.is_empty()
    }

    /// Whether the same patterns are looked for in the same order as with others: these may say other things.
    pub fn are_matched_as(&self, others: &Self) -> bool {
        self.looked_for().eq(others.looked_for())
    }

    /// Whether they are the same, each word of them.
    pub fn are(&self, others: &Self) -> bool {
        let is = |(one, other): (&Arc<CompiledPolicy>, &Arc<CompiledPolicy>)| {
            other.is(one.kind, one.configured, &one.policy.name) && one.policy == other.policy
        };
        self.ranked.len() == others.ranked.len() && self.ranked.iter().zip(&others.ranked).all(is)
    }

    fn looked_for(&self) -> impl Iterator<Item = (PolicyKind, ApplyTo, &str)> {
        let all = self.ranked.iter().map(|one| (one.kind, &one.policy));
        all.map(|(kind, policy)| (kind, policy.apply_to, policy.pattern.as_str()))
    }

    /// Those that take longest to match with this name, by a clock of the current thread, those that take longer first.
    pub fn slowest(&self, name: &[u8], thread_time: fn() -> Duration) -> String {
        critical::assert_outside("patterns of policies are looked for");
        let timed = |one: &Arc<CompiledPolicy>| {
            let before = thread_time();
            one.pattern.is_match(name);
            (thread_time().saturating_sub(before), Arc::clone(one))
        };
        let mut all: Vec<_> = self.ranked.iter().map(timed).collect();
        // Stable: of the same time, the first that counts.
        all.sort_by_key(|(took, _)| Reverse(*took));
        let names = all.iter().take(SLOWEST).map(|(_, one)| format!("'{}'", one.policy.name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Whether there is a policy of this name, be it one from the configuration.
    pub fn has(&self, kind: PolicyKind, name: &str) -> bool {
        self.has_set(kind, name) || self.ranked.iter().any(|one| one.is(kind, true, name))
    }

    /// Whether there is a policy of this name that is not from the configuration.
    pub fn has_set(&self, kind: PolicyKind, name: &str) -> bool {
        self.ranked.iter().any(|one| one.is(kind, false, name))
    }

    /// Removes a policy. Returns whether it was there.
    pub fn remove(&mut self, kind: PolicyKind, name: &str) -> bool {
        let before = self.ranked.len();
        self.ranked.retain(|one| !one.is(kind, false, name));
        self.ranked.len() < before
    }

    /// Replaces everything that came from the configuration.
    pub fn configure(&mut self, policies: &[(PolicyKind, Policy)]) -> Result<(), PolicyError> {
        self.ranked.retain(|one| !one.configured);
        for (kind, policy) in policies.iter().cloned() {
            let pattern = NamePattern::new(&policy.pattern)?;
            self.put(CompiledPolicy { kind, configured: true, policy, pattern });
        }
        Ok(())
    }

    /// Takes a policy in, in place of the one of its name, without a look at what room there is.
    pub fn put(&mut self, new: CompiledPolicy) {
        self.ranked.retain(|one| !one.is(new.kind, new.configured, &new.policy.name));
        let place = self.ranked.partition_point(|one| one.rank() < new.rank());
        self.ranked.insert(place, Arc::new(new));
    }

    /// All of one kind, those from the configuration last, by name.
    pub fn list(&self, kind: PolicyKind) -> Vec<Policy> {
        let mut all: Vec<&CompiledPolicy> =
            self.ranked.iter().map(|one| &**one).filter(|one| one.kind == kind).collect();
        all.sort_unstable_by_key(|one| (one.configured, &one.policy.name));
        all.into_iter().map(|one| one.policy.clone()).collect()
    }

    /// Those of one kind that have to survive a restart, by name.
    pub fn list_kept(&self, kind: PolicyKind) -> Vec<Policy> {
        let mut kept = Vec::new();
        self.for_each_kept(&mut |of, policy| {
            if of == kind {
                kept.push(policy.clone());
            }
        });
        kept.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        kept
    }

    /// Calls `each` for every policy that has to survive a restart.
    pub fn for_each_kept(&self, each: &mut dyn FnMut(PolicyKind, &Policy)) {
        let kept = self.ranked.iter().filter(|one| !one.configured);
        kept.for_each(|one| each(one.kind, &one.policy));
    }

    /// The policy that counts: the one of the highest priority, and among those the one whose name
    /// comes first, that it may not depend on chance. Patterns of lower ranks are not looked at.
    fn best(
        &self,
        kind: PolicyKind,
        name: &[u8],
        takes: impl Fn(ApplyTo) -> bool,
    ) -> Option<Arc<CompiledPolicy>> {
        let mut of_kind = self.ranked.iter().filter(|one| one.kind == kind);
        let counts =
            |one: &&Arc<CompiledPolicy>| takes(one.policy.apply_to) && one.pattern.is_match(name);
        of_kind.find(counts).map(Arc::clone)
    }

    /// The policies that count for a queue. With costly patterns that takes long: nothing is locked meanwhile.
    pub fn of_queue(&self, name: &[u8], queue_type: QueueType) -> QueuePolicies {
        if self.ranked.is_empty() {
            return QueuePolicies::default();
        }
        critical::assert_outside("patterns of policies are looked for");
        let takes = |apply_to: ApplyTo| apply_to.takes_queue(queue_type);
        QueuePolicies {
            user: self.best(PolicyKind::User, name, takes),
            operator: self.best(PolicyKind::Operator, name, takes),
            took: Takes::default(),
        }
    }

    /// The policy that counts for an exchange, likewise.
    pub fn of_exchange(&self, name: &[u8]) -> Option<Arc<CompiledPolicy>> {
        if self.ranked.is_empty() {
            return None;
        }
        critical::assert_outside("patterns of policies are looked for");
        self.best(PolicyKind::User, name, ApplyTo::takes_exchanges)
    }
}

//! Policies: settings that an operator gives to all queues or exchanges whose names match a pattern,
//! while they are in use.
//!
//! Of all policies that match, the one of the highest priority counts; so it is with operator
//! policies, which bound what policies and arguments ask for. [`Policies`] keeps those of a vhost,
//! `effective` says what comes of arguments and policies together, `keys` what may be in a
//! definition, `pattern` which names a policy is for.

mod effective;
mod keys;
mod pattern;

use crate::arguments::QueueType;
use crate::fault::Fault;
use courser_codec::FieldTable;
use courser_store::StoreError;
use pattern::NamePattern;
use std::collections::BTreeMap;
use std::fmt;

/// Policies of one kind in one vhost.
const POLICIES_MAX: usize = 1000;
/// Bytes of the names, patterns and definitions of all policies of a vhost.
const POLICIES_BYTES_MAX: usize = 1 << 20;

/// Who has made a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// Whoever administers the vhost.
    User,
    /// The operator of the broker, who sets bounds: fewer keys, and the smaller number counts.
    Operator,
}

/// What a policy is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApplyTo {
    /// Queues of every type, and exchanges.
    #[default]
    All = 0,
    /// Queues of every type.
    Queues = 1,
    /// Exchanges.
    Exchanges = 2,
    /// Queues of the type `classic`.
    ClassicQueues = 3,
    /// Queues of the type `quorum`.
    QuorumQueues = 4,
    /// Queues of the type `stream`.
    Streams = 5,
}

/// A policy as an operator writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its name, which is its own in its vhost and kind: 1 to 255 bytes.
    pub name: String,
    /// A regular expression of at most 4096 bytes that a name has to match somewhere (`^` and `$` anchor it). One
    /// with look-around or back-references matches no name that takes it too many steps.
    pub pattern: String,
    /// What it is for.
    pub apply_to: ApplyTo,
    /// The higher one counts.
    pub priority: i64,
    /// The settings: keys are the names of arguments without their `x-`.
    pub definition: FieldTable,
}

/// Why a policy can't be had.
#[derive(Debug)]
pub enum PolicyError {
    /// There is no such vhost.
    NoVhost(String),
    /// The vhost is in a group of the cluster that this broker does not serve.
    NotServed(Fault),
    /// There are as many as there may be.
    TooMany(usize),
    /// Those of the vhost would have more bytes together than they may have.
    TooLarge(usize),
    /// Something in it is wrong.
    Invalid {
        /// What is wrong, as `pattern` or `definition.message-ttl`.
        key: String,
        /// Why.
        why: String,
    },
    /// It can't be kept.
    Store(StoreError),
    /// Nothing can be changed in the vhost for now.
    NotNow(Fault),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::NoVhost(name) => write!(f, "vhost '{name}' not found"),
            PolicyError::NotServed(fault) => f.write_str(&fault.explanation),
            PolicyError::TooMany(most) => {
                write!(f, "there are the {most} policies that a vhost may have")
            }
            PolicyError::TooLarge(most) => {
                write!(f, "the policies of a vhost have at most {most} bytes together")
            }
            PolicyError::Invalid { key, why } => write!(f, "{key} {why}"),
            PolicyError::Store(error) => error.fmt(f),
            PolicyError::NotNow(fault) => f.write_str(&fault.explanation),
        }
    }
}

impl std::error::Error for PolicyError {}

impl ApplyTo {
    const NAMES: [(&'static str, ApplyTo); 6] = [
        ("all", ApplyTo::All),
        ("queues", ApplyTo::Queues),
        ("exchanges", ApplyTo::Exchanges),
        ("classic_queues", ApplyTo::ClassicQueues),
        ("quorum_queues", ApplyTo::QuorumQueues),
        ("streams", ApplyTo::Streams),
    ];

    /// What this name stands for.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, meant)| *meant)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, meant)| *meant == self).map_or("all", |(name, _)| name)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::NAMES.iter().map(|(_, meant)| *meant).find(|meant| *meant as u8 == byte)
    }

    fn takes_queue(self, queue_type: QueueType) -> bool {
        match self {
            ApplyTo::All | ApplyTo::Queues => true,
            ApplyTo::Exchanges => false,
            ApplyTo::ClassicQueues => queue_type == QueueType::Classic,
            ApplyTo::QuorumQueues => queue_type == QueueType::Quorum,
            ApplyTo::Streams => queue_type == QueueType::Stream,
        }
    }

    fn takes_exchanges(self) -> bool {
        matches!(self, ApplyTo::All | ApplyTo::Exchanges)
    }
}

impl Policy {
    /// Refuses what no broker could follow.
    pub fn check(&self, kind: PolicyKind) -> Result<(), PolicyError> {
        if self.name.is_empty() || self.name.len() > 255 {
            return Err(invalid("name", "must have 1 to 255 bytes"));
        }
        if kind == PolicyKind::Operator && self.apply_to == ApplyTo::Exchanges {
            return Err(invalid("apply_to", "is for queues in an operator policy"));
        }
        keys::check(&self.definition, kind, self.apply_to)?;
        NamePattern::new(&self.pattern).map(drop)
    }

    /// What counts towards the bytes of a vhost's policies.
    fn bytes(&self) -> usize {
        self.name.len() + self.pattern.len() + self.definition.entries_len()
    }
}

fn invalid(key: impl Into<String>, why: impl Into<String>) -> PolicyError {
    PolicyError::Invalid { key: key.into(), why: why.into() }
}

/// A policy that can be matched.
#[derive(Clone, Debug)]
struct Compiled {
    policy: Policy,
    pattern: NamePattern,
    /// From the configuration, and gone when it is no longer there.
    configured: bool,
}

/// The policies of a vhost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    by_name: BTreeMap<(PolicyKind, bool, String), Compiled>,
}

impl Policies {
    /// Whether there is none, which is all that most queues have to know.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Takes a policy in, which has been found good, in place of the one of its name.
    pub fn insert(&mut self, kind: PolicyKind, policy: Policy) -> Result<(), PolicyError> {
        self.put(kind, NamePattern::new(&policy.pattern)?, policy, false);
        Ok(())
    }

    /// Takes a policy in that has been set before, maybe under larger bounds.
    pub fn restore(&mut self, kind: PolicyKind, policy: Policy) -> Result<(), PolicyError> {
        self.put(kind, NamePattern::restore(&policy.pattern)?, policy, false);
        Ok(())
    }

    /// These with one more, in place of the one of its name.
    pub fn with(&self, kind: PolicyKind, policy: Policy) -> Result<Self, PolicyError> {
        let mut with = self.clone();
        with.insert(kind, policy)?;
        Ok(with)
    }

    /// Whether one more policy, or another one of the same name, has room.
    pub fn check_room(&self, kind: PolicyKind, policy: &Policy) -> Result<(), PolicyError> {
        let key = (kind, false, policy.name.clone());
        let others = || self.by_name.iter().filter(|(other, _)| **other != key);
        if others().filter(|((other, ..), _)| *other == kind).count() >= POLICIES_MAX {
            return Err(PolicyError::TooMany(POLICIES_MAX));
        }
        let bytes: usize = others().map(|(_, compiled)| compiled.policy.bytes()).sum();
        if bytes + policy.bytes() > POLICIES_BYTES_MAX {
            return Err(PolicyError::TooLarge(POLICIES_BYTES_MAX));
        }
        Ok(())
    }

    /// Whether there is a policy of this name, be it one from the configuration.
    pub fn has(&self, kind: PolicyKind, name: &str) -> bool {
        let is_there = |configured| self.by_name.contains_key(&(kind, configured, name.to_owned()));
        is_there(false) || is_there(true)
    }

    /// Removes a policy. Returns whether it was there.
    pub fn remove(&mut self, kind: PolicyKind, name: &str) -> bool {
        self.by_name.remove(&(kind, false, name.to_owned())).is_some()
    }

    /// Replaces everything that came from the configuration.
    pub fn configure(&mut self, policies: Vec<(PolicyKind, Policy)>) -> Result<(), PolicyError> {
        self.by_name.retain(|_, compiled| !compiled.configured);
        policies.into_iter().try_for_each(|(kind, policy)| {
            self.put(kind, NamePattern::new(&policy.pattern)?, policy, true);
            Ok(())
        })
    }

    fn put(&mut self, kind: PolicyKind, pattern: NamePattern, policy: Policy, configured: bool) {
        let key = (kind, configured, policy.name.clone());
        self.by_name.insert(key, Compiled { policy, pattern, configured });
    }

    /// All of one kind, by name.
    pub fn list(&self, kind: PolicyKind) -> Vec<Policy> {
        let all = self.by_name.iter().filter(|((of, ..), _)| *of == kind);
        all.map(|(_, compiled)| compiled.policy.clone()).collect()
    }

    /// Calls `each` for every policy that has to survive a restart.
    pub fn for_each_kept(&self, each: &mut dyn FnMut(PolicyKind, &Policy)) {
        let kept = self.by_name.iter().filter(|(_, compiled)| !compiled.configured);
        kept.for_each(|((kind, ..), compiled)| each(*kind, &compiled.policy));
    }

    /// The policy that counts: the one of the highest priority, and among those the one whose name
    /// comes first, that it may not depend on chance.
    fn best(
        &self,
        kind: PolicyKind,
        name: &[u8],
        takes: impl Fn(ApplyTo) -> bool,
    ) -> Option<&Policy> {
        let candidates = self.by_name.iter().filter(|((of, ..), compiled)| {
            *of == kind && takes(compiled.policy.apply_to) && compiled.pattern.is_match(name)
        });
        let policies = candidates.map(|(_, compiled)| &compiled.policy);
        policies.min_by_key(|policy| std::cmp::Reverse(policy.priority))
    }

    /// The policies that count for a queue: the user's and the operator's.
    pub fn of_queue(
        &self,
        name: &[u8],
        queue_type: QueueType,
    ) -> (Option<&Policy>, Option<&Policy>) {
        let takes = |apply_to: ApplyTo| apply_to.takes_queue(queue_type);
        (self.best(PolicyKind::User, name, takes), self.best(PolicyKind::Operator, name, takes))
    }

    /// What the policies that count for a queue ask for together.
    pub fn definition_for_queue(&self, name: &[u8], queue_type: QueueType) -> FieldTable {
        let (user, operator) = self.of_queue(name, queue_type);
        let definition = |policy: Option<&Policy>| policy.map(|policy| policy.definition.clone());
        effective::merge(
            definition(user).unwrap_or_default(),
            &definition(operator).unwrap_or_default(),
        )
    }

    /// The policy that counts for an exchange.
    pub fn of_exchange(&self, name: &[u8]) -> Option<&Policy> {
        self.best(PolicyKind::User, name, ApplyTo::takes_exchanges)
    }

    /// What a queue with these arguments does, all policies considered; none if that is just what
    /// its arguments say.
    pub fn effective_queue(&self, name: &[u8], arguments: &FieldTable) -> Option<FieldTable> {
        if self.is_empty() {
            return None;
        }
        let queue_type = QueueType::of(arguments);
        let (user, operator) = self.of_queue(name, queue_type);
        if user.is_none() && operator.is_none() {
            return None;
        }
        let policy = self.definition_for_queue(name, queue_type);
        Some(effective::apply(arguments, &policy, queue_type))
    }

    /// The alternate exchange that a policy gives to an exchange.
    pub fn alternate_exchange(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.of_exchange(name)?
            .definition
            .get(crate::arguments::ALTERNATE_EXCHANGE)?
            .as_long_str()
            .map(<[u8]>::to_vec)
    }
}

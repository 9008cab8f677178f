//! Policies: settings that an operator gives to all queues or exchanges whose names match a pattern,
//! while they are in use.
//!
//! Of all policies that match, the one of the highest priority counts; so it is with operator
//! policies, which bound what policies and arguments ask for. [`Policies`] keeps those of a vhost,
//! `effective` says what comes of arguments and policies together, `keys` what may be in a
//! definition, `pattern` which names a policy is for, `found` what was found to count for a queue: that is worked out when
//! the queue is made and when policies change, and remembered.

mod effective;
mod found;
mod keys;
mod of_vhost;
mod pattern;

pub(crate) use found::{Counting, ExchangePolicy, QueuePolicies, Takes, Took};
pub use keys::{is_rabbitmq_only, policy_keys};
pub(crate) use of_vhost::{CompiledPolicy, Policies};

use crate::arguments::QueueType;
use crate::fault::Fault;
use courser_auth::{Pattern, PatternError};
use courser_codec::FieldTable;
use courser_store::StoreError;
use pattern::NamePattern;
use std::fmt;

/// Who has made a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// A user who administers the vhost.
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
    /// It would take too long to match all names of the vhost with its policies.
    TooSlow(String),
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
            PolicyError::TooSlow(why) => f.write_str(why),
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
        keys::check(&self.definition, kind)?;
        NamePattern::new(&self.pattern).map(drop)
    }

    /// Whether nothing is wrong with it but its pattern, which an earlier version may have taken: of policies alone, these
    /// once had no bound of their length, and a wider one of their compiled form.
    pub fn is_outdated(&self, kind: PolicyKind) -> bool {
        let refused = self.check(kind);
        let is_large = || {
            let read = Pattern::new(&self.pattern);
            matches!(read, Err(PatternError::Length | PatternError::TooLarge(_)))
        };
        matches!(refused, Err(PolicyError::Invalid { key, .. }) if key == "pattern")
            && (is_large() || Pattern::is_outdated(&self.pattern))
    }

    /// What counts towards the bytes of a vhost's policies.
    pub(crate) fn bytes(&self) -> usize {
        self.name.len() + self.pattern.len() + self.definition.entries_len()
    }
}

fn invalid(key: impl Into<String>, why: impl Into<String>) -> PolicyError {
    PolicyError::Invalid { key: key.into(), why: why.into() }
}

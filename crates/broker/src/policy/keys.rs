//! What may be in the definition of a policy.

use super::{PolicyError, PolicyKind, invalid};
use crate::arguments::{self, ALTERNATE_EXCHANGE};
use crate::limits::OPERATOR_VALUE_BYTES_MAX;
use courser_auth::NAME_BYTES_MAX;
use courser_codec::{FieldTable, FieldValue};

/// How a number or text of a policy and one of an argument become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The smaller one counts; a negative one stands for no limit.
    Least,
    /// The shorter time counts: `7D`, `1h`.
    Shortest,
    /// The argument counts.
    Argument,
    /// The policy counts.
    Policy,
    /// As [`Rule::Least`], but of two policies the larger one counts.
    Floor,
}

/// A key that means something for queues.
pub(super) struct Key {
    pub name: &'static str,
    pub rule: Rule,
    /// It may be in an operator policy.
    operator: bool,
}

const fn key(name: &'static str, rule: Rule, operator: bool) -> Key {
    Key { name, rule, operator }
}

/// Each is the name of an argument of `queue.declare` without its `x-`.
pub(super) const QUEUE_KEYS: [Key; 23] = [
    key("expires", Rule::Least, true),
    key("message-ttl", Rule::Least, true),
    key("max-length", Rule::Least, true),
    key("max-length-bytes", Rule::Least, true),
    key("delivery-limit", Rule::Least, true),
    key("consumer-timeout", Rule::Least, false),
    key("deliver-before-commit", Rule::Argument, false),
    key("overflow", Rule::Argument, true),
    key("dead-letter-exchange", Rule::Argument, false),
    key("dead-letter-routing-key", Rule::Argument, false),
    key("dead-letter-strategy", Rule::Argument, false),
    key("delayed-retry-type", Rule::Policy, true),
    key("delayed-retry-min", Rule::Floor, true),
    key("delayed-retry-max", Rule::Least, true),
    key("max-age", Rule::Shortest, false),
    key("stream-max-segment-size-bytes", Rule::Least, false),
    key("queue-mode", Rule::Argument, false),
    key("queue-version", Rule::Argument, true),
    // Where queues are and how streams are stored is not for them to say here, as with the arguments.
    key("queue-leader-locator", Rule::Argument, false),
    key("queue-master-locator", Rule::Argument, false),
    key("initial-cluster-size", Rule::Argument, false),
    key("stream-filter-size-bytes", Rule::Argument, false),
    key("consumer-disconnected-timeout", Rule::Least, false),
];

/// What RabbitMQ's policies may have besides, and does nothing here: mirrors, sizes of groups, what is kept in memory,
/// federation, and sharding.
const RABBITMQ_ONLY: [&str; 14] = [
    "federation-upstream",
    "federation-upstream-pattern",
    "federation-upstream-set",
    "ha-mode",
    "ha-params",
    "ha-promote-on-failure",
    "ha-promote-on-shutdown",
    "ha-sync-batch-size",
    "ha-sync-mode",
    "max-in-memory-bytes",
    "max-in-memory-length",
    "routing-key",
    "shards-per-node",
    "target-group-size",
];

/// Whether a policy of RabbitMQ may have this key, and none here.
pub fn is_rabbitmq_only(key: &str) -> bool {
    RABBITMQ_ONLY.contains(&key)
}

/// Refuses a definition with a key that means nothing, or a value that the argument would not take.
pub(super) fn check(definition: &FieldTable, kind: PolicyKind) -> Result<(), PolicyError> {
    if definition.is_empty() {
        return Err(invalid("definition", "is empty"));
    }
    if definition.entries_len() > OPERATOR_VALUE_BYTES_MAX {
        let why = format!("has more than {OPERATOR_VALUE_BYTES_MAX} bytes");
        return Err(invalid("definition", why));
    }
    for (name, value) in definition.iter() {
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        let wrong = |why: String| invalid(format!("definition.{name}"), why);
        // A text is a name, a routing key, a choice or a duration.
        if value.as_long_str().is_some_and(|text| text.len() > NAME_BYTES_MAX) {
            return Err(wrong(format!("has more than {NAME_BYTES_MAX} bytes")));
        }
        if name == ALTERNATE_EXCHANGE && kind == PolicyKind::User {
            check_alternate_exchange(value).map_err(wrong)?;
            continue;
        }
        let Some(known) = QUEUE_KEYS.iter().find(|known| known.name == name) else {
            let names = policy_keys(kind).collect::<Vec<_>>().join(", ");
            let what = match is_rabbitmq_only(&name) {
                true => "is RabbitMQ's and does nothing here",
                false => "is unknown",
            };
            return Err(wrong(format!("{what}; there are {names}")));
        };
        if kind == PolicyKind::Operator && !known.operator {
            let names = policy_keys(kind).collect::<Vec<_>>().join(", ");
            return Err(wrong(format!("is not for operator policies; there are {names}")));
        }
        arguments::check_given(&format!("x-{name}"), value).map_err(wrong)?;
    }
    check_delayed_retry(definition)
}

/// A type without a shortest wait would do nothing, and the longest wait is no shorter than that.
fn check_delayed_retry(definition: &FieldTable) -> Result<(), PolicyError> {
    let of = definition.get("delayed-retry-type").and_then(FieldValue::as_str);
    let time_ms = |name| definition.get(name).and_then(FieldValue::as_integer);
    match (time_ms("delayed-retry-min"), time_ms("delayed-retry-max")) {
        (None, _) if of.is_some_and(|of| of != "disabled") => {
            Err(invalid("definition.delayed-retry-type", "needs delayed-retry-min beside it"))
        }
        (_, Some(max_ms)) if max_ms <= 0 => {
            Err(invalid("definition.delayed-retry-max", "is no positive number"))
        }
        (Some(min_ms), Some(max_ms)) if max_ms < min_ms => {
            Err(invalid("definition.delayed-retry-max", "is smaller than delayed-retry-min"))
        }
        _ => Ok(()),
    }
}

/// What a definition of this kind may have.
pub fn policy_keys(kind: PolicyKind) -> impl Iterator<Item = &'static str> {
    let of_queues = QUEUE_KEYS.iter().filter(move |key| kind == PolicyKind::User || key.operator);
    let of_exchanges = (kind == PolicyKind::User).then_some(ALTERNATE_EXCHANGE);
    of_queues.map(|key| key.name).chain(of_exchanges)
}

fn check_alternate_exchange(value: &FieldValue) -> Result<(), String> {
    match value.as_long_str() {
        Some(_) => Ok(()),
        None => Err(format!("is no text but {}", value.type_name())),
    }
}

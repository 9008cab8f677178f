//! What comes of arguments and policies together.

use super::keys::{Key, QUEUE_KEYS, Rule};
use crate::arguments::{self, QueueType};
use crate::stream;
use courser_codec::{FieldTable, FieldValue, ShortString};

/// The definitions of a user's and an operator's policy as one: of two numbers the smaller, or the larger where that is the
/// stricter bound, of two texts the operator's.
pub(super) fn merge(user: FieldTable, operator: &FieldTable) -> FieldTable {
    let mut merged = user;
    for key in &QUEUE_KEYS {
        let Some(bound) = operator.get(key.name) else { continue };
        let value = match merged.get(key.name) {
            Some(wanted) => match key.rule {
                Rule::Argument | Rule::Policy => bound,
                Rule::Least | Rule::Shortest => lesser(key, wanted, bound),
                Rule::Floor => greater(wanted, bound),
            },
            None => bound,
        };
        let value = value.clone();
        put(&mut merged, key.name, value);
    }
    merged
}

/// The arguments that a queue of this type has with a policy.
pub(super) fn apply(
    arguments: &FieldTable,
    policy: &FieldTable,
    queue_type: QueueType,
) -> FieldTable {
    let mut effective = arguments.clone();
    for key in &QUEUE_KEYS {
        let Some(given) = policy.get(key.name) else { continue };
        let name = format!("x-{}", key.name);
        if !arguments::takes(&name, queue_type) {
            continue;
        }
        let value = match arguments.get(&name) {
            Some(declared) => match key.rule {
                Rule::Argument => declared,
                Rule::Policy => given,
                Rule::Least | Rule::Shortest | Rule::Floor => lesser(key, declared, given),
            },
            None => given,
        };
        let value = value.clone();
        put(&mut effective, &name, value);
    }
    effective
}

fn put(table: &mut FieldTable, name: &str, value: FieldValue) {
    // The names are ours, and short.
    if let Ok(name) = ShortString::try_from(name) {
        table.insert(name, value);
    }
}

fn greater<'v>(a: &'v FieldValue, b: &'v FieldValue) -> &'v FieldValue {
    if a.as_integer() >= b.as_integer() { a } else { b }
}

fn lesser<'v>(key: &Key, a: &'v FieldValue, b: &'v FieldValue) -> &'v FieldValue {
    let size = |value: &FieldValue| match key.rule {
        Rule::Shortest => value.as_long_str().and_then(stream::parse_interval_ms),
        _ => value.as_integer().and_then(|number| u64::try_from(number).ok()),
    };
    // What is no size is no limit.
    if size(a).unwrap_or(u64::MAX) <= size(b).unwrap_or(u64::MAX) { a } else { b }
}

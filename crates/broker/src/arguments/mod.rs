//! The arguments of declarations: which are known, what values they take, when two agree.

mod consumer;
mod exchange;
mod known;
mod queue;
mod tables;
mod value;

pub(crate) use consumer::{check_consumer, consumer_priority, consumer_timeout_ms};
pub(crate) use exchange::{ALTERNATE_EXCHANGE, check_equivalent_exchange, check_exchange};
pub use known::{ArgumentOf, Effect, KnownArgument, known_arguments};
pub(crate) use queue::{
    DEAD_LETTER_EXCHANGE, QUEUE_TYPE, QueueType, check_equivalent_queue, check_given, check_queue,
    names_type, ranks, single_active, takes,
};
pub(crate) use tables::{digest, same_table};
pub(crate) use value::MAX_EXPIRY_MS;

use crate::fault::{Fault, Resource};
use courser_codec::{FieldTable, FieldValue};

/// Bytes that arguments may have: they are kept, and in the log they are part of a key that has 64 KiB at most.
const BYTES_MAX: usize = 32 * 1024;

/// Refuses arguments that are too large, wherever they come from.
pub(crate) fn check_size(arguments: &FieldTable) -> Result<(), Fault> {
    check_bytes(arguments.entries_len())
}

/// The same of so many bytes.
pub(crate) fn check_bytes(bytes: usize) -> Result<(), Fault> {
    if bytes > BYTES_MAX {
        return Err(Fault::precondition_failed(format_args!(
            "arguments of {bytes} bytes are larger than the maximum of {BYTES_MAX}"
        )));
    }
    Ok(())
}

fn check_equivalent<'n>(
    current: &FieldTable,
    received: &FieldTable,
    names: impl Iterator<Item = &'n str>,
    resource: Resource<'_>,
) -> Result<(), Fault> {
    for name in names {
        let (current, received) = (current.get(name), received.get(name));
        let (current, received) = match (current, received) {
            (None, None) => continue,
            (Some(a), Some(b)) if equivalent(a, b) => continue,
            (Some(a), Some(b)) => (quote(a), quote(b)),
            (current, received) => (describe(current), describe(received)),
        };
        return Err(inequivalent(name, resource, &received, &current));
    }
    Ok(())
}

/// 406 for a redeclaration that differs in `name`.
pub(crate) fn inequivalent(
    name: &str,
    resource: Resource<'_>,
    received: &str,
    current: &str,
) -> Fault {
    Fault::precondition_failed(format_args!(
        "inequivalent arg '{name}' for {resource}: received {received} but current is {current}"
    ))
}

/// Integers agree by value, whatever their width.
fn equivalent(a: &FieldValue, b: &FieldValue) -> bool {
    match (a.as_integer(), b.as_integer()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn describe(value: Option<&FieldValue>) -> String {
    match value {
        None => "none".to_owned(),
        Some(value) => {
            format!("the value '{}' of type '{}'", print(value), value.type_name())
        }
    }
}

/// A value that stands for itself, in quotes.
fn quote(value: &FieldValue) -> String {
    match value {
        FieldValue::Void => "none".to_owned(),
        value => format!("'{}'", print(value)),
    }
}

/// A value as an explanation shows it: text as it is, all else as a term.
fn print(value: &FieldValue) -> String {
    match value.as_long_str() {
        Some(text) => String::from_utf8_lossy(text).into_owned(),
        None => term(value),
    }
}

/// A value as an Erlang term, as far as explanations need it.
pub(crate) fn term(value: &FieldValue) -> String {
    match value {
        FieldValue::Void => "undefined".to_owned(),
        FieldValue::Bool(flag) => flag.to_string(),
        FieldValue::F32(number) => format!("{number:?}"),
        FieldValue::F64(number) => format!("{number:?}"),
        FieldValue::Timestamp(seconds) => seconds.to_string(),
        FieldValue::LongStr(text) if text.is_empty() => "<<>>".to_owned(),
        FieldValue::LongStr(text) => format!("<<\"{}\">>", String::from_utf8_lossy(text)),
        FieldValue::Array(values) if values.is_empty() => "[]".to_owned(),
        FieldValue::Table(table) if table.is_empty() => "[]".to_owned(),
        value => value.as_integer().map_or_else(|| format!("{value:?}"), |it| it.to_string()),
    }
}

//! The arguments of `exchange.declare`.

use super::{check_equivalent, value};
use crate::exchange::{DELAYED_TYPE, ExchangeKind, Hashed, history};
use crate::fault::{Fault, Resource};
use crate::routing::deduplication;
use courser_codec::{FieldTable, FieldValue};

/// Names the exchange that gets what finds no destination.
pub(crate) const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

/// Checks the arguments of an exchange that is to be made.
pub(crate) fn check_exchange(
    kind: ExchangeKind,
    arguments: &FieldTable,
    exchange: Resource<'_>,
) -> Result<(), Fault> {
    if let Some(alternate) = arguments.get(ALTERNATE_EXCHANGE) {
        match alternate.as_long_str() {
            Some(name) if name.len() <= 255 => {}
            Some(_) => {
                return Err(Fault::precondition_failed(format_args!(
                    "invalid arg '{ALTERNATE_EXCHANGE}' for {exchange}: longer than a name"
                )));
            }
            None => {
                return Err(Fault::precondition_failed(format_args!(
                    "invalid type '{}' for arg '{ALTERNATE_EXCHANGE}' in {exchange}",
                    alternate.type_name()
                )));
            }
        }
    }
    check_deduplication(kind, arguments, &exchange)?;
    match kind {
        ExchangeKind::ConsistentHash => {
            Hashed::parse(arguments).map(drop).map_err(Fault::precondition_failed)
        }
        ExchangeKind::RecentHistory => check_history_length(arguments),
        ExchangeKind::Delayed => {
            let kind = check_delayed_type(arguments)?;
            check_exchange(kind, arguments, exchange)
        }
        _ => Ok(()),
    }
}

/// Any exchange may drop what has been there before; the type that is there for it has to say how
/// much it remembers.
fn check_deduplication(
    kind: ExchangeKind,
    arguments: &FieldTable,
    exchange: &Resource<'_>,
) -> Result<(), Fault> {
    let is_type = kind == ExchangeKind::Deduplicating;
    if is_type && arguments.get(deduplication::CACHE_SIZE).is_none() {
        return Err(Fault::precondition_failed(format_args!(
            "Missing or invalid argument, '{}' must be an integer greater than 0",
            deduplication::CACHE_SIZE
        )));
    }
    if !is_type && arguments.get(deduplication::ARGUMENT).is_none() {
        return Ok(());
    }
    let checks: [(&str, value::Check); 5] = [
        (deduplication::ARGUMENT, value::flag),
        (deduplication::HEADER, value::header_name),
        (deduplication::CACHE_SIZE, value::cache_size),
        (deduplication::CACHE_TTL, value::expiry),
        ("x-cache-persistence", value::cache_persistence),
    ];
    for (name, check) in checks {
        let Some(value) = arguments.get(name) else { continue };
        check(value, arguments).map_err(|why| {
            Fault::precondition_failed(format_args!("invalid arg '{name}' for {exchange}: {why}"))
        })?;
    }
    Ok(())
}

fn check_history_length(arguments: &FieldTable) -> Result<(), Fault> {
    let Some(length) = arguments.get(history::LENGTH) else { return Ok(()) };
    match length.as_integer() {
        Some(1..=history::LENGTH_MAX) => Ok(()),
        Some(number) if number > 0 => Err(Fault::precondition_failed(format_args!(
            "Invalid argument {number}, '{}' must be at most {}",
            history::LENGTH,
            history::LENGTH_MAX
        ))),
        _ => {
            let shown = super::term(length);
            Err(Fault::precondition_failed(format_args!(
                "Invalid argument {shown}, '{}' must be a positive integer",
                history::LENGTH
            )))
        }
    }
}

/// The type that a delayed exchange routes as.
fn check_delayed_type(arguments: &FieldTable) -> Result<ExchangeKind, Fault> {
    let named = arguments.get(DELAYED_TYPE).and_then(FieldValue::as_long_str);
    let Some(name) = named else {
        return Err(Fault::precondition_failed(format_args!(
            "Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type"
        )));
    };
    match (ExchangeKind::parse(name), ExchangeKind::delayed(arguments)) {
        (None, _) => Err(Fault::precondition_failed(format_args!(
            "unknown exchange type '{}'",
            String::from_utf8_lossy(name)
        ))),
        (Some(kind), None) => Err(Fault::precondition_failed(format_args!(
            "Invalid argument, '{}' can't be used for '{DELAYED_TYPE}'",
            kind.name()
        ))),
        (Some(_), Some(kind)) => Ok(kind),
    }
}

/// Checks a redeclaration of an exchange against the arguments it has. As in RabbitMQ, only the
/// alternate exchange counts.
pub(crate) fn check_equivalent_exchange(
    current: &FieldTable,
    received: &FieldTable,
    exchange: Resource<'_>,
) -> Result<(), Fault> {
    check_equivalent(current, received, [ALTERNATE_EXCHANGE].into_iter(), exchange)
}

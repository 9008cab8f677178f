//! The arguments of `exchange.declare`.

use super::known::Effect;
use super::{check_equivalent, value};
use crate::exchange::{DELAYED_TYPE, ExchangeKind, HASH_HEADER, HASH_PROPERTY, Hashed, history};
use crate::fault::{Fault, Resource};
use crate::routing::deduplication;
use courser_codec::{FieldTable, FieldValue};

/// Names the exchange that gets what finds no destination.
pub(crate) const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

/// Which exchanges an argument means something for.
enum For {
    Every,
    /// Those of a type, and delayed ones that route as it.
    Type(ExchangeKind),
    /// Those that drop what has been there before.
    Deduplication,
}

/// How an argument is looked at.
enum Check {
    Value(value::Check),
    /// Refuses it in words of its own.
    Worded(fn(&FieldTable, &Resource<'_>) -> Result<(), Fault>),
}

/// An argument that means something.
struct Known {
    name: &'static str,
    wanted: For,
    check: Check,
    effect: Effect,
}

const fn known(name: &'static str, wanted: For, check: Check) -> Known {
    Known { name, wanted, check, effect: Effect::Done }
}

/// In the order in which they are checked. For exchanges of other types, RabbitMQ takes them and does nothing, and so
/// does this broker.
const KNOWN: [Known; 10] = [
    known(ALTERNATE_EXCHANGE, For::Every, Check::Worded(check_alternate)),
    known(deduplication::ARGUMENT, For::Deduplication, Check::Value(value::flag)),
    known(deduplication::HEADER, For::Deduplication, Check::Value(value::header_name)),
    known(deduplication::CACHE_SIZE, For::Deduplication, Check::Value(value::cache_size)),
    known(deduplication::CACHE_TTL, For::Deduplication, Check::Value(value::expiry)),
    Known {
        name: "x-cache-persistence",
        wanted: For::Deduplication,
        check: Check::Value(value::cache_persistence),
        // There is one value, which says what is so by itself.
        effect: Effect::None,
    },
    known(HASH_HEADER, For::Type(ExchangeKind::ConsistentHash), Check::Worded(check_hashed)),
    known(HASH_PROPERTY, For::Type(ExchangeKind::ConsistentHash), Check::Worded(check_hashed)),
    known(
        history::LENGTH,
        For::Type(ExchangeKind::RecentHistory),
        Check::Worded(check_history_length),
    ),
    known(DELAYED_TYPE, For::Type(ExchangeKind::Delayed), Check::Worded(check_delayed)),
];

/// The name of each, and what comes of it.
pub(super) fn effects() -> impl Iterator<Item = (&'static str, Effect)> {
    KNOWN.iter().map(|known| (known.name, known.effect))
}

/// Checks the arguments of an exchange that is to be made.
pub(crate) fn check_exchange(
    kind: ExchangeKind,
    arguments: &FieldTable,
    exchange: Resource<'_>,
) -> Result<(), Fault> {
    super::check_size(arguments)?;
    let routes_as = match kind {
        ExchangeKind::Delayed => check_delayed_type(arguments)?,
        kind => kind,
    };
    let is = |wanted: ExchangeKind| kind == wanted || routes_as == wanted;
    // The type that is there for it has to say how much it remembers.
    let is_deduplicating = is(ExchangeKind::Deduplicating);
    if is_deduplicating && arguments.get(deduplication::CACHE_SIZE).is_none() {
        return Err(Fault::precondition_failed(format_args!(
            "Missing or invalid argument, '{}' must be an integer greater than 0",
            deduplication::CACHE_SIZE
        )));
    }
    let deduplicates = is_deduplicating || arguments.get(deduplication::ARGUMENT).is_some();
    for Known { name, wanted, check, .. } in &KNOWN {
        let is_meant = match wanted {
            For::Every => true,
            For::Type(wanted) => is(*wanted),
            For::Deduplication => deduplicates,
        };
        let Some(value) = arguments.get(name).filter(|_| is_meant) else { continue };
        match check {
            Check::Worded(check) => check(arguments, &exchange)?,
            Check::Value(check) => check(value, arguments).map_err(|why| {
                Fault::precondition_failed(format_args!(
                    "invalid arg '{name}' for {exchange}: {why}"
                ))
            })?,
        }
    }
    Ok(())
}

fn check_alternate(arguments: &FieldTable, exchange: &Resource<'_>) -> Result<(), Fault> {
    let Some(alternate) = arguments.get(ALTERNATE_EXCHANGE) else { return Ok(()) };
    match alternate.as_long_str() {
        Some(name) if name.len() <= 255 => Ok(()),
        Some(_) => Err(Fault::precondition_failed(format_args!(
            "invalid arg '{ALTERNATE_EXCHANGE}' for {exchange}: longer than a name"
        ))),
        None => Err(Fault::precondition_failed(format_args!(
            "invalid type '{}' for arg '{ALTERNATE_EXCHANGE}' in {exchange}",
            alternate.type_name()
        ))),
    }
}

fn check_hashed(arguments: &FieldTable, _: &Resource<'_>) -> Result<(), Fault> {
    Hashed::parse(arguments).map(drop).map_err(Fault::precondition_failed)
}

fn check_delayed(arguments: &FieldTable, _: &Resource<'_>) -> Result<(), Fault> {
    check_delayed_type(arguments).map(drop)
}

fn check_history_length(arguments: &FieldTable, _: &Resource<'_>) -> Result<(), Fault> {
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

//! The arguments of `exchange.declare`.

use super::check_equivalent;
use crate::exchange::{ExchangeKind, Hashed};
use crate::fault::{Fault, Resource};
use courser_codec::FieldTable;

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
    match kind {
        ExchangeKind::ConsistentHash => {
            Hashed::parse(arguments).map(drop).map_err(Fault::precondition_failed)
        }
        _ => Ok(()),
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

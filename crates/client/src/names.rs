//! Names as short strings.

use courser_codec::ShortStr;

use crate::error::Error;

/// A name as the protocol has it; `what` it is tells the error.
pub(crate) fn short<'a>(what: &'static str, name: &'a str) -> Result<ShortStr<'a>, Error> {
    ShortStr::try_from(name).map_err(|error| Error::TooLong { what, len: error.len })
}

/// Name of a queue.
pub(crate) fn queue_name(name: &str) -> Result<ShortStr<'_>, Error> {
    short("a queue's name", name)
}

/// Name of an exchange.
pub(crate) fn exchange_name(name: &str) -> Result<ShortStr<'_>, Error> {
    short("an exchange's name", name)
}

/// A routing key.
pub(crate) fn routing_key(key: &str) -> Result<ShortStr<'_>, Error> {
    short("a routing key", key)
}

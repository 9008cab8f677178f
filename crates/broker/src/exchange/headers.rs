//! Headers exchanges: the binding's arguments against the message's headers (AMQP 0-9-1, 3.1.3.4).

use super::{BindingKey, Destination};
use courser_codec::ShortString;
use courser_codec::{FieldTable, FieldValue, Table};

/// The argument of a binding that says how its other arguments are compared.
pub(crate) const X_MATCH: &str = "x-match";

#[derive(Default)]
pub(super) struct HeadersIndex(Vec<HeadersBinding>);

struct HeadersBinding {
    destination: Destination,
    key: BindingKey,
    any: bool,
    wanted: Vec<(ShortString, FieldValue)>,
}

impl HeadersIndex {
    pub fn matches(&self, headers: Table<'_>, found: &mut dyn FnMut(&Destination)) {
        if self.0.is_empty() {
            return;
        }
        // Headers that can't be decoded match nothing that asks for a header.
        let headers = headers.to_owned().unwrap_or_default();
        let matching = self.0.iter().filter(|binding| binding.matches(&headers));
        matching.for_each(|binding| found(&binding.destination));
    }

    pub fn add(&mut self, destination: &Destination, key: &BindingKey) {
        let with_x = matches!(match_mode(&key.arguments), Some(b"all-with-x" | b"any-with-x"));
        let wanted = key.arguments.iter().filter(|(name, _)| {
            name.as_bytes() != X_MATCH.as_bytes() && (with_x || !name.as_bytes().starts_with(b"x-"))
        });
        self.0.push(HeadersBinding {
            destination: destination.clone(),
            key: key.clone(),
            any: matches!(match_mode(&key.arguments), Some(b"any" | b"any-with-x")),
            wanted: wanted.map(|(name, value)| (name.clone(), value.clone())).collect(),
        });
    }

    pub fn remove(&mut self, destination: u64, key: &BindingKey) {
        self.0.retain(|binding| {
            binding.destination.id() != destination
                || binding.key.routing_key != key.routing_key
                || binding.key.arguments != key.arguments
        });
    }
}

impl HeadersBinding {
    fn matches(&self, headers: &FieldTable) -> bool {
        let agrees = |(name, wanted): &(ShortString, FieldValue)| {
            headers.get(name.as_bytes()).is_some_and(|value| {
                // A wanted header without a value asks only that it is there.
                matches!(wanted, FieldValue::Void) || same(wanted, value)
            })
        };
        if self.any { self.wanted.iter().any(agrees) } else { self.wanted.iter().all(agrees) }
    }
}

/// Numbers are compared by value, whatever their width: clients choose it, not their users.
fn same(wanted: &FieldValue, value: &FieldValue) -> bool {
    match (wanted.as_integer(), value.as_integer()) {
        (Some(wanted), Some(value)) => wanted == value,
        _ => wanted == value,
    }
}

/// What `x-match` says, if it is text.
pub(crate) fn match_mode(arguments: &FieldTable) -> Option<&[u8]> {
    match arguments.get(X_MATCH.as_bytes()) {
        Some(FieldValue::LongStr(mode)) => Some(mode),
        _ => None,
    }
}

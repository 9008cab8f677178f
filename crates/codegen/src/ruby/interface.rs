//! Where the interface of the `amq-protocol` gem says more than the description: who encodes and decodes what, and the
//! names that it has for fields that the protocol keeps reserved.

use crate::model::{Class, Field, From, Method, Wire};
use crate::names::snake;

/// Methods that a client sends or receives only one way, and that the gem knows both ways.
const BOTH_WAYS: &[&str] = &[
    "connection.blocked",
    "connection.unblocked",
    "connection.update-secret",
    "connection.update-secret-ok",
    "confirm.select",
    "confirm.select-ok",
];

/// Methods that both sides send, and that the gem does not encode.
const NOT_ENCODED: &[&str] = &["basic.cancel-ok"];

/// Names of reserved fields, by method.
const NAMED_RESERVED: &[(&str, &str)] = &[
    ("connection.open-ok", "known_hosts"),
    ("channel.open", "out_of_band"),
    ("channel.open-ok", "channel_id"),
    ("basic.get-empty", "cluster_id"),
];

/// `basic.ack`
pub(super) fn full_name(class: &Class, method: &Method) -> String {
    format!("{}.{}", class.name, method.name)
}

/// Whether the method's class has `encode`.
pub(super) fn encodes(class: &Class, method: &Method) -> bool {
    let name = full_name(class, method);
    let sent = matches!(method.from, From::Client | From::Both);
    (sent || BOTH_WAYS.contains(&name.as_str())) && !NOT_ENCODED.contains(&name.as_str())
}

/// Whether the method's class has `decode`.
pub(super) fn decodes(class: &Class, method: &Method) -> bool {
    let received = matches!(method.from, From::Server | From::Both);
    received || BOTH_WAYS.contains(&full_name(class, method).as_str())
}

/// The name that Ruby programs know a field by, if they see it.
pub(super) fn field_name(class: &Class, method: &Method, field: &Field) -> Option<String> {
    if !field.reserved {
        return Some(snake(&field.name));
    }
    let method = full_name(class, method);
    NAMED_RESERVED.iter().find(|(name, _)| *name == method).map(|(_, name)| (*name).to_owned())
}

/// The fields that Ruby programs see, with their names.
pub(super) fn fields<'m>(class: &Class, method: &'m Method) -> Vec<(String, &'m Field)> {
    let named = |field: &'m Field| field_name(class, method, field).map(|name| (name, field));
    method.fields.iter().filter_map(named).collect()
}

/// Whether `encode` takes a channel; those of a connection are always on channel 0.
pub(super) fn takes_channel(class: &Class) -> bool {
    class.name != "connection"
}

/// The method whose frames carry a content, and whose `encode` takes it.
pub(super) fn is_publish(class: &Class, method: &Method) -> bool {
    encodes(class, method) && method.content
}

/// What a field means, for the documentation.
pub(super) fn doc(field: &Field) -> &str {
    if field.reserved { "Without a meaning; kept for old programs." } else { &field.doc }
}

/// The Ruby class of a field's value when it is read.
pub(super) fn ruby_type(wire: Wire) -> &'static str {
    match wire {
        Wire::Bit => "Boolean",
        Wire::Octet | Wire::Short | Wire::Long | Wire::LongLong => "Integer",
        Wire::ShortStr | Wire::LongStr => "String",
        Wire::Table => "Hash",
        Wire::Timestamp => "Time",
    }
}

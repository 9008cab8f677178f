//! Queues with arguments, and what dead letters say of themselves.

use super::{Client, Delivery, Heard, short};
use courser_codec::{FieldTable, FieldValue, Table, queue};

/// Declares a queue with these arguments.
pub fn declare_with(client: &mut Client, name: &str, durable: bool, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    let queue = short(name);
    let declare = queue::Declare { queue, durable, arguments, ..Default::default() };
    let declared = client.call(declare);
    assert!(matches!(declared, Heard::DeclareOk { .. }), "{declared:?}");
}

/// The headers of a delivery.
pub fn headers(delivery: &Delivery) -> FieldTable {
    delivery.properties.headers.clone().unwrap_or_default()
}

/// The deaths of a delivery, as `queue reason count`, latest first.
pub fn deaths(delivery: &Delivery) -> Vec<String> {
    let headers = headers(delivery);
    let deaths = headers.get("x-death").and_then(FieldValue::as_array).unwrap_or_default();
    let print = |death: &FieldValue| {
        let table = death.as_table().expect("a table");
        let text = |key| table.get(key).and_then(FieldValue::as_str).expect("a text").to_owned();
        let count = table.get("count").and_then(FieldValue::as_integer).expect("a number");
        format!("{} {} {count}", text("queue"), text("reason"))
    };
    deaths.iter().map(print).collect()
}

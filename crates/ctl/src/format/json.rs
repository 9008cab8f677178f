//! Rows as JSON objects, one on a line.

use serde_json::Value;
use std::io::{self, Write};

pub(super) fn array(columns: &[String], rows: &[Vec<Value>], to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "[")?;
    for (index, row) in rows.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        writeln!(to, "{comma}{}", object(columns, row))?;
    }
    writeln!(to, "]")
}

pub(super) fn stream(
    columns: &[String],
    rows: &[Vec<Value>],
    to: &mut dyn Write,
) -> io::Result<()> {
    rows.iter().try_for_each(|row| writeln!(to, "{}", object(columns, row)))
}

/// An object whose members are in the order of the columns.
fn object(columns: &[String], row: &[Value]) -> String {
    let name = |name: &String| Value::from(name.as_str());
    let members: Vec<String> = columns
        .iter()
        .zip(row)
        .map(|(column, value)| format!("{}:{value}", name(column)))
        .collect();
    format!("{{{}}}", members.join(","))
}

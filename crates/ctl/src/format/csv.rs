//! Comma-separated values, all of them in quotes.

use super::cell;
use serde_json::Value;
use std::io::{self, Write};

pub(super) fn write(
    columns: &[String],
    rows: &[Vec<Value>],
    header: bool,
    to: &mut dyn Write,
) -> io::Result<()> {
    if header && !rows.is_empty() {
        let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        writeln!(to, "{}", names.join(","))?;
    }
    for row in rows {
        let cells: Vec<String> = row.iter().map(|value| quoted(&cell(value))).collect();
        writeln!(to, "{}", cells.join(","))?;
    }
    Ok(())
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

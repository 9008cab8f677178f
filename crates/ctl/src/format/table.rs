//! Rows with tabs between their cells. A list without rows has no header either.

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
        writeln!(to, "{}", columns.join("\t"))?;
    }
    for row in rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        writeln!(to, "{}", cells.join("\t"))?;
    }
    Ok(())
}

//! A table with a frame around its cells.

use super::cell;
use serde_json::Value;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

pub(super) fn write(
    columns: &[String],
    rows: &[Vec<Value>],
    header: bool,
    to: &mut dyn Write,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<Vec<String>> = Vec::new();
    if header {
        lines.push(columns.to_vec());
    }
    lines.extend(rows.iter().map(|row| row.iter().map(cell).collect()));
    let mut widths = vec![0; columns.len()];
    for line in &lines {
        for (width, text) in widths.iter_mut().zip(line) {
            *width = (*width).max(text.width());
        }
    }
    rule(&widths, ["┌", "┬", "┐"], to)?;
    for (index, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(text, width)| format!(" {text}{} ", " ".repeat(width - text.width())))
            .collect();
        writeln!(to, "│{}│", cells.join("│"))?;
        if header && index == 0 {
            rule(&widths, ["├", "┼", "┤"], to)?;
        }
    }
    rule(&widths, ["└", "┴", "┘"], to)
}

fn rule(widths: &[usize], [left, middle, right]: [&str; 3], to: &mut dyn Write) -> io::Result<()> {
    let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    writeln!(to, "{left}{}{right}", parts.join(middle))
}

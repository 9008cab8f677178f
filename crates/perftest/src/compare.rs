//! Two runs side by side.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::latency::Summary;
use crate::report::{FORMAT, Report};
use crate::text::human_time;

/// Why a report can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct ReadError {
    path: PathBuf,
    why: String,
}

/// Reads what `--json` has written.
///
/// # Errors
/// When it is no such file, or one of another version of the tool.
pub fn read(path: &Path) -> Result<Report, ReadError> {
    let error = |why: String| ReadError { path: path.to_owned(), why };
    let text = std::fs::read(path).map_err(|why| error(why.to_string()))?;
    let json: serde_json::Value =
        serde_json::from_slice(&text).map_err(|why| error(why.to_string()))?;
    match json.get("format").and_then(serde_json::Value::as_u64) {
        None => return Err(error("not a report of perftest".to_owned())),
        Some(format) if format != u64::from(FORMAT) => {
            return Err(error(format!("a report of format {format}; this version reads {FORMAT}")));
        }
        Some(_) => {}
    }
    serde_json::from_value(json).map_err(|why| error(why.to_string()))
}

/// What two runs have in common, and what not.
pub struct Comparison {
    rows: Vec<Row>,
    /// Name, and both values, of each setting that differs.
    settings: Vec<(String, String, String)>,
}

/// One figure of both.
struct Row {
    name: String,
    before: f64,
    after: f64,
    unit: Unit,
    /// Whether `--fail-above` looks at it.
    decides: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    /// More is better.
    PerSecond,
    /// Nanoseconds; less is better.
    Time,
    /// Messages; less is better.
    Count,
}

impl Row {
    /// By how many percent it is more than before.
    fn change(&self) -> Option<f64> {
        (self.before > 0.0).then(|| (self.after / self.before - 1.0) * 100.0)
    }

    /// By how many percent it is worse than before.
    fn worse(&self) -> f64 {
        let change = self.change().unwrap_or(0.0);
        if self.unit == Unit::PerSecond { -change } else { change }
    }

    fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::PerSecond | Unit::Count => format!("{value:.0}"),
            Unit::Time => human_time(value as u64),
        }
    }
}

impl Comparison {
    /// Compares two runs.
    #[must_use]
    pub fn new(before: &Report, after: &Report) -> Self {
        let mut rows = Vec::new();
        for (name, before, after) in [
            ("published, msg/s", before.published, after.published),
            ("consumed, msg/s", before.consumed, after.consumed),
            ("confirmed, msg/s", before.confirmed, after.confirmed),
        ] {
            rows.push(Row {
                name: name.to_owned(),
                before: before.per_s,
                after: after.per_s,
                unit: Unit::PerSecond,
                decides: true,
            });
        }
        add_latency(&mut rows, "consumer", before.consumer_latency, after.consumer_latency);
        add_latency(&mut rows, "confirm", before.confirm_latency, after.confirm_latency);
        for (name, before, after) in [
            ("lost", before.fate.lost, after.fate.lost),
            ("left after the drain", before.fate.undrained, after.fate.undrained),
            ("arrived more than once", before.fate.duplicates, after.fate.duplicates),
            ("refused", before.fate.nacked, after.fate.nacked),
            ("never confirmed", before.fate.unconfirmed, after.fate.unconfirmed),
        ] {
            let (before, after) = (before as f64, after as f64);
            rows.push(Row {
                name: name.to_owned(),
                before,
                after,
                unit: Unit::Count,
                decides: false,
            });
        }
        rows.retain(|row| row.before > 0.0 || row.after > 0.0);
        Self { rows, settings: differences(before, after) }
    }

    /// The figures that are worse by more than so many percent.
    #[must_use]
    pub fn worse_by(&self, percent: f64) -> Vec<String> {
        let worse = self.rows.iter().filter(|row| row.decides && row.worse() > percent);
        worse.map(|row| format!("{}: worse by {:.1} %", row.name, row.worse())).collect()
    }

    /// A table of all figures.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "{:<26} {:>14} {:>14} {:>10}", "", "before", "after", "change")?;
        for row in &self.rows {
            let change = row.change().map_or(String::new(), |change| format!("{change:+.1} %"));
            let (before, after) = (row.show(row.before), row.show(row.after));
            writeln!(out, "{:<26} {before:>14} {after:>14} {change:>10}", row.name)?;
        }
        if !self.settings.is_empty() {
            writeln!(out, "\nSettings that differ:")?;
        }
        for (name, before, after) in &self.settings {
            writeln!(out, "  {name}: {before}, then {after}")?;
        }
        Ok(())
    }
}

fn add_latency(rows: &mut Vec<Row>, name: &str, before: Option<Summary>, after: Option<Summary>) {
    let (Some(before), Some(after)) = (before, after) else { return };
    for (what, before, after, decides) in [
        ("median", before.median_ns, after.median_ns, true),
        ("95th", before.p95_ns, after.p95_ns, false),
        ("99th", before.p99_ns, after.p99_ns, true),
        ("99.9th", before.p999_ns, after.p999_ns, false),
        ("max", before.max_ns, after.max_ns, false),
    ] {
        let name = format!("{name} latency, {what}");
        rows.push(Row {
            name,
            before: before as f64,
            after: after as f64,
            unit: Unit::Time,
            decides,
        });
    }
}

fn differences(before: &Report, after: &Report) -> Vec<(String, String, String)> {
    let settings = |report: &Report| serde_json::to_value(&report.settings).unwrap_or_default();
    let (before, after) = (settings(before), settings(after));
    let Some(before) = before.as_object() else { return Vec::new() };
    let changed = before.iter().filter(|(name, value)| after[name.as_str()] != **value);
    changed
        .map(|(name, value)| (name.clone(), value.to_string(), after[name.as_str()].to_string()))
        .collect()
}

//! The text format 0.0.4 of Prometheus, written by hand: RabbitMQ's dashboards want names and types as
//! they are in it, and the libraries there are write OpenMetrics, or hold all rows in memory.

use std::fmt::{self, Write as _};

/// The header of an answer in this format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What kind of numbers a metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gauge,
    Counter,
    Histogram,
    Summary,
    Untyped,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
            Kind::Untyped => "untyped",
        }
    }
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
    /// The number is not known: there is no row.
    Unknown,
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Whole(number)
    }
}

impl From<Option<u64>> for Value {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Value::Unknown, Value::Whole)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Value::Whole(number as u64)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Whole(flag.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Real(number)
    }
}

impl From<std::time::Duration> for Value {
    fn from(time: std::time::Duration) -> Self {
        Value::Real(time.as_secs_f64())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Whole(number) => write!(f, "{number}"),
            Value::Real(number) => write!(f, "{number}"),
            Value::Unknown => Ok(()),
        }
    }
}

/// Labels as they stand between braces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(String);

impl Labels {
    /// With one label more.
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.add(name, value);
        self
    }

    pub fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let separator = if self.0.is_empty() { "" } else { "," };
        // A string takes whatever is written to it.
        let _ = write!(self.0, "{separator}{name}=\"");
        for character in String::from_utf8_lossy(value.as_ref()).chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        self.0.push('"');
    }

    /// Forgets all, for the next row.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Where a page is written to.
#[derive(Debug, Default)]
pub(crate) struct Text(pub String);

impl Text {
    /// What stands before the rows of a metric.
    pub fn header(&mut self, (prefix, name): (&str, &str), kind: Kind, help: &str) {
        let kind = kind.name();
        let _ = write!(self.0, "# TYPE {prefix}{name} {kind}\n# HELP {prefix}{name} {help}\n");
    }

    /// A row.
    pub fn row(&mut self, (prefix, name): (&str, &str), labels: &Labels, value: Value) {
        self.row_of((prefix, name, ""), labels, value);
    }

    /// A row of one of the series that a histogram or summary consists of; none where the number is not known.
    pub fn row_of(
        &mut self,
        (prefix, name, suffix): (&str, &str, &str),
        Labels(labels): &Labels,
        value: Value,
    ) {
        if value == Value::Unknown {
            return;
        }
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        let _ = writeln!(self.0, "{prefix}{name}{suffix}{open}{labels}{close} {value}");
    }
}

/// The number of a histogram's border as dashboards ask for it, which is also how Prometheus 3 writes
/// it: `100.0`, `1e+06`.
pub(crate) fn border(number: f64) -> String {
    if number >= 1e6 {
        let exponent = number.log10().floor() as i32;
        let mantissa = number / 10f64.powi(exponent);
        return format!("{mantissa}e+{exponent:02}");
    }
    if number.fract() == 0.0 { format!("{number:.1}") } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let labels = Labels::default().with("queue", "a\"b\\c\nd").with("vhost", b"\xff/");
        let mut text = Text::default();
        text.row(("x_", "y"), &labels, Value::Whole(1));
        assert_eq!(text.0, "x_y{queue=\"a\\\"b\\\\c\\nd\",vhost=\"\u{fffd}/\"} 1\n");
    }

    #[test]
    fn numbers_are_those_that_prometheus_reads() {
        let shown = |value: Value| value.to_string();
        assert_eq!(shown(1.5.into()), "1.5");
        assert_eq!(shown(u64::MAX.into()), "18446744073709551615");
        assert_eq!(shown(true.into()), "1");
    }

    #[test]
    fn a_number_that_is_not_known_has_no_row() {
        let mut text = Text::default();
        text.row(("x_", "y"), &Labels::default(), None.into());
        text.row(("x_", "z"), &Labels::default(), Some(3).into());
        assert_eq!(text.0, "x_z 3\n");
    }

    #[test]
    fn borders_are_spelled_as_dashboards_spell_them() {
        let sizes = [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 5e7, 1e8];
        let wanted = ["100.0", "1000.0", "10000.0", "100000.0", "1e+06", "1e+07", "5e+07", "1e+08"];
        assert_eq!(sizes.map(border), wanted);
        assert_eq!([5e-5, 2.5e-3, 0.25, 5.0].map(border), ["0.00005", "0.0025", "0.25", "5.0"]);
    }
}

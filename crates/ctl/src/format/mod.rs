//! How what a command shows is written: as a table, or for programs.

mod csv;
mod erlang;
mod json;
mod pretty;
mod table;
mod time;

use crate::failure::{CANT_CREATE, Failure};
use crate::spec::Output;
use serde_json::{Value, json};
use std::io::{self, ErrorKind, Write};
pub use time::rfc3339;

/// The forms that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Format {
    /// Tab-separated cells
    #[default]
    Table,
    /// A table with borders
    PrettyTable,
    /// A JSON document
    Json,
    /// One JSON object per line
    JsonStream,
    /// Comma-separated values, all quoted
    Csv,
    /// An Erlang term
    Erlang,
}

/// A form, and what is left out of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    pub format: Format,
    pub is_quiet: bool,
    pub is_silent: bool,
    pub without_headers: bool,
}

impl Style {
    /// Whether it is said what is going to be done. Programs want the answer alone.
    pub fn says_intent(self) -> bool {
        let is_for_people = matches!(self.format, Format::Table | Format::PrettyTable);
        is_for_people && !self.is_quiet && !self.is_silent
    }

    fn has_header(self) -> bool {
        !self.is_silent && !self.without_headers
    }

    /// Writes what a command shows. A reader that has seen enough is no failure.
    pub fn write(self, output: Output, to: &mut dyn Write) -> Result<(), Failure> {
        let written = match output {
            Output::Nothing => Ok(()),
            Output::Raw(bytes) => to.write_all(&bytes),
            Output::Rows { columns, rows } => self.rows(&columns, &rows, to),
            Output::Text(text) => self.text(&text, None, to),
            Output::Both(text, value) => self.text(&text, Some(value), to),
        };
        match written.and_then(|()| to.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten(&error)),
            _ => Ok(()),
        }
    }

    /// Says what is going to be done, to people only.
    pub fn say(self, line: &str) -> Result<(), Failure> {
        if !self.says_intent() {
            return Ok(());
        }
        self.write(Output::Text(line.to_owned()), &mut io::stdout().lock())
    }

    /// Writes one of many lines that come by and by. Tells whether they are still read.
    pub fn line(self, line: &Value) -> Result<bool, Failure> {
        let mut to = io::stdout().lock();
        is_read(writeln!(to, "{line}").and_then(|()| to.flush()))
    }

    /// Writes one of many rows that come by and by: JSON as a line for each. Tells whether they are still read.
    pub fn row(self, columns: &[String], row: Vec<Value>, is_first: bool) -> Result<bool, Failure> {
        let format = match self.format {
            Format::Json => Format::JsonStream,
            other => other,
        };
        let without_headers = self.without_headers || !is_first;
        let mut to = io::stdout().lock();
        let written = Style { format, without_headers, ..self }.rows(columns, &[row], &mut to);
        is_read(written.and_then(|()| to.flush()))
    }

    fn rows(self, columns: &[String], rows: &[Vec<Value>], to: &mut dyn Write) -> io::Result<()> {
        let header = self.has_header();
        match self.format {
            Format::Table => table::write(columns, rows, header, to),
            Format::PrettyTable => pretty::write(columns, rows, header, to),
            Format::Json => json::array(columns, rows, to),
            Format::JsonStream => json::stream(columns, rows, to),
            Format::Csv => csv::write(columns, rows, header, to),
            Format::Erlang => erlang::rows(columns, rows, to),
        }
    }

    fn text(self, text: &str, value: Option<Value>, to: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::Json | Format::JsonStream => {
                let value = value.unwrap_or_else(|| json!({ "status": "ok", "message": text }));
                writeln!(to, "{value}")
            }
            Format::Csv => writeln!(to, "{}", csv::quoted(text)),
            Format::Erlang => writeln!(to, "{}", erlang::document(text, value.as_ref())),
            Format::Table | Format::PrettyTable => writeln!(to, "{text}"),
        }
    }
}

/// Whether what was written has a reader.
fn is_read(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(unwritten(&error)),
    }
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::error(CANT_CREATE, format!("can't write the output: {error}"))
}

/// A value as a cell of a table. Names may hold anything: a control character must neither move the
/// cursor nor begin a new row.
pub(crate) fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(cell).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let pairs: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{{\"{name}\",{}}}", inner(value)))
                .collect();
            format!("[{}]", pairs.join(", "))
        }
        other => other.to_string(),
    };
    plain(&text)
}

/// A value in a list of pairs: texts in quotes.
fn inner(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        other => cell(other),
    }
}

/// Lines as one text: what stands in one does not begin another.
pub(crate) fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| plain(line)).collect::<Vec<_>>().join("\n")
}

/// A text with those of its characters escaped that have no place on a line.
pub(crate) fn plain(text: &str) -> String {
    if !text.chars().any(steers) {
        return text.to_owned();
    }
    let escape = |c: char| if steers(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Whether a terminal obeys a character instead of showing it: a control character, one that ends a line, or one that changes the
/// direction of those around it, so that a text reads as another one.
pub fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk without room.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_that_cannot_be_written_is_a_failure_with_its_code() {
        let written = Style::default().write(Output::Text("a".to_owned()), &mut Full);
        assert_eq!(written.expect_err("no room").code, CANT_CREATE);
    }

    fn written(style: Style, output: Output) -> String {
        let mut bytes = Vec::new();
        style.write(output, &mut bytes).expect("written");
        String::from_utf8(bytes).expect("text")
    }

    fn rows() -> Output {
        Output::Rows {
            columns: vec!["user".into(), "tags".into(), "on".into()],
            rows: vec![
                vec![json!("guest"), json!(["a", "b"]), json!(true)],
                vec![json!("ä\u{1b}[31m\n\""), json!([]), Value::Null],
            ],
        }
    }

    fn style(format: Format) -> Style {
        Style { format, ..Style::default() }
    }

    #[test]
    fn a_table_has_tabs_and_no_padding() {
        let table = written(style(Format::Table), rows());
        assert_eq!(table, "user\ttags\ton\nguest\t[a, b]\ttrue\nä\\u{1b}[31m\\n\"\t[]\t\n");
        let silent = Style { is_silent: true, ..Style::default() };
        assert!(written(silent, rows()).starts_with("guest\t"));
        let empty = Output::Rows { columns: vec!["name".into()], rows: Vec::new() };
        assert_eq!(written(Style::default(), empty), "", "without rows there is no header");
    }

    #[test]
    fn json_is_an_array_with_an_object_on_each_line() {
        let text = written(style(Format::Json), rows());
        assert!(
            text.starts_with("[\n{\"user\":\"guest\",\"tags\":[\"a\",\"b\"],\"on\":true}\n,{"),
            "{text}"
        );
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read[1]["user"], "ä\u{1b}[31m\n\"");
        let lines = written(style(Format::JsonStream), rows());
        assert_eq!(lines.lines().count(), 2);
        let done = written(style(Format::Json), Output::Text("Done".into()));
        let done: Value = serde_json::from_str(&done).expect("JSON");
        assert_eq!(done, json!({ "status": "ok", "message": "Done" }));
    }

    #[test]
    fn characters_that_reorder_a_line_or_end_it_are_escaped() {
        for c in ['\u{202e}', '\u{2066}', '\u{2069}', '\u{2028}'] {
            assert_eq!(plain(&format!("a{c}ü")), format!("a{}ü", c.escape_default()));
        }
    }

    #[test]
    fn csv_quotes_everything() {
        let text = written(style(Format::Csv), rows());
        assert_eq!(text.lines().next(), Some("\"user\",\"tags\",\"on\""));
        assert!(text.contains("\"guest\",\"[a, b]\",\"true\"\n"), "{text}");
        assert!(text.contains("\\n\"\"\",\"[]\",\"\"\n"), "{text}");
    }

    #[test]
    fn a_pretty_table_has_a_frame_whose_lines_are_equally_long() {
        let text = written(style(Format::PrettyTable), rows());
        let widths: Vec<usize> = text.lines().map(unicode_width::UnicodeWidthStr::width).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        assert!(text.starts_with('┌') && text.contains("│ user"), "{text}");
    }

    #[test]
    fn arguments_are_pairs() {
        assert_eq!(cell(&json!({ "x-priority": 5 })), "[{\"x-priority\",5}]");
        assert_eq!(cell(&json!({ "k": "v" })), "[{\"k\",\"v\"}]");
    }
}

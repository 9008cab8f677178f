//! The last lines of this process's log, for the HTTP API.

use courser_ctl::steers;
use courser_management::{LogLevel, LogLine, LogLines};
use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// A process has one log, however many brokers are in it.
static LINES: LazyLock<Arc<LogLines>> = LazyLock::new(Arc::default);

/// The lines of this process.
pub(crate) fn lines() -> Arc<LogLines> {
    Arc::clone(&LINES)
}

/// Keeps the last lines of the log for the HTTP API of every broker in this process: a layer for
/// the program that sets up `tracing`.
#[derive(Debug, Default)]
pub struct KeepLogLines;

impl<S: Subscriber> Layer<S> for KeepLogLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let about = event.metadata();
        LINES.push(LogLine {
            at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            level: level(*about.level()),
            target: about.target().to_owned(),
            text: text.0,
        });
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// What an event says, as the log on standard error writes it.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        // Writing to a text can't fail.
        if field.name() != "message" {
            let _ = write!(self.0, "{}=", field.name());
        }
        let _ = write!(Escaped(&mut self.0), "{value:?}");
    }
}

/// Writes characters that a terminal obeys as escapes: what comes from clients can neither forge a line nor have one read as
/// another.
#[derive(Debug)]
pub struct Escaped<'a, W>(pub &'a mut W);

impl<W: fmt::Write> fmt::Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((start, control)) = rest.char_indices().find(|(_, c)| steers(*c)) {
            self.0.write_str(&rest[..start])?;
            write!(self.0, "{}", control.escape_default())?;
            rest = &rest[start + control.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

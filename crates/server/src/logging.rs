//! The log: lines on standard error, written by a thread of their own.
//!
//! Their reader may stop reading. The broker does not wait for it: lines beyond a bounded queue are dropped and counted.
//! What comes from clients is shown with its control characters escaped, so that it can neither forge a line nor steer
//! a terminal.

use anyhow::Context;
use courser::{Escaped, KeepLogLines, log_filter};
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Stderr, Write};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tracing::field::Field;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Lines that wait to be written. One is some hundred bytes, a few thousand at the very most.
const LINES_MAX: usize = 4096;
/// How often it is said, while lines are dropped, how many.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The running log. Dropping it writes what is left, as far as that takes no longer than a second.
pub struct Log {
    out: NonBlocking,
    _worker: WorkerGuard,
}

impl Log {
    /// Has everything from `level` on written to standard error.
    ///
    /// # Errors
    /// When the level can't be understood.
    pub fn start(level: &str) -> anyhow::Result<Self> {
        let filter = log_filter(level).with_context(|| format!("log.level: '{level}'"))?;
        let dropped = Arc::new(OnceLock::new());
        let (out, worker) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(LINES_MAX)
            .thread_name("log")
            .finish(Output::new(Arc::clone(&dropped)));
        // Nothing else sets it.
        let _ = dropped.set(out.error_counter());
        let written = tracing_subscriber::fmt::layer()
            .with_ansi(is_colored(io::stderr().is_terminal(), |name| std::env::var_os(name)))
            .fmt_fields(debug_fn(write_field).delimited(" "))
            .with_writer(out.clone())
            // It would say in the log that the log is not read, and panic for it.
            .log_internal_errors(false);
        tracing_subscriber::registry().with(filter).with(written).with(KeepLogLines).init();
        Ok(Log { out, _worker: worker })
    }

    /// Says why the broker ends, without waiting for its reader. Returns the code of that end.
    pub fn say_last(mut self, error: &anyhow::Error) -> ExitCode {
        // A line that can't be queued is counted as dropped.
        let _ = self.out.write_all(format!("courser: {error:#}\n").as_bytes());
        ExitCode::FAILURE
    }
}

/// Whether lines are coloured: on a terminal that can show colours, unless they are not wanted (no-color.org).
fn is_colored(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
    is_terminal && !is_unwanted && !is_dumb
}

/// Writes a field of a line, or its text.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        let (name, is_colored) = (field.name(), out.has_ansi_escapes());
        match is_colored {
            true => write!(out, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m")?,
            false => write!(out, "{name}=")?,
        }
    }
    write!(Escaped(out), "{value:?}")
}

/// Standard error, and how many lines did not get there.
struct Output {
    out: Stderr,
    dropped: Arc<OnceLock<ErrorCounter>>,
    reported: usize,
    reported_at: Instant,
}

impl Output {
    fn new(dropped: Arc<OnceLock<ErrorCounter>>) -> Self {
        Output { out: io::stderr(), dropped, reported: 0, reported_at: Instant::now() }
    }

    /// Says how many lines were dropped since it was said last.
    fn report(&mut self) -> io::Result<()> {
        let dropped = self.dropped.get().map_or(0, ErrorCounter::dropped_lines);
        let more = dropped.saturating_sub(self.reported);
        if more == 0 {
            return Ok(());
        }
        (self.reported, self.reported_at) = (dropped, Instant::now());
        let mut line = String::new();
        // Neither fails on a string.
        let _ = SystemTime.format_time(&mut Writer::new(&mut line));
        let _ = writeln!(
            line,
            "  WARN courser::logging: lines dropped, as they were not read in time dropped={more}"
        );
        self.out.write_all(line.as_bytes())
    }
}

impl Write for Output {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.out.write_all(line)?;
        if self.reported_at.elapsed() >= REPORT_INTERVAL {
            self.report()?;
        }
        Ok(line.len())
    }

    /// Called whenever all lines that waited are written.
    fn flush(&mut self) -> io::Result<()> {
        self.report()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_for_terminals_that_show_them_to_who_wants_them() {
        let is_colored = |is_terminal, set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            super::is_colored(is_terminal, variable)
        };
        assert!(is_colored(true, &[]));
        assert!(is_colored(true, &[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(!is_colored(false, &[("TERM", "xterm")]));
        assert!(!is_colored(true, &[("TERM", "dumb")]));
        assert!(!is_colored(true, &[("TERM", "xterm"), ("NO_COLOR", "1")]));
    }
}

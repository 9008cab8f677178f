//! The broker's log: its last lines, and those that come.

use super::get;
use super::live::{self, Source};
use super::peek::number;
use crate::call::{Call, Outcome};
use crate::caller::Caller;
use crate::log_lines::{LINES_MAX, LogLevel, LogLine, LogLines};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::task::Waker;

pub(crate) const ROUTES: &[Route] = &[
    get(
        "/api/log",
        Needs::Administrator,
        last,
        "The last lines of the broker's log, oldest first (count, level, contains).",
    ),
    get(
        "/api/log/stream",
        Needs::Administrator,
        stream,
        "The lines of the broker's log as they come, as server-sent events (level, contains, seconds), behind the last `count`.",
    ),
];

/// Lines that are shown where nothing is said.
const COUNT_DEFAULT: usize = 100;
/// Lines that are sent at once.
const LINES_AT_ONCE: usize = 256;

/// Which lines the client wants.
struct Wanted {
    /// This and what matters more.
    level: LogLevel,
    contains: String,
}

impl Wanted {
    fn asked(call: &Call) -> Result<Self, Refusal> {
        let level = call.query("level").filter(|name| !name.is_empty()).unwrap_or("trace");
        let level = LogLevel::named(level).ok_or_else(|| {
            Refusal::bad_request("level is one of error, warn, info, debug and trace")
        })?;
        Ok(Wanted { level, contains: call.query("contains").unwrap_or_default().to_owned() })
    }

    fn has(&self, line: &LogLine) -> bool {
        line.level <= self.level && line.text.contains(&self.contains)
    }
}

fn shown(line: &LogLine) -> Value {
    let LogLine { at_ms, level, target, text } = line;
    json!({ "at_ms": at_ms, "level": level.name(), "target": target, "text": text })
}

fn last_lines(call: &Call, wanted: &Wanted, count: usize) -> Vec<Arc<LogLine>> {
    let mut lines = call.api.settings.log.all();
    lines.retain(|line| wanted.has(line));
    lines.split_off(lines.len().saturating_sub(count))
}

fn last(call: &Call) -> Outcome {
    let wanted = Wanted::asked(call)?;
    let count = number(call, "count", COUNT_DEFAULT)?.min(LINES_MAX);
    let lines = last_lines(call, &wanted, count);
    let shown: Vec<Value> = lines.iter().map(|line| shown(line)).collect();
    Ok(Reply::json(&shown))
}

fn stream(call: &Call) -> Outcome {
    let wanted = Wanted::asked(call)?;
    let count = number(call, "count", 0)?.min(LINES_MAX);
    let log = Arc::clone(&call.api.settings.log);
    // A line that comes in between is rather sent twice than lost.
    let next = log.next();
    let first = if count == 0 { Vec::new() } else { last_lines(call, &wanted, count) };
    live::serve(call, "lines from now on", Following { log, wanted, next, first })
}

/// The lines that one client follows.
struct Following {
    log: Arc<LogLines>,
    wanted: Wanted,
    /// The number of the line that comes next.
    next: u64,
    /// What is sent before that.
    first: Vec<Arc<LogLine>>,
}

impl Source for Following {
    async fn take(&mut self, waker: &Waker) -> Option<String> {
        let mut text = String::new();
        put(&mut text, 0, &std::mem::take(&mut self.first));
        while text.is_empty() {
            let (missed, mut lines) = self.log.from(self.next, LINES_AT_ONCE, waker);
            self.next += missed + lines.len() as u64;
            if missed == 0 && lines.is_empty() {
                break;
            }
            lines.retain(|line| self.wanted.has(line));
            put(&mut text, missed, &lines);
        }
        Some(text)
    }

    fn lets_in(&self, caller: &Caller) -> bool {
        caller.is_administrator()
    }
}

/// Adds lines as events. Writing to a text can't fail.
fn put(text: &mut String, missed: u64, lines: &[Arc<LogLine>]) {
    if missed > 0 {
        let _ = write!(text, "event: missed\ndata: {}\n\n", json!({ "missed": missed }));
    }
    for line in lines {
        let _ = write!(text, "event: line\ndata: {}\n\n", shown(line));
    }
}

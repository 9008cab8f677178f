//! The last lines of the broker's log, for those who look at it from afar or follow it.
//!
//! What is kept is bounded, and the writer of a line never waits for those who read: a follower that is
//! too slow loses the oldest lines and is told how many.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// Lines that are kept.
pub(crate) const LINES_MAX: usize = 1000;
/// Bytes of their texts.
const BYTES_MAX: usize = 1 << 20;
/// Bytes of the text of one line.
const LINE_BYTES_MAX: usize = 8 << 10;

/// How much a line of the log matters, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something does not work.
    Error,
    /// Something is not as it should be.
    Warn,
    /// Something that an operator may want to know.
    Info,
    /// For who looks for a mistake.
    Debug,
    /// The same, in every detail.
    Trace,
}

impl LogLevel {
    const ALL: [LogLevel; 5] =
        [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];

    /// Its name, as `info`.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        LogLevel::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// How much it matters.
    pub level: LogLevel,
    /// The part of the program that has written it.
    pub target: String,
    /// The rest of it, without control characters.
    pub text: String,
}

/// The last lines of a log.
#[derive(Default)]
pub struct LogLines(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The number of the oldest line that is kept.
    first: u64,
    lines: VecDeque<Arc<LogLine>>,
    bytes: usize,
    wakers: Vec<Waker>,
}

impl LogLines {
    /// Adds a line. What is longer than a line may be is cut off.
    pub fn push(&self, mut line: LogLine) {
        let end = line.text.floor_char_boundary(LINE_BYTES_MAX.min(line.text.len()));
        line.text.truncate(end);
        let wakers = {
            let mut kept = self.0.lock();
            kept.bytes += line.text.len();
            kept.lines.push_back(Arc::new(line));
            while kept.lines.len() > LINES_MAX || kept.bytes > BYTES_MAX {
                let Some(oldest) = kept.lines.pop_front() else { break };
                kept.bytes -= oldest.text.len();
                kept.first += 1;
            }
            std::mem::take(&mut kept.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The lines that are kept, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<LogLine>> {
        self.0.lock().lines.iter().cloned().collect()
    }

    /// The number of the line that comes next.
    pub(crate) fn next(&self) -> u64 {
        let kept = self.0.lock();
        kept.first + kept.lines.len() as u64
    }

    /// The lines from `number` on, `most` at most, and how many were lost before them. If there is none
    /// yet, has `waker` woken when there is.
    pub(crate) fn from(&self, number: u64, most: usize, waker: &Waker) -> (u64, Vec<Arc<LogLine>>) {
        let mut kept = self.0.lock();
        let missed = kept.first.saturating_sub(number);
        let skipped = (number + missed - kept.first) as usize;
        let lines: Vec<_> = kept.lines.iter().skip(skipped).take(most).cloned().collect();
        if lines.is_empty() && !kept.wakers.iter().any(|known| known.will_wake(waker)) {
            kept.wakers.push(waker.clone());
        }
        (missed, lines)
    }
}

impl fmt::Debug for LogLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLines").field("next", &self.next()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: String) -> LogLine {
        LogLine { at_ms: 1, level: LogLevel::Info, target: "test".to_owned(), text }
    }

    #[test]
    fn what_is_kept_is_bounded_by_lines_and_by_bytes() {
        let log = LogLines::default();
        for nth in 0..LINES_MAX + 5 {
            log.push(line(nth.to_string()));
        }
        let all = log.all();
        assert_eq!((all.len(), &*all[0].text), (LINES_MAX, "5"));
        for _ in 0..LINES_MAX {
            log.push(line("ä".repeat(LINE_BYTES_MAX)));
        }
        assert_eq!(log.all().len(), BYTES_MAX / LINE_BYTES_MAX);
        assert_eq!(log.all()[0].text.len(), LINE_BYTES_MAX);
    }

    #[test]
    fn who_is_too_slow_is_told_how_many_lines_are_lost() {
        let log = LogLines::default();
        for nth in 0..LINES_MAX + 5 {
            log.push(line(nth.to_string()));
        }
        let (missed, lines) = log.from(2, 2, Waker::noop());
        assert_eq!((missed, lines.len(), &*lines[0].text), (3, 2, "5"));
        let (missed, lines) = log.from(log.next(), 2, Waker::noop());
        assert_eq!((missed, lines.len()), (0, 0));
    }
}

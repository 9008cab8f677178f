//! The audit log: who has asked for which change, from where, and what came of it. A file of its own
//! that is only added to, one JSON object a line, and bounded: when it is full it becomes the first of
//! the old ones, and the oldest goes.
//!
//! What requests carry is not in it, as it may be secret. Requests that have changed nothing, as those that are refused, are noted
//! too, but only so many a minute of each user, and of all strangers together, that they do not drive out the others.
//!
//! A thread of its own writes, so that a disk that stands still holds up no other: a request waits for its line a moment
//! only, and lines for which there is no room are counted.

mod file;
mod pages;
#[cfg(test)]
mod tests;

pub(crate) use pages::AuditPage;

use file::LogFile;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Files besides the one that is written to.
const OLD_FILES: usize = 7;
/// Requests without an effect that are noted in a minute, of each user, and of all without good credentials.
const IDLE_A_MINUTE: u32 = 60;
/// Users whose requests without an effect are counted apart in a minute; those of more users count as strangers'.
const IDLE_USERS_MAX: usize = 64;
/// Bytes of a path that are noted.
const PATH_BYTES_MAX: usize = 2048;
/// Lines that wait to be written.
const WAITING_LINES_MAX: usize = 1024;
/// How long a request waits until its line is written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// Why lines are left out while the disk stands still.
const NO_PROGRESS: &str = "the disk takes nothing";

/// A request for a change, and what came of it.
pub(crate) struct Entry<'a> {
    pub at_ms: u64,
    /// The user who asks; none without good credentials.
    pub user: Option<&'a str>,
    pub peer: SocketAddr,
    pub method: &'a str,
    /// With the query.
    pub path: &'a str,
    pub status: u16,
    /// It has come as far as to something that changes something.
    pub is_begun: bool,
    /// Some of it may be done, although it was refused.
    pub is_partial: bool,
}

impl Entry<'_> {
    /// Nothing was changed. Of one that has begun this is not certain where its client left (499), or where it failed.
    fn is_without_effect(&self) -> bool {
        let is_refused = (400..499).contains(&self.status) && !self.is_partial;
        self.user.is_none() || !self.is_begun || is_refused
    }

    fn line(&self, left_out: u64) -> String {
        let shown = self.path.floor_char_boundary(PATH_BYTES_MAX.min(self.path.len()));
        let mut line = json!({
            "at_ms": self.at_ms,
            "user": self.user,
            "peer": self.peer.to_string(),
            "method": self.method,
            "path": &self.path[..shown],
            "status": self.status,
        });
        if left_out > 0 {
            line["left_out"] = left_out.into();
        }
        line.to_string()
    }
}

/// Comes when a line is written, or can't be.
pub(crate) type Written = oneshot::Receiver<()>;

/// The audit log.
pub(crate) struct Audit {
    shared: Arc<Shared>,
    without_effect: Mutex<Counts>,
    lines: SyncSender<Line>,
}

/// What those who ask for changes and the thread that writes have in common.
struct Shared {
    path: PathBuf,
    /// Entries that were not noted since the last line.
    left_out: AtomicU64,
    /// Why the last line could not be written.
    failure: Mutex<Option<String>>,
}

/// A line on its way.
struct Line {
    text: String,
    /// How many it says were left out before it.
    left_out: u64,
    written: oneshot::Sender<()>,
}

/// How many requests without an effect there were.
#[derive(Default)]
struct Counts {
    /// The minute in which they are counted.
    minute: u64,
    /// By user; those of strangers have none.
    counts: HashMap<Option<String>, u32>,
}

impl Audit {
    /// The log in this file. What is made gets this mode.
    pub fn new(path: PathBuf, mode: u32) -> Self {
        let file = LogFile::new(path.clone(), mode);
        let (left_out, failure) = (AtomicU64::new(0), Mutex::default());
        let shared = Arc::new(Shared { path, left_out, failure });
        let (lines, waiting) = sync_channel(WAITING_LINES_MAX);
        let own = Arc::clone(&shared);
        let writer = thread::Builder::new().name("audit-log".to_owned());
        if let Err(error) = writer.spawn(move || own.write(&waiting, file)) {
            shared.fail(&mut shared.failure.lock(), error.to_string());
        }
        Audit { shared, without_effect: Mutex::default(), lines }
    }

    /// Why not all is written to it at present, if so.
    pub fn failure(&self) -> Option<String> {
        let failure = self.shared.failure.lock();
        failure.as_ref().map(|error| format!("{}: {error}", self.shared.path.display()))
    }

    /// Has a line added, unless it is one too many of those without an effect. What can't be written is said in the broker's own log.
    pub fn note(&self, entry: &Entry<'_>) -> Option<Written> {
        if entry.is_without_effect() && !self.without_effect.lock().have_room(entry) {
            self.shared.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let left_out = self.shared.left_out.swap(0, Ordering::Relaxed);
        let (written, is_written) = oneshot::channel();
        let line = Line { text: entry.line(left_out), left_out, written };
        match self.lines.try_send(line) {
            Ok(()) => Some(is_written),
            Err(_) => {
                self.shared.left_out.fetch_add(left_out + 1, Ordering::Relaxed);
                self.shared.stall(&mut self.shared.failure.lock());
                None
            }
        }
    }

    /// Waits until a line is written, but not longer than a disk takes as a rule.
    pub async fn wait_for(&self, mut line: Written) {
        if tokio::time::timeout(WRITE_TIMEOUT, &mut line).await.is_ok() {
            return;
        }
        let mut failure = self.shared.failure.lock();
        if matches!(line.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
            self.shared.stall(&mut failure);
        }
    }
}

impl Shared {
    fn write(&self, lines: &Receiver<Line>, mut file: LogFile) {
        for line in lines {
            let added = file.add(&line.text);
            let mut failure = self.failure.lock();
            match (added, file.stuck()) {
                (Ok(()), None) => *failure = None,
                (Ok(()), Some(why)) => self.fail(&mut failure, why.to_owned()),
                (Err(error), _) => {
                    self.left_out.fetch_add(line.left_out + 1, Ordering::Relaxed);
                    self.fail(&mut failure, error.to_string());
                }
            }
            // Within the lock: who has stopped waiting does not say afterwards that it is not written.
            let _ = line.written.send(());
        }
    }

    /// Says that lines wait, if nothing is wrong besides.
    fn stall(&self, failure: &mut Option<String>) {
        if failure.is_none() {
            self.fail(failure, NO_PROGRESS.to_owned());
        }
    }

    fn fail(&self, failure: &mut Option<String>, why: String) {
        if failure.is_none() {
            let path = self.path.display();
            tracing::error!(%path, error = why, "the audit log can't be written");
        }
        *failure = Some(why);
    }
}

impl Counts {
    fn have_room(&mut self, entry: &Entry<'_>) -> bool {
        let minute = entry.at_ms / 60_000;
        if self.minute != minute {
            self.minute = minute;
            self.counts.clear();
        }
        let mut user = entry.user.map(str::to_owned);
        if self.counts.len() >= IDLE_USERS_MAX && !self.counts.contains_key(&user) {
            user = None;
        }
        let refused = self.counts.entry(user).or_default();
        *refused += 1;
        *refused <= IDLE_A_MINUTE
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

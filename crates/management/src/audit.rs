//! The audit log: who has asked for which change, from where, and what came of it. A file of its own
//! that is only added to, one JSON object a line, and bounded: when it is full it becomes the first of
//! the old ones, and the oldest goes.
//!
//! What requests carry is not in it, as it may be secret. Requests without good credentials are noted
//! too, but only so many a minute that nobody drives out the others with them.

use parking_lot::Mutex;
use serde_json::{Value, json};
use std::fmt;
use std::fs::{File, OpenOptions, rename};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Bytes of a file.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files besides the one that is written to.
const OLD_FILES: usize = 7;
/// Requests without good credentials that are noted in a minute.
const UNKNOWN_A_MINUTE: u32 = 60;
/// Bytes of a path that are noted.
const PATH_BYTES_MAX: usize = 2048;
/// Bytes at the end of the file that are looked at for the last lines.
const TAIL_BYTES: u64 = 1 << 20;

/// A request for a change, and what came of it.
pub(crate) struct Entry<'a> {
    pub at_ms: u64,
    /// Who asks; nobody without good credentials.
    pub user: Option<&'a str>,
    pub peer: SocketAddr,
    pub method: &'a str,
    /// With the query.
    pub path: &'a str,
    pub status: u16,
}

/// The audit log.
pub(crate) struct Audit {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<(File, u64)>,
    /// The minute in which requests without good credentials are counted.
    minute: u64,
    unknown: u32,
    /// Those that were not noted since the last line.
    left_out: u64,
    has_failed: bool,
}

impl Audit {
    /// The log in this file.
    pub fn new(path: PathBuf) -> Self {
        Audit { path, state: Mutex::default() }
    }

    /// Adds a line. What can't be written is said in the broker's own log.
    pub fn note(&self, entry: &Entry<'_>) {
        let mut state = self.state.lock();
        if entry.user.is_none() && !state.has_room_for_unknown(entry.at_ms) {
            state.left_out += 1;
            return;
        }
        let written = state.write(&self.path, entry);
        match written {
            Ok(()) => state.has_failed = false,
            Err(error) => {
                state.open = None;
                if !std::mem::replace(&mut state.has_failed, true) {
                    let path = self.path.display();
                    tracing::error!(%path, %error, "the audit log can't be written");
                }
            }
        }
    }

    /// The last lines, newest first, `most` of them.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn last(&self, most: usize) -> io::Result<Vec<Value>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let start = file.metadata()?.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut tail)?;
        let lines = tail.split(|byte| *byte == b'\n').rev();
        // The first one may be the rest of a line.
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).take(most).collect())
    }
}

impl State {
    fn has_room_for_unknown(&mut self, now_ms: u64) -> bool {
        let minute = now_ms / 60_000;
        if self.minute != minute {
            (self.minute, self.unknown) = (minute, 0);
        }
        self.unknown += 1;
        self.unknown <= UNKNOWN_A_MINUTE
    }

    fn write(&mut self, path: &Path, entry: &Entry<'_>) -> io::Result<()> {
        if self.open.as_ref().is_some_and(|(_, bytes)| *bytes >= FILE_BYTES_MAX) {
            self.open = None;
            rotate(path)?;
        }
        let (file, bytes) = match &mut self.open {
            Some(open) => open,
            none => {
                let file = OpenOptions::new().create(true).append(true).open(path)?;
                let bytes = file.metadata()?.len();
                none.insert((file, bytes))
            }
        };
        let path = entry.path;
        let shown = path.floor_char_boundary(PATH_BYTES_MAX.min(path.len()));
        let mut line = json!({
            "at_ms": entry.at_ms,
            "user": entry.user,
            "peer": entry.peer.to_string(),
            "method": entry.method,
            "path": &path[..shown],
            "status": entry.status,
        });
        if self.left_out > 0 {
            line["left_out"] = self.left_out.into();
        }
        let line = format!("{line}\n");
        file.write_all(line.as_bytes())?;
        *bytes += line.len() as u64;
        self.left_out = 0;
        Ok(())
    }
}

/// Makes room for a new file.
fn rotate(path: &Path) -> io::Result<()> {
    let old = |nth: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{nth}"));
        PathBuf::from(name)
    };
    for nth in (1..OLD_FILES).rev() {
        match rename(old(nth), old(nth + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    rename(path, old(1))
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(user: Option<&str>, at_ms: u64) -> Entry<'_> {
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        Entry { at_ms, user, peer, method: "PUT", path: "/api/queues/%2F/q", status: 201 }
    }

    fn log() -> (tempfile::TempDir, Audit) {
        let folder = tempfile::tempdir().expect("a folder");
        let audit = Audit::new(folder.path().join("audit.log"));
        (folder, audit)
    }

    #[test]
    fn a_line_says_who_did_what() {
        let (_folder, audit) = log();
        assert!(audit.last(10).expect("no file yet").is_empty());
        audit.note(&entry(Some("me"), 5));
        audit.note(&entry(Some("you"), 6));
        let last = audit.last(10).expect("lines");
        let expected = json!({
            "at_ms": 6, "user": "you", "peer": "127.0.0.1:1", "method": "PUT",
            "path": "/api/queues/%2F/q", "status": 201,
        });
        assert_eq!((last.len(), &last[0]), (2, &expected));
        assert_eq!(audit.last(1).expect("lines").len(), 1);
    }

    #[test]
    fn strangers_do_not_drive_out_what_users_did() {
        let (_folder, audit) = log();
        for _ in 0..1000 {
            audit.note(&entry(None, 5));
        }
        audit.note(&entry(Some("me"), 6));
        let last = audit.last(5000).expect("lines");
        assert_eq!(last.len(), UNKNOWN_A_MINUTE as usize + 1);
        assert_eq!(last[0]["left_out"], 1000 - u64::from(UNKNOWN_A_MINUTE));
    }

    #[test]
    fn there_is_a_bound_to_the_files() {
        let (folder, audit) = log();
        for nth in 0..OLD_FILES + 3 {
            audit.note(&entry(Some("me"), nth as u64));
            let mut state = audit.state.lock();
            state.open.as_mut().expect("it is open").1 = FILE_BYTES_MAX;
        }
        let files = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(files, OLD_FILES + 1);
        assert_eq!(audit.last(10).expect("lines").len(), 1);
    }
}

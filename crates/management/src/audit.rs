//! The audit log: who has asked for which change, from where, and what came of it. A file of its own
//! that is only added to, one JSON object a line, and bounded: when it is full it becomes the first of
//! the old ones, and the oldest goes.
//!
//! What requests carry is not in it, as it may be secret. Requests that are refused are noted too, but only so many a minute
//! of each user, and of all strangers together, that they do not drive out the others.

use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions, rename};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a file.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files besides the one that is written to.
const OLD_FILES: usize = 7;
/// Refused requests that are noted in a minute, of each user, and of all without good credentials.
const REFUSED_A_MINUTE: u32 = 60;
/// Users whose refusals are counted apart in a minute; those of more users count as strangers'.
const REFUSED_USERS_MAX: usize = 64;
/// Bytes of a path that are noted.
const PATH_BYTES_MAX: usize = 2048;
/// Bytes that are read at once for the last lines.
const BLOCK_BYTES: u64 = 64 << 10;
/// Lines that one request looks at.
const LOOKED_AT_MAX: usize = 200_000;

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

impl Entry<'_> {
    /// Nothing was done. That is not certain of one whose client left (499), or that failed.
    fn is_refused(&self) -> bool {
        self.user.is_none() || (400..499).contains(&self.status)
    }
}

/// The audit log.
pub(crate) struct Audit {
    path: PathBuf,
    /// Who may read and write files that are made.
    mode: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<(File, u64)>,
    /// The minute in which refusals are counted.
    minute: u64,
    /// Refusals in it, by user; those of strangers have none.
    refused: HashMap<Option<String>, u32>,
    /// Those that were not noted since the last line.
    left_out: u64,
    /// Why the last line could not be written.
    failure: Option<String>,
}

impl Audit {
    /// The log in this file. What is made gets this mode.
    pub fn new(path: PathBuf, mode: u32) -> Self {
        Audit { path, mode, state: Mutex::default() }
    }

    /// Why nothing is written to it at present, if so.
    pub fn failure(&self) -> Option<String> {
        let state = self.state.lock();
        state.failure.as_ref().map(|error| format!("{}: {error}", self.path.display()))
    }

    /// Adds a line. What can't be written is said in the broker's own log.
    pub fn note(&self, entry: &Entry<'_>) {
        let mut state = self.state.lock();
        if entry.is_refused() && !state.has_room_for_refused(entry) {
            state.left_out += 1;
            return;
        }
        let written = state.write(&self.path, self.mode, entry);
        match written {
            Ok(()) => state.failure = None,
            Err(error) => {
                state.open = None;
                if state.failure.replace(error.to_string()).is_none() {
                    let path = self.path.display();
                    tracing::error!(%path, %error, "the audit log can't be written");
                }
            }
        }
    }

    /// The lines that `wants` lets through, newest first, from the old files too: `most` of them behind
    /// `skip` others. So many are looked at in all that one request takes no more than a moment.
    ///
    /// # Errors
    /// When a file can't be read.
    pub fn page(
        &self,
        skip: usize,
        most: usize,
        wants: &dyn Fn(&Value) -> bool,
    ) -> io::Result<AuditPage> {
        let mut page = AuditPage::default();
        let (mut wanted, mut looked_at) = (0, 0);
        for nth in 0..=OLD_FILES {
            let path = if nth == 0 { self.path.clone() } else { old(&self.path, nth) };
            let file = match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                opened => opened?,
            };
            let mut lines = LastLines::of(file)?;
            while let Some(line) = lines.next()? {
                let Ok(line) = serde_json::from_slice::<Value>(&line) else { continue };
                if page.lines.len() == most || looked_at == LOOKED_AT_MAX {
                    page.has_more = true;
                    return Ok(page);
                }
                looked_at += 1;
                if wants(&line) {
                    wanted += 1;
                    if wanted > skip {
                        page.lines.push(line);
                    }
                }
            }
        }
        Ok(page)
    }
}

/// Some lines of the log.
#[derive(Debug, Default)]
pub(crate) struct AuditPage {
    pub lines: Vec<Value>,
    /// There may be more behind them.
    pub has_more: bool,
}

/// The lines of a file, the last one first. What stands behind the last line break is no line yet.
struct LastLines {
    file: File,
    /// What is before this is not read yet.
    start: u64,
    /// What has been read and not given out.
    read: Vec<u8>,
}

impl LastLines {
    fn of(file: File) -> io::Result<Self> {
        let start = file.metadata()?.len();
        let mut lines = LastLines { file, start, read: Vec::new() };
        lines.next()?;
        Ok(lines)
    }

    /// The line before the last one that was given out.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self.read.iter().rposition(|byte| *byte == b'\n') {
                let line = self.read.split_off(at + 1);
                self.read.pop();
                return Ok(Some(line));
            }
            if self.start == 0 {
                let first = std::mem::take(&mut self.read);
                return Ok(Some(first).filter(|line| !line.is_empty()));
            }
            let block = self.start.min(BLOCK_BYTES);
            self.start -= block;
            self.file.seek(SeekFrom::Start(self.start))?;
            let mut bytes = Vec::new();
            Read::by_ref(&mut self.file).take(block).read_to_end(&mut bytes)?;
            bytes.append(&mut self.read);
            self.read = bytes;
        }
    }
}

impl State {
    fn has_room_for_refused(&mut self, entry: &Entry<'_>) -> bool {
        let minute = entry.at_ms / 60_000;
        if self.minute != minute {
            self.minute = minute;
            self.refused.clear();
        }
        let mut user = entry.user.map(str::to_owned);
        if self.refused.len() >= REFUSED_USERS_MAX && !self.refused.contains_key(&user) {
            user = None;
        }
        let refused = self.refused.entry(user).or_default();
        *refused += 1;
        *refused <= REFUSED_A_MINUTE
    }

    fn write(&mut self, path: &Path, mode: u32, entry: &Entry<'_>) -> io::Result<()> {
        if self.open.as_ref().is_some_and(|(_, bytes)| *bytes >= FILE_BYTES_MAX) {
            self.open = None;
            rotate(path)?;
        }
        let (file, bytes) = match &mut self.open {
            Some(open) => open,
            none => {
                let file = OpenOptions::new().create(true).append(true).mode(mode).open(path)?;
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

/// The path of an old file.
fn old(path: &Path, nth: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{nth}"));
    PathBuf::from(name)
}

/// Makes room for a new file.
fn rotate(path: &Path) -> io::Result<()> {
    for nth in (1..OLD_FILES).rev() {
        match rename(old(path, nth), old(path, nth + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    rename(path, old(path, 1))
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
        let audit = Audit::new(folder.path().join("audit.log"), 0o600);
        (folder, audit)
    }

    fn newest(audit: &Audit, most: usize) -> Vec<Value> {
        audit.page(0, most, &|_| true).expect("lines").lines
    }

    #[test]
    fn a_line_says_who_did_what() {
        let (_folder, audit) = log();
        assert!(newest(&audit, 10).is_empty());
        audit.note(&entry(Some("me"), 5));
        audit.note(&entry(Some("you"), 6));
        let last = newest(&audit, 10);
        let expected = json!({
            "at_ms": 6, "user": "you", "peer": "127.0.0.1:1", "method": "PUT",
            "path": "/api/queues/%2F/q", "status": 201,
        });
        assert_eq!((last.len(), &last[0]), (2, &expected));
        assert_eq!(newest(&audit, 1).len(), 1);
    }

    #[test]
    fn strangers_do_not_drive_out_what_users_did() {
        let (_folder, audit) = log();
        for _ in 0..1000 {
            audit.note(&entry(None, 5));
        }
        audit.note(&entry(Some("me"), 6));
        let last = newest(&audit, 5000);
        assert_eq!(last.len(), REFUSED_A_MINUTE as usize + 1);
        assert_eq!(last[0]["left_out"], 1000 - u64::from(REFUSED_A_MINUTE));
    }

    #[test]
    fn refused_requests_of_a_user_do_not_drive_out_what_others_did() {
        let (_folder, audit) = log();
        let refused = |user, status| Entry { status, ..entry(Some(user), 5) };
        for nth in 0..1000 {
            audit.note(&refused("low", if nth % 2 == 0 { 401 } else { 404 }));
        }
        audit.note(&refused("other", 401));
        audit.note(&entry(Some("low"), 6));
        audit.note(&refused("low", 499));
        let mut last = newest(&audit, 5000);
        assert_eq!(last.remove(0)["status"], 499, "what may have been done is noted");
        assert_eq!(last.len(), REFUSED_A_MINUTE as usize + 2, "what another is refused is noted");
        assert_eq!(last[1]["left_out"], 1000 - u64::from(REFUSED_A_MINUTE));
        assert_eq!(last[0]["user"], "low", "what it may do is noted as ever");
        audit.note(&refused("low", 401));
        audit.note(&Entry { at_ms: 60_005, ..refused("low", 401) });
        assert_eq!(newest(&audit, 1)[0]["at_ms"], 60_005, "a minute later there is room again");
    }

    #[test]
    fn refusals_are_counted_for_so_many_users_at_most() {
        let (_folder, audit) = log();
        for nth in 0..10_000 {
            audit.note(&Entry { status: 401, ..entry(Some(&nth.to_string()), 5) });
        }
        assert!(audit.state.lock().refused.len() <= REFUSED_USERS_MAX + 1);
        let most = REFUSED_USERS_MAX + REFUSED_A_MINUTE as usize;
        assert_eq!(newest(&audit, 20_000).len(), most);
    }

    #[test]
    fn it_says_why_it_can_not_be_written_until_it_can() {
        let folder = tempfile::tempdir().expect("a folder");
        let audit = Audit::new(folder.path().join("sub/audit.log"), 0o600);
        assert_eq!(audit.failure(), None);
        audit.note(&entry(Some("me"), 5));
        let why = audit.failure().expect("a failure");
        assert!(why.contains("sub/audit.log: No such file or directory"), "{why}");
        std::fs::create_dir(folder.path().join("sub")).expect("a folder");
        audit.note(&entry(Some("me"), 6));
        assert_eq!(audit.failure(), None);
        let about = std::fs::metadata(folder.path().join("sub/audit.log")).expect("the file");
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777, 0o600);
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
        let ages: Vec<u64> = newest(&audit, 100)
            .iter()
            .map(|line| line["at_ms"].as_u64().expect("a time"))
            .collect();
        let expected: Vec<u64> = (2..OLD_FILES as u64 + 3).rev().collect();
        assert_eq!(ages, expected, "newest first, of all files");
    }

    #[test]
    fn lines_are_found_page_by_page_however_long_the_file_is() {
        let (_folder, audit) = log();
        for nth in 0..3000 {
            audit.note(&entry(Some(if nth % 3 == 0 { "me" } else { "you" }), nth));
        }
        let mine = |line: &Value| line["user"] == "me";
        let page = audit.page(900, 60, &mine).expect("lines");
        let ages: Vec<u64> = page.lines.iter().filter_map(|line| line["at_ms"].as_u64()).collect();
        let expected: Vec<u64> = (0..1000).rev().skip(900).take(60).map(|nth| nth * 3).collect();
        assert!(page.has_more && ages == expected, "{ages:?}");
        let end = audit.page(990, 60, &mine).expect("lines");
        assert_eq!((end.lines.len(), end.has_more), (10, false));
    }
}

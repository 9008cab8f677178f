//! The file of the audit log, and the old ones.

use super::OLD_FILES;
use std::fs::{File, OpenOptions, rename};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a file.
pub(super) const FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of one that can't become an old one: those of all together.
const LONE_FILE_BYTES_MAX: u64 = FILE_BYTES_MAX * (OLD_FILES as u64 + 1);

/// The file that is written to.
pub(super) struct LogFile {
    path: PathBuf,
    /// Who may read and write files that are made.
    mode: u32,
    open: Option<Open>,
    /// Bytes at which it becomes an old one.
    full_bytes: u64,
    /// Why it could not.
    stuck: Option<String>,
}

struct Open {
    file: File,
    bytes: u64,
    /// It ends in the middle of a line.
    is_torn: bool,
}

impl LogFile {
    pub fn new(path: PathBuf, mode: u32) -> Self {
        LogFile { path, mode, open: None, full_bytes: FILE_BYTES_MAX, stuck: None }
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Why it could not be written. Part of it may have been: the next one begins behind a line break.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        let added = self.try_to_add(line);
        if added.is_err() {
            self.open = None;
        }
        added
    }

    /// Why the file is longer than it should be, if it is.
    pub fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }

    fn try_to_add(&mut self, line: &str) -> io::Result<()> {
        let mut open = self.opened()?;
        if open.bytes >= self.full_bytes {
            match rotate(&self.path) {
                Ok(()) => {
                    self.full_bytes = FILE_BYTES_MAX;
                    self.stuck = None;
                    open = Open::new(&self.path, self.mode)?;
                }
                Err(error) if open.bytes >= LONE_FILE_BYTES_MAX => return Err(error),
                Err(error) => {
                    // Each try may move old files on.
                    self.full_bytes = open.bytes + FILE_BYTES_MAX;
                    self.stuck = Some(format!("it is full and can't be renamed: {error}"));
                }
            }
        }
        open.add(line)?;
        self.open = Some(open);
        Ok(())
    }

    fn opened(&mut self) -> io::Result<Open> {
        self.open.take().map_or_else(|| Open::new(&self.path, self.mode), Ok)
    }

    #[cfg(test)]
    pub fn pretend_bytes(&mut self, bytes: u64) {
        self.open.as_mut().expect("it is open").bytes = bytes;
    }

    /// As after a start that finds so many bytes.
    #[cfg(test)]
    pub fn pretend_reopened(&mut self, bytes: u64) {
        *self = LogFile::new(self.path.clone(), self.mode);
        let mut open = self.opened().expect("it is opened");
        open.bytes = bytes;
        self.open = Some(open);
    }
}

impl Open {
    fn new(path: &Path, mode: u32) -> io::Result<Self> {
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(mode).open(path)?;
        let bytes = file.metadata()?.len();
        let mut last = [b'\n'];
        if bytes > 0 {
            file.seek(SeekFrom::Start(bytes - 1))?;
            file.read_exact(&mut last)?;
        }
        Ok(Open { file, bytes, is_torn: last != [b'\n'] })
    }

    fn add(&mut self, line: &str) -> io::Result<()> {
        let line_break = if self.is_torn { "\n" } else { "" };
        let text = format!("{line_break}{line}\n");
        self.file.write_all(text.as_bytes())?;
        self.is_torn = false;
        self.bytes += text.len() as u64;
        Ok(())
    }
}

/// The path of an old file.
pub(super) fn old(path: &Path, nth: usize) -> PathBuf {
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

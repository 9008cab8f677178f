//! Reads the audit log, the last lines first.

use super::{Audit, OLD_FILES, file::old};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes that are read at once for the last lines.
const BLOCK_BYTES: u64 = 64 << 10;
/// Lines that one request looks at.
const LOOKED_AT_MAX: usize = 200_000;

impl Audit {
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
            let path = &self.shared.path;
            let path = if nth == 0 { path.clone() } else { old(path, nth) };
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

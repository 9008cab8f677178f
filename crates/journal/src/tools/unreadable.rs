//! Pages that the system refuses to read. To the tools they are zeros, so that they are taken for damage as all else that is not
//! what was written.

use crate::{
    Disk, DiskFile, FileEntry, OpenMode,
    disk::{is_bad_sector, read_up_to, write_all},
    names::{self, Named},
    scrub::PAGE_BYTES,
};
use parking_lot::Mutex;
use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Numbers of pages that were refused, by file.
type Refused = Arc<Mutex<BTreeMap<PathBuf, BTreeSet<u64>>>>;

/// A disk all of whose pages can be read: those that can't are zeros, and noted.
pub struct ZeroFilled {
    disk: Arc<dyn Disk>,
    refused: Refused,
}

/// Bytes of a file in whole pages, by offsets.
pub struct Unreadable {
    pub path: PathBuf,
    pub range: Range<u64>,
}

impl ZeroFilled {
    pub fn new(disk: Arc<dyn Disk>) -> Arc<Self> {
        Arc::new(ZeroFilled { disk, refused: Refused::default() })
    }

    /// What could not be read so far.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        let mut found: Vec<Unreadable> = Vec::new();
        for (path, pages) in &*self.refused.lock() {
            for page in pages {
                let range = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
                match found.last_mut() {
                    Some(last) if last.path == *path && last.range.end == range.start => {
                        last.range.end = range.end;
                    }
                    _ => found.push(Unreadable { path: path.clone(), range }),
                }
            }
        }
        found
    }

    /// Says what could not be read so far, and returns whether there was any.
    pub fn say(&self, out: &mut dyn Write) -> io::Result<bool> {
        let found = self.unreadable();
        for one in &found {
            writeln!(out, "{one}")?;
        }
        Ok(!found.is_empty())
    }

    /// Reads all of a file, to find what of it can't be read.
    pub fn read_all(&self, path: &Path) -> io::Result<()> {
        let file = self.open(path, OpenMode::Read)?;
        let (mut buffer, mut offset) = (vec![0; READ_BYTES], 0);
        loop {
            match read_up_to(&*file, &mut buffer, offset)? {
                0 => return Ok(()),
                len => offset += len as u64,
            }
        }
    }

    /// Reads all segments in `dir`, and writes zeros over the pages of them that can't be read. Returns which these were.
    ///
    /// The disk puts such a page elsewhere when all of it is written: what is written from then on can be read again, and a write of
    /// a part of it succeeds.
    pub fn overwrite(&self, dir: &Path) -> io::Result<Vec<Unreadable>> {
        for file in self.disk.list(dir)? {
            // A repair that was cut short leaves some as they were moved out of the way.
            let name = file.name.trim_end_matches(".moved");
            if let Some(Named::Segment(_)) = names::parse(name) {
                self.read_all(&dir.join(&file.name))?;
            }
        }
        for (path, pages) in &mut *self.refused.lock() {
            let file = self.disk.open(path, OpenMode::Write)?;
            let mut kept = BTreeSet::new();
            for page in &*pages {
                let (mut bytes, at) = ([0; PAGE_BYTES as usize], page * PAGE_BYTES);
                // The disk may have been away for a moment only.
                if is_refused(&read_up_to(&*file, &mut bytes, at)) {
                    write_all(&*file, &[0; PAGE_BYTES as usize], at)?;
                    kept.insert(*page);
                }
            }
            file.sync_data()?;
            *pages = kept;
        }
        let found = self.unreadable();
        self.refused.lock().clear();
        Ok(found)
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Range { start, end } = self.range;
        write!(to, "{}: {} bytes at offset {start} can't be read", self.path.display(), end - start)
    }
}

fn is_refused(result: &io::Result<usize>) -> bool {
    result.as_ref().is_err_and(is_bad_sector)
}

/// A file of such a disk.
struct ZeroFilledFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    refused: Refused,
}

impl DiskFile for ZeroFilledFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let found = self.file.read_at(out, offset);
        if !is_refused(&found) {
            return found;
        }
        let in_page = (PAGE_BYTES - offset % PAGE_BYTES) as usize;
        let len = out.len().min(in_page);
        let out = &mut out[..len];
        let found = self.file.read_at(out, offset);
        if !is_refused(&found) {
            return found;
        }
        let left = self.file.size_bytes()?.saturating_sub(offset);
        let len = left.min(len as u64) as usize;
        out[..len].fill(0);
        if len > 0 {
            let page = offset / PAGE_BYTES;
            self.refused.lock().entry(self.path.clone()).or_default().insert(page);
        }
        Ok(len)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.file.size_bytes()
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }

    fn will_need(&self, offset: u64, len: u64) {
        self.file.will_need(offset, len);
    }

    fn forget(&self, offset: u64, len: u64) {
        self.file.forget(offset, len);
    }
}

impl Disk for ZeroFilled {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path, mode)?;
        let (path, refused) = (path.to_owned(), Arc::clone(&self.refused));
        Ok(Arc::new(ZeroFilledFile { file, path, refused }))
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<FileEntry>> {
        self.disk.list(dir)
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.folders(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.disk.lock(path)
    }

    fn fresh_id(&self) -> io::Result<u64> {
        self.disk.fresh_id()
    }
}

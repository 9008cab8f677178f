//! The disk of this machine.

use super::{Disk, DiskFile, FileEntry, OpenMode};
use rustix::{
    fs::{Advice, FallocateFlags},
    io::Errno,
};
use std::{
    any::Any,
    fs::{self, File},
    hash::{BuildHasher, Hasher, RandomState},
    io,
    num::NonZeroU64,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

/// How often a file is opened again that cannot be, as too many are open.
const TOO_MANY_FILES_RETRIES: u32 = 600;
/// How long to wait in between.
const TOO_MANY_FILES_PAUSE: Duration = Duration::from_millis(100);

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        let above = match dir.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        };
        self.create_dir(above)?;
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            result => result?,
        }
        self.sync_dir(above)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<FileEntry>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            // A name that is not UTF-8 is none that a journal gives.
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                found.push(FileEntry { name, size_bytes: metadata.len() });
            }
        }
        Ok(found)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = File::options();
        options.read(true);
        Ok(Arc::new(match mode {
            OpenMode::Read => options.open(path)?,
            OpenMode::Write => patiently(|| options.write(true).open(path))?,
            OpenMode::Create => {
                patiently(|| options.write(true).create(true).truncate(true).open(path))?
            }
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Like `sync_data`, not tried again after a failure.
        Ok(rustix::fs::fsync(patiently(|| File::open(dir))?)?)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        file.try_lock().map_err(io::Error::from)?;
        Ok(Box::new(file))
    }

    fn fresh_id(&self) -> io::Result<u64> {
        // The standard library's hash keys are random; the clock and the process are a second
        // guard against two journals with one number.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        hasher.write_u128(now.as_nanos());
        Ok(hasher.finish())
    }
}

/// Opens a file that the log needs to go on. While there are too many open files, connections for
/// example, the log waits for some to be closed: failing for good is for a disk that fails.
fn patiently(mut open: impl FnMut() -> io::Result<File>) -> io::Result<File> {
    let mut result = open();
    for attempt in 0..TOO_MANY_FILES_RETRIES {
        let errno = result.as_ref().err().and_then(Errno::from_io_error);
        if !matches!(errno, Some(Errno::MFILE | Errno::NFILE)) {
            break;
        }
        if attempt == 0 {
            tracing::warn!("too many open files: the journal waits");
        }
        thread::sleep(TOO_MANY_FILES_PAUSE);
        result = open();
    }
    result
}

impl DiskFile for File {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, out, offset)
    }

    fn write_at(&self, octets: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, octets, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        // Not `File::sync_data`, which tries again when it is interrupted.
        Ok(rustix::fs::fdatasync(self)?)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(self, flags, offset, len)?)
    }

    fn will_need(&self, offset: u64, len: u64) {
        // Advice only: a file system that does not take it just reads later.
        let _ = rustix::fs::fadvise(self, offset, NonZeroU64::new(len), Advice::WillNeed);
    }
}

//! The disk of this machine.

use super::{Disk, DiskFile, FileEntry, OpenMode, system};
use courser_store::critical::{self, Work};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::{
    any::Any,
    fs::{self, DirBuilder, File},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    },
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

/// How often a file is opened again that cannot be, as too many are open.
const TOO_MANY_FILES_RETRIES: u32 = 600;
/// Descriptors that are held in reserve.
const RESERVE_MAX: usize = 8;
/// How long to wait in between.
const TOO_MANY_FILES_PAUSE: Duration = Duration::from_millis(100);

/// Who may do what with the folders and files that are made.
#[derive(Clone, Copy, Debug)]
struct Permissions {
    folder: u32,
    file: u32,
}

const OWNER_ONLY: Permissions = Permissions { folder: 0o700, file: 0o600 };
const GROUP_READS: Permissions = Permissions { folder: 0o750, file: 0o640 };

/// The disk of this machine. What is made on it is for its owner only.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// The disk of this machine, where the group of what is made on it may read it.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupDisk;

impl Permissions {
    fn create_dir(self, dir: &Path) -> io::Result<()> {
        critical::check(Work::File);
        let above = match dir.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        };
        if dir.is_dir() {
            // The process that made it may have been killed before it was synced. If the folder above may not be
            // opened, another user has made it.
            return match RealDisk.sync_dir(above) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                result => result,
            };
        }
        self.create_dir(above)?;
        match DirBuilder::new().mode(self.folder).create(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            result => result?,
        }
        RealDisk.sync_dir(above)
    }

    fn open(self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        critical::check(Work::File);
        let mut options = File::options();
        options.read(true).mode(self.file);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => drop(options.write(true)),
            OpenMode::Create => drop(options.write(true).create(true).truncate(true)),
        }
        Ok(Arc::new(patiently(|| options.open(path))?))
    }

    fn lock(self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        critical::check(Work::File);
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(self.file);
        // What only reads may run as another user than the folder's: a link made by that one must not have a file made elsewhere.
        options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let file = options.open(path)?;
        file.try_lock().map_err(io::Error::from)?;
        Ok(Box::new(Lock(file)))
    }
}

/// A locked file. The lock belongs to all who share the open file, and a child that this process has just
/// forked shares it until it runs its program: without being unlocked it would stay locked so long.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "a lock ends with its file");
        }
    }
}

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        OWNER_ONLY.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<FileEntry>> {
        critical::check(Work::File);
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

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        critical::check(Work::File);
        let mut found = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            // As for files, but a link to a folder is one.
            if let (true, Ok(name)) = (entry.path().is_dir(), entry.file_name().into_string()) {
                found.push(name);
            }
        }
        Ok(found)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        OWNER_ONLY.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        critical::check(Work::File);
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        critical::check(Work::File);
        fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        critical::check(Work::File);
        fs::remove_dir_all(dir)?;
        match dir.parent() {
            Some(above) if !above.as_os_str().is_empty() => self.sync_dir(above),
            _ => self.sync_dir(Path::new(".")),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        critical::check(Work::Sync);
        // Like `sync_data`, not tried again after a failure.
        system::sync_dir(&patiently(|| File::open(dir))?)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        OWNER_ONLY.lock(path)
    }

    fn fresh_id(&self) -> io::Result<u64> {
        getrandom::u64().map_err(io::Error::other)
    }
}

/// As [`RealDisk`], but for permissions.
impl Disk for GroupDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        GROUP_READS.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<FileEntry>> {
        RealDisk.list(dir)
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.folders(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        GROUP_READS.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        GROUP_READS.lock(path)
    }

    fn fresh_id(&self) -> io::Result<u64> {
        RealDisk.fresh_id()
    }
}

/// Opens a file that the log needs to go on. While there are too many open files, connections for
/// example, one of the descriptors that are held for this is given up; with none left, the log waits
/// for some to be closed: failing for good is for a disk that fails.
fn patiently(mut open: impl FnMut() -> io::Result<File>) -> io::Result<File> {
    refill_reserve();
    let mut result = open();
    let mut waits = 0;
    while is_too_many_files(&result) && waits < TOO_MANY_FILES_RETRIES {
        // Another thread may be quicker to take what is given up.
        if RESERVE.lock().pop().is_none() {
            if waits == 0 {
                tracing::warn!("too many open files: the journal waits");
            }
            waits += 1;
            thread::sleep(TOO_MANY_FILES_PAUSE);
        }
        result = open();
    }
    result
}

fn is_too_many_files(result: &io::Result<File>) -> bool {
    let errno = result.as_ref().err().and_then(Errno::from_io_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

/// Descriptors that are open for nothing but to be closed when the log needs one.
static RESERVE: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Takes as many into the reserve as it should have, unless they are too scarce.
fn refill_reserve() {
    let mut reserve = RESERVE.lock();
    while reserve.len() < RESERVE_MAX {
        // They stay on the machine's null device, which is never written.
        match File::open("/dev/null") {
            Ok(file) => reserve.push(file.into()),
            Err(_) => return,
        }
    }
}

impl DiskFile for File {
    fn size_bytes(&self) -> io::Result<u64> {
        critical::check(Work::File);
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        critical::check(Work::File);
        FileExt::read_at(self, out, offset)
    }

    fn read_cached(&self, out: &mut [u8], offset: u64) -> bool {
        critical::check(Work::File);
        system::read_cached(self, out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        critical::check(Work::File);
        FileExt::write_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        critical::check(Work::Sync);
        // Not `File::sync_data`, which tries again when it is interrupted.
        system::sync_data(self)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        critical::check(Work::File);
        system::punch(self, offset, len)
    }

    fn will_need(&self, offset: u64, len: u64) {
        system::will_need(self, offset, len);
    }

    fn forget(&self, offset: u64, len: u64) {
        system::forget(self, offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_makes_no_file_where_a_link_leads() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, elsewhere] = ["lock", "elsewhere"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
        assert!(RealDisk.lock(&path).is_err());
        assert!(!elsewhere.exists());
    }

    #[test]
    fn a_lock_ends_when_it_is_dropped_whatever_a_child_has_inherited() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let lock = RealDisk.lock(&path).expect("it is free");
        let inherited = lock.downcast_ref::<Lock>().expect("a lock").0.try_clone().expect("a file");
        let refused = RealDisk.lock(&path).map(drop).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::WouldBlock));
        drop(lock);
        RealDisk.lock(&path).expect("it is free again");
        drop(inherited);
    }
}

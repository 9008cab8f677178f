//! The operations on files that the journal needs, so that tests can put a failing disk below it.

mod real;
mod system;

pub use real::{GroupDisk, RealDisk};

use std::{
    any::Any,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file's name and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Name within its folder.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing one, to read.
    Read,
    /// An existing one, to read and write.
    Write,
    /// An empty one, to read and write; what was there is cut off.
    Create,
}

/// A file system.
pub trait Disk: Send + Sync + 'static {
    /// Makes a folder and those above it, and syncs the folders that got new entries.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// The plain files of a folder, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<FileEntry>>;
    /// The names of the folders in a folder, in any order.
    fn folders(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file over whatever is there. Durable only after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable only after [`Disk::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder with all files that are left in it, durably.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes the entries of a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Locks a file, which is made if there is none, against other processes until the result is
    /// dropped; [`io::ErrorKind::WouldBlock`] if another one has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>>;
    /// A number that no journal had before, and that no one can guess.
    fn fresh_id(&self) -> io::Result<u64>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Size in bytes.
    fn size_bytes(&self) -> io::Result<u64>;
    /// Reads some bytes at `offset`; 0 at the end of the file.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Fills `out` with what is at `offset` if no disk is waited for. Returns whether it has.
    fn read_cached(&self, _out: &mut [u8], _offset: u64) -> bool {
        false
    }
    /// Writes some bytes at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes what was written durable, and the size with it (`fdatasync`; macOS: `F_FULLFSYNC`). Must not try again
    /// after a failure.
    fn sync_data(&self) -> io::Result<()>;
    /// Gives a range back to the file system; it reads as zeros after that.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Says that a range will be read soon.
    fn will_need(&self, offset: u64, len: u64);
    /// Says that what the system has of a range in memory is not needed, so that the next read asks the disk.
    fn forget(&self, offset: u64, len: u64);
}

/// What a disk answers that can't read a sector any more.
pub(crate) const SECTOR_IS_BAD: i32 = 5;

/// Whether an error says that a disk can't read what it has: that is lost, as what it has changed is.
pub fn is_bad_sector(error: &io::Error) -> bool {
    error.raw_os_error() == Some(SECTOR_IS_BAD)
}

/// Where what is taken out of a file, or all of it, goes: `PATH.bad`, or `PATH-2.bad` and so on where an earlier repair has
/// left something under that name.
pub(crate) fn aside(disk: &dyn Disk, path: &Path) -> io::Result<PathBuf> {
    free(disk, path, |nth| if nth == 1 { ".bad".to_owned() } else { format!("-{nth}.bad") })
}

/// The first path without a file that begins with `path`, whose end is what `ending` says for 1, 2 and so on.
pub(crate) fn free(
    disk: &dyn Disk,
    path: &Path,
    ending: impl Fn(usize) -> String,
) -> io::Result<PathBuf> {
    let mut nth = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(ending(nth));
        let found = PathBuf::from(name);
        match disk.open(&found, OpenMode::Read) {
            Ok(_) => nth += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(error),
        }
    }
}

/// Reads until `out` is full or the file ends, and returns how much there was.
pub(crate) fn read_up_to(file: &dyn DiskFile, out: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match file.read_at(&mut out[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `bytes`. An interrupted write is tried again, a failed one is not.
pub(crate) fn write_all(file: &dyn DiskFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

//! A disk that stands still for as long as a test wants.

use courser_journal::{Disk, DiskFile, FileEntry, OpenMode, RealDisk};
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The machine's disk. While it is held, no call returns.
#[derive(Clone, Default)]
pub struct HeldDisk(Arc<State>);

#[derive(Default)]
struct State {
    is_held: Mutex<bool>,
    /// Calls that wait.
    waiting: AtomicUsize,
    released: Condvar,
}

/// The disk is held as long as this lives.
pub struct Hold(Arc<State>);

impl HeldDisk {
    pub fn hold(&self) -> Hold {
        *self.0.is_held.lock() = true;
        Hold(Arc::clone(&self.0))
    }

    /// Whether a call waits for the end of a hold.
    pub fn is_waited_for(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
    }

    fn pass(&self) -> RealDisk {
        let mut is_held = self.0.is_held.lock();
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        self.0.released.wait_while(&mut is_held, |is_held| *is_held);
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        RealDisk
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        *self.0.is_held.lock() = false;
        self.0.released.notify_all();
    }
}

impl Disk for HeldDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.pass().create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<FileEntry>> {
        self.pass().list(dir)
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.pass().folders(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.pass().open(path, mode)?;
        Ok(Arc::new(HeldFile { file, disk: self.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pass().remove(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.pass().remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.pass().sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.pass().lock(path)
    }

    fn fresh_id(&self) -> io::Result<u64> {
        self.pass().fresh_id()
    }
}

struct HeldFile {
    file: Arc<dyn DiskFile>,
    disk: HeldDisk,
}

impl HeldFile {
    fn pass(&self) -> &dyn DiskFile {
        self.disk.pass();
        &*self.file
    }
}

impl DiskFile for HeldFile {
    fn size_bytes(&self) -> io::Result<u64> {
        self.pass().size_bytes()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.pass().read_at(out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.pass().write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.pass().sync_data()
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.pass().punch(offset, len)
    }

    fn will_need(&self, offset: u64, len: u64) {
        self.pass().will_need(offset, len);
    }

    fn forget(&self, offset: u64, len: u64) {
        self.pass().forget(offset, len);
    }
}

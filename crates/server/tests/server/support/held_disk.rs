//! A disk that stands still for as long as a test wants, that takes its time for each call, or whose syncs a test counts out.

use courser_journal::{Disk, DiskFile, FileEntry, OpenMode, RealDisk};
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The machine's disk. While it is held, no call returns; each takes a while when it is slow.
#[derive(Clone, Default)]
pub struct HeldDisk(Arc<State>);

#[derive(Default)]
struct State {
    is_held: Mutex<bool>,
    /// Calls that wait.
    waiting: AtomicUsize,
    released: Condvar,
    call_ms: AtomicU64,
    /// The test's clock, if reads take time by it.
    clock: Mutex<Option<Arc<AtomicI64>>>,
    /// Syncs of the log that may begin, if a test counts them.
    syncs: Mutex<Option<usize>>,
    allowed: Condvar,
}

/// The thread that a log is synced by.
const LOG_THREAD: &str = "journal-log";

/// The disk is held as long as this lives.
pub struct Hold(Arc<State>);

/// As long as this lives, a sync of the log is one that it has allowed.
pub struct Steps(Arc<State>);

impl HeldDisk {
    pub fn hold(&self) -> Hold {
        *self.0.is_held.lock() = true;
        Hold(Arc::clone(&self.0))
    }

    /// Has each call take so long from now on.
    pub fn slow_down(&self, call: Duration) {
        self.0.call_ms.store(call.as_millis() as u64, Ordering::Relaxed);
    }

    /// Has each read take an hour by this clock, which tells by how many milliseconds it is ahead, or no time by any.
    pub fn slow_reads_down(&self, ahead_ms: Option<&Arc<AtomicI64>>) {
        *self.0.clock.lock() = ahead_ms.cloned();
    }

    /// Whether a call waits for the end of a hold.
    pub fn is_waited_for(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// Lets no sync of the log begin from now on that is not allowed.
    pub fn step(&self) -> Steps {
        *self.0.syncs.lock() = Some(0);
        Steps(Arc::clone(&self.0))
    }

    fn begin_sync(&self) {
        if std::thread::current().name() != Some(LOG_THREAD) {
            return;
        }
        let mut syncs = self.0.syncs.lock();
        self.0.allowed.wait_while(&mut syncs, |syncs| *syncs == Some(0));
        *syncs = syncs.map(|left| left - 1);
    }

    fn pass(&self) -> RealDisk {
        let mut is_held = self.0.is_held.lock();
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        self.0.released.wait_while(&mut is_held, |is_held| *is_held);
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        drop(is_held);
        let call_ms = self.0.call_ms.load(Ordering::Relaxed);
        if call_ms > 0 {
            std::thread::sleep(Duration::from_millis(call_ms));
        }
        RealDisk
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        *self.0.is_held.lock() = false;
        self.0.released.notify_all();
    }
}

impl Steps {
    /// Allows so many from now on, and none that was allowed before.
    pub fn allow(&self, syncs: usize) {
        *self.0.syncs.lock() = Some(syncs);
        self.0.allowed.notify_all();
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        *self.0.syncs.lock() = None;
        self.0.allowed.notify_all();
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
        if let Some(ahead_ms) = &*self.disk.0.clock.lock() {
            ahead_ms.fetch_add(3_600_000, Ordering::Relaxed);
        }
        self.pass().read_at(out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.pass().write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.begin_sync();
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

//! The fake disk: names, locks, faults and crashes.

mod faults;
mod hold;
mod image;
mod open_file;

use super::Rng;
use crate::{Disk, DiskFile, FileEntry, OpenMode};
pub use faults::{FailsOnce, Faults};
pub use hold::Hold;
use hold::Holds;
use image::Image;
use open_file::FakeFile;
use parking_lot::Mutex;
use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct FakeDisk(Arc<Mutex<State>>);

struct State {
    rng: Rng,
    files: BTreeMap<u64, Image>,
    next_file: u64,
    live_names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    name_changes: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    /// Files that were opened before a crash are of no use after it.
    boot: u64,
    faults: Faults,
    bad: faults::BadPages,
    holds: Holds,
    capacity_bytes: u64,
    files_max: usize,
    write_count: u64,
    written_bytes: u64,
    read_bytes: u64,
}

/// A change of a folder that was not synced.
enum NameChange {
    Add(PathBuf, u64),
    Rename(PathBuf, PathBuf, u64),
    Remove(PathBuf),
}

impl FakeDisk {
    /// An empty disk without faults.
    pub fn new(seed: u64) -> Self {
        FakeDisk(Arc::new(Mutex::new(State {
            rng: Rng::new(seed),
            files: BTreeMap::new(),
            next_file: 0,
            live_names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            locks: BTreeSet::new(),
            boot: 0,
            faults: Faults::default(),
            bad: Default::default(),
            holds: Holds::default(),
            capacity_bytes: u64::MAX,
            files_max: usize::MAX,
            write_count: 0,
            written_bytes: 0,
            read_bytes: 0,
        })))
    }

    /// Says what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        let state = &mut *self.0.lock();
        (state.bad, state.faults) = (faults::BadPages::of(&faults, &state.live_names), faults);
    }

    /// What goes wrong from now on.
    pub fn faults(&self) -> Faults {
        self.0.lock().faults.clone()
    }

    /// Whether something that was to fail once has not come up yet.
    pub fn has_fault_left(&self) -> bool {
        let faults = &self.0.lock().faults;
        faults.fail_change.is_some() || faults.fail_look.is_some()
    }

    /// Says how many bytes fit on the disk.
    pub fn set_capacity(&self, bytes: u64) {
        self.0.lock().capacity_bytes = bytes;
    }

    /// Says how many files there can be: inodes, of which a file system may have too few.
    pub fn set_files_max(&self, files: usize) {
        self.0.lock().files_max = files;
    }

    /// Has who makes a file wait until the hold is let go: what a slow disk does that has to grow something.
    pub fn hold_new_files(&self) -> Hold {
        self.0.lock().holds.new_files.begin()
    }

    /// Has who syncs a file wait until the hold is let go.
    pub fn hold_syncs(&self) -> Hold {
        self.0.lock().holds.syncs.begin()
    }

    /// Has who reads this file wait until the hold is let go. None if there is no such file.
    pub fn hold_reads(&self, path: &Path) -> Option<Hold> {
        let state = &mut *self.0.lock();
        let (file, hold) = &mut state.holds.reads;
        *file = *state.live_names.get(path)?;
        Some(hold.begin())
    }

    /// Bytes that the files take.
    pub fn used_bytes(&self) -> u64 {
        self.0.lock().used_bytes()
    }

    /// Bytes that were ever written.
    pub fn written_bytes(&self) -> u64 {
        self.0.lock().written_bytes
    }

    /// Bytes that were ever read.
    pub fn read_bytes(&self) -> u64 {
        self.0.lock().read_bytes
    }

    /// The process ends; what it wrote stays in the kernel's memory.
    pub fn kill(&self) {
        let mut state = self.0.lock();
        state.boot += 1;
        state.locks.clear();
        state.faults = Faults::default();
    }

    /// The power goes: what was not synced is there in part.
    pub fn lose_power(&self) {
        self.kill();
        let state = &mut *self.0.lock();
        // A journaling file system keeps the order of names; not all file systems do.
        let in_order = state.rng.one_in(2);
        let kept_in_order = state.rng.below(state.name_changes.len() as u64 + 1);
        for (index, change) in state.name_changes.drain(..).enumerate() {
            let kept = if in_order { (index as u64) < kept_in_order } else { state.rng.one_in(2) };
            if kept {
                change.apply(&mut state.durable_names);
            }
        }
        state.live_names = state.durable_names.clone();
        for file in state.files.values_mut() {
            file.lose_power(&mut state.rng);
        }
        state.forget_nameless();
    }

    /// Names of all files, in order.
    pub fn names(&self) -> Vec<PathBuf> {
        self.0.lock().live_names.keys().cloned().collect()
    }

    /// What is in a file.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.0.lock();
        state.files.get(state.live_names.get(path)?).map(|file| file.live.clone())
    }

    /// Flips the bits of `mask` in one byte of a file, behind everybody's back.
    pub fn corrupt(&self, path: &Path, offset: usize, mask: u8) {
        let state = &mut *self.0.lock();
        if let Some(file) = state.live_names.get(path).and_then(|file| state.files.get_mut(file)) {
            file.corrupt(offset, mask);
        }
    }

    /// Puts a file with these contents there, durably.
    pub fn put(&self, path: &Path, contents: &[u8]) {
        let state = &mut *self.0.lock();
        let file = state.add_file(path);
        if let Some(file) = state.files.get_mut(&file) {
            file.truncate();
            file.write(contents, 0);
            file.sync();
        }
        state.sync_names();
    }
}

impl State {
    fn used_bytes(&self) -> u64 {
        let used = |file: &Image| (file.live.len() as u64).saturating_sub(file.punched_bytes);
        self.live_names.values().filter_map(|file| self.files.get(file)).map(used).sum()
    }

    /// Counts an operation that changes something.
    fn change(&mut self) -> io::Result<()> {
        match &mut self.faults.power_off_after {
            None => {}
            Some(0) => return Err(io::Error::other("the power is off")),
            Some(left) => *left -= 1,
        }
        FailsOnce::count(&mut self.faults.fail_change)
    }

    /// Counts an operation that only looks.
    fn look(&mut self) -> io::Result<()> {
        FailsOnce::count(&mut self.faults.fail_look)
    }

    fn add_file(&mut self, path: &Path) -> u64 {
        if let Some(file) = self.live_names.get(path) {
            return *file;
        }
        let file = self.next_file;
        self.next_file += 1;
        self.files.insert(file, Image::default());
        self.live_names.insert(path.to_owned(), file);
        self.name_changes.push(NameChange::Add(path.to_owned(), file));
        file
    }

    fn sync_names(&mut self) {
        self.durable_names = self.live_names.clone();
        self.name_changes.clear();
        self.forget_nameless();
    }

    fn forget_nameless(&mut self) {
        let named: BTreeSet<u64> =
            self.live_names.values().chain(self.durable_names.values()).copied().collect();
        let pending =
            |file: &u64| self.name_changes.iter().any(|change| change.file() == Some(*file));
        let dead: Vec<u64> = self
            .files
            .keys()
            .filter(|file| !named.contains(file) && !pending(file))
            .copied()
            .collect();
        for file in dead {
            self.files.remove(&file);
        }
    }
}

impl NameChange {
    fn file(&self) -> Option<u64> {
        match self {
            NameChange::Add(_, file) | NameChange::Rename(_, _, file) => Some(*file),
            NameChange::Remove(_) => None,
        }
    }

    fn apply(self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            NameChange::Add(path, file) => {
                names.insert(path, file);
            }
            NameChange::Rename(from, to, file) => {
                // Another change of the same name may not have happened.
                if names.get(&from) == Some(&file) {
                    names.remove(&from);
                }
                names.insert(to, file);
            }
            NameChange::Remove(path) => {
                names.remove(&path);
            }
        }
    }
}

impl Disk for FakeDisk {
    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        self.0.lock().change()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<FileEntry>> {
        let mut state = self.0.lock();
        state.look()?;
        let mut found = Vec::new();
        for (path, file) in &state.live_names {
            let name = path.strip_prefix(dir).ok().and_then(Path::to_str);
            if let (Some(name), Some(file)) = (name, state.files.get(file)) {
                found.push(FileEntry { name: name.to_owned(), size_bytes: file.live.len() as u64 });
            }
        }
        Ok(found)
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = self.0.lock();
        state.look()?;
        let paths = state.live_names.keys().filter_map(|path| path.strip_prefix(dir).ok());
        let folders = paths.filter_map(|path| {
            let mut parts = path.iter();
            let first = parts.next()?.to_str()?;
            parts.next().map(|_| first.to_owned())
        });
        Ok(folders.collect::<std::collections::BTreeSet<_>>().into_iter().collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        if mode == OpenMode::Create {
            let hold = self.0.lock().holds.new_files.clone();
            hold.wait();
        }
        let state = &mut *self.0.lock();
        if mode != OpenMode::Create {
            state.look()?;
        }
        let file = match (mode, state.live_names.get(path)) {
            (OpenMode::Create, _) => {
                state.change()?;
                let is_new = !state.live_names.contains_key(path);
                if is_new && state.live_names.len() >= state.files_max {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                let file = state.add_file(path);
                if let Some(image) = state.files.get_mut(&file) {
                    image.truncate();
                }
                file
            }
            (_, Some(file)) => *file,
            (_, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(FakeFile { disk: self.clone(), file, boot: state.boot }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let state = &mut *self.0.lock();
        state.change()?;
        let file = state.live_names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.live_names.insert(to.to_owned(), file);
        state.name_changes.push(NameChange::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.0.lock();
        state.change()?;
        state.live_names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        state.name_changes.push(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        for file in self.list(dir)? {
            self.remove(&dir.join(file.name))?;
        }
        self.sync_dir(dir)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        let state = &mut *self.0.lock();
        state.change()?;
        if !state.faults.lying_syncs {
            state.sync_names();
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        let mut state = self.0.lock();
        state.look()?;
        if !state.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(FakeLock { disk: self.clone(), path: path.to_owned(), boot: state.boot }))
    }

    fn fresh_id(&self) -> io::Result<u64> {
        Ok(self.0.lock().rng.number())
    }
}

struct FakeLock {
    disk: FakeDisk,
    path: PathBuf,
    boot: u64,
}

impl Drop for FakeLock {
    fn drop(&mut self) {
        let mut state = self.disk.0.lock();
        if state.boot == self.boot {
            state.locks.remove(&self.path);
        }
    }
}

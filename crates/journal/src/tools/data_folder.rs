//! The tools for all journals of a data folder: that of the home shard, those of further ones, and in a member's folder the
//! copies of its groups' logs.

use super::{Names, Repaired, ToolError, inspect, repair_store, verify_store};
use crate::{
    Disk, JournalShards, Options, recovery, replica::is_copy, shards::Folder, store::load,
};
use courser_store::{MemoryGauge, Opening, Recovered, ShardId, Shards};
use std::{
    collections::BTreeSet,
    io::{self, ErrorKind, Write},
    path::Path,
    sync::Arc,
};

/// What those know who wrote the records.
#[derive(Clone, Copy)]
pub struct Meaning<'a> {
    /// The names of what has messages.
    pub names: Names<'a>,
    /// The shards that the home shard's definitions name besides itself.
    pub shards: &'a dyn Fn(&Recovered) -> BTreeSet<ShardId>,
}

/// What is looked at, and where the report goes.
struct Tour<'a> {
    data_dir: &'a Path,
    disk: Arc<dyn Disk>,
    out: &'a mut dyn Write,
    /// The first reason why a journal could not be looked at to its end.
    failed: Option<ToolError>,
}

/// As [`inspect`](super::inspect()), for every journal in a data folder.
///
/// # Errors
/// When one of them can't be read; the others are looked at all the same.
pub fn inspect_all(
    data_dir: &Path,
    disk: Arc<dyn Disk>,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let mut tour = Tour { data_dir, disk, out, failed: None };
    for folder in tour.folders()? {
        tour.visit(&folder, &mut |dir, disk, out| inspect(dir, disk, out))?;
    }
    tour.end()
}

/// As [`verify_store`], for every journal in a data folder. Returns whether all are there and sound.
///
/// # Errors
/// When one of them can't be read; the others are looked at all the same.
pub fn verify_all(
    data_dir: &Path,
    disk: Arc<dyn Disk>,
    meaning: Meaning<'_>,
    out: &mut dyn Write,
) -> Result<bool, ToolError> {
    let mut tour = Tour { data_dir, disk, out, failed: None };
    let folders = tour.folders()?;
    let mut sound = true;
    for folder in &folders {
        let verify = &mut |dir: &Path, disk, out: &mut dyn Write| {
            verify_store(dir, disk, meaning.names, out)
        };
        sound &= tour.visit(folder, verify)?.unwrap_or(true);
    }
    for id in tour.missing(&folders, meaning)? {
        tour.say_missing(id, "")?;
        sound = false;
    }
    tour.end().map(|()| sound)
}

/// As [`repair_store`], for every journal in a data folder. A shard whose journal is missing gets an
/// empty one.
///
/// # Errors
/// When one of them can't be mended; the others are mended all the same.
pub fn repair_all(
    data_dir: &Path,
    options: &Options,
    disk: Arc<dyn Disk>,
    meaning: Meaning<'_>,
    out: &mut dyn Write,
) -> Result<Repaired, ToolError> {
    let mut tour = Tour { data_dir, disk, out, failed: None };
    let folders = tour.folders()?;
    let mut repaired = Repaired::default();
    for folder in &folders {
        let repair = &mut |dir: &Path, disk, out: &mut dyn Write| {
            repair_store(dir, options.clone(), disk, meaning.names, out)
        };
        let done = tour.visit(folder, repair)?.unwrap_or_default();
        repaired.changed |= done.changed;
        repaired.lost |= done.lost;
    }
    for id in tour.missing(&folders, meaning)? {
        tour.say_missing(id, ": everything in it is lost, it begins anew with an empty one")?;
        let (disk, gauge) = (Arc::clone(&tour.disk), Arc::new(MemoryGauge::default()));
        let options = Options { threads: false, ..options.clone() };
        let shards = JournalShards::new(data_dir, options, disk, gauge, u64::MAX);
        let opened = shards.open(id, Opening::MakeIfMissing, &mut |_| {});
        opened.map_err(io::Error::other)?.shard.close().map_err(io::Error::other)?;
        (repaired.changed, repaired.lost) = (true, true);
    }
    tour.end().map(|()| repaired)
}

/// What is done in one folder.
type Look<'a, T> = &'a mut dyn FnMut(&Path, Arc<dyn Disk>, &mut dyn Write) -> Result<T, ToolError>;

impl Tour<'_> {
    /// The folders of the shards, that of the home shard first.
    fn folders(&self) -> Result<Vec<Folder>, ToolError> {
        let folders = Folder::all(&*self.disk, self.data_dir)?;
        if folders.is_empty() {
            Err(ToolError::None(self.data_dir.to_owned()))
        } else {
            Ok(folders)
        }
    }

    /// Looks at one journal, under its folder's name. Nothing comes back if that failed, which is said,
    /// or if the journal is none any more.
    fn visit<T>(&mut self, folder: &Folder, look: Look<'_, T>) -> Result<Option<T>, ToolError> {
        writeln!(self.out, "{}:", folder.path.display())?;
        if folder.is_being_removed(&*self.disk)? {
            writeln!(self.out, "the shard was being removed: there is nothing to keep")?;
            return Ok(None);
        }
        match look(&folder.path, Arc::clone(&self.disk), self.out) {
            Ok(done) => Ok(Some(done)),
            // The reader of the report is gone.
            Err(ToolError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => Err(error.into()),
            Err(error) => {
                writeln!(self.out, "{error}")?;
                let (folder, error) = (folder.path.clone(), Box::new(error));
                self.failed.get_or_insert(ToolError::In { folder, error });
                Ok(None)
            }
        }
    }

    /// The shards that the home shard's definitions name and that have no journal.
    fn missing(&self, folders: &[Folder], meaning: Meaning<'_>) -> Result<Vec<ShardId>, ToolError> {
        let Some(home) = folders.iter().find(|folder| folder.id == ShardId::HOME) else {
            return Ok(Vec::new());
        };
        // In a cluster there are groups instead.
        if is_copy(&*self.disk, &home.path)? {
            return Ok(Vec::new());
        }
        // One that can't be read names none.
        let Ok(lock) = recovery::lock(&*self.disk, &home.path) else { return Ok(Vec::new()) };
        let disk = Arc::clone(&self.disk);
        let Ok(recovery) = recovery::open_locked(&home.path, Options::default(), disk, lock) else {
            return Ok(Vec::new());
        };
        let Ok((recovered, _)) = load(&recovery, &mut |_| {}) else { return Ok(Vec::new()) };
        let mut missing = Vec::new();
        for id in (meaning.shards)(&recovered) {
            let folder = folders.iter().find(|folder| folder.id == id);
            let is_there = match folder {
                Some(folder) => {
                    folder.has_journal(&*self.disk)? && !folder.is_being_removed(&*self.disk)?
                }
                None => false,
            };
            if id != ShardId::HOME && !is_there {
                missing.push(id);
            }
        }
        Ok(missing)
    }

    fn say_missing(&mut self, id: ShardId, what_is_done: &str) -> io::Result<()> {
        let path = self.data_dir.join(Folder::name_of(id));
        writeln!(
            self.out,
            "{}:\nthere is no journal here, though the broker's definitions name this shard{what_is_done}",
            path.display()
        )
    }

    fn end(self) -> Result<(), ToolError> {
        self.failed.map_or(Ok(()), Err)
    }
}

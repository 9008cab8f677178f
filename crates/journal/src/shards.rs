//! Shards on the disk of this machine: a journal each, in a folder of its own.

use crate::{Disk, JournalStore, OpenMode, Options, RecoverError, names, replica::is_copy};
use courser_store::{
    CheckpointError, CheckpointReport, MemoryGauge, OpenReport, OpenShard, Opened, Opening,
    Progress, Role, ShardError, ShardId, ShardState, Shards, Store,
};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// Marks a folder whose journal is being removed: what is left in it is none.
const BEING_REMOVED: &str = "being-removed";

/// The folder of a shard, or of a group's copy, in a data folder.
pub(crate) struct Folder {
    pub id: ShardId,
    pub path: PathBuf,
}

impl Folder {
    /// What the folder of a shard is called.
    pub fn name_of(shard: ShardId) -> String {
        match shard {
            ShardId::HOME => "journal".to_owned(),
            other => format!("journal-{other}"),
        }
    }

    /// All in a data folder, in the order of their numbers.
    pub fn all(disk: &dyn Disk, data_dir: &Path) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        let folders = match disk.folders(data_dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            folders => folders?,
        };
        for name in folders {
            let number = name.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
            let id = ShardId(number.unwrap_or_default());
            let path = data_dir.join(&name);
            // Copies are where their owner wants them. What no journal may be in, such as `lost+found`, has none.
            let is_copy = || match is_copy(disk, &path) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
                found => found,
            };
            if Self::name_of(id) == name || is_copy()? {
                found.push(Folder { id, path });
            }
        }
        found.sort_by_key(|folder| folder.id);
        Ok(found)
    }

    /// Whether a file in it makes it a journal.
    pub fn has_journal(&self, disk: &dyn Disk) -> io::Result<bool> {
        Ok(disk.list(&self.path)?.iter().any(|file| names::parse(&file.name).is_some()))
    }

    /// Whether what is left in it is none.
    pub fn is_being_removed(&self, disk: &dyn Disk) -> io::Result<bool> {
        Ok(disk.list(&self.path)?.iter().any(|file| file.name == BEING_REMOVED))
    }
}

/// Shards below one folder: `journal` is the home shard's, `journal-7` that of shard 7.
pub struct JournalShards {
    folder: PathBuf,
    options: Options,
    disk: Arc<dyn Disk>,
    gauge: Arc<MemoryGauge>,
    spill_bytes: u64,
    /// Those that were opened.
    opened: Mutex<Vec<(ShardId, Weak<JournalStore>)>>,
}

/// Why a folder is not opened as a shard, or not removed, besides what is wrong with the journal.
#[derive(Debug, thiserror::Error)]
enum FolderError {
    #[error("there is no journal here, though the broker's definitions name this shard")]
    Missing,
    #[error("can't {action}: {error}")]
    Io { action: &'static str, error: io::Error },
    #[error("the shard is in use: close it before it is removed")]
    InUse,
    #[error(transparent)]
    Recover(#[from] RecoverError),
}

impl JournalShards {
    /// The shards below `folder` of a disk. See [`JournalStore::open`].
    pub fn new(
        folder: &Path,
        options: Options,
        disk: Arc<dyn Disk>,
        gauge: Arc<MemoryGauge>,
        spill_bytes: u64,
    ) -> Self {
        let folder = folder.to_owned();
        JournalShards { folder, options, disk, gauge, spill_bytes, opened: Mutex::default() }
    }

    /// The shards that are open, with their stores.
    pub fn opened(&self) -> Vec<(ShardId, Arc<JournalStore>)> {
        let opened = self.opened.lock();
        opened.iter().filter_map(|(shard, store)| Some((*shard, store.upgrade()?))).collect()
    }

    /// What the folder of a shard's journal is called.
    pub fn folder_name(&self, shard: ShardId) -> String {
        Folder::name_of(shard)
    }

    /// Where a shard's journal is.
    pub fn folder(&self, shard: ShardId) -> PathBuf {
        self.folder.join(Folder::name_of(shard))
    }

    /// The names of the files of a shard; none if there is no folder.
    fn files(&self, folder: &Path) -> Result<Vec<String>, FolderError> {
        match self.disk.list(folder) {
            Ok(files) => Ok(files.into_iter().map(|file| file.name).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(FolderError::Io { action: "list the files", error }),
        }
    }

    fn open_in(
        &self,
        shard: ShardId,
        folder: &Path,
        opening: Opening,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Opened, FolderError> {
        let mut files = self.files(folder)?;
        if files.iter().any(|name| name == BEING_REMOVED) {
            self.remove_from(folder)?;
            files.clear();
        }
        let is_there = files.iter().any(|name| names::parse(name).is_some());
        if !is_there && opening == Opening::Existing {
            return Err(FolderError::Missing);
        }
        let (options, disk) = (self.options.clone(), Arc::clone(&self.disk));
        let gauge = Arc::clone(&self.gauge);
        let (store, recovered, replayed) =
            JournalStore::open(folder, options, disk, gauge, self.spill_bytes, progress)?;
        self.opened.lock().push((shard, Arc::downgrade(&store)));
        let report =
            OpenReport { records: replayed.records, end: replayed.end, torn: replayed.torn };
        Ok(Opened { shard: Arc::new(JournalShard(store)), recovered, report })
    }

    fn remove_from(&self, folder: &Path) -> Result<(), FolderError> {
        let files = self.files(folder)?;
        if files.is_empty() {
            return Ok(());
        }
        let disk = &*self.disk;
        let failed = |action| move |error| FolderError::Io { action, error };
        let _lock = match disk.lock(&folder.join(names::LOCK)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(FolderError::InUse);
            }
            lock => lock.map_err(failed("lock the folder"))?,
        };
        disk.open(&folder.join(BEING_REMOVED), OpenMode::Create)
            .map_err(failed("mark the folder"))?;
        disk.sync_dir(folder).map_err(failed("sync the folder"))?;
        for name in files.iter().filter(|name| *name != BEING_REMOVED && *name != names::LOCK) {
            disk.remove(&folder.join(name)).map_err(failed("remove a file"))?;
        }
        disk.sync_dir(folder).map_err(failed("sync the folder"))?;
        disk.remove_dir(folder).map_err(failed("remove the folder"))
    }
}

impl Shards for JournalShards {
    fn open(
        &self,
        shard: ShardId,
        opening: Opening,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Opened, ShardError> {
        let folder = self.folder(shard);
        self.open_in(shard, &folder, opening, progress).map_err(|error| error_at(&folder, error))
    }

    fn remove(&self, shard: ShardId) -> Result<(), ShardError> {
        let folder = self.folder(shard);
        self.remove_from(&folder).map_err(|error| error_at(&folder, error))
    }
}

fn error_at(folder: &Path, error: FolderError) -> ShardError {
    let error: Box<dyn std::error::Error + Send + Sync> = match error {
        // What is wrong with a journal says all that there is to say.
        FolderError::Recover(error) => error.into(),
        other => other.into(),
    };
    ShardError { place: folder.display().to_string(), error }
}

/// An open journal as a shard.
struct JournalShard(Arc<JournalStore>);

impl OpenShard for JournalShard {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0) as Arc<dyn Store>
    }

    fn role(&self) -> Role {
        Role::Leader
    }

    fn wait_for_checkpoint(&self) -> bool {
        self.0.wait_for_checkpoint()
    }

    fn stop_checkpoints(&self) {
        self.0.stop_checkpoints();
    }

    fn checkpoint(&self, state: &dyn ShardState) -> Result<CheckpointReport, CheckpointError> {
        let made = self.0.checkpoint(state).map_err(|error| CheckpointError(error.into()))?;
        Ok(CheckpointReport { size_bytes: made.size_bytes })
    }

    fn has_unlogged(&self) -> bool {
        self.0.journal().has_unlogged()
    }

    fn close(&self) -> Result<(), String> {
        self.0.stop_checkpoints();
        self.0.journal().close().map_err(|failure| failure.to_string())
    }
}

//! The folder that belongs to one broker alone.

use courser_journal::Disk;
use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};

/// A locked data folder; the lock goes with the process, however it ends.
pub(crate) struct DataDir {
    _lock: Box<dyn Any + Send + Sync>,
}

/// Why a data folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// It can't be made, or not written to.
    #[error("data folder {path}: {error}")]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another broker has it.
    #[error(
        "data folder {0} is in use by another broker; stop it, or choose another folder with --data-dir"
    )]
    InUse(PathBuf),
}

impl DataDir {
    /// Makes the folder if it is missing, and locks it. The folder's own files are made through `disk`.
    pub fn open(path: &Path, disk: &dyn Disk) -> Result<Self, DataDirError> {
        let unusable = |error| DataDirError::Unusable { path: path.to_owned(), error };
        disk.create_dir(path).map_err(unusable)?;
        match disk.lock(&path.join("courser.lock")) {
            Ok(lock) => Ok(DataDir { _lock: lock }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(DataDirError::InUse(path.to_owned()))
            }
            Err(error) => Err(unusable(error)),
        }
    }
}

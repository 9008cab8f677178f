//! The folder that belongs to one broker alone.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A locked data folder; the lock goes with the process, however it ends.
#[derive(Debug)]
pub(crate) struct DataDir {
    _lock: File,
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
    /// Makes the folder if it is missing, and locks it.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let unusable = |error| DataDirError::Unusable { path: path.to_owned(), error };
        std::fs::create_dir_all(path).map_err(unusable)?;
        let lock = File::create(path.join("courser.lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(DataDir { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

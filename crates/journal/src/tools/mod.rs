//! Looking at a journal that is not running, and mending one that was damaged: what the commands
//! `courser journal inspect`, `verify` and `repair` do.
//!
//! None of them invents a record. A repair keeps every byte that it takes out of the log in a
//! file beside it, whose name ends in `.bad`.

mod data_folder;
mod inspect;
mod mend;
mod open;
mod put_back;
mod repair;
mod state;
mod survey;
mod unreadable;

pub use data_folder::{Meaning, inspect_all, repair_all, verify_all};
pub use inspect::{inspect, verify};
pub use repair::{Repaired, repair};
pub use state::{Names, repair_store, verify_store};

use crate::{OpenError, RecoverError, replica::ReplicaError};
use std::{io, path::PathBuf};

/// Why a tool gave up.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The journal cannot be read, or is damaged in a way that cannot be mended.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What the store keeps in it cannot be read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The report, or what a repair writes, could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A member's copy of a replicated log can't be read.
    #[error(transparent)]
    Copy(#[from] ReplicaError),
    /// It is a member's copy of a replicated log, and not sound.
    #[error(
        "this is a member's copy of a cluster's log, and is not repaired in place, as all copies have the same bytes: a \
         start of the node fetches from another member what is damaged here. Where there is none any more, see 'The worst \
         day' in docs/cluster.md"
    )]
    CopyNotRepaired,
    /// There is nothing to look at.
    #[error("there is no journal in {}; name the data folder with --data-dir", .0.display())]
    None(PathBuf),
    /// In one of the journals.
    #[error("{folder}: {error}")]
    In {
        /// Its folder.
        folder: PathBuf,
        /// What went wrong there.
        error: Box<ToolError>,
    },
    /// Mending one place did not help.
    #[error("this can't be mended: {0}")]
    Stuck(String),
    /// Mending went on without an end.
    #[error("the journal is still damaged after {0} repairs")]
    Endless(u32),
}

impl ToolError {
    /// Whether it says that what is in the files is not what was written.
    fn is_damage(&self) -> bool {
        use ReplicaError::{MustBeRebuilt, VoteLost};
        matches!(
            self,
            ToolError::Open(OpenError::Damaged { .. })
                | ToolError::Copy(MustBeRebuilt { .. } | VoteLost(_))
        )
    }
}

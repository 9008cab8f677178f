//! Looking at a journal that is not running, and mending one that was damaged: what the commands
//! `courser journal inspect`, `verify` and `repair` do.
//!
//! None of them invents a record. A repair keeps every octet that it takes out of the log in a
//! file beside it, whose name ends in `.bad`.

mod inspect;
mod mend;
mod repair;
mod survey;

pub use inspect::{inspect, verify};
pub use repair::repair;

use crate::OpenError;
use std::io;

/// Why a tool gave up.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The journal cannot be read, or is damaged in a way that cannot be mended.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The report, or what a repair writes, could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Mending went on without an end.
    #[error("the journal is still damaged after {0} repairs")]
    Endless(u32),
}

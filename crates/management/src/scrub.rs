//! What the API asks of the thread that reads the journal for damage.

use serde::{Deserialize, Serialize};

/// Reads the journal for damage.
pub trait Scrub: Send + Sync {
    /// Begins to read all of it as fast as it may, unless that is being done.
    fn start(&self);

    /// How far it is.
    fn state(&self) -> ScrubState;
}

/// How far the reading of the journal is, and what has come of it since the process started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubState {
    /// Whether it is read now.
    pub running: bool,
    /// Whether that goes as fast as it may.
    pub hurries: bool,
    /// When the last pass began, in milliseconds since 1970.
    pub began_ms: Option<u64>,
    /// Bytes that were read in it.
    pub read_bytes: u64,
    /// Bytes that there were to be read, more or less.
    pub total_bytes: u64,
    /// Damaged records and other parts that were found in it.
    pub damaged: u64,
    /// Those of them that are written again as another node has them.
    pub repaired: u64,
    /// Damaged parts that are known and not written again.
    pub unrepaired: u64,
    /// When the last pass ended that has read everything, in milliseconds since 1970.
    pub completed_ms: Option<u64>,
    /// Bytes that were read in all passes.
    pub scrubbed_bytes: u64,
    /// Damaged records and other parts that were found in all passes.
    pub damaged_total: u64,
    /// Those of them that are written again.
    pub repaired_total: u64,
}

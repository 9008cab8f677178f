//! The names of the files in a journal's folder.

use crate::Lsn;

/// Locked while the journal is open.
pub const LOCK: &str = "lock";
/// A checkpoint that is being written.
pub const CHECKPOINT_BEING_WRITTEN: &str = "checkpoint.tmp";

/// What a copy of a replicated log must not forget besides the log.
pub const REPLICA: &str = "replica";
/// The same, while it is made.
pub const REPLICA_BEING_WRITTEN: &str = "replica.tmp";
/// Marks a folder whose copy has not come as a whole.
pub const BEING_INSTALLED: &str = "being-installed";
/// The same, while it is made.
pub const MARK_BEING_WRITTEN: &str = "being-installed.tmp";

/// Where no segment starts, so that positions in one can be counted up.
const LSN_MAX: u64 = 1 << 62;

/// A file of the journal, told by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A segment of the log that starts here.
    Segment(Lsn),
    /// The checkpoint with this number.
    Checkpoint(u64),
    /// A pre-written file that no part of the log is in.
    Spare(u64),
}

/// Whether a file was to get another name once all of it was written: one that a start finds is of no use.
pub fn is_being_written(name: &str) -> bool {
    [CHECKPOINT_BEING_WRITTEN, REPLICA_BEING_WRITTEN, MARK_BEING_WRITTEN].contains(&name)
}

/// The segment that starts at `start`.
pub fn segment(start: Lsn) -> String {
    format!("{start}.log")
}

/// The `number`-th checkpoint.
pub fn checkpoint(number: u64) -> String {
    format!("{number:016x}.checkpoint")
}

/// The `number`-th spare file.
pub fn spare(number: u64) -> String {
    format!("{number:016x}.spare")
}

/// What a file is; `None` for anything but what the functions above return.
pub fn parse(name: &str) -> Option<Named> {
    let (digits, kind) = name.split_once('.')?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    let named = match kind {
        // No log gets that far.
        "log" if number >= LSN_MAX => return None,
        "log" => Named::Segment(Lsn(number)),
        "checkpoint" => Named::Checkpoint(number),
        "spare" => Named::Spare(number),
        _ => return None,
    };
    (digits == format!("{number:016x}")).then_some(named)
}

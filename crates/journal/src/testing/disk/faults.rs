//! What goes wrong with a disk.

use std::{io, ops::Range, time::Duration};

/// What goes wrong. Counts are of operations from now on; `None` is never.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The power goes at this operation that changes anything: it and all later ones fail.
    pub power_off_after: Option<u64>,
    /// This write fails.
    pub fail_write_after: Option<u64>,
    /// This sync of a file fails, and part of what it should have made durable is lost for good.
    pub fail_sync_after: Option<u64>,
    /// One in so many writes is cut short or interrupted; 0 is none.
    pub short_write_one_in: u64,
    /// Syncs do nothing: what a disk that lies does. A test has to notice.
    pub lying_syncs: bool,
    /// How long a sync takes.
    pub sync_takes: Duration,
    /// Reads of files fail.
    pub fail_reads: bool,
    /// These bytes of each file can't be read. As with Linux, what is in front of them is returned first.
    pub bad_spot: Range<u64>,
    /// This operation fails, once, of those that change anything: what `power_off_after` counts.
    pub fail_change: Option<FailsOnce>,
    /// This operation fails, once, of those that only look: a list, a lock, an opening, a size, a read.
    pub fail_look: Option<FailsOnce>,
}

/// An operation that fails, when so many others have passed, with this number of the operating system.
#[derive(Clone, Copy, Debug)]
pub struct FailsOnce {
    /// So many pass before.
    pub after: u64,
    /// Such as 5 of a bad sector, or 28 of a full disk.
    pub os_error: i32,
}

impl FailsOnce {
    /// Counts an operation down, and fails it if it is the one.
    pub(super) fn count(this: &mut Option<Self>) -> io::Result<()> {
        match this {
            None => Ok(()),
            Some(FailsOnce { after: 0, os_error }) => {
                let error = io::Error::from_raw_os_error(*os_error);
                *this = None;
                Err(error)
            }
            Some(FailsOnce { after, .. }) => {
                *after -= 1;
                Ok(())
            }
        }
    }
}

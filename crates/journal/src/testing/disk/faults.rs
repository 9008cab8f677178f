//! What goes wrong with a disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    ops::Range,
    path::PathBuf,
    time::Duration,
};

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
    /// The pages of each file that these bytes are in can't be read. As with Linux, what is in front of them is returned first. A
    /// write of a part of such a page fails as well: the system reads the rest of it first. One of all of it is good, and so is
    /// the page from then on, as the disk puts it elsewhere.
    pub bad_spot: Range<u64>,
    /// The only file with that bad spot; `None` is all of them.
    pub bad_file: Option<PathBuf>,
    /// This operation fails, once, of those that change anything: what `power_off_after` counts.
    pub fail_change: Option<FailsOnce>,
    /// This operation fails, once, of those that only look: a list, a lock, an opening, a size, a read.
    pub fail_look: Option<FailsOnce>,
}

/// Bytes that the system reads at once at least.
const PAGE_BYTES: u64 = 4096;

/// Pages of files that are bad.
#[derive(Default)]
pub(super) struct BadPages {
    /// The only file that has some.
    only: Option<u64>,
    /// Those that were written again since.
    written_again: BTreeSet<(u64, u64)>,
}

impl BadPages {
    /// Those that `faults` say, where files have these names.
    pub fn of(faults: &Faults, names: &BTreeMap<PathBuf, u64>) -> Self {
        let file = |path| names.get(path).copied().unwrap_or(u64::MAX);
        BadPages { only: faults.bad_file.as_ref().map(file), written_again: BTreeSet::new() }
    }

    /// The first page of a file among these bytes that can't be read, as offsets.
    pub fn first_bad(&self, bad: &Range<u64>, file: u64, bytes: Range<u64>) -> Option<Range<u64>> {
        if self.only.is_some_and(|only| only != file) {
            return None;
        }
        let pages = bad.start / PAGE_BYTES..bad.end.div_ceil(PAGE_BYTES);
        let mut pages = pages.filter(|page| !self.written_again.contains(&(file, *page)));
        let page = pages.find(|page| (page + 1) * PAGE_BYTES > bytes.start)?;
        let page = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        (page.start < bytes.end && !bad.is_empty()).then_some(page)
    }

    /// How many of these bytes can be written: none, or as many as are in front of a page that is bad, and is among them in part.
    pub fn writable(&mut self, bad: &Range<u64>, file: u64, bytes: Range<u64>) -> u64 {
        while let Some(page) = self.first_bad(bad, file, bytes.clone()) {
            if page.start < bytes.start || page.end > bytes.end {
                return page.start.saturating_sub(bytes.start);
            }
            self.written_again.insert((file, page.start / PAGE_BYTES));
        }
        bytes.end - bytes.start
    }
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

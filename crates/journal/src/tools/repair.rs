//! Making a damaged journal one that starts again.

use super::{
    ToolError,
    mend::Mender,
    open::end_of_log,
    put_back::put_back,
    unreadable::{Unreadable, ZeroFilled},
};
use crate::{
    Disk, OpenError, Options, Recovery, Replayed,
    recovery::{lock, open_locked},
    replica::is_copy,
};
use std::{collections::HashSet, io::Write, path::Path, sync::Arc};

/// Places that are mended at most.
const REPAIRS_MAX: u32 = 10_000;

/// What a repair has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Something was changed.
    pub changed: bool,
    /// There is less than there was.
    pub lost: bool,
}

/// Mends the journal in `dir`, one damaged place after the other, and says what it did. Does
/// nothing to a journal that is sound.
///
/// Pages of segments that can't be read become zeros first. What can be rebuilt from what is left is rebuilt. What the damaged
/// places held besides is lost to the owner, who may find references to it; what follows them is kept.
///
/// # Errors
/// When files can't be opened or written, are of another version, or are damaged in a way that can't be
/// mended. When it is a member's copy of a replicated log, which is left as it is.
pub fn repair(dir: &Path, disk: Arc<dyn Disk>, out: &mut dyn Write) -> Result<Repaired, ToolError> {
    let _lock = lock(&*disk, dir)?;
    if is_copy(&*disk, dir)? {
        return Err(ToolError::CopyNotRepaired);
    }
    let mut repaired = Repaired::default();
    let disk = ZeroFilled::new(disk);
    let unreadable = disk.overwrite(dir)?;
    for one in &unreadable {
        repaired.changed = true;
        writeln!(out, "{one}: wrote zeros there")?;
    }
    let disk: Arc<dyn Disk> = disk;
    for done in put_back(&*disk, dir)? {
        repaired.changed = true;
        writeln!(out, "{done}")?;
    }
    let mut places = HashSet::new();
    for _ in 0..REPAIRS_MAX {
        let opened = open_locked(dir, Options::default(), Arc::clone(&disk), Box::new(()));
        let found = opened.and_then(|recovery| Ok((end_of_log(&recovery)?, recovery)));
        let (path, offset, damage) = match found {
            Ok((end, mut recovery)) => {
                for survived in recovery.survived() {
                    repaired.changed = true;
                    writeln!(out, "{survived}")?;
                }
                if !recovery.survived().is_empty() {
                    recovery.settle_checkpoints()?;
                    disk.sync_dir(dir)?;
                    writeln!(out, "there are two sound checkpoints again")?;
                }
                writeln!(out, "the log is sound up to its end at {}", end.end)?;
                if may_have_gone_on(&recovery, &end, &unreadable) {
                    repaired.lost = true;
                    writeln!(out, "what could not be read there may have been a part of it")?;
                }
                return Ok(repaired);
            }
            Err(OpenError::Damaged { path, offset, damage }) => (path, offset, damage),
            Err(error) => return Err(error.into()),
        };
        // A place that was mended already is one that can't be.
        if !places.insert((path.clone(), offset, damage)) {
            return Err(ToolError::Stuck(OpenError::Damaged { path, offset, damage }.to_string()));
        }
        let done = Mender::new(&*disk, dir)?.mend(&path, offset, damage)?;
        repaired.changed = true;
        repaired.lost |= done.lost;
        writeln!(out, "{}: {}", path.display(), done.text)?;
    }
    Err(ToolError::Endless(REPAIRS_MAX))
}

/// Whether there may have been more of the log where its last segment could not be read.
fn may_have_gone_on(recovery: &Recovery, end: &Replayed, unreadable: &[Unreadable]) -> bool {
    let Some((last, _)) = recovery.chain.last().filter(|_| !end.clean) else { return false };
    let (path, end) = (last.path(&recovery.dir), end.end.0 - last.start.0);
    unreadable.iter().any(|one| one.path == path && one.range.end > end)
}

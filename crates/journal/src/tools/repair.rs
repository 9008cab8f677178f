//! Making a damaged journal one that starts again.

use super::{ToolError, inspect::end_of_log, mend::Mender};
use crate::{
    Disk, OpenError, Options,
    recovery::{lock, open_locked},
};
use std::{io::Write, path::Path, sync::Arc};

/// Places that are mended at most.
const REPAIRS_MAX: u32 = 10_000;

/// Mends the journal in `dir`, one damaged place after the other, and says what it did. Does
/// nothing to a journal that is sound.
///
/// What the damaged places held is lost to the owner, who may find references to it. What follows
/// them is kept.
pub fn repair(dir: &Path, disk: Arc<dyn Disk>, out: &mut dyn Write) -> Result<(), ToolError> {
    let _lock = lock(&*disk, dir)?;
    for _ in 0..REPAIRS_MAX {
        let opened = open_locked(dir, Options::default(), Arc::clone(&disk), Box::new(()));
        let (path, offset, damage) = match opened.and_then(|recovery| end_of_log(&recovery)) {
            Ok(end) => {
                writeln!(out, "the log is sound up to its end at {}", end.end)?;
                return Ok(());
            }
            Err(OpenError::Damaged { path, offset, damage }) => (path, offset, damage),
            Err(error) => return Err(error.into()),
        };
        let done = Mender::new(&*disk, dir)?.mend(&path, offset, damage)?;
        writeln!(out, "{}: {done}", path.display())?;
    }
    Err(ToolError::Endless(REPAIRS_MAX))
}

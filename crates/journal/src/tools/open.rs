//! A journal that is not running, opened to be looked at.

use super::ToolError;
use crate::{
    Disk, OpenError, Options, Record, Recovery, ReplayError, Replayed,
    recovery::open_locked,
    replica::{ClosedCopy, Contents, is_copy},
};
use std::{any::Any, convert::Infallible, path::Path, sync::Arc};

/// A journal of a broker by itself, or a member's copy of a replicated log.
pub enum Opened {
    Alone(Recovery),
    Copy(ClosedCopy),
}

/// How far its log goes.
pub enum End {
    Alone(Replayed),
    Copy(Contents),
}

impl Opened {
    /// Opens what is in `dir`, which `lock` keeps others out of.
    pub fn open(
        dir: &Path,
        disk: Arc<dyn Disk>,
        lock: Box<dyn Any + Send + Sync>,
    ) -> Result<Self, ToolError> {
        if is_copy(&*disk, dir)? {
            return Ok(Opened::Copy(ClosedCopy::open(dir, disk, lock)?));
        }
        Ok(Opened::Alone(open_locked(dir, Options::default(), disk, lock)?))
    }

    pub fn recovery(&self) -> &Recovery {
        match self {
            Opened::Alone(recovery) => recovery,
            Opened::Copy(copy) => &copy.recovery,
        }
    }

    /// Walks the log from the checkpoint's start on.
    pub fn end(&self) -> Result<End, ToolError> {
        match self {
            Opened::Alone(recovery) => Ok(End::Alone(end_of_log(recovery)?)),
            Opened::Copy(copy) => Ok(End::Copy(copy.contents()?)),
        }
    }

    /// What a start, or what else, makes good what is damaged and costs nothing.
    pub fn who_mends(&self) -> &'static str {
        match self {
            Opened::Alone(_) => "a start or `courser journal repair` writes it anew",
            Opened::Copy(_) => "a start of the node writes it anew",
        }
    }
}

/// Walks the log of a broker by itself from the checkpoint's start on.
pub fn end_of_log(recovery: &Recovery) -> Result<Replayed, OpenError> {
    let ignored = &mut |_: Record<'_>| Ok::<_, Infallible>(());
    match recovery.replay(ignored, &mut |_| {}) {
        Ok(replayed) => Ok(replayed),
        Err(ReplayError::Journal(error)) => Err(error),
        Err(ReplayError::Owner(never)) => match never {},
    }
}

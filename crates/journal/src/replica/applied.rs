//! How far consensus has applied what is committed.
//!
//! An entry may be committed before it is applied: others have it, and consensus has not heard yet that this disk has it too. It
//! reads such an entry again, and a change of the members in it is in force only when it is applied. So no checkpoint
//! stands for it: at a start, consensus begins behind the checkpoint.

use super::Replica;
use crate::{CheckpointError, Failure, core::Core, log::ALONE};
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// How often who waits looks whether the lead has ended, or the copy has failed.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The last entry that was applied.
pub struct Applied {
    index: Mutex<u64>,
    changed: Condvar,
}

impl Default for Applied {
    /// Where no consensus says anything, what is committed is applied.
    fn default() -> Self {
        Applied { index: Mutex::new(u64::MAX), changed: Condvar::new() }
    }
}

impl Applied {
    pub fn index(&self) -> u64 {
        *self.index.lock()
    }

    pub fn publish(&self, index: u64) {
        *self.index.lock() = index;
        self.changed.notify_all();
    }
}

impl Replica {
    /// Everything up to this entry was applied by consensus, which needs it no more. A checkpoint stands for no entry behind:
    /// the first time that this is said is before anyone makes one.
    pub fn applied(&self, index: u64) {
        self.shared().applied.publish(index);
    }

    /// The greatest index that a checkpoint may stand for: it is committed and applied.
    pub fn applicable(&self) -> u64 {
        self.committed().min(self.shared().applied.index())
    }
}

impl Core {
    /// Waits until the entry `index`, which is committed, was applied too: consensus hears at once that the disk has it. Not on
    /// its thread. Without threads that is an error.
    pub fn wait_applied(&self, index: u64, epoch: u64) -> Result<(), CheckpointError> {
        let Some(replica) = &self.replica else { return Ok(()) };
        let mut applied = replica.applied.index.lock();
        while *applied < index {
            if epoch == ALONE || !self.options.threads {
                return Err(CheckpointError::Unapplied(index));
            }
            let over: Option<Failure> = self.failed.get().cloned().or_else(|| self.deposed(epoch));
            if let Some(failure) = over {
                return Err(CheckpointError::Failed(failure));
            }
            replica.applied.changed.wait_for(&mut applied, LOOK_AGAIN);
        }
        Ok(())
    }
}

//! A copy as a member gives it.

use super::{CopyError, head::Head};
use crate::Members;
use bytes::Bytes;
use courser_journal::replica::{Bootstrap, Replica};

/// Bytes of files in one chunk.
const CHUNK_BYTES: usize = 1 << 20;

/// What a member says of itself when a copy is begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Giver {
    /// The term that it leads, once an entry of its own is committed in it; else 0.
    pub term: u64,
    pub members: Members,
    pub members_index: u64,
}

/// A copy of the log of a group, chunk by chunk. Until it is dropped, nothing of the log is freed.
pub struct CopySource {
    head: Option<Head>,
    bootstrap: Bootstrap,
}

impl CopySource {
    /// Of all that is committed. `giver` is asked before the copy is begun, and after.
    pub(crate) fn begin(
        replica: &Replica,
        mut giver: impl FnMut() -> Option<Giver>,
    ) -> Result<Self, CopyError> {
        let before = giver().ok_or(CopyError::NotLeader)?;
        let bootstrap = replica.bootstrap()?;
        let now = giver().ok_or(CopyError::NotLeader)?;
        if now != before {
            // Whether what has made the members is in the copy is not known.
            return Err(CopyError::Changed);
        }
        let Giver { members, members_index, .. } = now;
        let (group, last) = (replica.identity().group, bootstrap.upto());
        let head = Some(Head { group, last, members, members_index });
        Ok(CopySource { head, bootstrap })
    }

    /// Whether the disk has no room, and would have some without this copy: see [`Bootstrap::keeps_disk_full`].
    pub fn keeps_disk_full(&self) -> bool {
        self.bootstrap.keeps_disk_full()
    }

    /// The next chunk, of a bit more than 1 MiB at most; none after the last. Blocks while it is read.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn next_chunk(&mut self) -> Result<Option<Bytes>, CopyError> {
        if let Some(head) = self.head.take() {
            return Ok(Some(head.encode()));
        }
        let chunk = self.bootstrap.next_chunk(CHUNK_BYTES)?;
        Ok(chunk.map(|chunk| chunk.encode()))
    }
}

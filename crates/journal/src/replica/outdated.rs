//! A damaged copy that other copies have gone past: they have freed what could mend it.

use super::{Piece, Replica};
use crate::{
    Lsn,
    core::Core,
    disk::read_up_to,
    format::{FRAME_HEADER_LEN, FrameHeader},
};

impl Replica {
    /// Another copy keeps this piece no more, as its checkpoints stand for it, and no other one has it. Where this copy's last
    /// checkpoint is before it, the copy has to be replaced: see [`Replica::needs_copy`]. [`Replica::give_up`] comes after this.
    pub fn is_freed_elsewhere(&self, piece: Piece) {
        let Piece::Frame(at) = piece else { return };
        if self.journal.core.whole_piece(piece).is_err() {
            let freed_to = &mut self.shared().damage.lock().freed_to;
            *freed_to = (*freed_to).max(Some(at));
        }
    }

    /// Whether no broker can be opened on this copy any more: an entry behind its last checkpoint, or behind the one before if that
    /// had to be read, is damaged, and other copies have gone past it. Ends when a checkpoint of this copy is past it as well.
    pub fn needs_copy(&self) -> bool {
        let (freed_to, needed_from) = {
            let damage = self.shared().damage.lock();
            (damage.freed_to, damage.needed_from)
        };
        let needed_from = needed_from.unwrap_or_else(|| self.shared().latest_base.lock().end);
        freed_to.is_some_and(|at| at >= needed_from)
    }
}

impl Core {
    /// Whether what begins at a position, whose length may not be known any more, was given back to the file system.
    pub(super) fn is_punched(&self, position: Lsn) -> bool {
        let Some(segment) = self.segments.find(position) else { return false };
        let offset = position.0 - segment.start.0;
        let mut head = [0; FRAME_HEADER_LEN];
        let file = segment.open(&*self.disk, &self.dir);
        let found = file.and_then(|file| read_up_to(&*file, &mut head, offset)).unwrap_or(0);
        let header = FrameHeader::decode(&head[..found], position);
        let len = header.map_or(FRAME_HEADER_LEN as u64, |header| header.frame_len());
        segment.has_hole(offset..offset + len)
    }
}

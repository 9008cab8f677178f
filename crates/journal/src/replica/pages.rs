//! Pages that the disk refuses to read, and that are written again as a whole: of one that is written in part, the system reads
//! the rest first, which fails.
//!
//! So a piece comes from another copy with all that is in its pages. Only the piece itself is known to be what was written.
//! That is no loss: the page could not be read at all, and what is wrong with the rest shows when that is read. What is each
//! copy's own in it is true here too, as that much is synced.

use crate::{
    DiskFile, Lsn,
    core::Core,
    disk::{read_up_to, write_all},
    scrub::PAGE_BYTES,
    segments::Segment,
};
use std::{io, ops::Range};

/// Bytes that are read at once to find such a page.
const BLOCK_BYTES: u64 = 64 * PAGE_BYTES;

/// How many bytes of the same page are in front of a position.
pub fn bytes_in_front(position: Lsn) -> usize {
    (position.0 % PAGE_BYTES) as usize
}

impl Core {
    /// Puts what is in the same pages around bytes that are at a position. Behind them only if all of it is committed.
    pub(super) fn with_pages(&self, position: Lsn, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let segment = self.segments.find(position).ok_or(io::ErrorKind::NotFound)?;
        let file = segment.open(&*self.disk, &self.dir)?;
        let front = bytes_in_front(position);
        let (end, at) = (front + bytes.len(), position.0 - front as u64 - segment.start.0);
        let page_end = end.next_multiple_of(PAGE_BYTES as usize);
        let mut all = vec![0; page_end];
        all[front..end].copy_from_slice(bytes);
        read_exact(&*file, &mut all[..front], at)?;
        if segment.start.plus(at + page_end as u64) <= self.fixed_to() {
            read_exact(&*file, &mut all[end..], at + end as u64)?;
        } else {
            all.truncate(end);
        }
        Ok(all)
    }

    /// Writes those pages again in which some of a range is, and that can't be read, as they have been brought: whole ones from that on
    /// in which the range begins.
    pub(super) fn write_unreadable_pages(
        &self,
        file: &dyn DiskFile,
        segment: &Segment,
        range: Range<Lsn>,
        brought: &[u8],
    ) -> io::Result<()> {
        let first = range.start.0 - bytes_in_front(range.start) as u64;
        // What may still be written to is left alone.
        let to = range.end.0.next_multiple_of(PAGE_BYTES).min(self.fixed_to().0);
        let to = to.min(first + brought.len() as u64) / PAGE_BYTES * PAGE_BYTES;
        let mut buffer = vec![0; BLOCK_BYTES.min(to.saturating_sub(first)) as usize];
        let mut is_readable = |at: u64, len: u64| {
            read_up_to(file, &mut buffer[..len as usize], at - segment.start.0).is_ok()
        };
        for block in (first..to).step_by(BLOCK_BYTES as usize) {
            let block_end = to.min(block + BLOCK_BYTES);
            if is_readable(block, block_end - block) {
                continue;
            }
            for page in (block..block_end).step_by(PAGE_BYTES as usize) {
                if !is_readable(page, PAGE_BYTES) {
                    let bytes = &brought[(page - first) as usize..][..PAGE_BYTES as usize];
                    write_all(file, bytes, page - segment.start.0)?;
                }
            }
        }
        Ok(())
    }

    /// The end of what is never written again: committed, and synced here.
    pub(super) fn fixed_to(&self) -> Lsn {
        self.durable().min(self.synced())
    }
}

fn read_exact(file: &dyn DiskFile, out: &mut [u8], offset: u64) -> io::Result<()> {
    let found = read_up_to(file, out, offset)?;
    if found < out.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

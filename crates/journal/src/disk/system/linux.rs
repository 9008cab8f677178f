//! Linux.

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fdatasync, fsync};
use std::{fs::File, io, num::NonZeroU64};

pub fn sync_data(file: &File) -> io::Result<()> {
    Ok(fdatasync(file)?)
}

pub fn sync_dir(dir: &File) -> io::Result<()> {
    Ok(fsync(dir)?)
}

pub fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)?)
}

pub fn will_need(file: &File, offset: u64, len: u64) {
    // Advice only: a file system that does not take it just reads later.
    let _ = fadvise(file, offset, NonZeroU64::new(len), Advice::WillNeed);
}

pub fn forget(file: &File, offset: u64, len: u64) {
    // Advice only: a file system that does not take it just answers from memory.
    let _ = fadvise(file, offset, NonZeroU64::new(len), Advice::DontNeed);
}

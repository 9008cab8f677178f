//! Linux.

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fdatasync, fsync};
use rustix::io::{ReadWriteFlags, preadv2};
use std::io::{self, IoSliceMut};
use std::{fs::File, num::NonZeroU64};

pub fn sync_data(file: &File) -> io::Result<()> {
    Ok(fdatasync(file)?)
}

pub fn sync_dir(dir: &File) -> io::Result<()> {
    Ok(fsync(dir)?)
}

pub fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)?)
}

pub fn read_cached(file: &File, out: &mut [u8], offset: u64) -> bool {
    let len = out.len();
    preadv2(file, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::NOWAIT) == Ok(len)
}

pub fn will_need(file: &File, offset: u64, len: u64) {
    // Advice only: a file system that does not take it just reads later.
    let _ = fadvise(file, offset, NonZeroU64::new(len), Advice::WillNeed);
}

pub fn forget(file: &File, offset: u64, len: u64) {
    // Advice only: a file system that does not take it just answers from memory.
    let _ = fadvise(file, offset, NonZeroU64::new(len), Advice::DontNeed);
}

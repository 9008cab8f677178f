//! FreeBSD, from version 14, the first that gives room back.

use rustix::fs::{Advice, fadvise, fdatasync, fsync};
use std::{fs::File, io, num::NonZeroU64, os::fd::AsRawFd};

pub fn sync_data(file: &File) -> io::Result<()> {
    Ok(fdatasync(file)?)
}

pub fn sync_dir(dir: &File) -> io::Result<()> {
    Ok(fsync(dir)?)
}

pub fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let too_far = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let mut left = libc::spacectl_range {
        r_offset: offset.try_into().map_err(too_far)?,
        r_len: len.try_into().map_err(too_far)?,
    };
    // It may do a part, and then says what is left.
    while left.r_len > 0 {
        let range = left;
        let (fd, dealloc) = (file.as_raw_fd(), libc::SPACECTL_DEALLOC);
        // SAFETY: the descriptor is open while `file` is borrowed; the call reads `range` and writes `left`, which
        // both live longer.
        let result = unsafe { libc::fspacectl(fd, dealloc, &raw const range, 0, &raw mut left) };
        if result == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// What is in memory can't be asked for alone here.
pub fn read_cached(_file: &File, _out: &mut [u8], _offset: u64) -> bool {
    false
}

pub fn will_need(file: &File, offset: u64, len: u64) {
    // Advice only: a file system that does not take it just reads later.
    let _ = fadvise(file, offset, NonZeroU64::new(len), Advice::WillNeed);
}

pub fn forget(file: &File, offset: u64, len: u64) {
    // Advice only: a file system that does not take it just answers from memory.
    let _ = fadvise(file, offset, NonZeroU64::new(len), Advice::DontNeed);
}

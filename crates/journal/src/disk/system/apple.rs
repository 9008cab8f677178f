//! macOS, where `fsync` leaves data in the drive's cache, which forgets it with the power.

use rustix::{
    fs::{fcntl_fullfsync, fcntl_rdadvise, fsync},
    io::Errno,
};
use std::{fs::File, io, os::fd::AsRawFd};

pub fn sync_data(file: &File) -> io::Result<()> {
    match fcntl_fullfsync(file) {
        // A share of another machine does not know it; what reaches the drive is up to that one.
        Err(Errno::NOTSUP) => Ok(fsync(file)?),
        result => Ok(result?),
    }
}

pub fn sync_dir(dir: &File) -> io::Result<()> {
    sync_data(dir)
}

pub fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let too_far = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let hole = libc::fpunchhole_t {
        fp_flags: 0,
        reserved: 0,
        fp_offset: offset.try_into().map_err(too_far)?,
        fp_length: len.try_into().map_err(too_far)?,
    };
    // SAFETY: the descriptor is open while `file` is borrowed, and the call only reads the structure.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PUNCHHOLE, &raw const hole) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// What is in memory can't be asked for alone here.
pub fn read_cached(_file: &File, _out: &mut [u8], _offset: u64) -> bool {
    false
}

pub fn will_need(file: &File, offset: u64, len: u64) {
    // Advice only: a file system that does not take it just reads later.
    let _ = fcntl_rdadvise(file, offset, len);
}

/// There is no such advice here.
pub fn forget(_file: &File, _offset: u64, _len: u64) {}

//! A file as a process has it open, with the faults of its disk.

use super::{FakeDisk, State};
use crate::{DiskFile, disk::SECTOR_IS_BAD};
use courser_store::critical::{self, Work};
use std::{io, thread};

/// A file of the fake disk that was opened, until the next crash.
pub(super) struct FakeFile {
    pub(super) disk: FakeDisk,
    pub(super) file: u64,
    pub(super) boot: u64,
}

impl FakeFile {
    fn with<T>(&self, use_it: impl FnOnce(&mut State, u64) -> io::Result<T>) -> io::Result<T> {
        let state = &mut *self.disk.0.lock();
        if state.boot != self.boot || !state.files.contains_key(&self.file) {
            return Err(io::Error::other("the file was opened before a crash"));
        }
        use_it(state, self.file)
    }
}

/// Counts an operation down; whether it is the one that fails.
fn is_due(count: &mut Option<u64>) -> bool {
    match count {
        None => false,
        Some(0) => {
            *count = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
    }
}

impl DiskFile for FakeFile {
    fn size_bytes(&self) -> io::Result<u64> {
        self.with(|state, file| {
            state.look()?;
            Ok(state.files[&file].live.len() as u64)
        })
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        critical::check(Work::File);
        let (held, hold) = self.disk.0.lock().holds.reads.clone();
        if held == self.file {
            hold.wait();
        }
        self.with(|state, file| {
            state.look()?;
            let (faults, bytes) = (&state.faults, offset..offset + out.len() as u64);
            let bad = state.bad.first_bad(&faults.bad_spot, file, bytes);
            if faults.fail_reads {
                return Err(io::Error::other("the disk does not give this"));
            }
            if bad.as_ref().is_some_and(|bad| bad.start <= offset) {
                return Err(io::Error::from_raw_os_error(SECTOR_IS_BAD));
            }
            let live = &state.files[&file].live;
            let rest = live.get(offset as usize..).unwrap_or_default();
            let readable = bad.map_or(out.len(), |bad| (bad.start - offset) as usize);
            let len = rest.len().min(readable);
            out[..len].copy_from_slice(&rest[..len]);
            state.read_bytes += len as u64;
            Ok(len)
        })
    }

    fn write_at(&self, mut bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.with(|state, file| {
            state.change()?;
            if is_due(&mut state.faults.fail_write_after) {
                return Err(io::Error::other("the disk does not take this"));
            }
            state.write_count += 1;
            let one_in = state.faults.short_write_one_in;
            if one_in > 0 && bytes.len() > 1 && state.rng.one_in(one_in) {
                if state.rng.one_in(2) {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                bytes = &bytes[..1 + state.rng.below(bytes.len() as u64 - 1) as usize];
            }
            let written = offset..offset + bytes.len() as u64;
            let len = state.bad.writable(&state.faults.bad_spot, file, written);
            if len == 0 && !bytes.is_empty() {
                return Err(io::Error::other("the disk does not give the rest of the page"));
            }
            bytes = &bytes[..len as usize];
            let size = state.files[&file].live.len() as u64;
            // A gap in front of it takes no room.
            let growth = (offset + bytes.len() as u64).saturating_sub(size.max(offset));
            let room = state.capacity_bytes.saturating_sub(state.used_bytes());
            if growth > room {
                let len = (bytes.len() as u64).saturating_sub(growth - room);
                if len == 0 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                bytes = &bytes[..len as usize];
            }
            state.written_bytes += bytes.len() as u64;
            if let Some(image) = state.files.get_mut(&file) {
                image.write(bytes, offset);
            }
            Ok(bytes.len())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        let (takes, hold) = {
            let state = self.disk.0.lock();
            (state.faults.sync_takes, state.holds.syncs.clone())
        };
        hold.wait();
        if !takes.is_zero() {
            thread::sleep(takes);
        }
        self.with(|state, file| {
            let mut failed = state.change();
            if failed.is_err() && state.faults.power_off_after == Some(0) {
                return failed;
            }
            if failed.is_ok() && is_due(&mut state.faults.fail_sync_after) {
                failed = Err(io::Error::other("the disk lost something"));
            }
            let Some(image) = state.files.get_mut(&file) else { return failed };
            if failed.is_err() {
                image.sync_partly(&mut state.rng);
                return failed;
            }
            if !state.faults.lying_syncs {
                image.sync();
            }
            Ok(())
        })
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.with(|state, file| {
            state.change()?;
            let Some(image) = state.files.get_mut(&file) else { return Ok(()) };
            let zeros = vec![0; len as usize];
            image.write(&zeros, offset);
            image.punched_bytes += len;
            Ok(())
        })
    }

    fn will_need(&self, _offset: u64, _len: u64) {}

    fn forget(&self, _offset: u64, _len: u64) {}
}

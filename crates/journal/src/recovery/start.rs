//! Making the end of the log safe to append to, and starting the journal.

use super::{Recovery, Tail, io_error};
use crate::{
    DiskFile, Journal, Lsn, OpenError, OpenMode,
    checkpoint::Latest,
    core::Core,
    disk::{read_up_to, write_all},
    figures::Done,
    format::{SEGMENT_HEADER_LEN, SegmentHeader},
    log::{ALONE, Buffer, FOLLOWS, Log, Writer, write_segment_header},
    names,
    replica::Shared,
    segments::Segment,
    upkeep::{Upkeep, fill_with_zeros},
};
use parking_lot::{Condvar, Mutex};
use std::{
    io,
    sync::{Arc, OnceLock, atomic::AtomicBool, atomic::AtomicU64},
};

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

impl Recovery {
    pub(super) fn start_at(self, tail: Tail) -> Result<Journal, OpenError> {
        self.start_as(tail, None)
    }

    /// As [`Recovery::start`], as a copy of a replicated log.
    pub(crate) fn start_copy(self, tail: Tail, copy: Shared) -> Result<Journal, OpenError> {
        self.start_as(tail, Some(Box::new(copy)))
    }

    fn start_as(mut self, tail: Tail, copy: Option<Box<Shared>>) -> Result<Journal, OpenError> {
        let (segment, file, end) = match self.chain.last() {
            Some((segment, _)) => {
                let segment = Arc::clone(segment);
                let file = self.settle_tail(&segment, &tail)?;
                (segment, file, tail.replayed.end)
            }
            None => {
                let (segment, file) = self.first_segment()?;
                let end = segment.start.plus(SEGMENT_HEADER_LEN);
                (segment, file, end)
            }
        };
        // Renames that the last run did not get to sync are made durable first: the name of the
        // last checkpoint, before an older one is removed.
        self.sync_dir()?;
        for survived in &self.survived {
            tracing::error!("{survived}");
        }
        if !tail.replayed.clean || self.chain.is_empty() {
            // Whether their bytes ever reached the disk is unknown, as for the tail; new ones
            // cost less than writing all of them once more.
            self.leftovers.extend(self.spares.drain(..).map(|spare| names::spare(spare.number)));
        }
        for name in self.leftovers.drain(..) {
            let path = self.dir.join(name);
            self.disk.remove(&path).map_err(|error| io_error("remove", &path, error))?;
        }
        // One that is alone is copied, and both stand for the same. The log of a copy knows everything.
        let has_two = self.checkpoint.is_some_and(|found| found.before.is_some());
        let in_doubt = has_two && copy.is_none();
        self.settle_checkpoints()?;
        self.sync_dir()?;
        let dir = self.dir.clone();
        if let Some(copy) = &copy {
            copy.begins(end);
        }
        let core = self.into_core(segment, file, end, copy);
        if in_doubt {
            core.latest.unlogged.note_two_found();
        }
        Journal::run(core).map_err(|error| io_error("start the threads for", &dir, error))
    }

    pub(super) fn sync_dir(&self) -> Result<(), OpenError> {
        self.disk.sync_dir(&self.dir).map_err(|error| io_error("sync", &self.dir, error))
    }

    /// Clears the remains behind the end away and makes what is before it durable.
    ///
    /// What was read may be in the kernel's memory only, even where it looks clean: after a sync
    /// that failed the kernel keeps the bytes and forgets that the disk does not have them. So
    /// everything that is not known to be durable is written once more.
    fn settle_tail(&self, segment: &Segment, tail: &Tail) -> Result<Arc<dyn DiskFile>, OpenError> {
        let path = segment.path(&self.dir);
        let settle = || {
            let file = self.disk.open(&path, OpenMode::Write)?;
            let end = tail.replayed.end.0 - segment.start.0;
            if tail.replayed.torn {
                let path = path.display();
                tracing::warn!(%path, offset = end, "clearing away what is not whole behind the end of the log");
                clear(&*file, end, segment.capacity)?;
            }
            let durable = tail.durable.0.saturating_sub(segment.start.0);
            rewrite(&*file, durable.max(SEGMENT_HEADER_LEN), end)?;
            file.sync_data()?;
            Ok(file)
        };
        settle().map_err(|error| io_error("write to", &path, error))
    }

    /// Makes the first segment of a new journal.
    fn first_segment(&mut self) -> Result<(Arc<Segment>, Arc<dyn DiskFile>), OpenError> {
        let start = Lsn(0);
        let segment = Segment::new(start, self.options.segment_bytes);
        let header =
            SegmentHeader { id: self.id, start, capacity: segment.capacity, previous_end: start };
        let spare = self.dir.join(names::spare(self.next_number));
        self.next_number += 1;
        let path = segment.path(&self.dir);
        let make = || {
            let file = self.disk.open(&spare, OpenMode::Create)?;
            fill_with_zeros(&*file, segment.capacity, &mut || true)?;
            write_segment_header(&*file, &header)?;
            self.disk.rename(&spare, &path)?;
            self.disk.sync_dir(&self.dir)?;
            Ok(file)
        };
        let file = make().map_err(|error| io_error("write to", &spare, error))?;
        let segment = Arc::new(segment);
        self.segments.push(Arc::clone(&segment));
        Ok((segment, file))
    }

    fn into_core(
        self,
        segment: Arc<Segment>,
        file: Arc<dyn DiskFile>,
        end: Lsn,
        replica: Option<Box<Shared>>,
    ) -> Core {
        let (epoch, durable) = match &replica {
            None => (ALONE, end),
            Some(copy) => (FOLLOWS, copy.base_end(self.replay_start())),
        };
        let latest = self.checkpoint.map(|found| {
            let before = found.before.unwrap_or(found.start);
            Latest::new(found.start, found.number, before, found.size_bytes)
        });
        Core {
            dir: self.dir,
            disk: self.disk,
            options: self.options,
            id: self.id,
            segments: self.segments,
            log: Mutex::new(Log {
                end,
                segment: Arc::clone(&segment),
                buffer: Buffer::default(),
                sync_to: end,
                spares: self.spares,
                in_reserve: false,
                wants_large: None,
                closed: false,
                stop: false,
                lingering: false,
                gathering: false,
                sync_records: 0,
                epoch,
                paused: false,
                lead: None,
                queued: end,
                ticket: 0,
                cuts: 0,
                vote: None,
                appends: 0,
                records: 0,
            }),
            work: Condvar::new(),
            space: Condvar::new(),
            writer: Mutex::new(Writer { segment, file, unsynced_bytes: 0 }),
            end: AtomicU64::new(end.0),
            written: AtomicU64::new(end.0),
            durable: AtomicU64::new(durable.0),
            waiters: Default::default(),
            upkeep: Mutex::new(Upkeep { next_number: self.next_number, ..Upkeep::default() }),
            upkeep_work: Condvar::new(),
            upkeeping: Mutex::new(()),
            full: AtomicBool::new(false),
            room_waiters: Default::default(),
            checkpointing: Mutex::new(()),
            latest: latest.unwrap_or_default(),
            replica,
            adopted: OnceLock::new(),
            done: Done::default(),
            failed: OnceLock::new(),
            _lock: self.lock,
        }
    }
}

/// Writes zeros from `from` to `to`.
pub fn clear(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; WRITE_BYTES];
    let mut offset = from;
    while offset < to {
        let len = (to - offset).min(WRITE_BYTES as u64);
        write_all(file, &zeros[..len as usize], offset)?;
        offset += len;
    }
    Ok(())
}

/// Writes once more what is there from `from` to `to`.
fn rewrite(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let mut bytes = vec![0; WRITE_BYTES];
    let mut offset = from;
    while offset < to {
        let len = (to - offset).min(WRITE_BYTES as u64) as usize;
        if read_up_to(file, &mut bytes[..len], offset)? < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_all(file, &bytes[..len], offset)?;
        offset += len as u64;
    }
    Ok(())
}

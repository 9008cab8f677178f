//! The log thread's work: from the buffer to the disk.

use super::{Step, Switch};
use crate::{
    DiskFile, OpenMode, core::Core, disk::write_all, format::SegmentHeader, names,
    segments::Segment,
};
use std::{
    io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Release},
    time::Duration,
};

/// How long what nobody waits for may wait for company.
const LINGER: Duration = Duration::from_millis(5);

/// What the log thread owns.
pub struct Writer {
    /// The segment that is being written.
    pub segment: Arc<Segment>,
    /// Its file.
    pub file: Arc<dyn DiskFile>,
    /// Octets written to it since the last sync.
    pub unsynced_bytes: u64,
}

/// An operation that failed, and on what.
type Failed = (&'static str, PathBuf, io::Error);

impl Core {
    /// The log thread: flushes until it is told to stop or something fails.
    ///
    /// What nobody waits for is written together with what somebody does, or after [`LINGER`]: it
    /// wakes this thread only if it sleeps without an end.
    pub fn run_log(&self) {
        loop {
            let mut log = self.log.lock();
            let mut lingered = false;
            while log.sync_to <= self.durable() {
                if log.stop || self.failed.get().is_some() {
                    break;
                }
                if lingered && !log.buffer.is_empty()
                    || log.buffer.bytes() >= self.options.buffer_bytes / 4
                {
                    break;
                }
                log.lingering = !lingered;
                lingered = if lingered {
                    self.work.wait(&mut log);
                    false
                } else {
                    self.work.wait_for(&mut log, LINGER).timed_out()
                };
                log.lingering = false;
            }
            if log.buffer.is_empty() && log.sync_to <= self.durable() {
                // Told to stop, or nothing can be written any more.
                return;
            }
            drop(log);
            self.flush_once();
            if self.failed.get().is_some() {
                return;
            }
        }
    }

    /// Writes what is in the buffer, then syncs if somebody asked for it or much is unsynced.
    /// Returns whether there was anything to do.
    ///
    /// A wish for a sync that comes in during the write is met by the same sync.
    pub fn flush_once(&self) -> bool {
        if self.failed.get().is_some() {
            return false;
        }
        let mut writer = self.writer.lock();
        let mut log = self.log.lock();
        let steps = log.buffer.take();
        let end = log.end;
        drop(log);
        if let Err(failed) = self.take_steps(&mut writer, &steps) {
            // The steps stay where readers find them.
            self.fail(failed.0, &failed.1, failed.2);
            return false;
        }
        let wrote = !steps.is_empty();
        self.written.store(end.0, Release);
        let mut log = self.log.lock();
        log.buffer.written(steps);
        let sync_to = log.sync_to;
        self.space.notify_all();
        drop(log);
        let wanted = sync_to > self.durable();
        if !wanted && writer.unsynced_bytes < self.options.unsynced_bytes {
            return wrote;
        }
        match self.sync(&mut writer) {
            Ok(()) => self.publish_durable(end),
            Err(failed) => self.fail(failed.0, &failed.1, failed.2),
        }
        true
    }

    fn take_steps(&self, writer: &mut Writer, steps: &[Step]) -> Result<(), Failed> {
        for step in steps {
            match step {
                Step::Write(piece) => {
                    let offset = piece.start.0 - writer.segment.start.0;
                    write_all(&*writer.file, &piece.octets, offset)
                        .map_err(|error| ("write to", writer.segment.path(&self.dir), error))?;
                    writer.unsynced_bytes += piece.octets.len() as u64;
                }
                Step::Switch(switch) => self.switch_file(writer, switch)?,
            }
        }
        Ok(())
    }

    fn sync(&self, writer: &mut Writer) -> Result<(), Failed> {
        if writer.unsynced_bytes > 0 {
            writer
                .file
                .sync_data()
                .map_err(|error| ("sync", writer.segment.path(&self.dir), error))?;
            writer.unsynced_bytes = 0;
        }
        Ok(())
    }

    /// Seals the current segment and goes on in the next one.
    ///
    /// When the new file bears its name, and before anything is written behind its header, all of
    /// the old segment is durable: only the newest segment can ever have a torn tail.
    fn switch_file(&self, writer: &mut Writer, switch: &Switch) -> Result<(), Failed> {
        self.sync(writer)?;
        if self.durable() < switch.previous_end {
            self.publish_durable(switch.previous_end);
        }
        let spare = self.dir.join(names::spare(switch.spare.number));
        let path = switch.segment.path(&self.dir);
        let file = self
            .disk
            .open(&spare, OpenMode::Write)
            .map_err(|error| ("open", spare.clone(), error))?;
        let header = SegmentHeader {
            id: self.id,
            start: switch.segment.start,
            capacity: switch.segment.capacity,
            previous_end: switch.previous_end,
        };
        write_segment_header(&*file, &header)
            .map_err(|error| ("write to", spare.clone(), error))?;
        self.disk
            .rename(&spare, &path)
            .and_then(|()| self.disk.sync_dir(&self.dir))
            .map_err(|error| ("rename to", path, error))?;
        writer.segment = Arc::clone(&switch.segment);
        writer.file = file;
        Ok(())
    }
}

/// Writes a segment's header and makes it durable.
pub fn write_segment_header(file: &dyn DiskFile, header: &SegmentHeader) -> io::Result<()> {
    write_all(file, &header.encode(), 0)?;
    file.sync_data()
}

//! Replaying the log, and finding its end.

use super::{
    BatchInfo, Progress, Record, Recovery, Replayed, Tail, damaged, io_error,
    scan::{Found, Scanner},
};
use crate::{
    Damage, Lsn, OpenError, OpenMode, ReplayError,
    format::{FRAME_HEADER_LEN, FrameHeader, FrameKind, Records, SegmentHeader},
    segments::Segment,
};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// Bytes of log between two reports of progress.
const PROGRESS_BYTES: u64 = 16 << 20;

impl Recovery {
    /// Visits every record from the checkpoint's start on, and finds out how the log ends.
    pub(crate) fn walk<E>(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Tail, ReplayError<E>> {
        let mut tail = Tail {
            replayed: Replayed { clean: self.chain.is_empty(), ..Replayed::default() },
            durable: self.durable,
        };
        let from = self.replay_start();
        let total_bytes = self.chain.last().map_or(0, |(last, _)| last.end().0 - from.0);
        let mut next_report = from.plus(PROGRESS_BYTES);
        for (index, (segment, header)) in self.chain.iter().enumerate() {
            let next = self.chain.get(index + 1).map(|(_, next)| next.previous_end);
            let limit = next.unwrap_or(header.end());
            let mut scanner = self.scanner(segment, header, from, limit)?;
            tail.durable = tail.durable.max(header.start);
            loop {
                let at = scanner.at();
                let read = scanner.next().map_err(|error| self.read_error(segment, error))?;
                let Found::Frame(frame, payload) = read else { break };
                visit_frame(&frame, payload, &mut tail.replayed, visit)
                    .map_err(ReplayError::Owner)?;
                segment.records.fetch_add(u64::from(frame.records), Relaxed);
                tail.durable = tail.durable.max(frame.durable);
                if at >= next_report {
                    progress(Progress { read_bytes: at.0 - from.0, total_bytes });
                    next_report = at.plus(PROGRESS_BYTES);
                }
            }
            tail.replayed.end = scanner.at();
            match next {
                // When the next segment was begun, all of this one was durable.
                Some(end) if scanner.at() < end => {
                    return Err(self.damaged(segment, scanner.at()).into());
                }
                Some(_) => {}
                None => self.judge_tail(segment, &mut scanner, &mut tail)?,
            }
        }
        Ok(tail)
    }

    pub(crate) fn scanner(
        &self,
        segment: &Segment,
        header: &SegmentHeader,
        from: Lsn,
        limit: Lsn,
    ) -> Result<Scanner, OpenError> {
        let path = segment.path(&self.dir);
        let file = self.disk.open(&path, OpenMode::Read);
        let file = file.map_err(|error| io_error("open", &path, error))?;
        Ok(Scanner::new(file, self.id, segment.start, from.max(header.first_frame()), limit))
    }

    /// Tells a torn tail from damage.
    ///
    /// Writes that were not synced may be on the disk in any combination, so valid frames behind
    /// a bad one prove nothing by themselves. But each says up to where the log was durable when
    /// it was written: a place before that held a frame for certain.
    pub(crate) fn judge_tail(
        &self,
        segment: &Arc<Segment>,
        scanner: &mut Scanner,
        tail: &mut Tail,
    ) -> Result<(), OpenError> {
        let end = scanner.at();
        let rest = scanner.rest().map_err(|error| self.read_error(segment, error))?;
        tail.durable = tail.durable.max(rest.durable);
        tail.replayed.torn = rest.frames;
        if tail.durable > end {
            return Err(self.damaged(segment, end));
        }
        Ok(())
    }

    pub(crate) fn damaged(&self, segment: &Segment, at: Lsn) -> OpenError {
        damaged(&segment.path(&self.dir), at.0 - segment.start.0, Damage::Frame)
    }

    pub(crate) fn read_error(&self, segment: &Segment, error: std::io::Error) -> OpenError {
        let path: PathBuf = segment.path(&self.dir);
        io_error("read", &path, error)
    }
}

fn visit_frame<E>(
    frame: &FrameHeader,
    payload: &[u8],
    replayed: &mut Replayed,
    visit: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
) -> Result<(), E> {
    replayed.clean = frame.kind == FrameKind::Close;
    if frame.kind != FrameKind::Batch {
        return Ok(());
    }
    let (start, end) = (frame.lsn, frame.lsn.plus(frame.frame_len()));
    for (index, (offset, _, bytes)) in Records::new(payload).enumerate() {
        let batch = BatchInfo { start, end, index: index as u32, count: frame.records };
        let position = start.plus((FRAME_HEADER_LEN + offset) as u64);
        visit(Record { position, bytes, batch })?;
    }
    replayed.batches += 1;
    replayed.records += u64::from(frame.records);
    Ok(())
}

//! Counting what is in a segment.

use crate::{
    Lsn,
    format::FrameKind,
    recovery::scan::{Found, Scanner},
};
use std::{io, ops::Range};

/// What a segment's file has.
#[derive(Default)]
pub struct Survey {
    /// Valid frames.
    pub frames: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes of these frames.
    pub frame_bytes: u64,
    /// Gaps that a repair left, and their bytes.
    pub gaps: u64,
    pub gap_bytes: u64,
    /// Whether the last frame says that the journal was closed by intention.
    pub closed: bool,
    /// Ranges without a valid frame that have one behind them.
    pub bad: Vec<Range<Lsn>>,
    /// The end of the last valid frame.
    pub end: Lsn,
}

/// Reads all frames from where `scanner` is to its limit, wherever they are.
pub fn survey(scanner: &mut Scanner) -> io::Result<Survey> {
    let mut survey = Survey { end: scanner.at(), ..Survey::default() };
    loop {
        match scanner.next()? {
            Found::Frame(header, _) => {
                let len = header.frame_len();
                match header.kind {
                    FrameKind::Gap => {
                        survey.gaps += 1;
                        survey.gap_bytes += len;
                    }
                    FrameKind::Batch | FrameKind::Close | FrameKind::Entry => {
                        survey.frames += 1;
                        survey.frame_bytes += len;
                        survey.records += u64::from(header.records);
                    }
                }
                survey.closed = header.kind == FrameKind::Close;
                survey.end = header.lsn.plus(len);
            }
            Found::End => return Ok(survey),
            Found::Bad => {
                let from = scanner.at();
                match scanner.find_valid_frame()? {
                    Some(lsn) => survey.bad.push(from..lsn),
                    None => return Ok(survey),
                }
            }
        }
    }
}

//! Reports about a journal. Nothing is changed.

use super::{
    ToolError,
    open::{End, Opened},
    survey::{Survey, survey},
    unreadable::ZeroFilled,
};
use crate::{
    Disk, Lsn,
    format::{SEGMENT_HEADER_LEN, SegmentHeader},
    names::{self, Named},
    public_id,
    recovery::{lock, open_checkpoint, read_segment_header, scan::Scanner},
    replica::Contents,
};
use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

/// Says what is in the files of the journal in `dir`, one line for each.
pub fn inspect(dir: &Path, disk: Arc<dyn Disk>, out: &mut dyn Write) -> Result<(), ToolError> {
    let lock = lock(&*disk, dir)?;
    let zero_filled = ZeroFilled::new(disk);
    let disk: Arc<dyn Disk> = Arc::clone(&zero_filled) as _;
    let mut files = list(&*disk, dir)?;
    files.sort_by(|one, other| one.name.cmp(&other.name));
    for file in &files {
        let path = dir.join(&file.name);
        match names::parse(&file.name) {
            Some(Named::Segment(start)) => {
                match read_segment_header(&*disk, &path, start, file.size_bytes) {
                    Ok(header) => {
                        let survey = survey_segment(&*disk, dir, &header)?;
                        writeln!(out, "{}: {}", file.name, describe(&header, &survey))?;
                    }
                    Err(error) => writeln!(out, "{}: {error}", file.name)?,
                }
            }
            Some(Named::Spare(_)) => {
                writeln!(out, "{}: {} bytes ready for a segment", file.name, file.size_bytes)?;
            }
            Some(Named::Checkpoint(_)) => match open_checkpoint(&*disk, &path) {
                Ok((reader, _)) => {
                    let (start, len) = (reader.start(), file.size_bytes);
                    writeln!(out, "{}: replay starts at {start}, {len} bytes", file.name)?;
                }
                Err(error) => writeln!(out, "{}: {error}", file.name)?,
            },
            None => writeln!(out, "{}: {} bytes", file.name, file.size_bytes)?,
        }
    }
    match Opened::open(dir, disk, lock) {
        Ok(opened) => say_end(&opened, out)?,
        Err(error) => writeln!(out, "{error}")?,
    }
    zero_filled.say(out)?;
    Ok(())
}

/// Checks every sum in the journal in `dir`, and says what is wrong. Returns whether it is sound:
/// a torn tail is, as it holds nothing that was durable.
pub fn verify(dir: &Path, disk: Arc<dyn Disk>, out: &mut dyn Write) -> Result<bool, ToolError> {
    let sound = verify_files(dir, &ZeroFilled::new(disk), true, out)?;
    if sound {
        writeln!(out, "the journal is sound")?;
    }
    Ok(sound)
}

/// As [`verify`], and says only what is wrong. Damage in what is not replayed counts if it is not known
/// what there `is_needed`.
pub fn verify_files(
    dir: &Path,
    disk: &Arc<ZeroFilled>,
    is_needed: bool,
    out: &mut dyn Write,
) -> Result<bool, ToolError> {
    let sound = verify_what_is_read(dir, disk, is_needed, out)?;
    // To a start it matters wherever it is.
    Ok(!disk.say(out)? && sound)
}

/// As [`verify_files`], where what can't be read is zeros.
fn verify_what_is_read(
    dir: &Path,
    disk: &Arc<ZeroFilled>,
    is_needed: bool,
    out: &mut dyn Write,
) -> Result<bool, ToolError> {
    let lock = lock(&**disk, dir)?;
    let opened = match Opened::open(dir, Arc::clone(disk) as _, lock) {
        Ok(opened) => opened,
        Err(error) if error.is_damage() => {
            writeln!(out, "{error}")?;
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let recovery = opened.recovery();
    for (segment, _) in &recovery.chain {
        // A replay reads neither what is in front of its start, nor what is behind the end of a segment that has a next one.
        disk.read_all(&segment.path(&recovery.dir))?;
    }
    let mut sound = true;
    for survived in recovery.survived() {
        writeln!(out, "{survived}; {}", opened.who_mends())?;
        sound = false;
    }
    for segment in recovery.segments.all() {
        if recovery.chain.iter().any(|(replayed, _)| Arc::ptr_eq(replayed, &segment)) {
            continue;
        }
        let path = segment.path(&recovery.dir);
        let header = read_segment_header(&**disk, &path, segment.start, segment.capacity)?;
        let holes = segment.holes();
        for bad in survey_segment(&**disk, dir, &header)?.bad {
            let offset = bad.start.0 - segment.start.0;
            let end = bad.end.0 - segment.start.0;
            let punched = holes
                .iter()
                .any(|hole| u64::from(hole.start) < end && offset < u64::from(hole.end));
            if !punched {
                let len = bad.end.0 - bad.start.0;
                let what = if is_needed { "" } else { "; what is needed of them is named below" };
                let path = path.display();
                writeln!(out, "{path}: {len} bytes at offset {offset} are damaged{what}")?;
                sound &= !is_needed;
            }
        }
    }
    match opened.end() {
        Ok(_) => {}
        Err(error) if error.is_damage() => {
            writeln!(out, "{error}")?;
            sound = false;
        }
        Err(error) => return Err(error),
    }
    Ok(sound)
}

/// The files of the folder.
pub fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<crate::FileEntry>, ToolError> {
    Ok(disk.list(dir)?)
}

fn say_end(opened: &Opened, out: &mut dyn Write) -> Result<(), ToolError> {
    let Lsn(from) = opened.recovery().replay_start();
    match opened.end() {
        Ok(End::Alone(end)) => writeln!(
            out,
            "replay: {} batches with {} records from {from:016x} to {}, {}",
            end.batches,
            end.records,
            end.end,
            how_it_ended(end.clean, end.torn)
        )?,
        Ok(End::Copy(contents)) => {
            let Contents { identity, vote, last, end, committed, clean, torn } = contents;
            writeln!(
                out,
                "copy of the log of group {:08x}: its last entry is {last} and ends at {end}, {committed} is \
                 known to be committed, {}; this member knows of term {}, and of members as of entry {}",
                public_id(identity.group),
                how_it_ended(clean, torn),
                vote.term,
                vote.members_index
            )?;
        }
        Err(error) => writeln!(out, "{error}")?,
    }
    Ok(())
}

fn how_it_ended(clean: bool, torn: bool) -> &'static str {
    match (clean, torn) {
        (true, _) => "closed by intention",
        (false, false) => "not closed",
        (false, true) => "with remains of a write behind it that is not whole",
    }
}

fn survey_segment(disk: &dyn Disk, dir: &Path, header: &SegmentHeader) -> io::Result<Survey> {
    let file = disk.open(&dir.join(names::segment(header.start)), crate::OpenMode::Read)?;
    let from = header.start.plus(SEGMENT_HEADER_LEN);
    survey(&mut Scanner::new(file, header.id, header.start, from, header.end()))
}

fn describe(header: &SegmentHeader, survey: &Survey) -> String {
    let mut text = format!(
        "{} of {} bytes used, {} batches with {} records, ends at {}",
        survey.frame_bytes, header.capacity, survey.frames, survey.records, survey.end
    );
    if survey.closed {
        text.push_str(", closed by intention");
    }
    if survey.gaps > 0 {
        text += &format!(", {} bytes taken out by {} repairs", survey.gap_bytes, survey.gaps);
    }
    for bad in &survey.bad {
        let (offset, len) = (bad.start.0 - header.start.0, bad.end.0 - bad.start.0);
        text += &format!("; {len} bytes at offset {offset} are no frames");
    }
    text
}

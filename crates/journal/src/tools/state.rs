//! What the store's state needs of the log, and what of that is not there any more.

use super::{
    Repaired, ToolError, inspect::verify_files, mend::Mender, open::Opened, repair::repair,
    unreadable::ZeroFilled,
};
use crate::{
    AppendMode, Batch, Disk, DiskFile, Lsn, OpenMode, Options,
    disk::read_up_to,
    format::{RECORD_HEAD_LEN, lost_record, record_is_valid, u32_at},
    recovery::{Recovery, lock, open_locked},
    replica::is_copy,
    segments::Segment,
    store::load,
};
use courser_store::{Position, Record, Recovered};
use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
    path::Path,
    sync::Arc,
};

/// Gives the numbers that messages are kept under the names that people know.
pub type Names<'a> = &'a dyn Fn(&Recovered) -> HashMap<u64, String>;

/// As [`verify`](super::verify), and looks whether every message that the store has can be read.
pub fn verify_store(
    dir: &Path,
    disk: Arc<dyn Disk>,
    names: Names<'_>,
    out: &mut dyn Write,
) -> Result<bool, ToolError> {
    let disk = ZeroFilled::new(disk);
    let sound = verify_files(dir, &disk, false, out)?;
    let lock = lock(&*disk, dir)?;
    let Ok(opened) = Opened::open(dir, disk, lock) else { return Ok(false) };
    let recovery = opened.recovery();
    let Ok((recovered, _)) = load(recovery, &mut |_| {}) else { return Ok(false) };
    let lost = Lost::find(recovery, &recovered)?;
    lost.say(&names(&recovered), out)?;
    let sound = sound && lost.is_empty();
    if sound {
        writeln!(out, "the journal is sound")?;
    }
    Ok(sound)
}

/// As [`repair`], and takes the messages that can't be read out of their queues, which it names.
///
/// Streams keep their offsets: what is lost of them is marked as such, and skipped when its turn comes. A member's copy of a
/// replicated log is verified, and left as it is.
pub fn repair_store(
    dir: &Path,
    options: Options,
    disk: Arc<dyn Disk>,
    names: Names<'_>,
    out: &mut dyn Write,
) -> Result<Repaired, ToolError> {
    if is_copy(&*disk, dir)? {
        let is_sound = verify_store(dir, disk, names, out)?;
        return if is_sound { Ok(Repaired::default()) } else { Err(ToolError::CopyNotRepaired) };
    }
    let mut repaired = repair(dir, Arc::clone(&disk), out)?;
    let lock = lock(&*disk, dir)?;
    let options = Options { threads: false, ..options };
    let recovery = open_locked(dir, options.clone(), Arc::clone(&disk), Box::new(()))?;
    let (recovered, _) = load(&recovery, &mut |_| {})?;
    let lost = Lost::find(&recovery, &recovered)?;
    let names = names(&recovered);
    lost.say(&names, out)?;
    if repaired.lost {
        say_orphans(&recovered, &names, out)?;
    }
    if lost.is_empty() {
        return Ok(repaired);
    }
    (repaired.changed, repaired.lost) = (true, true);
    for position in lost.of_streams.values().flatten().copied().map(Lsn::from) {
        let mender = Mender::new(&*disk, dir)?;
        if !mender.has_segment_for(position) {
            writeln!(out, "{}", mender.stand_in_for(position)?)?;
        }
        Mender::new(&*disk, dir)?.mark_lost(position, recovery.id)?;
    }
    disk.sync_dir(dir)?;
    // With the segments that stand in for others.
    drop(recovery);
    lost.settle(open_locked(dir, options, disk, lock)?, &recovered)?;
    Ok(repaired)
}

/// Messages that the state has and the log has not, by the number of who has them.
#[derive(Default)]
struct Lost {
    of_queues: BTreeMap<u64, Vec<Position>>,
    of_streams: BTreeMap<u64, Vec<Position>>,
    /// How many a repair has marked.
    known: BTreeMap<u64, usize>,
    /// All that there should be.
    totals: HashMap<u64, usize>,
}

impl Lost {
    fn find(recovery: &Recovery, recovered: &Recovered) -> io::Result<Self> {
        let mut lost = Lost::default();
        let mut all: Vec<(Position, u64, bool)> = Vec::new();
        for (number, index) in &recovered.queues {
            all.extend(index.positions().map(|position| (position, *number, false)));
        }
        for (number, index) in &recovered.delayed {
            all.extend(index.pairs().map(|(position, _)| (position, *number, false)));
        }
        for (number, stream) in &recovered.streams {
            stream.for_each_position(&mut |position| all.push((position, *number, true)));
        }
        // In the order of the log: each file is opened once, and each record read once.
        all.sort_unstable();
        let mut reader = Records { recovery, open: None, bytes: Vec::new() };
        let mut last = None;
        for (position, number, in_stream) in all {
            *lost.totals.entry(number).or_default() += 1;
            let found = match last {
                Some((at, found)) if at == position => found,
                _ => reader.look(position.into())?,
            };
            last = Some((position, found));
            let of = if in_stream { &mut lost.of_streams } else { &mut lost.of_queues };
            match found {
                Found::Whole => {}
                Found::Lost => of.entry(number).or_default().push(position),
                Found::KnownLost => *lost.known.entry(number).or_default() += 1,
            }
        }
        Ok(lost)
    }

    fn is_empty(&self) -> bool {
        self.of_queues.is_empty() && self.of_streams.is_empty()
    }

    fn say(&self, names: &HashMap<u64, String>, out: &mut dyn Write) -> io::Result<()> {
        for (number, positions) in self.of_queues.iter().chain(&self.of_streams) {
            let total = self.totals.get(number).copied().unwrap_or_default();
            let name = name(*number, names);
            writeln!(out, "{name}: {} of {total} messages are lost", positions.len())?;
        }
        for (number, count) in &self.known {
            let name = name(*number, names);
            writeln!(out, "{name}: {count} messages were lost before a repair, and are skipped")?;
        }
        Ok(())
    }

    /// Notes in the log that these are done with.
    fn settle(&self, recovery: Recovery, recovered: &Recovered) -> Result<(), ToolError> {
        // Nothing else may be freed while the log goes on.
        recovered.for_each_position(&mut |position| {
            recovery.hold(position.into(), 1);
        });
        let journal = recovery.start()?;
        let mut batch = Batch::new();
        for (queue, positions) in &self.of_queues {
            let mut head = Vec::new();
            let record = Record::Settled { queue: *queue, positions };
            record.encode_head(&mut head).map_err(io::Error::other)?;
            batch.push(&[&head]);
        }
        if !batch.is_empty() {
            let mode = AppendMode { sync: true, reserve: true };
            journal.append(&mut batch, mode).map_err(io::Error::other)?;
        }
        Ok(journal.close().map_err(io::Error::other)?)
    }
}

/// Says which messages belong to no queue or exchange, as the definition of the one that had them is lost.
fn say_orphans(
    recovered: &Recovered,
    names: &HashMap<u64, String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let queues =
        recovered.queues.iter().map(|(number, index)| (*number, index.positions().count()));
    let delayed = recovered.delayed.iter().map(|(number, index)| (*number, index.pairs().count()));
    for (number, count) in queues.chain(delayed) {
        if count > 0 && !names.contains_key(&number) {
            writeln!(
                out,
                "{count} messages belong to no queue or exchange: what number {number} was is lost"
            )?;
        }
    }
    Ok(())
}

fn name(number: u64, names: &HashMap<u64, String>) -> String {
    names.get(&number).cloned().unwrap_or_else(|| format!("number {number}"))
}

/// Reads records of a journal that is not running, in their order.
struct Records<'a> {
    recovery: &'a Recovery,
    open: Option<(Arc<Segment>, Arc<dyn DiskFile>)>,
    bytes: Vec<u8>,
}

/// What is at a position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Whole,
    Lost,
    KnownLost,
}

impl Records<'_> {
    /// Whether what was written is still at `position`.
    fn look(&mut self, position: Lsn) -> io::Result<Found> {
        let Some(segment) = self.recovery.segments.find(position) else { return Ok(Found::Lost) };
        let file = match &self.open {
            Some((of, file)) if Arc::ptr_eq(of, &segment) => Arc::clone(file),
            _ => {
                let path = segment.path(&self.recovery.dir);
                self.recovery.disk.open(&path, OpenMode::Read)?
            }
        };
        self.open = Some((Arc::clone(&segment), Arc::clone(&file)));
        let offset = position.0 - segment.start.0;
        let mut head = [0; RECORD_HEAD_LEN];
        if read_up_to(&*file, &mut head, offset)? < head.len() {
            return Ok(Found::Lost);
        }
        if head == lost_record(position, self.recovery.id) {
            return Ok(Found::KnownLost);
        }
        let len = u64::from(u32_at(&head, 0));
        if len + RECORD_HEAD_LEN as u64 > segment.capacity - offset {
            return Ok(Found::Lost);
        }
        self.bytes.resize(len as usize, 0);
        let found = read_up_to(&*file, &mut self.bytes, offset + RECORD_HEAD_LEN as u64)?;
        let check = u32_at(&head, 4);
        let whole = found == self.bytes.len()
            && record_is_valid(&self.bytes, check, position, self.recovery.id);
        Ok(if whole { Found::Whole } else { Found::Lost })
    }
}

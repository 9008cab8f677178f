//! Checkpoints of a leader that is deposed while it makes them, or has to be.

use crate::copy::{DIR, IDENTITY, new_disk, open, options};
use courser_journal::{
    AppendError, AppendMode, Batch, CheckpointError, Disk, DiskFile, FileEntry, Journal, Lsn,
    OpenMode, ReadCache,
    replica::{EntryId, EntryKind, Replica},
    testing::FakeDisk,
};
use std::{
    any::Any,
    io,
    path::Path,
    sync::{Arc, Mutex},
};

/// A disk on which a copy gives up its lead at the next rename, which is that of a finished checkpoint.
struct Deposing {
    disk: FakeDisk,
    copy: Mutex<Option<Arc<Replica>>>,
}

impl Disk for Deposing {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<FileEntry>> {
        self.disk.list(dir)
    }
    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.folders(dir)
    }
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(path, mode)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if let Some(copy) = self.copy.lock().unwrap().take() {
            copy.follow();
        }
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.remove_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.disk.lock(path)
    }
    fn fresh_id(&self) -> io::Result<u64> {
        self.disk.fresh_id()
    }
}

/// A leader that has one live message.
struct Leading {
    deposing: Arc<Deposing>,
    copy: Arc<Replica>,
    lead: Journal,
    /// Where the record of each entry lies, and where the entry ends.
    ends: Vec<(Lsn, Lsn)>,
    message: Lsn,
}

fn leading() -> Leading {
    let disk = FakeDisk::new(4);
    Replica::create(Path::new(DIR), IDENTITY, &disk).unwrap();
    let deposing = Arc::new(Deposing { disk, copy: Mutex::default() });
    let on = Arc::clone(&deposing) as Arc<dyn Disk>;
    let copy = Replica::open(Path::new(DIR), options(), on, Arc::new(())).unwrap();
    let copy = Arc::new(copy);
    copy.place_note(EntryId { term: 1, index: 1 }, EntryKind::Start, &[]).unwrap();
    let lead = copy.lead(1);
    let mut ends = Vec::new();
    for index in 2..60 {
        let mut batch = Batch::new();
        batch.push(&[&[9; 700]]);
        lead.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
        let entry = copy.place(EntryId { term: 1, index }).unwrap().unwrap();
        ends.push((entry.start().plus(32), entry.end()));
    }
    copy.flush_once();
    copy.commit(59).unwrap();
    let message = ends[0].0;
    lead.hold(message, 1);
    lead.count_live(&mut |each| each(message)).unwrap();
    Leading { deposing, copy, lead, ends, message }
}

#[test]
fn a_deposed_leaders_checkpoint_looks_for_no_room_to_give_back() {
    let Leading { copy, lead, ends, message, .. } = leading();
    let mut is_written = false;
    let made = lead.checkpoint(
        &mut || ends[40].1,
        &mut |each| {
            copy.follow();
            each(message);
        },
        &mut |_| {
            is_written = true;
            Ok(())
        },
    );
    assert!(matches!(made, Err(CheckpointError::Unwanted)), "{made:?}");
    assert!(!is_written, "it went on when it was planned");
}

#[test]
fn a_deposed_leaders_checkpoint_does_not_say_what_is_dead() {
    let Leading { deposing, copy, lead, ends, message } = leading();
    let checkpoint = |at: usize| {
        let made = lead.checkpoint(
            &mut || ends[at].1,
            // By the time that it is deposed, its broker has settled the message, by a record that no majority ever has.
            &mut |each| {
                if lead.failure().is_none() {
                    each(message);
                }
            },
            &mut |out| out.write_all(b"state"),
        );
        made.unwrap();
    };
    checkpoint(40);
    *deposing.copy.lock().unwrap() = Some(Arc::clone(&copy));
    checkpoint(50);
    assert!(lead.failure().is_some(), "it is deposed");
    copy.maintain_once();
    assert_eq!(copy.read_record(message, &mut ReadCache::default()).unwrap(), [9; 700]);

    // What a follower finds dead may go.
    for at in [52, 54] {
        copy.checkpoint(ends[at].1, &mut || true, &mut |_| {}, &mut |out| out.write_all(b"state"))
            .unwrap();
    }
    copy.maintain_once();
    copy.read_record(message, &mut ReadCache::default()).unwrap_err();
}

#[test]
fn a_lead_that_could_not_gather_what_was_done_in_it_makes_no_checkpoint() {
    let copy = open(&new_disk(3)).unwrap();
    copy.place_note(EntryId { term: 1, index: 1 }, EntryKind::Start, &[]).unwrap();
    let lead = copy.lead(1);
    let mut batch = Batch::new();
    let mut fill = || loop {
        batch.clear();
        batch.push(&[&[0; 2000]]);
        if let Err(error) = lead.append(&mut batch, AppendMode { sync: true, reserve: true }) {
            return error;
        }
    };
    assert!(matches!(fill(), AppendError::Deposed));
    let mut index = 1;
    while copy.place(EntryId { term: 1, index: index + 1 }).unwrap().is_some() {
        index += 1;
        copy.flush_once();
        copy.maintain_once();
    }
    copy.flush_once();
    copy.commit(index).unwrap();
    copy.applied(index);
    let start = copy.end_of(index).unwrap();
    assert_eq!(lead.durable(), start, "all is durable that was gathered");
    let made = lead.checkpoint(&mut || start, &mut |_| {}, &mut |_| Ok(()));
    assert!(matches!(made, Err(CheckpointError::Failed(_))), "{made:?}");
}

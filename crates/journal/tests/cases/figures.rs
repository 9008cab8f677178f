//! What a journal says of its work.

use crate::support::{LAZY, SYNC, append, start};
use courser_journal::{ReadCache, testing::FakeDisk};

#[test]
fn appends_writes_syncs_reads_and_checkpoints_are_counted() {
    let disk = FakeDisk::new(1);
    let journal = start(&disk);
    let before = journal.figures();
    assert_eq!((before.appends, before.writes, before.syncs(), before.reads), (0, 0, 0, 0));
    assert_ne!(before.id, 0);

    let positions = append(&journal, &[b"one", b"two"], LAZY);
    append(&journal, &[b"three"], SYNC);
    let appended = journal.figures();
    assert_eq!((appended.appends, appended.records), (2, 3));
    assert_eq!((appended.writes, appended.syncs()), (0, 0), "nothing is written yet");
    assert!(journal.flush_once());
    let written = journal.figures();
    assert_eq!((written.writes, written.syncs()), (1, 1), "both in one write and one sync");
    assert_eq!(written.written_bytes, journal.end().0 - 4096, "without the header of the segment");

    journal.read(positions[0], &mut ReadCache::default()).unwrap();
    let read = journal.figures();
    assert_eq!(read.reads, 1);
    assert!(read.read_bytes >= 3);

    journal
        .checkpoint(&mut || journal.end(), &mut |_| {}, &mut |out| out.write_all(b"state"))
        .unwrap();
    let after = journal.figures();
    assert_eq!((after.checkpoints, after.segments), (1, 1));
    assert!(after.checkpoint_bytes > 5 && after.log_bytes > 0 && after.spare_bytes > 0);
    assert_eq!(after.id, before.id);
}

//! Segments that are freed, or not.

use crate::{
    AppendMode, Batch, EachLive, Journal, Options,
    replica::{EntryId, EntryKind, Identity, Replica},
    testing::FakeDisk,
};
use std::{io::Write, path::Path, sync::Arc};

/// A copy that leads, and has segments that nothing needs any more.
fn leading() -> (Replica, Journal) {
    let (dir, disk) = (Path::new("copy"), FakeDisk::new(1));
    let identity = Identity { group: 7, segment_bytes: 16 << 10 };
    Replica::create(dir, identity, &disk).unwrap();
    let options = Options { threads: false, ..Options::default() };
    let replica = Replica::open(dir, options, Arc::new(disk), Arc::new(())).unwrap();
    let id = |index| EntryId { term: 1, index };
    let mut last = replica.place_note(id(1), EntryKind::Start, &[]).unwrap();
    let lead = replica.lead(1);
    for _ in 0..50 {
        let mut batch = Batch::new();
        batch.push(&[&[1; 1000]]);
        lead.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
        last = replica.place(id(last.id.index + 1)).unwrap().unwrap();
        while replica.flush_once() {}
    }
    replica.commit(last.id.index).unwrap();
    for _ in 0..2 {
        let (start, live) = (last.end(), &mut |_: EachLive<'_>| {});
        let state = &mut |out: &mut dyn Write| out.write_all(b"state");
        lead.checkpoint(&mut || start, live, state).unwrap();
    }
    lead.count_live(&mut |_| {}).unwrap();
    (replica, lead)
}

#[test]
fn nothing_is_freed_by_what_a_lead_knew_that_has_ended_meanwhile() {
    let (replica, lead) = leading();
    let found = lead.core.free_list(|lsn| lead.core.is_released_for_good(lsn));
    assert!(!found.is_empty(), "nothing needs them");
    let found = lead.core.free_list(|_| {
        // What another leader appends is at the same places, and durable.
        replica.follow();
        true
    });
    assert!(found.is_empty(), "a release may be cut off");
}

//! Reading what has yet to be written to the log.

use crate::support::{dir, options};
use courser_journal::JournalStore;
use courser_journal::testing::FakeDisk;
use courser_store::{Log, MessageRef, Messages, Record, Sync};
use std::sync::Arc;

#[test]
fn what_follows_in_the_buffer_is_at_hand_too() {
    let (disk, gauge) = (Arc::new(FakeDisk::new(1)), Arc::default());
    let opened = JournalStore::open(&dir(), options(), disk, gauge, u64::MAX, &mut |_| {});
    let (store, ..) = opened.expect("an empty journal");
    let bodies = [[1; 5000], [2; 5000], [3; 5000], [4; 5000]];
    let records = bodies.each_ref().map(|body| {
        let message =
            MessageRef { address: b"\0\0", header: &[0; 14], body, ..MessageRef::default() };
        Record::Message { queues: &[1], holders: 1, message }
    });
    let mut locations = Vec::new();
    store.append(&records, Sync::Later, &mut locations).expect("there is room");
    let mut reader = store.reader();
    let first = reader.read(&locations[0]).expect("it is there");
    assert_eq!(first.body[0], 1);
    let at_hand: Vec<_> = locations.iter().map(|at| reader.is_at_hand(at)).collect();
    assert_eq!(at_hand, [true, true, true, false], "a block of 16 KiB");
    assert!(reader.held_bytes() <= 16 << 10, "{}", reader.held_bytes());
    for (at, body) in locations.iter().zip(&bodies) {
        assert_eq!(reader.read(at).expect("it is there").body, body);
    }
}

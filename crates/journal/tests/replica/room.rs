//! Whether a copy has room for entries that another node has placed.

use crate::{copy::Copy, entries::leading, leading::append};
use courser_journal::replica::{Entry, EntryId, Room};
use std::slice;

#[test]
fn an_entry_that_is_here_already_needs_no_other_file() {
    let leader = leading(&[]);
    let first = slice::from_ref(&leader.entries[0]);
    let other = Copy::new("follower", 9);
    let replica = other.replica();
    // Its upkeep makes no file; one would be needed if the segment were begun again.
    assert_eq!(replica.room_for(first), Room::Ready);
    replica.append(first).unwrap();
    for _ in 0..2 {
        assert_eq!(replica.room_for(first), Room::Ready);
        replica.append(first).unwrap();
    }
    assert_eq!(replica.last(), leader.entries[0].id);
}

#[test]
fn a_copy_whose_disk_is_full_says_so_until_there_is_room() {
    let mut copy = leading(&[]);
    let lead = copy.lead.take().unwrap();
    for index in 2..40 {
        append(&lead, &[7; 1500]);
        let entry = copy.replica().place(EntryId { term: 1, index }).unwrap().unwrap();
        copy.push(entry);
    }
    let other = Copy::new("follower", 9);
    let replica = other.replica();
    replica.maintain_once();
    assert!(replica.has_room());
    other.disk.set_capacity(other.disk.used_bytes());
    let fits = |entry: &&Entry| {
        let mut room = replica.room_for(slice::from_ref(*entry));
        if room == Room::Coming {
            replica.maintain_once();
            room = replica.room_for(slice::from_ref(*entry));
        }
        room == Room::Ready
    };
    let taken = copy.entries.iter().take_while(fits).map(|entry| {
        replica.append(slice::from_ref(entry)).unwrap();
        replica.flush_once();
    });
    let taken = taken.count();
    assert!(taken > 0 && taken < copy.entries.len(), "{taken} of {}", copy.entries.len());
    assert!(!replica.has_room());
    other.disk.set_capacity(u64::MAX);
    replica.maintain_once();
    assert!(replica.has_room());
    replica.append(&copy.entries[taken..]).unwrap();
}

//! A node whose disk has no room for the log of a group that begins.

use crate::slow_disk::Sent;
use courser_cluster::forming::Folder;
use courser_cluster::transport::Formation;
use courser_cluster::{Identity, Member, MemberConfig, NodeId, Options, Origin};
use courser_journal::testing::FakeDisk;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const SEGMENT_BYTES: u64 = 64 << 10;
/// By how much more room there is each time.
const STEP_BYTES: usize = 512;

fn config(disk: &FakeDisk) -> MemberConfig {
    MemberConfig {
        dir: PathBuf::from("group"),
        disk: Arc::new(disk.clone()),
        identity: Identity { group: 7, segment_bytes: SEGMENT_BYTES },
        origin: Origin::Founders(vec![NodeId(1)]),
        options: Options::new(NodeId(1)),
        tick: Duration::ZERO,
        journal: courser_journal::Options {
            segment_bytes: SEGMENT_BYTES,
            threads: false,
            ..Default::default()
        },
    }
}

#[test]
fn a_group_that_found_no_room_for_its_log_begins_when_there_is_some() {
    let start = |disk: &FakeDisk| Member::idle(config(disk), Arc::new(Sent::default()));
    let mut refused = 0;
    for capacity in (0..).step_by(STEP_BYTES) {
        let disk = FakeDisk::new(1);
        disk.set_capacity(capacity);
        let Err(error) = start(&disk) else { break };
        assert!(error.lacks_room(), "with {capacity} bytes: {error}");
        refused += 1;
        disk.set_capacity(u64::MAX);
        let begun = start(&disk);
        assert!(begun.is_ok(), "after {capacity} bytes: {:?}", begun.err());
    }
    assert!(refused as u64 > SEGMENT_BYTES / STEP_BYTES as u64, "a segment needs its room");
}

#[test]
fn a_node_that_found_no_room_to_keep_its_group_keeps_it_when_there_is_some() {
    let disk = FakeDisk::new(1);
    let folder = Folder::open(Path::new("node"), Arc::new(disk.clone()), "prod", "a");
    let folder = folder.expect("there is room");
    let formation =
        Formation { segment_bytes: SEGMENT_BYTES, ..crate::support::formation(&[folder.node().0]) };
    disk.set_capacity(disk.used_bytes());
    let refused = folder.set_formation(&formation).expect_err("the disk is full");
    assert!(refused.lacks_room(), "{refused}");
    disk.set_capacity(u64::MAX);
    folder.set_formation(&formation).expect("there is room");
    assert_eq!(folder.formation(), Some(formation));
}

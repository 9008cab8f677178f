//! What a node keeps of itself.

use crate::support::formation;
use courser_cluster::forming::{Folder, FolderError};
use courser_cluster::transport::{Formation, Node};
use courser_cluster::{GroupNumber, NodeId};
use courser_journal::replica::Replica;
use courser_journal::testing::{FakeDisk, Faults};
use courser_journal::{Disk, JournalStore, Options, RealDisk};
use courser_store::{Log as _, Record, Sync};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(dir: &Path) -> Result<Folder, FolderError> {
    Folder::open(dir, Arc::new(RealDisk), "prod", "a")
}

fn node(number: u64, address: &str) -> Node {
    Node { id: NodeId(number), name: format!("n{number}"), address: address.into() }
}

#[test]
fn a_node_keeps_its_number_and_what_it_has_learned() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = open(dir.path()).expect("a node");
    let (number, seed) = (folder.node(), folder.seed());
    folder.set_formation(&formation(&[1, 2])).expect("kept");
    assert!(folder.learn(&node(2, "b:1"), false).expect("kept"));
    for group in [3, 1] {
        folder.set_group(GroupNumber(group), &formation(&[1, 2, group.into()])).expect("kept");
    }
    drop(folder);
    let folder = open(dir.path()).expect("a node");
    assert_eq!((folder.node(), folder.seed()), (number, seed));
    assert_eq!(folder.formation(), Some(formation(&[1, 2])));
    assert_eq!(folder.known(), [node(2, "b:1")]);
    let groups = [1, 3].map(|group| (GroupNumber(group), formation(&[1, 2, group.into()])));
    assert_eq!(folder.groups(), groups.into());
    let copy_dir = |group| folder.copy_dir(GroupNumber(group)).expect("readable");
    assert_eq!([0, 3].map(copy_dir), ["group", "group-3"].map(|name| dir.path().join(name)));
}

#[test]
fn two_folders_are_two_nodes() {
    let (one, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("one"));
    let [one, other] = [one, other].map(|dir| open(dir.path()).expect("a node"));
    assert_ne!(one.node(), other.node());
    assert_ne!(one.seed(), other.seed());
}

#[test]
fn what_a_node_says_of_itself_counts_more_than_what_others_say() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = open(dir.path()).expect("a node");
    folder.learn(&node(2, "b:1"), true).expect("kept");
    assert!(!folder.learn(&node(2, "b:2"), false).expect("nothing to keep"));
    assert_eq!(folder.known(), [node(2, "b:1")]);
    assert!(folder.learn(&node(2, "b:3"), true).expect("kept"));
    assert_eq!(folder.known(), [node(2, "b:3")]);
    // A node knows best where it is itself.
    assert!(!folder.learn(&node(folder.node().0, "c:9"), true).expect("nothing to keep"));
    folder.forget(|node| node == NodeId(2)).expect("kept");
    assert_eq!(folder.known(), []);
}

#[test]
fn what_is_known_is_said_while_the_disk_takes_its_time_to_keep_more() {
    let disk = FakeDisk::new(1);
    let folder = Folder::open(Path::new(NODE), Arc::new(disk.clone()), "prod", "a");
    let folder = folder.expect("an empty disk");
    folder.learn(&node(2, "b:1"), true).expect("kept");
    let hold = disk.hold_syncs();
    std::thread::scope(|scope| {
        let learning = scope.spawn(|| folder.learn(&node(3, "c:1"), true));
        let being_written = Path::new(NODE).join("cluster.json.new");
        while disk.contents(&being_written).is_none_or(|written| written.is_empty()) {
            std::thread::yield_now();
        }
        // The node that is being learned of is not known before it is kept.
        assert_eq!(folder.known(), [node(2, "b:1")]);
        assert_ne!(folder.node(), NodeId(0));
        assert!(hold.let_go(), "who asks waits for the disk");
        assert!(learning.join().expect("no panic").expect("kept"));
    });
    assert_eq!(folder.known(), [node(2, "b:1"), node(3, "c:1")]);
}

#[test]
fn what_others_say_counts_no_more_while_what_a_node_says_of_itself_is_being_written() {
    let disk = FakeDisk::new(1);
    let folder = Folder::open(Path::new(NODE), Arc::new(disk.clone()), "prod", "a");
    let folder = folder.expect("an empty disk");
    let hold = disk.hold_syncs();
    std::thread::scope(|scope| {
        let first_hand = scope.spawn(|| folder.learn(&node(2, "b:1"), true));
        let being_written = Path::new(NODE).join("cluster.json.new");
        while disk.contents(&being_written).is_none_or(|written| written.is_empty()) {
            std::thread::yield_now();
        }
        let second_hand = scope.spawn(|| folder.learn(&node(2, "b:2"), false));
        // So that it has most likely found that nothing is known of the node.
        std::thread::sleep(Duration::from_millis(50));
        assert!(hold.let_go(), "the first is being written");
        assert!(first_hand.join().expect("no panic").expect("kept"));
        assert!(!second_hand.join().expect("no panic").expect("nothing to keep"));
    });
    assert_eq!(folder.known(), [node(2, "b:1")]);
}

#[test]
fn folders_of_others_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(open(dir.path()).expect("a node"));
    let other = Folder::open(dir.path(), Arc::new(RealDisk), "test", "a");
    assert!(matches!(other.err(), Some(FolderError::OtherCluster { .. })));
    let alone = Folder::refuse(dir.path(), &RealDisk);
    assert!(matches!(alone.err(), Some(FolderError::OfNode { .. })));
}

#[test]
fn a_member_keeps_its_name_and_a_node_that_waits_may_get_another() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(open(dir.path()).expect("a node"));
    let named = |name| Folder::open(dir.path(), Arc::new(RealDisk), "prod", name);
    let folder = named("b").expect("it is in no cluster yet");
    folder.set_formation(&formation(&[1, 2])).expect("kept");
    drop(folder);
    let error = named("c").err().expect("it is known as b").to_string();
    assert!(error.contains("of node 'b', not of 'c'"), "{error}");
    named("b").expect("its name");
}

#[test]
fn the_folder_of_a_broker_by_itself_stays_its_until_it_was_adopted() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("journal")).expect("a journal");
    let folder = open(dir.path()).expect("a node that may be");
    assert!(folder.is_alone().expect("readable"));
    Folder::refuse(dir.path(), &RealDisk).expect("no node's yet");
    adopt(&folder).expect("adopted");
    assert!(!folder.is_alone().expect("readable"));
    assert_eq!(folder.copy_dir(GroupNumber::HOME).expect("readable"), dir.path().join("journal"));
    let alone = Folder::refuse(dir.path(), &RealDisk);
    assert!(matches!(alone.err(), Some(FolderError::OfNode { .. })));
    let founders = folder.formation().map(|formation| formation.founders);
    assert_eq!(founders, Some(vec![folder.node()]));
    // A second time there is no journal of a broker by itself.
    adopt(&folder).expect_err("it is a copy");
    // Without its number it belongs to no node.
    std::fs::remove_file(dir.path().join("cluster.json")).expect("a file");
    assert!(matches!(open(dir.path()).err(), Some(FolderError::Damaged { .. })));
}

fn adopt(folder: &Folder) -> Result<(), courser_cluster::AdoptError> {
    let (dir, node) = (folder.copy_dir(GroupNumber::HOME)?, folder.node());
    let options = courser_journal::Options { segment_bytes: 1 << 20, ..Default::default() };
    let disk = Arc::new(RealDisk);
    courser_cluster::adopt(&dir, options, disk, node, &mut |_| {}, |identity| {
        folder.set_formation(&Formation {
            group: identity.group,
            segment_bytes: identity.segment_bytes,
            founders: vec![node],
            recovery: None,
        })
    })
}

const NODE: &str = "node";

fn options() -> Options {
    Options { segment_bytes: 64 << 10, threads: false, ..Options::default() }
}

/// The broker by itself, and the definitions that it has.
fn alone(disk: &FakeDisk) -> (Arc<JournalStore>, Vec<Vec<u8>>) {
    let (dir, disk) = (Path::new(NODE).join("journal"), Arc::new(disk.clone()));
    let opened = JournalStore::open(&dir, options(), disk, Arc::default(), u64::MAX, &mut |_| {});
    let (store, recovered, _) = opened.expect("the journal of a broker by itself");
    (store, recovered.definitions.into_values().collect())
}

fn begin_cluster(disk: &FakeDisk) -> Result<(), courser_cluster::AdoptError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let folder = Folder::open(Path::new(NODE), Arc::clone(&disk), "prod", "a")?;
    let (dir, node) = (folder.copy_dir(GroupNumber::HOME)?, folder.node());
    courser_cluster::adopt(&dir, options(), disk, node, &mut |_| {}, |identity| {
        folder.set_formation(&Formation {
            group: identity.group,
            segment_bytes: identity.segment_bytes,
            founders: vec![node],
            recovery: None,
        })
    })
}

#[test]
fn a_folder_is_the_brokers_or_the_nodes_whenever_the_node_is_killed_as_it_begins_a_cluster() {
    let (mut brokers, mut nodes) = (0, 0);
    for after in 0.. {
        let disk = FakeDisk::new(after);
        let (store, _) = alone(&disk);
        for value in [&b"one"[..], b"two"] {
            let record = Record::Defined { key: value, value };
            store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("there is room");
        }
        store.journal().close().expect("nothing fails");
        drop(store);
        disk.kill();
        disk.set_faults(Faults { power_off_after: Some(after), ..Faults::default() });
        let is_done = begin_cluster(&disk).is_ok();
        match after % 2 {
            0 => disk.lose_power(),
            _ => disk.kill(),
        }
        match Folder::refuse(Path::new(NODE), &disk) {
            Ok(()) => {
                assert!(!is_done, "it was said to be a node's");
                brokers += 1;
                let (store, values) = alone(&disk);
                assert_eq!(values, [b"one", b"two"]);
                drop(store);
                disk.kill();
                begin_cluster(&disk).expect("begun anew");
                disk.kill();
            }
            Err(FolderError::OfNode { .. }) => nodes += 1,
            Err(error) => panic!("{error}"),
        }
        let folder = Folder::open(Path::new(NODE), Arc::new(disk.clone()), "prod", "a");
        let folder = folder.expect("its own");
        let formation = folder.formation().expect("begun");
        assert_eq!(formation.founders, [folder.node()]);
        let dir = folder.copy_dir(GroupNumber::HOME).expect("readable");
        let replica = Replica::open(&dir, options(), Arc::new(disk.clone()), Arc::new(()));
        let replica = replica.expect("a copy");
        assert_eq!(replica.identity().group, formation.group);
        assert!(!replica.checkpointed().expect("readable").data.is_empty());
        if is_done {
            break;
        }
    }
    assert!(brokers > 10 && nodes > 0, "{brokers} a broker's, {nodes} a node's");
}

#[test]
fn a_node_starts_on_a_disk_that_is_full() {
    let disk = FakeDisk::new(1);
    let open = || Folder::open(Path::new(NODE), Arc::new(disk.clone()), "prod", "a");
    let number = open().expect("an empty disk").node();
    disk.set_capacity(disk.used_bytes());
    assert_eq!(open().expect("there is nothing to be written").node(), number);
}

#[test]
fn a_node_that_is_stopped_before_it_has_its_first_copy_goes_on_joining() {
    let dir = tempfile::tempdir().expect("a folder");
    let formation = formation(&[1, 2]);
    open(dir.path()).expect("a node").set_joining(&formation).expect("kept");
    let folder = open(dir.path()).expect("the same node");
    assert!(folder.joins() && folder.formation() == Some(formation.clone()));
    folder.set_formation(&formation).expect("kept");
    drop(folder);
    assert!(!open(dir.path()).expect("the same node").joins(), "its copy must not be made anew");
}

#[test]
fn a_folder_with_more_than_one_journal_is_no_nodes() {
    let dir = tempfile::tempdir().expect("a folder");
    for name in ["journal", "journal-7"] {
        std::fs::create_dir(dir.path().join(name)).expect("a journal");
    }
    assert!(matches!(open(dir.path()).err(), Some(FolderError::Shards(_))));
}

#[test]
fn a_node_that_was_removed_does_not_start_again() {
    let dir = tempfile::tempdir().expect("a folder");
    open(dir.path()).expect("a node").set_removed().expect("kept");
    assert!(matches!(open(dir.path()).err(), Some(FolderError::Removed { .. })));
}

#[test]
fn a_damaged_file_is_no_new_node() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(open(dir.path()).expect("a node"));
    let path = dir.path().join("cluster.json");
    let text = std::fs::read_to_string(&path).expect("a file");
    for damaged in ["", &text[..text.len() / 2], &text.replace("node", "n\u{f8}de")] {
        std::fs::write(&path, damaged).expect("written");
        assert!(matches!(open(dir.path()).err(), Some(FolderError::Damaged { .. })), "{damaged}");
    }
}

//! A node whose disk has no room for the log of a group that begins, or for more of a log that it sends a copy of; or that votes.

use crate::slow_disk::{Node, Sent, TWO, rounds_until};
use crate::support::PATIENCE;
use courser_cluster::forming::Folder;
use courser_cluster::transport::Formation;
use courser_cluster::{
    GroupThread, Identity, Leadership, Member, MemberConfig, NodeId, Options, Origin,
};
use courser_journal::replica::Replica;
use courser_journal::testing::FakeDisk;
use courser_store::{
    Lsn, Opening, Position, Record, Recovered, ShardId, ShardState, Shards, Store, Sync,
};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

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

#[test]
fn a_node_votes_though_its_disk_is_full_and_keeps_the_vote() {
    let mut nodes = TWO.map(Node::of_two);
    let disk = nodes[1].disk.clone();
    disk.set_capacity(0);
    rounds_until(&mut nodes, true, |nodes| nodes[0].driver.group().leads());
    let term = nodes[0].driver.group().term();
    disk.lose_power();
    drop(nodes);
    let MemberConfig { dir, journal, .. } = config(&disk);
    let opened = Replica::open(&dir, journal, Arc::new(disk), Arc::new(()));
    let vote = opened.expect("its copy").vote();
    assert_eq!((vote.term, vote.voted_for), (term, TWO[0].0));
}

/// What a broker that has nothing makes checkpoints of.
struct Empty(Arc<dyn Store>);

impl ShardState for Empty {
    fn start(&self) -> Lsn {
        self.0.end()
    }

    fn for_each_live(&self, _start: Lsn, _each: &mut dyn FnMut(Position)) {}

    fn write(&self, _start: Lsn, out: &mut dyn Write) -> io::Result<()> {
        Recovered::default().write(out)
    }
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_copy_is_said_to_keep_the_disk_full_until_it_has_ended() {
    let disk = FakeDisk::new(1);
    let thread = Arc::new(GroupThread::start().expect("a thread"));
    let config = MemberConfig {
        tick: Duration::from_millis(5),
        journal: courser_journal::Options { segment_bytes: SEGMENT_BYTES, ..Default::default() },
        ..config(&disk)
    };
    let member = Member::start(config, Arc::new(Sent::default()), &thread).expect("a new copy");
    let leadership = member.leadership();
    wait_until("it serves", || matches!(*leadership.borrow(), Leadership::Serving { .. }));
    let Leadership::Serving { term } = *leadership.borrow() else { panic!("it is alone") };
    let shards = member.shards(term, Arc::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    let shard = opened.expect("it serves").shard;
    let store = shard.store();
    let append = || {
        let record = Record::Defined { key: b"key", value: &[1; 10_000] };
        store.append(&[record], Sync::Wanted, &mut Vec::new()).is_ok()
    };
    let append_many = || (0..100).for_each(|_| wait_until("there is room", append));

    append_many();
    let copy = member.copy(None).expect("it leads");
    append_many();
    for _ in 0..2 {
        shard.checkpoint(&Empty(Arc::clone(&store))).expect("a good disk");
    }
    assert!(!copy.keeps_disk_full(), "there is room");
    disk.set_capacity(disk.used_bytes());
    wait_until("its disk is full", || {
        // By the next segment.
        append();
        copy.keeps_disk_full()
    });
    drop(copy);
    wait_until("what was kept is freed", || member.has_room());
}

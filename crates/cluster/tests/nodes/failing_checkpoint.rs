//! A follower that can't make its checkpoints.

use crate::slow_checkpoint::opened;
use crate::slow_disk::{Node, Sent, TWO, config};
use crate::support::PATIENCE;
use courser_cluster::{GroupThread, Member};
use courser_journal::rest_after_failure;
use courser_journal::testing::{FakeDisk, Faults};
use courser_store::{Record, Sync};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What it takes to find out that one can't be made.
const TAKES: Duration = Duration::from_millis(300);

/// A leader whose group has no thread, and a follower that has all of its threads, and whose time stands still.
struct Two {
    leader: Node,
    disk: FakeDisk,
    follower: Member,
    sent: Arc<Sent>,
}

impl Two {
    fn start(journal: courser_journal::Options) -> Self {
        let (disk, sent) = (FakeDisk::new(2), Arc::new(Sent::default()));
        let mut config = config(TWO[1], &TWO, &disk, journal.clone());
        config.tick = Duration::from_secs(3600);
        let thread = Arc::new(GroupThread::start().expect("a thread"));
        let follower = Member::start(config, Arc::clone(&sent) as _, &thread);
        let leader = Node::new(TWO[0], &TWO, journal);
        Two { leader, disk, follower: follower.expect("a new copy"), sent }
    }

    fn rounds_until(&mut self, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "it does not come");
            self.leader.driver.turn(true).expect("a good disk");
            self.leader.sent.0.lock().drain(..).for_each(|packet| self.follower.receive(packet));
            self.sent.0.lock().drain(..).for_each(|packet| self.leader.member.receive(packet));
            sleep(Duration::from_millis(1));
        }
    }
}

fn checkpoint_of(disk: &FakeDisk) -> PathBuf {
    let is_one = |name: &PathBuf| name.extension().is_some_and(|kind| kind == "checkpoint");
    disk.names().into_iter().filter(is_one).max().expect("it has one")
}

/// Waits until a checkpoint is begun, which reads the last one, and has it fail. Returns when it was begun, and when it has failed.
fn fails(disk: &FakeDisk, last: &Path) -> (Instant, Instant) {
    let hold = disk.hold_reads(last).expect("it is there");
    assert!(hold.wait_until_reached(), "none is begun");
    let begun = Instant::now();
    sleep(TAKES);
    let fails = Instant::now();
    assert!(hold.let_go());
    (begun, fails)
}

#[test]
fn a_follower_whose_checkpoint_fails_rests_as_long_as_a_leader_does() {
    let journal = courser_journal::Options {
        segment_bytes: 64 << 10,
        checkpoint_after_bytes: 16 << 10,
        ..Default::default()
    };
    let mut two = Two::start(journal);
    two.rounds_until(|two| two.leader.serves().is_some());
    let last = checkpoint_of(&two.disk);
    two.disk.set_faults(Faults { fail_reads: true, ..Faults::default() });
    let store = opened(&two.leader);
    for number in 0..4u8 {
        let record = Record::Defined { key: &[number], value: &[7; 10_000] };
        store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("there is room");
    }
    two.rounds_until(|two| two.follower.wants_checkpoint());

    let (_, failed) = fails(&two.disk, &last);
    let (begun, _) = fails(&two.disk, &last);
    let rested = begun - failed;
    assert!(rested >= rest_after_failure(TAKES), "it has rested for {rested:?}");
}

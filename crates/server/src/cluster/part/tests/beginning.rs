//! A node that comes to take part in a group for which it has no room on its disk, or no thread, or whose log its disk does not
//! give. One that begins a cluster with the data of a broker by itself, for which there is no room.

use super::super::super::apis::Apis;
use super::super::super::front::Serves;
use super::super::super::testing::start_alone_on;
use super::*;
use crate::Node;
use courser_cluster::forming::Folder;
use courser_cluster::transport::Formation;
use courser_journal::JournalStore;
use courser_journal::replica::is_copy;
use courser_journal::testing::Faults;
use courser_management::Cluster as _;
use courser_store::Log as _;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// A group besides those of the cluster.
const ANOTHER: GroupNumber = GroupNumber(2);

/// Whether operators are told that a group of this node waits.
fn tells(node: &Node) -> bool {
    tells_of(node, "group_waits")
}

fn tells_of(node: &Node, kind: &str) -> bool {
    node.inner.around.notices.all().iter().any(|notice| notice.kind == kind)
}

/// Waits until the node that leads home tells that a group waits at another one, or does not.
async fn tells_elsewhere(three: &Three, tells: bool) {
    wait_until("it is told where home is led, or not", async || {
        let leader = &three.nodes[three.leader(HOME).await];
        // It asks at once.
        *leader.inner.members.heard_of_disks.lock() = None;
        tells_of(leader, "group_waits_elsewhere") == tells
    })
    .await;
}

/// Tells a node of a group that it founds alone.
fn tell_of_another(node: &Node, segment_bytes: u64) {
    let founders = vec![node.inner.folder.node()];
    let formation = Formation { group: 7, segment_bytes, founders, recovery: None };
    node.inner.members.take_groups(vec![(ANOTHER, formation)]).expect("it is taken");
}

fn takes_part(node: &Node, number: GroupNumber) -> bool {
    node.inner.groups.get(number).is_some_and(|group| group.member().is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_added_with_a_full_disk_joins_when_there_is_room() {
    let three = Three::start().await;
    let (leader, disk) = (three.leader(HOME).await, FakeDisk::new(1));
    let (node, _folder) = three.start_fourth_on(Arc::new(disk.clone())).await;
    disk.set_capacity(0);
    three.nodes[leader].add(&node.address()).await.expect("it is taken in");
    wait_until("it is told", async || tells(&node)).await;
    tells_elsewhere(&three, true).await;
    assert!(!takes_part(&node, HOME), "there is no room");

    disk.set_capacity(u64::MAX);
    let all = [HOME, ONE];
    wait_until("it joins", async || all.iter().all(|group| takes_part(&node, *group))).await;
    wait_until("it is not told any more", async || !tells(&node)).await;
    tells_elsewhere(&three, false).await;

    disk.set_capacity(0);
    tell_of_another(&node, 1 << 20);
    wait_until("it is told", async || tells(&node)).await;
    assert!(!takes_part(&node, ANOTHER), "there is no room");
    disk.set_capacity(u64::MAX);
    wait_until("it takes part", async || takes_part(&node, ANOTHER)).await;
    wait_until("it is not told any more", async || !tells(&node)).await;
    node.stop().await.expect("a clean stop");
    three.stop().await;
}

/// Leaves the journal of a broker by itself, which has vhost `kept`.
fn leave_journal(disk: &FakeDisk, journal: &Path) {
    let (options, disk) = (alone_on(disk).journal, Arc::new(disk.clone()));
    let opened = JournalStore::open(journal, options, disk, Arc::default(), u64::MAX, &mut |_| {});
    let (store, ..) = opened.expect("an empty folder");
    // Without limits and flags.
    let value = [&[0xff; 16][..], &[0; 7]].concat();
    let record = Record::Defined { key: b"v\x04\0kept", value: &value };
    store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("there is room");
    store.journal().close().expect("a good disk");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_without_room_on_its_disk_becomes_a_node_when_there_is_some() {
    let (disk, folder) = (FakeDisk::new(1), tempfile::tempdir().expect("a folder"));
    let data_dir = folder.path().join("data");
    let journal = data_dir.join("journal");
    leave_journal(&disk, &journal);
    // It has had room to keep who it is.
    Folder::open(&data_dir, Arc::new(disk.clone()), "test", "a").expect("there is room");
    disk.set_capacity(0);
    let node = start_alone_on(Arc::new(disk.clone()), &folder).await;
    wait_until("it is told", async || tells(&node)).await;
    assert!(!takes_part(&node, HOME), "there is no room");
    assert!(!is_copy(&disk, &journal).expect("a good disk"), "it is still the broker's");

    disk.set_capacity(u64::MAX);
    let home = node.inner.groups.home();
    wait_until("it serves", async || matches!(home.serves(), Serves::Here(_))).await;
    let Serves::Here(service) = home.serves() else { panic!("it is alone") };
    assert!(service.shared.broker.vhost("kept").is_some(), "nothing is lost");
    drop(service);
    assert!(!tells(&node), "it is not told any more");
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_took_long_and_found_no_room_is_tried_again_after_a_longer_pause() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = start_alone_on(Arc::new(FakeDisk::new(1)), &folder).await;
    let (took, begun) = (Duration::from_millis(600), Instant::now());
    node.inner.try_later(ANOTHER, took, "there is no room").await;
    assert!(begun.elapsed() >= 10 * took, "{:?}", begun.elapsed());
    node.stop().await.expect("a clean stop");
}

/// Has a node that is alone in a group lead it for the first time.
fn lead_once(node: &Node, disk: &FakeDisk) {
    let dir = node.inner.folder.copy_dir(ANOTHER).expect("a good disk");
    let own = node.inner.folder.node();
    let (origin, options) = (Origin::Founders(vec![own]), GroupOptions::new(own));
    let config = MemberConfig { dir, origin, options, ..alone_on(disk) };
    let (member, _) = Member::idle(config, Arc::new(Alone)).expect("an empty folder");
    member.close().expect("a good disk");
}

/// A node on a disk of its own that is in the cluster, and has what it once had of a group besides.
async fn start_with_another(three: &Three, disk: &FakeDisk) -> (Node, tempfile::TempDir) {
    let leader = three.leader(HOME).await;
    let (node, folder) = three.start_fourth_on(Arc::new(disk.clone())).await;
    three.nodes[leader].add(&node.address()).await.expect("it is taken in");
    wait_until("it joins", async || takes_part(&node, HOME) && takes_part(&node, ONE)).await;
    lead_once(&node, disk);
    (node, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_disk_refuses_a_log_for_a_moment_opens_it_again() {
    let (three, disk) = (Three::start().await, FakeDisk::new(1));
    let (node, _folder) = start_with_another(&three, &disk).await;
    // Only this file: the node reads those of its other groups meanwhile.
    let bad_file = Some(node.inner.folder.copy_dir(ANOTHER).expect("a good disk").join("replica"));
    disk.set_faults(Faults { bad_spot: 0..u64::MAX, bad_file, ..Faults::default() });
    tell_of_another(&node, SEGMENT_BYTES);
    wait_until("it is told", async || tells(&node)).await;
    assert!(!takes_part(&node, ANOTHER), "it can't be read");
    disk.set_faults(Faults::default());
    wait_until("it takes part", async || takes_part(&node, ANOTHER)).await;
    wait_until("it is not told any more", async || !tells(&node)).await;
    node.stop().await.expect("a clean stop");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_no_other_brings_a_copy_of_a_log_opens_its_own_when_the_disk_gives_it() {
    let (three, disk) = (Three::start().await, FakeDisk::new(1));
    let (node, _folder) = start_with_another(&three, &disk).await;
    // Behind what is in other files.
    let bad = 20_000;
    disk.set_faults(Faults { bad_spot: bad..bad + 1, ..Faults::default() });
    tell_of_another(&node, SEGMENT_BYTES);
    wait_until("it begins", async || node.inner.groups.get(ANOTHER).is_some()).await;
    // Long enough to try a few times.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!takes_part(&node, ANOTHER), "it can't be read");
    disk.set_faults(Faults::default());
    wait_until("it takes part", async || takes_part(&node, ANOTHER)).await;
    node.stop().await.expect("a clean stop");
    three.stop().await;
}

/// Waits until the node that leads home counts the group among those that may lack what was changed there, or does not.
async fn lacks_definitions(three: &Three, leader: usize, lacks: bool) {
    wait_until("it lacks definitions, or not", async || {
        three.front(leader).spread_definitions().await.contains(&ANOTHER.0) == lacks
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_thread_for_a_group_takes_part_when_it_has_one() {
    let three = Three::start().await;
    // This group has its threads by then.
    three.leader(ONE).await;
    let leader = three.leader(HOME).await;
    // It leads the longest: the others would not lead either.
    for node in [leader + 1, leader + 2, leader].map(|nth| &three.nodes[nth % 3]) {
        node.inner.groups.has_no_threads.store(true, Relaxed);
        tell_of_another(node, 1 << 20);
        wait_until("it is told", async || tells(node)).await;
    }
    let node = &three.nodes[leader];
    // Home tells of its groups again and again: what was heard first counts.
    tell_of_another(node, 2 << 20);
    assert!(node.inner.groups.get(ANOTHER).is_none(), "there is no thread");
    assert!(node.inner.members.is_quorum_critical(), "it knows of no majority there");
    assert!(node.inner.members.why_not_ready().is_some_and(|why| why.contains("group 2")));
    let apis = Apis::of(&Arc::downgrade(three.front(leader))).expect("it is there");
    assert_eq!((apis.others(), apis.without_part()), (vec![1, 2], vec![2]));
    assert!(apis.connect(ANOTHER.0).await.is_err(), "a list without it would look whole");
    lacks_definitions(&three, leader, true).await;
    let (members, other) = (Arc::clone(&node.inner.members), three.nodes[(leader + 1) % 3].name());
    let asking = tokio::task::spawn_blocking(move || {
        (members.drain(&other, 1, 0).is_err(), members.remove(&other).is_err())
    });
    assert_eq!(asking.await.expect("no panic"), (true, true), "it may cost the majority");
    node.inner.groups.has_no_threads.store(false, Relaxed);
    wait_until("it takes part", async || takes_part(node, ANOTHER)).await;
    wait_until("it is not told any more", async || !tells(node)).await;
    assert_eq!(node.inner.folder.groups()[&ANOTHER].segment_bytes, 1 << 20);
    lacks_definitions(&three, leader, false).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_can_not_take_part_in_a_group_hands_the_lead_of_home_to_one_that_can() {
    let three = Three::start().await;
    // This group has its threads by then.
    three.leader(ONE).await;
    let leader = three.leader(HOME).await;
    let inner = &three.nodes[leader].inner;
    inner.groups.has_no_threads.store(true, Relaxed);
    tell_of_another(&three.nodes[leader], 1 << 20);
    wait_until("another node leads", async || three.leader(HOME).await != leader).await;
    assert!(inner.members.reluctance_to_begin(HOME).is_some(), "it would hand it on again");
    assert_eq!(inner.members.reluctance_to_begin(ONE), None);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_gets_its_thread_while_others_are_asked_is_not_taken_to_have_definitions() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    three.move_lead(ONE, leader).await;
    let inner = &three.nodes[leader].inner;
    inner.groups.lacks_thread(ANOTHER);
    let one = inner.groups.get(ONE).expect("it leads");
    // It takes as long as it may.
    let adopting = one.adopting.lock().await;
    let front = Arc::clone(three.front(leader));
    let spreading = tokio::spawn(async move { front.spread_definitions().await });
    // So that it has most likely begun.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let another = Group::start(ANOTHER, &inner.endpoint, &inner.roster).expect("a thread");
    inner.groups.add(another);
    let lacking = spreading.await.expect("no panic");
    assert!(lacking.contains(&ANOTHER.0), "{lacking:?}");
    drop(adopting);
    three.stop().await;
}

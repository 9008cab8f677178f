//! Members that are connected and take no part, and nodes that are added when it does not fit.

mod asked;
mod changed;

use super::super::definitions::TOLD_AFTER;
use super::super::front::Serves;
use super::super::group::Group;
use super::super::questions::Question;
use super::super::testing::{HOME, ONE, PATIENCE, Three, start_waiting, wait_until};
use super::caught_up;
use crate::testing::endpoint;
use courser_cluster::transport::{About, Answer, Incoming, Stream as NodeStream, listen};
use courser_cluster::{Follower, GroupNumber, Member, Members, NodeId, Packet, Status};
use courser_management::{Cluster, ClusterError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// What a leader says of one voter besides itself and one learner, which has confirmed this much.
fn with_learner(learner: Follower, committed: u64) -> Status {
    let voter = Follower { node: NodeId(2), matched: committed, is_active: true };
    let members = Members {
        voters: vec![NodeId(1), voter.node],
        learners: vec![learner.node],
        ..Members::default()
    };
    Status {
        node: NodeId(1),
        term: 1,
        leader: Some(NodeId(1)),
        members,
        members_index: 1,
        last: committed,
        committed,
        followers: vec![voter, learner],
        uncommitted_bytes: 0,
        elections: 1,
    }
}

#[test]
fn a_learner_that_is_always_one_batch_behind_has_caught_up() {
    let learner = |matched| Follower { node: NodeId(3), matched, is_active: true };
    let group_commits = [(u64::MAX, 1000), (1000, 2000), (2000, 3000)];
    let found = group_commits.map(|(before, committed)| {
        caught_up(&with_learner(learner(committed - 1), committed), before)
    });
    assert_eq!(found, [None, Some(NodeId(3)), Some(NodeId(3))]);
    // One that lacks what the others had the time before does not follow yet.
    assert_eq!(caught_up(&with_learner(learner(999), 2000), 1000), None);
    let all = caught_up(&with_learner(learner(1000), 1000), u64::MAX);
    assert_eq!(all, Some(NodeId(3)), "it has everything");
    let silent = Follower { is_active: false, ..learner(2000) };
    assert_eq!(caught_up(&with_learner(silent, 2000), 1000), None);
}

/// Asks on a thread where that may block.
async fn asked<T: Send + 'static>(
    three: &Three,
    node: usize,
    question: impl FnOnce(&dyn Cluster) -> T + Send + 'static,
) -> T {
    ask(three, node, question).await.expect("no panic")
}

/// The same, without waiting for the answer.
fn ask<T: Send + 'static>(
    three: &Three,
    node: usize,
    question: impl FnOnce(&dyn Cluster) -> T + Send + 'static,
) -> JoinHandle<T> {
    let members = Arc::clone(&three.nodes[node].inner.members);
    tokio::task::spawn_blocking(move || question(&*members))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_part_of_a_group_does_not_run_counts_for_no_majority() {
    let three = Three::start().await;
    three.leader(ONE).await;
    for number in [HOME, ONE] {
        let leader = three.leader(HOME).await;
        let (idle, other) = ((leader + 1) % 3, (leader + 2) % 3);
        three.move_lead(number, leader).await;
        let critical = async |node: usize| asked(&three, node, |it| it.is_quorum_critical()).await;
        for node in [leader, other] {
            wait_until("all take part", async || !critical(node).await).await;
        }
        // As while it is brought a copy of the log.
        let group = three.nodes[idle].inner.groups.get(number).expect("it is there");
        let member = group.set_member(None);
        for node in [leader, other] {
            wait_until("it is missed", async || critical(node).await).await;
        }
        check_refusals(&three, (leader, other), number).await;
        group.set_member(member);
        for node in [leader, other] {
            wait_until("it takes part", async || !critical(node).await).await;
        }
    }
    three.stop().await;
}

/// Nothing is done that would leave the others without a majority.
async fn check_refusals(three: &Three, (leader, other): (usize, usize), number: GroupNumber) {
    let name = three.nodes[other].name();
    let removed = asked(three, leader, move |it| it.remove(&name)).await;
    let Err(ClusterError::Refused(why)) = removed else { panic!("{removed:?}") };
    assert!(why.contains(&format!("group {number} has no majority")), "{why}");
    let name = three.nodes[other].name();
    let drained = asked(three, leader, move |it| it.drain(&name, 1, 0)).await;
    assert!(matches!(drained, Err(ClusterError::Unavailable(_))), "{drained:?}");
    let status = asked(three, leader, |it| it.status()).await;
    if number == HOME {
        assert_eq!(status["voters_connected"], 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_waits_for_a_change_is_told_that_the_leader_has_changed() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let admin = three.admin(HOME).await;
    three.move_lead(HOME, (home + 1) % 3).await;
    let fault = admin.durable().await.expect_err("it leads no more");
    assert_eq!((fault.code, &*fault.explanation), (320, courser_broker::LEADER_CHANGED));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_added_again_before_it_has_left_takes_part_as_before() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let gone = (home + 1) % 3;
    three.move_lead(ONE, gone).await;
    let node = &three.nodes[gone];
    let (members, group) = (&node.inner.members, node.inner.groups.get(ONE).expect("it leads"));
    // It leads the group and does not hand it over, so that the group does not remove it.
    let serves = group.serves();
    group.set_serves(Serves::Unknown);
    let before = three.nodes[home].inner.members.status_of_member().expect("it leads");
    let (left, before) = (node.inner.endpoint.about().node(), before.members_index);
    let name = node.name();
    let removing = ask(&three, home, move |it| it.remove(&name));
    wait_until("it knows that it leaves", async || members.is_leaving()).await;
    assert!(members.reluctance().is_some());

    let address = node.address();
    asked(&three, home, move |it| it.add(&address)).await.expect("added again");
    // On a slow machine it may have taken too long before.
    let _ = removing.await.expect("no panic");
    let left = tokio::task::spawn_blocking({
        let members = Arc::clone(&three.nodes[home].inner.members);
        move || members.wait_until_left(&left, before)
    });
    let left = left.await.expect("no panic");
    let Err(ClusterError::Refused(why)) = left else { panic!("{left:?}") };
    assert!(why.contains("is a member again"), "{why}");
    wait_until("it would lead", async || members.reluctance().is_none()).await;
    group.set_serves(serves);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_removed_before_a_group_has_added_it_ends() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let other = (home + 1) % 3;
    three.move_lead(ONE, other).await;
    // The group's leader does not know of whom home adds.
    let blind = Arc::clone(three.nodes[other].inner.groups.home());
    let member = blind.set_member(None);
    let (fourth, _folder) = three.start_fourth().await;
    let address = fourth.address();
    wait_until("it is added", async || {
        let address = address.clone();
        asked(&three, home, move |it| it.add(&address)).await.is_ok()
    })
    .await;
    let number = fourth.inner.folder.node();
    let knows_home = || {
        let status = fourth.inner.members.status_of_member();
        status.is_some_and(|status| status.members.contains(number))
    };
    wait_until("it knows that home has it", async || knows_home()).await;
    wait_until("it is told of the group", async || fourth.inner.groups.get(ONE).is_some()).await;
    // Who removes another one hears of it.
    assert_eq!(three.nodes[home].inner.members.not_voting(), ["d"]);
    let is_in = || {
        let status = three.nodes[home].inner.members.status_of_member();
        status.expect("it runs").members.contains(number)
    };
    wait_until("it is removed", async || {
        let _ = asked(&three, home, |it| it.remove("d")).await;
        !is_in()
    })
    .await;
    let ended = tokio::time::timeout(PATIENCE, fourth.failed()).await.expect("it ends");
    assert!(ended.reason.contains("was removed from cluster 'test'"), "{}", ended.reason);
    let group = three.nodes[other].inner.groups.get(ONE).expect("it leads");
    assert_eq!(group.status().expect("it leads").members_index, 0, "it has added the node");
    blind.set_member(member);
    fourth.stop().await.expect("a clean stop");
    three.stop().await;
}

/// A node named "d" that says nothing but that it can be added, as often as it may.
struct Fourth {
    is_asked: AtomicBool,
    may: Semaphore,
}

/// The same, for the listener.
struct Ears(Arc<Fourth>);

impl Incoming for Ears {
    fn thread(&self, _group: GroupNumber) -> Option<Handle> {
        None
    }

    fn takes_part(&self, _group: GroupNumber) -> bool {
        false
    }

    fn packet(&self, _group: GroupNumber, _from: NodeId, _packet: Packet) {}

    fn met(&self, _other: &About) {}

    fn copy(&self, _group: GroupNumber, _from: About, _note: String, _stream: NodeStream) {}

    fn ask(&self, _from: About, question: String) -> Answer {
        let fourth = Arc::clone(&self.0);
        Box::pin(async move {
            if !matches!(serde_json::from_str(&question), Ok(Question::Join(_))) {
                return Ok(String::new());
            }
            fourth.is_asked.store(true, Relaxed);
            let may = fourth.may.acquire().await;
            may.map(|_| String::new()).map_err(|error| error.to_string())
        })
    }

    fn tunnel(&self, _from: About, _note: String, _stream: NodeStream) {}
}

/// Starts one with this number, and gives its address.
async fn start_fourth(number: u64, fourth: &Arc<Fourth>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let endpoint = endpoint(NodeId(number), "d", &address);
    let incoming = Arc::new(Ears(Arc::clone(fourth)));
    tokio::spawn(listen(listener, endpoint, incoming));
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_nodes_of_one_name_that_are_added_at_once_one_becomes_a_member() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let with = |permits| {
        Arc::new(Fourth { is_asked: AtomicBool::new(false), may: Semaphore::new(permits) })
    };
    let (at_once, waiting) = (with(1), with(0));
    let (one, later) = (start_fourth(1, &at_once).await, start_fourth(2, &waiting).await);
    let again = later.clone();
    let adding = ask(&three, home, move |it| it.add(&later));
    let status = || three.nodes[home].inner.members.status_of_member().expect("it leads");
    // By then it was found that its name is free.
    wait_until("it is asked", async || waiting.is_asked.load(Relaxed)).await;
    asked(&three, home, move |it| it.add(&one)).await.expect("added");
    wait_until("the first is a member", async || status().members.contains(NodeId(1))).await;
    waiting.may.add_permits(1);
    let added = adding.await.expect("no panic");
    assert!(matches!(added, Err(ClusterError::Unavailable(_))), "{added:?}");
    let added = asked(&three, home, move |it| it.add(&again)).await;
    let Err(ClusterError::Refused(why)) = added else { panic!("{added:?}") };
    assert!(why.contains("a member has the name 'd' already"), "{why}");
    assert!(!status().members.contains(NodeId(2)));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_removed_while_it_is_added_again_was_not_added() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let fourth = Arc::new(Fourth { is_asked: AtomicBool::new(false), may: Semaphore::new(1) });
    let address = start_fourth(1, &fourth).await;
    let again = address.clone();
    asked(&three, home, move |it| it.add(&address)).await.expect("added");
    let status = || three.nodes[home].inner.members.status_of_member().expect("it leads");
    wait_until("it is a member", async || status().members.contains(NodeId(1))).await;
    let may = fourth.may.acquire().await.expect("open");
    fourth.is_asked.store(false, Relaxed);
    let adding = ask(&three, home, move |it| it.add(&again));
    // By then it was found that it is a member.
    wait_until("it is asked", async || fourth.is_asked.load(Relaxed)).await;
    wait_until("it is no member", async || {
        // The members may just be changed otherwise, and how long the groups take to follow is not looked at here.
        let _ = asked(&three, home, |it| it.remove("d")).await;
        !status().members.contains(NodeId(1))
    })
    .await;
    drop(may);
    let added = adding.await.expect("no panic");
    let Err(ClusterError::Unavailable(why)) = added else { panic!("{added:?}") };
    assert!(why.contains("was removed meanwhile"), "{why}");
    three.stop().await;
}

/// What is answered to a request without a login.
async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    let head = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_long_ago_does_not_tell_who_has_caught_up() {
    let (node, _folder) = start_waiting().await;
    let (endpoint, roster) = (&node.inner.endpoint, &node.inner.roster);
    let group = Group::start(ONE, endpoint, roster).expect("a thread");
    let begun = Instant::now();
    let moment = |seconds| begun + Duration::from_secs(seconds);
    let before = [(10, 0), (20, 1), (30, 6), (40, 60)]
        .map(|(committed, seconds)| group.committed_before(committed, moment(seconds)));
    assert_eq!(before, [u64::MAX, 10, 20, u64::MAX]);
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_ready_once_a_group_has_had_no_leader_for_a_while() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    three.move_lead(ONE, (home + 2) % 3).await;
    let ready = async |node: usize| {
        let address = three.nodes[node].addresses().http[0];
        let (status, body) = get(address, "/health/ready").await;
        assert_eq!(status == 503, body.contains("failed"), "{body}");
        body
    };
    // The one that leads home answers otherwise than the others.
    for node in [home, (home + 1) % 3] {
        let group = three.nodes[node].inner.groups.get(ONE).expect("it is there");
        let leader = group.serves();
        wait_until("it is ready", async || ready(node).await.contains("ok")).await;
        group.set_serves(Serves::Unknown);
        let lost_at = |at: Instant| {
            group.note_served(true, at);
            group.note_served(false, at);
        };
        lost_at(Instant::now() + PATIENCE);
        assert!(ready(node).await.contains("ok"), "a lead may be on its way");
        lost_at(Instant::now().checked_sub(TOLD_AFTER).expect("a moment"));
        let told = ready(node).await;
        assert!(told.contains("no node has served group 1 for more than 10 s"), "{told}");
        group.set_serves(leader);
        assert!(ready(node).await.contains("ok"));
    }
    three.stop().await;
}

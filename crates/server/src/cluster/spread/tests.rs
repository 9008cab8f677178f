//! Leads that move, and that stay.

use super::super::testing::{HOME, ONE, PATIENCE, Three, start_waiting, wait_until};
use super::*;
use crate::scrub::Piece;
use crate::testing::endpoint;
use courser_cluster::Packet;
use courser_cluster::transport::{About, Answer, Incoming, Stream, listen};
use courser_store::Lsn;
use std::future::pending;
use std::sync::mpsc;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

fn leads(of: &[&[f64]]) -> Leads {
    let mut next = 0..;
    let node = |(at, loads): (usize, &&[f64])| {
        let groups = loads.iter().map(|load| (GroupNumber(next.next().unwrap_or(0)), *load));
        (NodeId(at as u64 + 1), groups.collect())
    };
    of.iter().enumerate().map(node).collect()
}

#[test]
fn idle_groups_are_spread_evenly_and_stay_then() {
    let mut now = leads(&[&[1.0; 10], &[], &[]]);
    let mut moves = 0;
    while let Some((group, to)) = better(&now, |group, _| group != GroupNumber::HOME) {
        now.values_mut().for_each(|groups| groups.retain(|(one, _)| *one != group));
        now.entry(to).or_default().push((group, 1.0));
        moves += 1;
        assert!(moves < 10, "it does not come to rest");
    }
    let mut counts: Vec<usize> = now.values().map(Vec::len).collect();
    counts.sort_unstable();
    assert_eq!(counts, [3, 3, 4]);
}

#[test]
fn a_busy_group_is_left_alone_and_idle_ones_leave_its_node() {
    let now = leads(&[&[1.0, 9.0, 1.0], &[1.0], &[1.0, 1.0]]);
    let (group, to) = better(&now, |_, _| true).expect("a move");
    assert_eq!((group, to), (GroupNumber(0), NodeId(2)));
    assert_eq!(better(&leads(&[&[9.0], &[1.0, 1.0]]), |_, _| true), None);
}

#[test]
fn nothing_moves_that_gains_nothing_or_may_not() {
    assert_eq!(better(&leads(&[&[1.0, 1.0], &[1.0]]), |_, _| true), None);
    assert_eq!(better(&leads(&[&[1.0, 1.0, 1.0]]), |_, _| true), None);
    assert_eq!(better(&leads(&[&[1.0, 1.0, 1.0], &[]]), |_, _| false), None);
    assert_eq!(better(&Leads::new(), |_, _| true), None);
}

#[test]
fn leads_move_past_a_node_that_has_to_catch_up_first() {
    let now = leads(&[&[1.0, 1.0, 1.0, 1.0], &[], &[1.0]]);
    let behind = NodeId(2);
    let (group, to) = better(&now, |_, to| to != behind).expect("a move");
    assert_eq!((group, to), (GroupNumber(0), NodeId(3)));
    // It may take one of the groups.
    let first = better(&now, |group, to| to != behind || group == GroupNumber(2));
    assert_eq!(first, Some((GroupNumber(0), NodeId(3))));
    // Where that relieves the busiest node more, it gets that one.
    let now = leads(&[&[1.0, 5.0, 1.0], &[], &[1.0]]);
    let first = better(&now, |group, to| to != behind || group == GroupNumber(1));
    assert_eq!(first, Some((GroupNumber(1), behind)));
    let one_too_big = leads(&[&[1.0, 9.0, 1.0], &[], &[1.0]]);
    let second = better(&one_too_big, |group, to| to != behind || group == GroupNumber(1));
    assert_eq!(second, Some((GroupNumber(1), behind)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lead_that_is_handed_over_holds_no_thread_of_the_runtime_while_its_group_is_held() {
    let three = Three::start().await;
    let leader = three.leader(ONE).await;
    let to = three.nodes[(leader + 1) % 3].inner.members.endpoint.about().node;
    let members = Arc::clone(&three.nodes[leader].inner.members);
    let group = members.groups.get(ONE).expect("it is led");
    let (go, held) = mpsc::channel();
    let later = go.clone();
    // As while its disk stands still.
    group.thread.handle().spawn(async move { held.recv() });
    let handing = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        // Its one thread has another task, without which the group stays held.
        let other = async { go.send(()).expect("it is held") };
        runtime.block_on(async { tokio::join!(members.hand_over(ONE, to), other).0 })
    });
    let handed = timeout(PATIENCE, handing).await;
    // Nothing waits for it at the end.
    let _ = later.send(());
    handed.expect("the other task has its turn").expect("no panic").expect("it leads");
    three.stop().await;
}

/// One node leads both groups, of the second of which the other one lacks so many entries, and there is nothing to do.
fn idle(busy: NodeId, other: NodeId, lag: Option<u64>) -> BTreeMap<NodeId, Vec<Load>> {
    let lags: BTreeMap<_, _> = lag.map(|lag| (other, lag)).into_iter().collect();
    let load = |group| Load { group, messages: 0, lags: lags.clone() };
    BTreeMap::from([(busy, vec![load(HOME), load(ONE)]), (other, vec![])])
}

fn next(members: &Members, loads: &BTreeMap<NodeId, Vec<Load>>) -> Option<(GroupNumber, NodeId)> {
    let mut seen = Seen { at: Some(Instant::now()), ..Seen::default() };
    tokio::task::block_in_place(|| members.next_move(&mut seen, loads))
}

/// Waits until the lead of the second would move there: on a busy machine, a majority may not say in time that home's is here.
async fn moves(members: &Members, loads: &BTreeMap<NodeId, Vec<Load>>, to: NodeId) {
    wait_until("it would move", async || next(members, loads) == Some((ONE, to))).await;
}

/// Three nodes, the first of these leads both groups.
async fn with_one_leader() -> (Three, [usize; 3]) {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    three.move_lead(ONE, home).await;
    (three, [home, (home + 1) % 3, (home + 2) % 3])
}

#[tokio::test(flavor = "multi_thread")]
async fn leads_are_spread_however_long_each_look_at_the_nodes_takes() {
    let (three, [home, ..]) = with_one_leader().await;
    let members = Arc::clone(&three.nodes[home].inner.members);
    wait_until("the lead has moved", async || {
        let of = Arc::clone(&members);
        tokio::task::spawn_blocking(move || of.look_at_leads()).await.expect("no panic");
        // As while another node's machine is silent.
        tokio::time::sleep(INTERVAL + Duration::from_millis(10)).await;
        three.leader(ONE).await != home
    })
    .await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_home_that_may_have_lost_its_lead_moves_none() {
    let (three, [home, other, third]) = with_one_leader().await;
    let members = Arc::clone(&three.nodes[home].inner.members);
    let node = |index: usize| three.nodes[index].inner.members.endpoint.about().node;
    let loads = idle(node(home), node(other), Some(0));
    moves(&members, &loads, node(other)).await;
    let mut held = Vec::new();
    for node in [other, third] {
        let (go, waits) = mpsc::channel::<()>();
        let group = Arc::clone(three.nodes[node].inner.groups.home());
        group.thread.handle().spawn(async move { waits.recv() });
        held.push(go);
    }
    assert!(tokio::task::block_in_place(|| members.would_take(ONE, node(other))));
    assert_eq!(next(&members, &loads), None);
    drop(held);
    three.stop().await;
}

/// A node that takes questions and answers none.
struct Silent;

impl Incoming for Silent {
    fn thread(&self, _group: GroupNumber) -> Option<Handle> {
        None
    }

    fn takes_part(&self, _group: GroupNumber) -> bool {
        false
    }

    fn packet(&self, _group: GroupNumber, _from: NodeId, _packet: Packet) {}

    fn met(&self, _other: &About) {}

    fn copy(&self, _group: GroupNumber, _from: About, _note: String, _stream: Stream) {}

    fn ask(&self, _from: About, _question: String) -> Answer {
        Box::pin(pending())
    }

    fn tunnel(&self, _from: About, _note: String, _stream: Stream) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_the_leads_ends_soon_that_asks_a_silent_node() {
    let (three, [home, ..]) = with_one_leader().await;
    let members = Arc::clone(&three.nodes[home].inner.members);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let silent = endpoint(NodeId(77), "silent", &address);
    members.roster.learn(&silent.about().node(), true).expect("kept");
    let accepting = tokio::spawn(listen(listener, silent, Arc::new(Silent)));
    let loads = idle(members.endpoint.about().node, NodeId(77), Some(0));
    let of = Arc::clone(&members);
    let looking = tokio::task::spawn_blocking(move || next(&of, &loads));
    // Half of what a question may take that has no limit of its own.
    let next = timeout(Duration::from_secs(15), looking).await.expect("it ends").expect("no panic");
    assert_eq!(next, None);
    accepting.abort();
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lead_that_an_operator_has_moved_waits_for_no_look() {
    let (node, _folder) = start_waiting().await;
    let spread = || &node.inner.members.spread;
    // As while other nodes are asked.
    let looking = spread().seen.lock();
    let members = Arc::clone(&node.inner.members);
    let rests = std::thread::spawn(move || members.spread.rests(ONE));
    let until = Instant::now() + PATIENCE;
    while !rests.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let is_done = rests.is_finished();
    drop(looking);
    assert!(is_done, "it waits for the look");
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_lead_moves_to_a_node_that_has_to_catch_up_first() {
    let (three, [home, other, _]) = with_one_leader().await;
    let members = &three.nodes[home].inner.members;
    let node = |index: usize| three.nodes[index].inner.members.endpoint.about().node;
    let with = |lag| idle(node(home), node(other), lag);
    moves(members, &with(Some(2)), node(other)).await;
    let next = |lag| next(members, &with(lag));
    assert_eq!(next(Some(1_000_000)), None);
    // It does not follow the group yet.
    assert_eq!(next(None), None);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_lead_moves_to_a_node_whose_log_of_the_group_is_damaged() {
    let mut three = Three::start().await;
    let home = three.leader(HOME).await;
    three.move_lead(ONE, home).await;
    let (damaged, away) = ((home + 1) % 3, (home + 2) % 3);
    let [(own, members), (other, of_other)] = [home, damaged].map(|node| {
        let members = &three.nodes[node].inner.members;
        (members.endpoint.about().node, Arc::clone(members))
    });
    // While one is away, it is not known whether it has what is wanted.
    three.nodes.remove(away).stop().await.expect("a clean stop");
    let loads = idle(own, other, Some(0));
    moves(&members, &loads, other).await;
    let member = of_other.groups.get(ONE).and_then(|group| group.member()).expect("it runs");
    member.want(Piece::Frame(Lsn(5000)));
    assert_eq!(next(&members, &loads), None);
    assert!(of_other.reluctance().is_none() && of_other.reluctance_to_begin(HOME).is_none());
    let status = members.groups.get(ONE).and_then(|group| group.status()).expect("it runs");
    assert_eq!(members.willing(ONE, &status).await, None);
    three.stop().await;
}

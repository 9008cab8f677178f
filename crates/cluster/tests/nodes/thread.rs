//! The thread of a node's group.

use crate::support::PATIENCE;
use bytes::BytesMut;
use courser_cluster::{
    GroupThread, Leadership, Member, MemberConfig, NodeId, Options, Origin, Packet, Peers,
};
use courser_journal::replica::Identity;
use courser_journal::testing::FakeDisk;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::Duration;

#[test]
fn what_runs_on_a_thread_ends_with_it() {
    let thread = GroupThread::start().expect("a thread");
    let (told, gone) = mpsc::channel::<()>();
    drop(thread.handle().spawn(async move {
        let _told = told;
        std::future::pending::<()>().await;
    }));
    drop(thread);
    // The end waited for.
    assert_eq!(gone.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

#[test]
fn a_task_that_has_a_thread_last_ends_it() {
    let thread = Arc::new(GroupThread::start().expect("a thread"));
    let (told, gone) = mpsc::channel::<()>();
    let (go, went) = tokio::sync::oneshot::channel::<()>();
    let held = Arc::clone(&thread);
    drop(thread.handle().spawn(async move {
        let _told = told;
        went.await.expect("a word");
        drop(held);
        std::future::pending::<()>().await;
    }));
    drop(thread);
    go.send(()).expect("a task");
    assert_eq!(gone.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
}

/// A leader that has the next heartbeat there before the answer to the last one is sent.
#[derive(Default)]
struct Insistent {
    member: OnceLock<Weak<Member>>,
    answered: OnceLock<mpsc::Sender<()>>,
}

impl Peers for Insistent {
    fn send(&self, to: NodeId, packets: Vec<Packet>) {
        let Some(member) = self.member.get().and_then(Weak::upgrade) else { return };
        for packet in packets {
            if is_answer(&packet) {
                let _ = self.answered.get().expect("a test that counts").send(());
            }
            member.receive(heartbeat(to, &packet));
        }
    }
}

const HEARTBEAT: u8 = 5;
const HEARTBEAT_ANSWER: u8 = 6;

fn encoded(packet: &Packet) -> BytesMut {
    let mut bytes = BytesMut::new();
    packet.encode(&mut bytes);
    bytes
}

fn is_answer(packet: &Packet) -> bool {
    encoded(packet)[0] == HEARTBEAT_ANSWER
}

/// What `from` sends as the leader of the term that a packet is of.
fn heartbeat(from: NodeId, answered: &Packet) -> Packet {
    let term = &encoded(answered)[18..26];
    let mut bytes = BytesMut::from(&[HEARTBEAT, 0][..]);
    bytes.extend_from_slice(&answered.from().0.to_le_bytes());
    bytes.extend_from_slice(&from.0.to_le_bytes());
    bytes.extend_from_slice(term);
    // Nothing is committed, and there is no context and no entry.
    bytes.extend_from_slice(&[0; 5 * 8 + 8 + 1 + 4]);
    Packet::decode(bytes.freeze()).expect("a packet")
}

#[test]
fn a_group_that_always_has_something_to_do_lets_connections_have_their_turn() {
    let config = config(7, 3);
    let thread = Arc::new(GroupThread::start().expect("a thread"));
    let (peers, (sender, answers)) = (Arc::new(Insistent::default()), mpsc::channel());
    peers.answered.set(sender).expect("the first");
    let member = Arc::new(Member::start(config, peers.clone(), &thread).expect("an empty folder"));
    peers.member.set(Arc::downgrade(&member)).expect("the first");
    // It begins with a wish to be elected; from then on there is a heartbeat whenever it looks.
    for _ in 0..10 {
        answers.recv_timeout(PATIENCE).expect("an answer to a heartbeat");
    }
    let (sender, had_its_turn) = mpsc::channel();
    drop(thread.handle().spawn(async move { sender.send(()) }));
    had_its_turn.recv_timeout(PATIENCE).expect("a turn of another task");
}

/// A group of so many nodes, the first of which this is.
fn config(group: u64, nodes: u64) -> MemberConfig {
    MemberConfig {
        dir: PathBuf::from("group"),
        disk: Arc::new(FakeDisk::new(group)),
        identity: Identity { group, segment_bytes: 1 << 20 },
        origin: Origin::Founders((1..=nodes).map(NodeId).collect()),
        options: Options::new(NodeId(1)),
        tick: Duration::from_millis(5),
        journal: courser_journal::Options::default(),
    }
}

/// Panics as soon as there is something to send.
struct Panics;

impl Peers for Panics {
    fn send(&self, _: NodeId, _: Vec<Packet>) {
        panic!("on purpose");
    }
}

/// There are no others.
struct Alone;

impl Peers for Alone {
    fn send(&self, _: NodeId, _: Vec<Packet>) {}
}

#[tokio::test]
async fn a_group_that_panics_says_so_and_ends_and_others_on_its_thread_go_on() {
    let thread = Arc::new(GroupThread::start().expect("a thread"));
    let panics = Member::start(config(7, 3), Arc::new(Panics), &thread).expect("an empty folder");
    let mut leadership = panics.leadership();
    let ended = leadership.wait_for(|now| matches!(now, Leadership::Ended { .. }));
    let ended = tokio::time::timeout(PATIENCE, ended).await.expect("it goes on").expect("told");
    let Leadership::Ended { reason } = &*ended else { panic!("{:?}", *ended) };
    assert!(reason.contains("on purpose"), "{reason}");
    drop(ended);

    // It begins only now, and has to be elected and to commit: its thread has survived.
    let lone = Member::start(config(8, 1), Arc::new(Alone), &thread).expect("an empty folder");
    let mut leadership = lone.leadership();
    let serves = leadership.wait_for(|now| matches!(now, Leadership::Serving { .. }));
    tokio::time::timeout(PATIENCE, serves).await.expect("it does not lead").expect("told");
}

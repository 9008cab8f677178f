//! Nodes that are known and not there any more, as they were removed.

use super::super::super::questions::Question;
use super::super::super::testing::start_waiting;
use super::*;
use crate::testing::endpoint;
use bytes::Bytes;
use courser_cluster::transport::{
    About, Answer, Formation, Incoming, Node as Known, Recovery, Stream, listen,
};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// How many are silent.
const COUNT: u64 = 3;

/// Connections to addresses at which no node says anything.
#[derive(Default)]
struct Silent {
    all: AtomicUsize,
    open: AtomicUsize,
    /// How many were open at the same time.
    most: AtomicUsize,
}

impl Silent {
    async fn start() -> (Arc<Self>, Vec<Known>) {
        let silent = Arc::new(Silent::default());
        let mut known = Vec::new();
        for number in 1..=COUNT {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("an address").to_string();
            known.push(Known { id: NodeId(number), name: format!("n{number}"), address });
            tokio::spawn(Arc::clone(&silent).accept(listener));
        }
        (silent, known)
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            self.all.fetch_add(1, Relaxed);
            self.most.fetch_max(self.open.fetch_add(1, Relaxed) + 1, Relaxed);
            let silent = Arc::clone(&self);
            tokio::spawn(async move {
                // Until the other end gives up.
                let _ = stream.read_to_end(&mut Vec::new()).await;
                silent.open.fetch_sub(1, Relaxed);
            });
        }
    }

    fn were_asked_at_once(&self) -> bool {
        self.most.load(Relaxed) == COUNT as usize
    }
}

async fn start_among_silent() -> (crate::Node, tempfile::TempDir, Arc<Silent>) {
    let (silent, known) = Silent::start().await;
    let (node, folder) = start_waiting().await;
    known.iter().for_each(|one| node.inner.roster.learn(one, true).expect("kept"));
    (node, folder, silent)
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_are_silent_are_asked_at_once_whether_a_node_was_removed() {
    let (node, _folder, silent) = start_among_silent().await;
    wait_until("all are asked at once", async || {
        assert!(!node.inner.members.was_removed_since(HOME, Some(0)).await);
        silent.were_asked_at_once()
    })
    .await;
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_are_silent_are_asked_at_once_how_their_disks_are() {
    let (node, _folder, silent) = start_among_silent().await;
    let others = node.inner.roster.others();
    assert!(node.inner.members.scrub.get().is_some(), "it reads its own");
    wait_until("all are asked at once", async || {
        let (members, others) = (Arc::clone(&node.inner.members), others.clone());
        let asking = tokio::task::spawn_blocking(move || members.hear_of_damage(&others));
        asking.await.expect("no panic");
        silent.were_asked_at_once()
    })
    .await;
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_are_silent_are_met_at_once_by_a_node_without_a_leader() {
    let (node, _folder, silent) = start_among_silent().await;
    let meeting = wait_until("all are met at once", async || silent.were_asked_at_once());
    tokio::select! {
        why = node.inner.left_behind(node.inner.groups.home(), None) => panic!("{why}"),
        () = meeting => {}
    }
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_leader_does_not_go_after_others() {
    let (node, _folder, silent) = start_among_silent().await;
    let (group, member, _) = leading(&node.inner, HOME, &FakeDisk::new(1)).await;
    tokio::select! {
        why = node.inner.left_behind(&group, Some(&member)) => panic!("{why}"),
        () = tokio::time::sleep(Duration::from_secs(2)) => {}
    }
    assert_eq!(silent.all.load(Relaxed), 0);
    node.stop().await.expect("a clean stop");
}

/// A node that takes part or not, and writes down that it was asked for a copy, of which it gives the beginning at most.
#[derive(Default)]
struct Other {
    id: NodeId,
    takes_part: bool,
    asked: Arc<Mutex<Vec<NodeId>>>,
    /// The first chunk of a copy. Once it was given, the node that has it was removed.
    head: Option<Bytes>,
}

impl Incoming for Other {
    fn thread(&self, _group: GroupNumber) -> Option<Handle> {
        None
    }

    fn takes_part(&self, _group: GroupNumber) -> bool {
        self.takes_part
    }

    fn packet(&self, _group: GroupNumber, _from: NodeId, _packet: Packet) {}

    fn met(&self, _other: &About) {}

    fn copy(&self, _group: GroupNumber, _from: About, _note: String, mut stream: Stream) {
        self.asked.lock().push(self.id);
        if let Some(head) = self.head.clone() {
            tokio::spawn(async move {
                stream.write_u32_le(head.len() as u32).await.expect("it is taken");
                stream.write_all(&head).await.expect("it is taken");
            });
        }
    }

    fn ask(&self, _from: About, question: String) -> Answer {
        let answer = match serde_json::from_str(&question) {
            Ok(Question::TakesPart { .. }) => self.takes_part.to_string(),
            Ok(Question::Removed { .. }) if self.head.is_some() => "removed".to_owned(),
            asked => panic!("{asked:?}"),
        };
        Box::pin(async move { Ok(answer) })
    }

    fn tunnel(&self, _from: About, _note: String, _stream: Stream) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_copy_ends_that_a_recovery_has_left_behind() {
    let (node, _folder) = start_waiting().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let of_before = Formation {
        group: 7,
        segment_bytes: SEGMENT_BYTES,
        founders: vec![NodeId(1)],
        recovery: None,
    };
    let recovery = Some(Recovery { times: 1, number: 5 });
    let recovered = endpoint(NodeId(1), "recovered", &address);
    recovered.change(|about| about.formation = Some(Formation { recovery, ..of_before.clone() }));
    node.inner.endpoint.change(|about| about.formation = Some(of_before));
    node.inner.roster.learn(&recovered.about().node(), true).expect("kept");
    let other = Other { id: NodeId(1), takes_part: true, ..Other::default() };
    tokio::spawn(listen(listener, recovered, Arc::new(other)));
    let why = tokio::time::timeout(PATIENCE, node.failed()).await.expect("it ends").to_string();
    assert!(why.contains("was recovered without node 'a'"), "{why}");
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_added_ends_when_it_is_removed_with_half_a_copy() {
    let (node, _folder) = start_waiting().await;
    let (_group, giver, _) = leading(&node.inner, ONE, &FakeDisk::new(1)).await;
    let head = giver.copy(None).expect("it leads").next_chunk().expect("a good disk");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let end = endpoint(NodeId(1), "other", &address);
    let founders = vec![NodeId(1)];
    let formation = Formation { group: 7, segment_bytes: SEGMENT_BYTES, founders, recovery: None };
    for about in [&end, &node.inner.endpoint] {
        about.change(|about| about.formation = Some(formation.clone()));
    }
    node.inner.roster.learn(&end.about().node(), true).expect("kept");
    let asked = Arc::<Mutex<Vec<NodeId>>>::default();
    let (id, takes_part) = (NodeId(1), true);
    let other = Other { id, takes_part, asked: Arc::clone(&asked), head };
    tokio::spawn(listen(listener, end, Arc::new(other)));
    let why = tokio::time::timeout(PATIENCE, node.failed()).await.expect("it ends").to_string();
    assert!(why.contains("was removed from cluster"), "{why}");
    assert!(!asked.lock().is_empty(), "it had no copy before");
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_asked_for_first_where_the_group_runs() {
    let (node, _folder) = start_waiting().await;
    let asked = Arc::<Mutex<Vec<NodeId>>>::default();
    let [before, runs, behind] = [1, 2, 3].map(NodeId);
    for id in [before, runs, behind] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let end = endpoint(id, "other", &address);
        node.inner.roster.learn(&end.about().node(), true).expect("kept");
        let other = Other { id, takes_part: id == runs, asked: Arc::clone(&asked), head: None };
        tokio::spawn(listen(listener, end, Arc::new(other)));
    }
    let group = Group::start(ONE, &node.inner.endpoint, &node.inner.roster).expect("a thread");
    let formation =
        Formation { group: 7, segment_bytes: SEGMENT_BYTES, founders: vec![runs], recovery: None };
    // In the order in which they are known, the last one would always come behind it.
    let first = wait_until("it was asked first", async || {
        asked.lock().windows(2).any(|pair| pair == [runs, before])
    });
    // It comes back after each round, so that its own log is tried again.
    let asking =
        async { while !node.inner.fetch_copy(&group, &formation, &Origin::Joining, None).await {} };
    tokio::select! {
        () = asking => panic!("a copy"),
        () = first => {}
    }
    let round = node.inner.fetch_copy(&group, &formation, &Origin::Joining, None);
    let is_copied = tokio::time::timeout(PATIENCE, round).await.expect("the end of a round");
    assert!(!is_copied);
    node.stop().await.expect("a clean stop");
}

//! Several nodes, of which one is looked for.

use super::super::super::questions::EACH_TIMEOUT;
use super::*;
use courser_cluster::transport::{Formation, Node};

/// Asks two nodes, of which so many answer, from the first on, when both have been asked. Returns the number of the one that
/// was found.
async fn found_of_two(node: &crate::Node, first: u64, answering: usize) -> Option<NodeId> {
    let both = [(); 2]
        .map(|()| Arc::new(Fourth { is_asked: AtomicBool::new(false), may: Semaphore::new(0) }));
    let ids = [NodeId(first), NodeId(first + 1)];
    let mut nodes = Vec::new();
    for (id, one) in ids.iter().zip(&both) {
        let address = start_fourth(id.0, one).await;
        nodes.push(Node { id: *id, name: format!("d{}", id.0), address });
    }
    let members = Arc::clone(&node.inner.members);
    let asking = tokio::task::spawn_blocking(move || {
        for node in &nodes {
            members.roster.learn(node, true).expect("kept");
        }
        let founders = vec![NodeId(1)];
        let formation = Formation { group: 1, segment_bytes: 1, founders, recovery: None };
        members.first_of(ids.to_vec(), &Question::Join(formation), str::is_empty)
    });
    while !both.iter().all(|one| one.is_asked.load(Relaxed)) && !asking.is_finished() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    both.iter().take(answering).for_each(|one| one.may.add_permits(1));
    asking.await.expect("no panic")
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_which_one_is_looked_for_are_asked_at_once() {
    let (node, _folder) = start_waiting().await;
    let mut first = 1;
    // On a slow machine they may not be asked within the time that each has.
    wait_until("the first is found", async || {
        first += 2;
        found_of_two(&node, first, 2).await == Some(NodeId(first))
    })
    .await;
    node.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_that_is_found_waits_for_none_after_it() {
    let (node, _folder) = start_waiting().await;
    let mut first = 1;
    // The other one says nothing for as long as it may. On a slow machine, asking both may take as long.
    wait_until("the first is found before", async || {
        first += 2;
        let began = Instant::now();
        let found = found_of_two(&node, first, 1).await;
        found == Some(NodeId(first)) && began.elapsed() < EACH_TIMEOUT
    })
    .await;
    node.stop().await.expect("a clean stop");
}

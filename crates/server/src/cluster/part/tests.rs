//! A node whose disk stands still when it does not lead any more, or when it comes to lead.

use super::super::testing::{ONE, Three, wait_until};
use courser_cluster::{Leadership, Member};
use std::sync::Arc;

fn member(three: &Three, node: usize) -> Arc<Member> {
    let group = three.nodes[node].inner.groups.get(ONE).expect("it is there");
    group.member().expect("it runs")
}

/// Has a node lead as far as the nodes agree on it, whether it serves or not.
async fn elect(three: &Three, from: usize, to: usize) {
    let next = three.nodes[to].inner.folder.node();
    wait_until("the lead has moved", async || {
        let from = member(three, from);
        let moving = tokio::task::spawn_blocking(move || from.transfer_to(next));
        // One that lags behind can't yet.
        let _ = moving.await.expect("no panic");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        matches!(*member(three, to).leadership().borrow(), Leadership::Serving { .. })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_for_its_disk_knows_who_leads_meanwhile() {
    let three = Three::start().await;
    let first = three.leader(ONE).await;
    let (second, third) = ((first + 1) % 3, (first + 2) % 3);
    // What it does with its disk is not done while this is held.
    let disk = Arc::clone(&three.nodes[first].inner.busy).write_owned().await;
    // Its broker is let go of.
    three.move_lead(ONE, second).await;
    three.move_lead(ONE, third).await;
    // It leads again, and opens its broker.
    elect(&three, third, first).await;
    elect(&three, first, second).await;
    assert_eq!(three.leader(ONE).await, second);
    drop(disk);
    three.move_lead(ONE, first).await;
    three.stop().await;
}

//! A node whose disk stands still when it does not lead any more, or when it comes to lead.

use super::super::testing::{ONE, Three, wait_until};
use courser_cluster::{Leadership, Member};
use std::sync::Arc;

fn member(three: &Three, node: usize) -> Arc<Member> {
    let group = three.nodes[node].inner.groups.get(ONE).expect("it is there");
    group.member().expect("it runs")
}

/// Has a node lead as far as the nodes agree on it, whether it serves or not. Others may be elected meanwhile.
async fn elect(three: &Three, to: usize) {
    let next = three.nodes[to].inner.folder.node();
    let leads = |node: usize| {
        matches!(*member(three, node).leadership().borrow(), Leadership::Serving { .. })
    };
    wait_until("the lead has moved", async || {
        for from in (0..3).filter(|from| *from != to && leads(*from)) {
            let from = member(three, from);
            let moving = tokio::task::spawn_blocking(move || from.transfer_to(next));
            // One that lags behind can't yet.
            let _ = moving.await.expect("no panic");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        leads(to)
    })
    .await;
}

/// Has a node lead, and waits until another one has taken note of it.
async fn elect_and_tell(three: &Three, to: usize, told: usize) {
    let [leader, own] = [to, told].map(|node| three.nodes[node].inner.folder.node());
    let group = three.nodes[told].inner.groups.get(ONE).expect("it is there");
    wait_until("it knows who leads", async || {
        elect(three, to).await;
        group.leader(own) == Some(leader)
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
    elect_and_tell(&three, second, first).await;
    elect_and_tell(&three, third, first).await;
    // It leads again, and opens its broker.
    elect(&three, first).await;
    elect_and_tell(&three, second, first).await;
    drop(disk);
    three.move_lead(ONE, first).await;
    three.stop().await;
}

//! Clients of nodes that have no other node to pass them on to.

use crate::cluster::{Three, get};
use crate::support::{Client, Heard, PATIENCE, wait_until};
use courser_connection::client::Config as ClientConfig;
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_while_no_node_leads_is_sent_away() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    for node in [leader, (leader + 1) % 3] {
        three.nodes[node].take().expect("it runs").stop().await.expect("a clean stop");
    }
    let left = three.node((leader + 2) % 3);
    wait_until("it knows of no leader", async || left.status()["leader"].is_null()).await;
    let (amqp, http) = (left.addresses().amqp[0], left.addresses().http[0]);
    let mut client = Client::begin(amqp, ClientConfig::default()).await;
    let (heard, answer) = tokio::join!(client.next(), timeout(PATIENCE, get(http, "/api/queues")));
    assert_eq!(heard, Heard::Gone);
    let (status, why) = answer.expect("an answer");
    assert_eq!(status, 503, "{why}");
    three.stop().await;
}

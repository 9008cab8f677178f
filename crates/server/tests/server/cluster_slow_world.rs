//! Three nodes whose disks take their time, at the usual settings: what that holds up is what needs a disk.

use crate::cluster::Three;
use crate::support::{Client, Heard, HeldDisk, PATIENCE, short};
use courser_codec::{confirm, queue, tx};
use courser_connection::client::Config;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

/// What each call of a disk takes.
const CALL: Duration = Duration::from_millis(100);
/// The same where a file as large as a commit is made, with hundreds of calls on each node.
const SHORT_CALL: Duration = Duration::from_millis(3);
/// How often it is tried: on a busy machine the lead moves for other reasons as well.
const ROUNDS: u32 = 5;
const HEARTBEAT: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 0xce];

async fn start(call: Duration) -> Three {
    let disk = HeldDisk::default();
    let three = Three::start_on(&disk).await;
    disk.slow_down(call);
    three
}

/// Who leads, and in which term.
async fn lead(three: &Three) -> (usize, u64) {
    let leader = three.wait_for_leader().await;
    let term = three.node(leader).status()["term"].as_u64();
    (leader, term.expect("a term"))
}

/// A durable queue, and a publisher that waits for confirms.
async fn confirming(address: SocketAddr) -> Client {
    let mut client = Client::connect(address).await;
    let declare = queue::Declare { queue: short("lasting"), durable: true, ..Default::default() };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    let select = confirm::Select { nowait: false };
    assert_eq!(client.call(select).await, Heard::Reply("confirm.select-ok"));
    client
}

/// A client that does nothing gets a heartbeat while others publish: they do until `_heard` is dropped.
async fn hear_heartbeat(address: SocketAddr, _heard: oneshot::Receiver<()>) {
    // The server ends a connection that says nothing for twice as long, in which a busy machine gives this process some time.
    let seldom = Config { heartbeat_s: 10, ..Config::default() };
    let mut client = Client::connect_with(address, seldom).await;
    client.stream.write_all(&HEARTBEAT).await.expect("an open connection");
    let mut beat = [0; HEARTBEAT.len()];
    let heard = tokio::time::timeout(PATIENCE, client.stream.read_exact(&mut beat)).await;
    heard.expect("a heartbeat").expect("an open connection");
    assert_eq!(beat, HEARTBEAT);
}

/// What needs no disk is done at once for a client that comes now, and what needs one when it is its turn.
async fn serve_another(address: SocketAddr) {
    let mut client = confirming(address).await;
    client.publish_persistent("lasting", b"m").await;
    assert_eq!(client.next().await, Heard::Confirm { first: 1, last: 1 });
    client.declare("fleeting").await;
    client.consume("fleeting", true).await;
    client.publish("fleeting", b"there").await;
    let is_there = |heard: &Heard| matches!(heard, Heard::Delivery { .. });
    client.wait_for(is_there).await;
}

/// Publishes many messages, and more of them until the client that waits for a heartbeat has done so.
async fn publish_many(address: SocketAddr, hearing: oneshot::Sender<()>) {
    const MESSAGES: u64 = 200;
    let (mut client, mut published) = (confirming(address).await, 0);
    while published == 0 || !hearing.is_closed() {
        for _ in 0..MESSAGES {
            client.publish_persistent("lasting", &[7; 50_000]).await;
        }
        published += MESSAGES;
        let is_last =
            |heard: &Heard| matches!(heard, Heard::Confirm { last, .. } if *last == published);
        client.wait_for(is_last).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_disks_of_all_nodes_move_no_lead_and_hold_up_only_what_needs_them() {
    let three = start(CALL).await;
    for _ in 0..ROUNDS {
        let before = lead(&three).await;
        let address = three.node(before.0).addresses().amqp[0];
        let (hearing, heard) = oneshot::channel();
        let all = tokio::join!(
            tokio::spawn(publish_many(address, hearing)),
            tokio::spawn(serve_another(address)),
            tokio::spawn(hear_heartbeat(address, heard)),
        );
        if lead(&three).await == before {
            let all = all.0.and(all.1).and(all.2);
            all.expect("who is connected to the node that leads is served");
            return three.stop().await;
        }
    }
    panic!("the lead has moved each time");
}

/// Commits as much at once as a transaction may hold: one entry of the log.
async fn commit_much(address: SocketAddr) {
    let seldom = Config { heartbeat_s: 60, ..Config::default() };
    let mut client = Client::connect_with(address, seldom).await;
    client.declare_durable("much").await;
    assert_eq!(client.call(tx::Select {}).await, Heard::Reply("tx.select-ok"));
    let body = vec![7; 1_000_000];
    for _ in 0..120 {
        client.publish_persistent("much", &body).await;
    }
    client.tell(tx::Commit {}).await;
    let answered = tokio::time::timeout(4 * PATIENCE, client.next_at_any_time()).await;
    assert_eq!(answered.expect("an answer"), Heard::Reply("tx.commit-ok"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_as_large_as_can_be_moves_no_lead_and_confirms_come_in_spite_of_it() {
    let three = start(SHORT_CALL).await;
    for _ in 0..ROUNDS {
        let before = lead(&three).await;
        let address = three.node(before.0).addresses().amqp[0];
        let all =
            tokio::join!(tokio::spawn(commit_much(address)), tokio::spawn(serve_another(address)),);
        if lead(&three).await == before {
            all.0.and(all.1).expect("who is connected to the node that leads is served");
            return three.stop().await;
        }
    }
    panic!("the lead has moved each time");
}

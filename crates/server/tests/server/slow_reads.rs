//! Messages that are read from a disk that stands still: who needs their queue or their consumer waits, and no one else. The
//! broker has one thread for all its tasks.

use crate::slow_disk::{OnOneThread, see_served};
use crate::slow_world::{GUEST, with_http};
use crate::support::{Client, Heard, HeldDisk, PATIENCE, TestServer, short, wait_until};
use courser::{Config, HttpListen};
use courser_codec::{basic, queue};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const QUEUES: usize = 6;

fn name(number: usize) -> String {
    format!("queue-{number}")
}

/// A broker whose queues have a message each that is in no memory.
async fn started(disk: &HeldDisk) -> OnOneThread {
    let server = OnOneThread::start(disk).await;
    keep_some(server.address()).await;
    server.restart(disk).await
}

async fn keep_some(address: SocketAddr) {
    let mut client = Client::connect(address).await;
    for number in 0..QUEUES {
        client.declare_durable(&name(number)).await;
        client.publish_persistent(&name(number), b"kept").await;
    }
    // Behind what was published.
    client.declare_durable("last").await;
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_whose_messages_are_read_hold_up_only_who_needs_the_same_queue() {
    let disk = HeldDisk::default();
    let server = started(&disk).await;
    let address = server.address();
    let (mut consumers, mut getters) = (Vec::new(), Vec::new());
    for _ in 0..QUEUES {
        consumers.push(Client::connect(address).await);
        getters.push(Client::connect(address).await);
    }
    let hold = disk.hold();
    for (number, client) in consumers.iter_mut().enumerate() {
        client.tell(basic::Consume { queue: short(&name(number)), ..Default::default() }).await;
    }
    wait_until("a message is read", async || disk.is_waited_for()).await;
    for (number, client) in getters.iter_mut().enumerate() {
        let name = name(number);
        let (queue, passive) = (short(&name), true);
        client.tell(queue::Declare { queue, passive, ..Default::default() }).await;
        client.publish(&name, b"new").await;
    }
    see_served(address).await;
    drop(hold);
    for client in &mut consumers {
        assert_eq!(client.next().await, Heard::Reply("basic.consume-ok"));
        assert_eq!(client.bodies(2).await, [&b"kept"[..], b"new"]);
    }
    for client in &mut getters {
        assert!(matches!(client.next().await, Heard::DeclareOk { .. }));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_whose_messages_are_read_holds_up_only_who_publishes_to_it() {
    let disk = HeldDisk::default();
    let server = started(&disk).await;
    let address = server.address();
    let (mut consumer, mut publisher) =
        (Client::connect(address).await, Client::connect(address).await);
    consumer.declare("other").await;
    consumer.consume("other", true).await;
    let hold = disk.hold();
    consumer.tell(basic::Consume { queue: short(&name(0)), ..Default::default() }).await;
    wait_until("a message is read", async || disk.is_waited_for()).await;
    see_served(address).await;
    publisher.publish("other", b"new").await;
    see_served(address).await;
    drop(hold);
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(match consumer.next().await {
            Heard::Delivery { body, .. } => String::from_utf8(body).expect("a text"),
            other => format!("{other:?}"),
        });
    }
    heard.sort_unstable();
    assert_eq!(heard, ["Reply(\"basic.consume-ok\")", "kept", "new"]);
    server.stop().await;
}

/// The status and the body of an answer over HTTP.
async fn ask(address: SocketAddr, path: &str) -> (u16, String) {
    // So the body is not in chunks.
    let head = format!("GET {path} HTTP/1.0\r\nauthorization: Basic {GUEST}\r\n\r\n");
    let asking = async {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    };
    let answer = timeout(PATIENCE, asking).await.expect("it waits for no disk");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

/// What is asked of all queues and connections over HTTP.
const ASKED: [&str; 16] = [
    "/api/whoami",
    "/api/queues",
    "/api/queues?page=1&sort=message_stats.get&sort_reverse=true",
    "/api/queues?page=1&sort=policy&state=held",
    "/api/queues/%2F/queue-0",
    "/api/queues/%2F/queue-1/diagnosis",
    "/api/overview",
    "/api/attention",
    "/api/nodes",
    "/api/vhosts",
    "/api/connections",
    "/api/channels",
    "/api/consumers",
    "/api/definitions",
    "/api/exchanges",
    "/health/ready",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_metrics_wait_for_no_message_that_is_read() {
    let disk = HeldDisk::default();
    let server = TestServer::start_on(disk.clone(), |_| {}).await;
    keep_some(server.address()).await;
    let with_metrics = |config: &mut Config| {
        with_http(config);
        config.metrics.listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
    };
    let server = server.restart_on(disk.clone(), with_metrics).await;
    let (api, metrics) = (server.http_addresses()[0], server.metrics_addresses()[0]);
    let mut getter = Client::connect(server.address()).await;
    let mut consumer = Client::connect(server.address()).await;
    // A hash that is made anew at the first login goes to the disk.
    assert_eq!(ask(api, "/api/whoami").await.0, 200);
    let hold = disk.hold();
    getter.tell(basic::Get { queue: short(&name(0)), no_ack: false }).await;
    consumer.tell(basic::Consume { queue: short(&name(1)), ..Default::default() }).await;
    let is_held = async |number: usize| {
        let (status, queue) = ask(api, &format!("/api/queues/%2F/{}", name(number))).await;
        assert_eq!(status, 200);
        let queue: Value = serde_json::from_str(&queue).expect("a queue");
        assert_eq!(queue["messages"], 1, "{queue}");
        queue["state"] == "held"
    };
    wait_until("messages are read", async || is_held(0).await && is_held(1).await).await;
    for path in ASKED {
        let (status, answer) = ask(api, path).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
    let (_, found) = ask(api, "/api/attention").await;
    let found: Vec<Value> = serde_json::from_str(&found).expect("a list");
    let held = found.iter().filter(|one| one["kind"] == "held");
    let mut held: Vec<_> = held.map(|one| &one["object"]["queue"]).collect();
    held.sort_by_key(|name| name.to_string());
    assert_eq!(held, ["queue-0", "queue-1"]);
    let (_, channels) = ask(api, "/api/channels").await;
    assert_eq!(serde_json::from_str::<Vec<Value>>(&channels).expect("a list").len(), 2);
    for (path, row) in [
        ("/metrics", "rabbitmq_queue_messages 6"),
        ("/metrics/per-object", "rabbitmq_queue_messages{vhost=\"/\",queue=\"queue-0\"} 1"),
    ] {
        let (status, page) = ask(metrics, path).await;
        assert_eq!(status, 200);
        assert!(page.lines().any(|line| line == row), "{row} in {page}");
    }
    assert!(is_held(0).await && is_held(1).await, "the disk has read nothing meanwhile");
    drop(hold);
    assert_eq!(getter.bodies(1).await, [b"kept"]);
    assert_eq!(consumer.next().await, Heard::Reply("basic.consume-ok"));
    assert_eq!(consumer.bodies(1).await, [b"kept"]);
    assert!(!is_held(0).await && !is_held(1).await);
    server.stop().await;
}

//! A disk whose every call takes a while, at the usual settings, from the start of a broker to its stop. What needs no disk comes
//! while a call lasts, and a confirm within the syncs that it needs: no bound is on a clock. The brokers have one thread for all
//! their tasks, so that a task that waits for the disk holds up all others.

use crate::slow_world::{GUEST, answered, is_served, status, status_of};
use crate::support::{Client, Heard, HeldDisk, PATIENCE, TestServer, short, wait_until};
use courser::{Config, HttpListen};
use courser_codec::{FieldTable, Table, confirm, exchange, queue, tx};
use courser_connection::client::Config as ClientConfig;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What each call of the disk takes.
const CALL: Duration = Duration::from_millis(100);
/// Messages that are published one after the other, each of which waits for the disk.
const CONFIRMS: u64 = 30;
const PUBLISHERS: usize = 12;
/// Messages that are there before, which no memory holds any more.
const BACKLOG: usize = 200;
/// Requests that ask only, with what they ask.
const QUESTIONS: [(&str, &str); 3] = [
    ("/api/exchanges/%2F/amq.direct/route", "{}"),
    ("/api/policy-preview/%2F", r#"{"pattern":"^q","definition":{"expires":1000}}"#),
    ("/api/access/check", r#"{"vhost":"/","right":"read","resource":"queue","name":"q"}"#),
];
const HEARTBEAT: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 0xce];

/// A broker all of whose tasks one thread has.
pub(crate) struct OnOneThread {
    server: Option<TestServer>,
    /// There until it is dropped, which a task may not do in place.
    runtime: Option<Runtime>,
}

impl OnOneThread {
    pub async fn start(disk: &HeldDisk) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let starting = runtime.spawn(TestServer::start_on(disk.clone(), settings));
        let server = Some(starting.await.expect("no panic"));
        OnOneThread { server, runtime: Some(runtime) }
    }

    pub async fn restart(mut self, disk: &HeldDisk) -> Self {
        let (server, runtime) = (self.server.take(), self.runtime.as_ref());
        let restarting = server.expect("it runs").restart_on(disk.clone(), settings);
        let restarting = runtime.expect("until it is dropped").spawn(restarting);
        let restarted = timeout(PATIENCE, restarting).await.expect("it stops and starts");
        self.server = Some(restarted.expect("no panic"));
        self
    }

    pub async fn stop(mut self) {
        let stopping = self.server.take().expect("it runs").stop();
        timeout(PATIENCE, stopping).await.expect("it stops");
    }
}

impl Deref for OnOneThread {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        self.server.as_ref().expect("it runs")
    }
}

impl Drop for OnOneThread {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn settings(config: &mut Config) {
    config.journal.checkpoint_after_bytes = 1 << 20;
}

/// A publisher that waits for confirms.
async fn confirming(address: SocketAddr) -> Client {
    let mut client = Client::connect(address).await;
    client.declare_durable("lasting").await;
    let select = confirm::Select { nowait: false };
    assert_eq!(client.call(select).await, Heard::Reply("confirm.select-ok"));
    client
}

/// Publishes messages one after the other, each when the one before is confirmed.
async fn publish_in_turn(address: SocketAddr) {
    let mut client = confirming(address).await;
    for number in 1..=CONFIRMS {
        client.publish_persistent("lasting", b"m").await;
        assert_eq!(client.next().await, Heard::Confirm { first: number, last: number });
    }
    client.close().await;
}

/// Publishes many at a time until it is over.
async fn publish_many(address: SocketAddr, is_over: Arc<AtomicBool>) {
    const MESSAGES: u64 = 5;
    let (mut client, mut published) = (confirming(address).await, 0);
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..MESSAGES {
            client.publish_persistent("lasting", &[7; 10_000]).await;
        }
        published += MESSAGES;
        let is_last =
            |heard: &Heard| matches!(heard, Heard::Confirm { last, .. } if *last == published);
        client.wait_for(is_last).await;
    }
    client.close().await;
}

/// A client that does nothing gets a heartbeat.
async fn hear_heartbeat(address: SocketAddr) {
    // Half of it passes before the first one.
    let config = ClientConfig { heartbeat_s: 4, ..ClientConfig::default() };
    let mut client = Client::connect_with(address, config).await;
    client.stream.write_all(&HEARTBEAT).await.expect("an open connection");
    let mut beat = [0; HEARTBEAT.len()];
    client.stream.read_exact(&mut beat).await.expect("an open connection");
    assert_eq!(beat, HEARTBEAT);
}

/// Messages of a queue expire, and come where they are to go then.
async fn see_expiry(address: SocketAddr) {
    let mut client = Client::connect(address).await;
    client.declare("expired").await;
    client.consume("expired", true).await;
    let arguments = FieldTable::new()
        .with("x-message-ttl", 300)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "expired")
        .to_entries();
    let declare = queue::Declare {
        queue: short("short-lived"),
        arguments: Table::from_entries(&arguments),
        ..Default::default()
    };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    for _ in 0..3 {
        client.publish("short-lived", b"late").await;
        assert_eq!(client.bodies(1).await, [b"late"]);
    }
    client.close().await;
}

/// What needs no disk goes there and back.
pub(crate) async fn see_served(address: SocketAddr) {
    for _ in 0..3 {
        let mut client = Client::connect(address).await;
        client.declare("fleeting").await;
        client.consume("fleeting", true).await;
        client.publish("fleeting", b"there").await;
        assert_eq!(client.bodies(1).await, [b"there"]);
        client.close().await;
    }
}

fn body(number: usize) -> Vec<u8> {
    let mut body = vec![b'.'; 10_000];
    body[..8].copy_from_slice(&(number as u64).to_be_bytes());
    body
}

/// A broker that is started with a backlog.
async fn start(disk: &HeldDisk) -> OnOneThread {
    let server = OnOneThread::start(disk).await;
    let mut client = confirming(server.address()).await;
    client.declare_durable("backlog").await;
    for number in 0..BACKLOG {
        client.publish_persistent("backlog", &body(number)).await;
    }
    let is_last =
        |heard: &Heard| matches!(heard, Heard::Confirm { last, .. } if *last == BACKLOG as u64);
    client.wait_for(is_last).await;
    client.close().await;
    disk.slow_down(CALL);
    server.restart(disk).await
}

/// While the disk takes a call, and more wait for it, all is served that needs none: other clients, heartbeats, timers.
async fn see_all_served(disk: &HeldDisk, address: SocketAddr) {
    wait_until("the disk is waited for", async || disk.is_waited_for()).await;
    let mut witnesses = JoinSet::new();
    witnesses.spawn(hear_heartbeat(address));
    witnesses.spawn(see_expiry(address));
    witnesses.spawn(see_served(address));
    while let Some(seen) = timeout(PATIENCE, witnesses.join_next()).await.expect("they are served")
    {
        seen.expect("it is served");
    }
}

async fn read_backlog(address: SocketAddr) {
    let mut client = Client::connect(address).await;
    client.consume("backlog", true).await;
    for (number, got) in client.bodies(BACKLOG).await.into_iter().enumerate() {
        assert!(got == body(number), "message {number}");
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_whose_disk_is_slow_starts_serves_makes_checkpoints_and_stops() {
    let disk = HeldDisk::default();
    let server = start(&disk).await;
    let (address, is_over) = (server.address(), Arc::<AtomicBool>::default());
    let checkpoints = || server.admin().log_figures().checkpoints;
    let before = checkpoints();
    let mut publishers = JoinSet::new();
    for _ in 0..PUBLISHERS {
        publishers.spawn(publish_many(address, Arc::clone(&is_over)));
    }
    let in_turn = tokio::spawn(publish_in_turn(address));
    let hold = disk.hold();
    // So a timer waits as well: a queue looks at its first message whether it has expired, and reads it.
    see_all_served(&disk, address).await;
    assert!(!in_turn.is_finished(), "the disk has taken nothing meanwhile");
    drop(hold);
    timeout(PATIENCE, read_backlog(address)).await.expect("all of it");
    timeout(PATIENCE, in_turn).await.expect("confirms").expect("it is served");
    wait_until("a checkpoint", async || checkpoints() > before).await;
    is_over.store(true, Ordering::Relaxed);
    while let Some(published) = publishers.join_next().await {
        published.expect("it is served");
    }
    let mut told = Client::connect(address).await;
    let stopping = tokio::spawn(server.stop());
    assert!(matches!(told.next().await, Heard::Closed(320, _)));
    stopping.await.expect("a clean stop");
}

/// Requests whose answers wait for the disk, each of another kind.
const KINDS: usize = 8;

/// What is to be there before [`ask`].
async fn prepare(client: &mut Client, kind: usize) {
    let (queue, fresh) = (format!("queue-{kind}"), format!("exchange-{kind}"));
    client.declare_durable(&queue).await;
    let (name, of_kind) = (short(&fresh), short("topic"));
    let declare =
        exchange::Declare { exchange: name, kind: of_kind, durable: true, ..Default::default() };
    assert_eq!(client.call(declare).await, Heard::Reply("exchange.declare-ok"));
    let bind = queue::Bind { queue: short(&queue), exchange: name, ..Default::default() };
    assert_eq!(client.call(bind).await, Heard::Reply("queue.bind-ok"));
    match kind {
        0 => {
            let select = confirm::Select { nowait: false };
            assert_eq!(client.call(select).await, Heard::Reply("confirm.select-ok"));
        }
        1 => assert_eq!(client.call(tx::Select {}).await, Heard::Reply("tx.select-ok")),
        _ => {}
    }
}

async fn ask(client: &mut Client, kind: usize) {
    let (queue, fresh) = (format!("queue-{kind}"), format!("exchange-{kind}"));
    let (name, from, new) = (short(&queue), short(&fresh), format!("new-{kind}"));
    match kind {
        0 => client.publish_persistent(&queue, b"m").await,
        1 => {
            client.publish_persistent(&queue, b"m").await;
            client.tell(tx::Commit {}).await;
        }
        2 => {
            let queue = short(&new);
            client.tell(queue::Declare { queue, durable: true, ..Default::default() }).await;
        }
        3 => client.tell(queue::Delete { queue: name, ..Default::default() }).await,
        4 => {
            let (exchange, kind) = (short(&new), short("fanout"));
            let declare = exchange::Declare { exchange, kind, durable: true, ..Default::default() };
            client.tell(declare).await;
        }
        5 => client.tell(exchange::Delete { exchange: from, ..Default::default() }).await,
        6 => {
            let routing_key = short(&new);
            let bind =
                queue::Bind { queue: name, exchange: from, routing_key, ..Default::default() };
            client.tell(bind).await;
        }
        _ => {
            let unbind = queue::Unbind { queue: name, exchange: from, ..Default::default() };
            client.tell(unbind).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_that_waits_for_the_disk_holds_up_another_client() {
    let disk = HeldDisk::default();
    let server = OnOneThread::start(&disk).await;
    let address = server.address();
    let mut clients = Vec::new();
    for kind in 0..KINDS {
        let mut client = Client::connect(address).await;
        prepare(&mut client, kind).await;
        clients.push(client);
    }
    let hold = disk.hold();
    for (kind, client) in clients.iter_mut().enumerate() {
        ask(client, kind).await;
    }
    see_all_served(&disk, address).await;
    for (kind, client) in clients.iter_mut().enumerate() {
        assert!(client.is_silent(1).await, "request {kind} is answered before it is durable");
    }
    drop(hold);
    for (kind, client) in clients.iter_mut().enumerate() {
        let heard = client.next().await;
        assert!(!matches!(heard, Heard::Gone | Heard::ChannelClosed(..)), "{kind}: {heard:?}");
    }
    server.stop().await;
}

/// Publishes messages one after the other until it is over.
async fn publish_on(address: SocketAddr, is_over: Arc<AtomicBool>) {
    let (mut client, mut number) = (confirming(address).await, 0);
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        client.publish_persistent("lasting", b"m").await;
        assert_eq!(client.next().await, Heard::Confirm { first: number, last: number });
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirm_waits_for_the_sync_under_way_and_for_its_own() {
    const ROUNDS: u64 = 10;
    let disk = HeldDisk::default();
    let server = OnOneThread::start(&disk).await;
    let (address, is_over) = (server.address(), Arc::<AtomicBool>::default());
    let mut others = JoinSet::new();
    for _ in 0..PUBLISHERS {
        others.spawn(publish_on(address, Arc::clone(&is_over)));
    }
    let mut client = confirming(address).await;
    client.declare_durable("own").await;
    let steps = disk.step();
    let published = || server.admin().queue("/", b"own").expect("the queue").ready as u64;
    for number in 1..=ROUNDS {
        // What was allowed and not used would be one more.
        steps.allow(0);
        client.publish_persistent("own", b"m").await;
        wait_until("it is in the log", async || published() == number).await;
        steps.allow(2);
        assert_eq!(client.next().await, Heard::Confirm { first: number, last: number });
    }
    is_over.store(true, Ordering::Relaxed);
    drop(steps);
    while let Some(published) = others.join_next().await {
        published.expect("it is served");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_over_http_that_waits_for_the_disk_is_answered_and_holds_up_no_other() {
    let disk = HeldDisk::default();
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let with_http = |config: &mut Config| config.management.listen = HttpListen::At(vec![any_port]);
    let server = Arc::new(TestServer::start_on(disk.clone(), with_http).await);
    drop(confirming(server.address()).await);
    // The disk hears of a login where a hash is made anew.
    assert_eq!(status(&server, "/api/whoami", GUEST).await, "200");
    let hold = disk.hold();
    let asking = Arc::clone(&server);
    let change = tokio::spawn(async move {
        status_of(&asking, "DELETE", "/api/queues/%2F/lasting", GUEST).await
    });
    let is_done = || server.admin().queue("/", b"lasting").is_err();
    wait_until("it is done, and not durable", async || is_done()).await;
    is_served(&server).await;
    assert_eq!(status(&server, "/api/overview", GUEST).await, "200");
    for (question, body) in QUESTIONS {
        let said = answered(&server, &format!("POST {question}"), GUEST, body).await;
        assert_eq!(said, "200", "{question} changes nothing");
    }
    assert!(!change.is_finished(), "it was answered before what comes behind");
    // That it is not certain.
    let said = timeout(PATIENCE, change).await.expect("an answer").expect("no panic");
    assert_eq!(said, "500");
    drop(hold);
    Arc::into_inner(server).expect("no one else has it").stop().await;
}

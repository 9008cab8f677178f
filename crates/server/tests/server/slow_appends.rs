//! What is not published fills what waits for the disk as well: letters, transactions, definitions. Other clients go on, but for
//! those that publish or define something.

use crate::slow_world::{ALICE, BOB, GUEST, add_publishers, publish_over_http, status, with_http};
use crate::support::{Client, Heard, HeldDisk, TestServer, short, wait_until};
use courser::{Clock, Config, Surroundings};
use courser_codec::{FieldTable, Table, basic, queue, tx};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet};

/// More clients than there are threads.
const CLIENTS: usize = 6;
const MESSAGES: usize = 64;
static BODY: [u8; 30_000] = [7; 30_000];
/// What may wait for the disk: less than three of the clients bring.
const BUFFER_BYTES: usize = 4 << 20;
const HOUR_MS: i64 = 3_600_000;

async fn started(disk: &HeldDisk) -> TestServer {
    started_with(disk, &Arc::default()).await
}

/// One whose clock is ahead of the machine's by so many milliseconds.
async fn started_with(disk: &HeldDisk, ahead_ms: &Arc<AtomicI64>) -> TestServer {
    let clock = Clock::shifted(Arc::clone(ahead_ms));
    let surroundings = Surroundings { clock, disk: Some(Arc::new(disk.clone())) };
    let small = |config: &mut Config| {
        config.journal.buffer_bytes = BUFFER_BYTES;
        with_http(config);
    };
    let server = TestServer::start_within(surroundings, small).await;
    Client::connect(server.address()).await.declare_durable("lasting").await;
    server
}

/// Has all clients do this at once while the disk stands still, and looks whether others are served.
async fn while_the_disk_stands_still<F>(
    (server, disk): (&TestServer, &HeldDisk),
    clients: Vec<Client>,
    what: impl Fn(Client) -> F,
) where
    F: Future<Output = Client> + Send + 'static,
{
    let hold = disk.hold();
    let mut at_work = JoinSet::new();
    for client in clients {
        at_work.spawn(what(client));
    }
    // They get stuck meanwhile.
    for _ in 0..20 {
        is_answered(server).await;
    }
    drop(hold);
    while let Some(client) = at_work.join_next().await {
        client.expect("a client").close().await;
    }
}

/// A client that comes now is let in, and finds the queue that was there before.
async fn is_answered(server: &TestServer) {
    let mut client = Client::connect(server.address()).await;
    client.count("lasting").await;
    client.declare_durable("lasting").await;
    client.close().await;
}

async fn ready(server: &TestServer, name: &str) -> u32 {
    let mut client = Client::connect(server.address()).await;
    let count = client.count(name).await;
    client.close().await;
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_that_wait_for_the_disk_hold_up_no_other_client() {
    let disk = HeldDisk::default();
    let server = started(&disk).await;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut client = Client::connect(server.address()).await;
        let name = format!("rejected-{number}");
        let arguments = FieldTable::new()
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", "lasting")
            .to_entries();
        let declare = queue::Declare {
            queue: short(&name),
            durable: true,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
        client.consume(&name, false).await;
        for _ in 0..MESSAGES {
            client.publish_persistent(&name, &BODY).await;
        }
        assert_eq!(client.bodies(MESSAGES).await.len(), MESSAGES);
        clients.push(client);
    }
    while_the_disk_stands_still((&server, &disk), clients, async |mut client: Client| {
        for delivery_tag in 1..=MESSAGES as u64 {
            client.tell(basic::Reject { delivery_tag, requeue: false }).await;
        }
        client
    })
    .await;
    let all = (CLIENTS * MESSAGES) as u32;
    wait_until("the letters are there", async || ready(&server, "lasting").await == all).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_wait_for_the_disk_hold_up_no_other_client() {
    let disk = HeldDisk::default();
    let server = started(&disk).await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::connect(server.address()).await;
        assert_eq!(client.call(tx::Select).await, Heard::Reply("tx.select-ok"));
        for _ in 0..MESSAGES {
            client.publish_persistent("lasting", &BODY).await;
        }
        clients.push(client);
    }
    while_the_disk_stands_still((&server, &disk), clients, async |mut client: Client| {
        assert_eq!(client.call(tx::Commit).await, Heard::Reply("tx.commit-ok"));
        client
    })
    .await;
    assert_eq!(ready(&server, "lasting").await, (CLIENTS * MESSAGES) as u32);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_that_wait_for_the_disk_hold_up_no_other_client() {
    let disk = HeldDisk::default();
    let server = started(&disk).await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Client::connect(server.address()).await);
    }
    while_the_disk_stands_still((&server, &disk), clients, async |mut client: Client| {
        let note = String::from_utf8(BODY.map(|_| b'n').to_vec()).expect("a text");
        let arguments = FieldTable::new().with("note", note.as_str()).to_entries();
        let arguments = Table::from_entries(&arguments);
        for _ in 0..50 {
            let (queue, exchange) = (short("lasting"), short("amq.fanout"));
            let bind =
                queue::Bind { queue, exchange, nowait: true, arguments, ..Default::default() };
            client.tell(bind).await;
            let unbind = queue::Unbind { queue, exchange, arguments, ..Default::default() };
            client.tell(unbind).await;
        }
        for _ in 0..50 {
            assert_eq!(client.next().await, Heard::Reply("queue.unbind-ok"));
        }
        client
    })
    .await;
    server.stop().await;
}

/// Fills what may wait for the disk: definitions of this client wait for room.
async fn fill(server: &TestServer) -> JoinHandle<Client> {
    let mut client = Client::connect(server.address()).await;
    let note = String::from_utf8(BODY.map(|_| b'n').to_vec()).expect("a text");
    let arguments = FieldTable::new().with("note", note.as_str()).to_entries();
    let filling = tokio::spawn(async move {
        let arguments = Table::from_entries(&arguments);
        for _ in 0..200 {
            let (queue, exchange) = (short("lasting"), short("amq.fanout"));
            let bind = queue::Bind { queue, exchange, arguments, ..Default::default() };
            let unbind = queue::Unbind { queue, exchange, arguments, ..Default::default() };
            client.tell(bind).await;
            client.tell(unbind).await;
        }
        client
    });
    wait_until("there is hardly any room", async || server.admin().log_may_block()).await;
    filling
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_over_http_that_wait_for_the_disk_hold_up_no_other_request() {
    // Twice as many as are answered at the same time: some of them find the room that is left.
    const PUBLISHES: usize = 64;
    let disk = HeldDisk::default();
    let server = started(&disk).await;
    add_publishers(&server).await;
    let hold = disk.hold();
    let filled = fill(&server).await;
    let mut publishes = JoinSet::new();
    for user in [ALICE, BOB].into_iter().cycle().take(PUBLISHES) {
        publishes.spawn(publish_over_http(server.http_addresses()[0], user, 100_000));
    }
    // They come meanwhile.
    for _ in 0..20 {
        assert_eq!(status(&server, "/api/overview", GUEST).await, "200");
    }
    drop(hold);
    filled.await.expect("it goes on").close().await;
    while let Some(answer) = publishes.join_next().await {
        let answer = answer.expect("an answer");
        assert!(answer.ends_with(br#"{"routed":true}"#), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(ready(&server, "lasting").await, PUBLISHES as u32);
    server.stop().await;
}

/// A runtime of one thread for tasks, and few more for what waits.
fn narrow() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).max_blocking_threads(4).enable_all();
    builder.build().expect("a runtime")
}

#[test]
fn acknowledgements_that_wait_for_the_disk_hold_up_no_other_client() {
    narrow().block_on(async {
        let disk = HeldDisk::default();
        let server = started(&disk).await;
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let mut client = Client::connect(server.address()).await;
            let name = format!("acknowledged-{number}");
            client.declare_durable(&name).await;
            client.consume(&name, false).await;
            for _ in 0..MESSAGES {
                client.publish_persistent(&name, b"a message").await;
            }
            assert_eq!(client.bodies(MESSAGES).await.len(), MESSAGES);
            clients.push(client);
        }
        let hold = disk.hold();
        let filled = fill(&server).await;
        for delivery_tag in 1..=MESSAGES as u64 {
            for client in &mut clients {
                client.tell(basic::Ack { delivery_tag, multiple: false }).await;
            }
            is_answered(&server).await;
        }
        drop(hold);
        filled.await.expect("it goes on").close().await;
        for (number, mut client) in clients.into_iter().enumerate() {
            client.close().await;
            assert_eq!(ready(&server, &format!("acknowledged-{number}")).await, 0);
        }
        server.stop().await;
    });
}

#[test]
fn messages_that_expire_while_the_log_has_no_room_hold_up_no_other_client() {
    narrow().block_on(async {
        let (disk, ahead_ms) = (HeldDisk::default(), Arc::default());
        let server = started_with(&disk, &ahead_ms).await;
        let mut client = Client::connect(server.address()).await;
        let arguments = FieldTable::new().with("x-message-ttl", HOUR_MS as i32).to_entries();
        let declare = queue::Declare {
            queue: short("expiring"),
            durable: true,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
        let all = MESSAGES as u32;
        for _ in 0..all {
            client.publish_persistent("expiring", b"a message").await;
        }
        wait_until("they are there", async || client.count("expiring").await == all).await;
        let hold = disk.hold();
        let filled = fill(&server).await;
        ahead_ms.store(HOUR_MS, Ordering::Relaxed);
        // So long the timers sleep at most. Should they be late, this test only finds less.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            is_answered(&server).await;
        }
        drop(hold);
        filled.await.expect("it goes on").close().await;
        client.close().await;
        wait_until("they expire", async || ready(&server, "expiring").await == 0).await;
        server.stop().await;
    });
}

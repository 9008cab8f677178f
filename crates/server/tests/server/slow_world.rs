//! Others that take their time: what they hold up is their own. The bounds are on what happens before what, not on a clock.

use crate::support::{
    AuthProgram, Client, Heard, HeldDisk, PATIENCE, Process, TestServer, short, wait_until,
};
use courser::HttpListen;
use courser_auth::{PasswordHash, Permission, Tags, User};
use courser_codec::{FieldTable, Table, basic, confirm, exchange, queue};
use courser_connection::client::Config;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Users of another program. No user has all places.
pub(crate) const ALICE: &str = "YWxpY2U6czNjcmV0";
pub(crate) const BOB: &str = "Ym9iOnMzY3JldA==";
pub(crate) const GUEST: &str = "Z3Vlc3Q6Z3Vlc3Q=";

/// The status of the answer to a question of this user.
pub(crate) async fn status(server: &TestServer, path: &str, user: &str) -> String {
    status_of(server, "GET", path, user).await
}

pub(crate) async fn status_of(server: &TestServer, method: &str, path: &str, user: &str) -> String {
    answered(server, &format!("{method} {path}"), user, "").await
}

/// The status of the answer to a request with this body.
pub(crate) async fn answered(server: &TestServer, asked: &str, user: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server.http_addresses()[0]).await.expect("a connection");
    let head = format!("{asked} HTTP/1.1\r\nhost: x\r\nauthorization: Basic {user}\r\n");
    let of_body = format!("content-type: application/json\r\ncontent-length: {}", body.len());
    let request = format!("{head}{of_body}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut said = [0; 12];
    let reading = stream.read_exact(&mut said);
    tokio::time::timeout(PATIENCE, reading).await.expect("in time").expect("an answer");
    String::from_utf8_lossy(&said[9..]).into_owned()
}

/// Takes requests over HTTP, at any port.
pub(crate) fn with_http(config: &mut courser::Config) {
    config.management.listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
}

/// Has the program be asked for a second at most, also by requests over HTTP.
fn ask_for_a_second(config: &mut courser::Config) {
    with_http(config);
    config.auth_http.timeout_ms = 1000;
    config.auth_http.cache_seconds = 600;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_users_whose_program_is_silent_hold_up_no_other_user() {
    const LISTS: usize = 40;
    let program = AuthProgram::start();
    let server = program.broker(ask_for_a_second).await;
    for number in 0..8 {
        server.admin().change_vhost(&format!("v{number}"), |_| {}).expect("a new vhost");
    }
    for user in [ALICE, BOB] {
        assert_eq!(status(&server, "/api/whoami", user).await, "200");
    }
    program.is_silent.store(true, Ordering::Relaxed);
    let server = std::sync::Arc::new(server);
    let mut lists = JoinSet::new();
    for user in [ALICE, BOB].into_iter().cycle().take(LISTS) {
        let server = std::sync::Arc::clone(&server);
        lists.spawn(async move { status(&server, "/api/queues", user).await });
    }
    wait_until("lists ask", async || program.asked_for("/auth/vhost") > 0).await;
    // Longer than it takes all of them to get as far as they do.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(status(&server, "/api/overview", GUEST).await, "200");
    assert!(lists.try_join_next().is_none(), "it was answered before any of those that wait");
    // Nor is anything asked for clients that are gone, beyond what is being asked.
    lists.shutdown().await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let asked = program.asked_for("/auth/vhost");
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(program.asked_for("/auth/vhost"), asked);
    assert!(asked < LISTS, "{asked} questions");
    std::sync::Arc::into_inner(server).expect("no one else has it").stop().await;
}

/// Asks for something that the program has to permit, which it is silent about.
async fn ask_for_something(client: &mut Client, number: usize) {
    let (name, fresh) = (short("own-q"), format!("own-{number}"));
    match number % 6 {
        0 => client.tell(queue::Declare { queue: short(&fresh), ..Default::default() }).await,
        1 => {
            let (exchange, routing_key) = (short("own-x"), short(&fresh));
            let bind = queue::Bind { queue: name, exchange, routing_key, ..Default::default() };
            client.tell(bind).await;
        }
        2 => client.tell(basic::Consume { queue: name, ..Default::default() }).await,
        3 => client.tell(basic::Get { queue: name, no_ack: true }).await,
        4 => client.tell(queue::Purge { queue: name, ..Default::default() }).await,
        _ => client.publish_to("own-x", &fresh, b"m").await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_takes_its_time_holds_up_no_confirms_and_no_checkpoint() {
    const MESSAGES: u64 = 30;
    let program = AuthProgram::start();
    let change = |config: &mut courser::Config| {
        config.auth_http.timeout_ms = 30_000;
        config.auth_http.cache_seconds = 0;
        config.journal.checkpoint_after_bytes = 1 << 20;
    };
    let server = program.broker(change).await;
    let checkpoints = || server.admin().log_figures().checkpoints;
    let mut guest = confirming(&server).await;
    let mut users = Vec::new();
    // More than there are threads, and several of each.
    for number in 0..12 {
        let user = ["alice", "bob"][number % 2];
        users.push(Client::log_in(server.address(), user, "s3cret").await.expect("let in"));
    }
    users[0].declare("own-q").await;
    let (exchange, kind) = (short("own-x"), short("topic"));
    let declare = exchange::Declare { exchange, kind, ..Default::default() };
    assert_eq!(users[0].call(declare).await, Heard::Reply("exchange.declare-ok"));
    let before = (program.asked.lock().len(), checkpoints());
    *program.holds.lock() = Some("/auth/");
    for (number, user) in users.iter_mut().enumerate() {
        ask_for_something(user, number).await;
    }
    let asked = || program.asked.lock().len() - before.0;
    wait_until("all are asked for", async || asked() == 12).await;
    for number in 1..=MESSAGES {
        guest.publish_persistent("lasting", &[7; 100_000]).await;
        assert_eq!(guest.next().await, Heard::Confirm { first: number, last: number });
    }
    wait_until("a checkpoint", async || checkpoints() > before.1).await;
    is_served(&server).await;
    assert_eq!(asked(), 12, "a question was answered meanwhile");
    for user in &mut users {
        assert!(user.is_silent(1).await, "the program has permitted nothing yet");
    }
    *program.holds.lock() = None;
    for (number, user) in users.iter_mut().enumerate().filter(|(number, _)| number % 6 != 5) {
        let heard = user.next().await;
        assert!(!matches!(heard, Heard::Gone | Heard::ChannelClosed(..)), "{number}: {heard:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_whose_program_is_silent_ends_though_there_is_more_to_ask() {
    // Each question waits for a second: all of them would take longer than anything may.
    const VHOSTS: usize = 200;
    let program = AuthProgram::start();
    let server = program.broker(ask_for_a_second).await;
    for number in 0..VHOSTS {
        server.admin().change_vhost(&format!("v{number}"), |_| {}).expect("a new vhost");
    }
    assert_eq!(status(&server, "/api/whoami", ALICE).await, "200");
    program.is_silent.store(true, Ordering::Relaxed);
    let listing = status(&server, "/api/queues", ALICE);
    let said = tokio::time::timeout(PATIENCE, listing).await.expect("an end");
    assert_eq!(said, "503");
    let asked = program.asked_for("/auth/vhost");
    assert!((2..VHOSTS).contains(&asked), "{asked} questions");
    server.stop().await;
}

#[tokio::test]
async fn a_second_signal_ends_a_broker_that_waits_for_another_program() {
    const ANSWER_LIMIT: Duration = Duration::from_secs(30);
    let program = AuthProgram::start();
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Process::command();
    for name in ["user", "vhost", "resource", "topic"] {
        let variable = format!("COURSER_AUTH_HTTP_{}_PATH", name.to_uppercase());
        command.env(variable, program.path(name));
    }
    command.env("COURSER_AUTH_HTTP_TIMEOUT_MS", ANSWER_LIMIT.as_millis().to_string());
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
    let mut broker = Process::start_with(command);
    let mut client = Client::log_in(broker.address, "alice", "s3cret").await.expect("let in");
    program.is_silent.store(true, Ordering::Relaxed);
    client.tell(queue::Declare { queue: short("own"), ..Default::default() }).await;
    wait_until("it is asked", async || program.asked_for("/auth/resource") == 1).await;
    let asked = Instant::now();
    broker.signal("TERM");
    tokio::time::sleep(Duration::from_millis(100)).await;
    broker.signal("TERM");
    assert!(broker.wait().success());
    assert!(asked.elapsed() < ANSWER_LIMIT, "it waited for the answer");
}

/// A durable queue, and a publisher that waits for confirms.
async fn confirming(server: &TestServer) -> Client {
    let mut client = Client::connect(server.address()).await;
    let declare = queue::Declare { queue: short("lasting"), durable: true, ..Default::default() };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    let select = confirm::Select { nowait: false };
    assert_eq!(client.call(select).await, Heard::Reply("confirm.select-ok"));
    client
}

/// What needs no disk is done for a client that comes now: a message goes there and back.
pub(crate) async fn is_served(server: &TestServer) {
    let mut client = Client::connect(server.address()).await;
    client.declare("fleeting").await;
    client.consume("fleeting", true).await;
    client.publish("fleeting", b"there").await;
    assert_eq!(client.bodies(1).await, [b"there"]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_stands_still_holds_up_only_what_needs_it() {
    let disk = HeldDisk::default();
    let server = TestServer::start_on(disk.clone(), |_| {}).await;
    let mut publisher = confirming(&server).await;
    let hold = disk.hold();
    publisher.publish_persistent("lasting", b"m").await;
    is_served(&server).await;
    assert!(publisher.is_silent(0).await, "nothing is confirmed before it is on the disk");
    drop(hold);
    assert_eq!(publisher.next().await, Heard::Confirm { first: 1, last: 1 });
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_that_fill_what_waits_for_the_disk_hold_up_no_other_client() {
    let disk = HeldDisk::default();
    let small = |config: &mut courser::Config| config.journal.buffer_bytes = 4 << 20;
    let server = TestServer::start_on(disk.clone(), small).await;
    let mut publishers = Vec::new();
    // More than there are threads.
    for _ in 0..6 {
        publishers.push(confirming(&server).await);
    }
    let hold = disk.hold();
    let mut writing = JoinSet::new();
    for mut publisher in publishers {
        writing.spawn(async move {
            for _ in 0..64 {
                publisher.publish_persistent("lasting", &[7; 100_000]).await;
            }
            publisher
        });
    }
    // They get stuck meanwhile.
    for _ in 0..20 {
        is_served(&server).await;
    }
    drop(hold);
    while let Some(publisher) = writing.join_next().await {
        let mut publisher = publisher.expect("a publisher");
        let is_last = |heard: &Heard| matches!(heard, Heard::Confirm { last: 64, .. });
        publisher.wait_for(is_last).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_that_give_up_and_come_again_hold_up_no_other_client() {
    let disk = HeldDisk::default();
    let small = |config: &mut courser::Config| config.journal.buffer_bytes = 4 << 20;
    let server = TestServer::start_on(disk.clone(), small).await;
    let mut witness = confirming(&server).await;
    let quorum = FieldTable::new().with("x-queue-type", "quorum").to_entries();
    let declare = queue::Declare {
        queue: short("copied"),
        durable: true,
        arguments: Table::from_entries(&quorum),
        ..Default::default()
    };
    assert!(matches!(witness.call(declare).await, Heard::DeclareOk { .. }));
    let hold = disk.hold();
    // Much more than may wait for the disk, of which none knows of the others.
    for number in 0..100 {
        let mut client = Client::connect(server.address()).await;
        match number % 2 {
            0 => client.publish_persistent("lasting", &[7; 100_000]).await,
            _ => client.publish("copied", &[7; 100_000]).await,
        }
    }
    is_served(&server).await;
    // Their places are free again, though what they have sent could not be read.
    let connections = || server.admin().connections(None).expect("all of them").len();
    wait_until("they are gone", async || connections() == 1).await;
    drop(hold);
    witness.publish_persistent("lasting", b"m").await;
    assert_eq!(witness.next().await, Heard::Confirm { first: 1, last: 1 });
    server.stop().await;
}

/// Makes users who may publish over HTTP, and has all log in, of which the disk hears where a hash is made anew.
pub(crate) async fn add_publishers(server: &TestServer) {
    let admin = server.admin();
    for name in ["alice", "bob"] {
        let mut user = User::new(name, PasswordHash::quick(b"s3cret").expect("a hash"));
        user.tags = Tags::parse("management").expect("tags");
        admin.create_user(user).expect("a user");
        admin.set_permission(name, "/", Permission::all()).expect("a permission");
    }
    for user in [ALICE, BOB, GUEST] {
        assert_eq!(status(server, "/api/whoami", user).await, "200");
    }
}

/// Publishes a message of this length that lasts, to a queue of [`confirming`].
pub(crate) async fn publish_over_http(address: SocketAddr, user: &str, length: usize) -> Vec<u8> {
    let body = format!(
        r#"{{"routing_key":"lasting","properties":{{"delivery_mode":2}},"payload":"{}","payload_encoding":"string"}}"#,
        "m".repeat(length)
    );
    let request = format!(
        "POST /api/exchanges/%2F/amq.default/publish HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         authorization: Basic {user}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishes_over_http_that_wait_for_the_disk_hold_up_no_other_request() {
    // As many as are answered at the same time.
    const PUBLISHES: usize = 32;
    let disk = HeldDisk::default();
    let server = TestServer::start_on(disk.clone(), with_http).await;
    let _declared = confirming(&server).await;
    let admin = server.admin();
    add_publishers(&server).await;
    let hold = disk.hold();
    let mut publishes = JoinSet::new();
    for user in [ALICE, BOB].into_iter().cycle().take(PUBLISHES) {
        publishes.spawn(publish_over_http(server.http_addresses()[0], user, 1));
    }
    let ready = || admin.queue("/", b"lasting").expect("the queue").ready;
    wait_until("all are published", async || ready() == PUBLISHES).await;
    for path in ["/api/overview", "/api/attention"] {
        assert_eq!(status(&server, path, GUEST).await, "200");
    }
    assert!(publishes.try_join_next().is_none(), "they were answered before one that comes behind");
    drop(hold);
    while let Some(answer) = publishes.join_next().await {
        let answer = answer.expect("an answer");
        assert!(answer.ends_with(br#"{"routed":true}"#), "{}", String::from_utf8_lossy(&answer));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_tells_clients_before_it_waits_for_what_reads_the_journal() {
    let disk = HeldDisk::default();
    let server = TestServer::start_on(disk.clone(), with_http).await;
    let machine = rustix::system::uname();
    let scrub = format!("/api/nodes/courser@{}/scrub", machine.nodename().to_string_lossy());
    let mut client = confirming(&server).await;
    client.publish_persistent("lasting", b"m").await;
    assert_eq!(client.next().await, Heard::Confirm { first: 1, last: 1 });
    let hold = disk.hold();
    assert_eq!(status_of(&server, "PUT", &scrub, GUEST).await, "202");
    wait_until("the pass waits for the disk", async || disk.is_waited_for()).await;
    let stopping = tokio::spawn(server.stop());
    assert!(matches!(client.next().await, Heard::Closed(320, _)));
    assert!(!stopping.is_finished(), "the journal is not closed while it is being read");
    drop(hold);
    stopping.await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_stop_without_a_word_hold_up_no_other_client_and_no_stop() {
    let server = TestServer::start().await;
    let mut witness = confirming(&server).await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        // In the handshake, with half a frame, and with deliveries that are not read.
        silent.push(Client::begin(server.address(), Config::default()).await);
        let mut half = Client::connect(server.address()).await;
        half.stream.write_all(&[1, 0, 1, 0]).await.expect("sent");
        silent.push(half);
        let mut consumer = Client::connect(server.address()).await;
        consumer.consume("lasting", true).await;
        silent.push(consumer);
    }
    for number in 1..=100 {
        witness.publish_persistent("lasting", &[7; 100_000]).await;
        assert_eq!(witness.next().await, Heard::Confirm { first: number, last: number });
    }
    is_served(&server).await;
    server.stop().await;
    drop(silent);
}

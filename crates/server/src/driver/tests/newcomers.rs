//! Clients that never come to open a vhost: what they may make the broker hold, and that it is counted.

use crate::Server;
use crate::clock::Clock;
use crate::driver::{Shared, serve};
use crate::inside::INSIDE;
use crate::places::Admission;
use crate::testing::{shared, start};
use courser_broker::{Broker, Limits};
use courser_client::{Connection, Credentials, Options, Outgoing, QueueOptions};
use courser_codec::{FieldTable, PROTOCOL_HEADER, Table, connection};
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;

/// Bytes that follow a login, though the client was not let in.
const BEHIND: usize = 200_000;

fn connect(server: &Server) -> DuplexStream {
    let (shared, stopping) = server.serving();
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(serve(pipe, INSIDE, place, "a test".into(), Arc::clone(shared), stopping));
    theirs
}

/// The largest frame with which a client may log in that says all it can of itself, in entries of two bytes.
fn start_ok(user: &str, frame_bytes: usize) -> Vec<u8> {
    let capabilities = FieldTable::new().with("authentication_failure_close", true);
    let mut said = FieldTable::new().with("capabilities", capabilities).to_entries();
    said.extend(b"\0V".repeat((frame_bytes - said.len() - 100) / 2));
    let response = format!("\0{user}\0wrong");
    let start_ok = connection::StartOk {
        client_properties: Table::from_entries(&said),
        mechanism: "PLAIN".try_into().expect("short"),
        response: response.as_bytes(),
        locale: "en_US".try_into().expect("short"),
    };
    let mut bytes = PROTOCOL_HEADER.to_vec();
    start_ok.write_frame(0, &mut bytes);
    bytes
}

/// Waits until what is held for clients without a session is as it should be.
async fn held(server: &Server, is_it: impl Fn(u64) -> bool) -> u64 {
    for _ in 0..1000 {
        let bytes = server.admin().memory_uses().newcomers;
        if is_it(bytes) {
            return bytes;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} bytes", server.admin().memory_uses().newcomers)
}

#[tokio::test]
async fn what_a_client_says_before_it_is_let_in_is_counted_and_no_more_than_it_has_sent() {
    let (server, _folder) = start().await;
    let mut refused = connect(&server);
    refused.write_all(&start_ok("stranger", 4000)).await.expect("sent");
    let mut answer = vec![0; 10_000];
    while !answer.windows(11).any(|bytes| bytes == b"was refused") {
        refused.read_buf(&mut answer).await.expect("an answer");
    }
    let bytes = held(&server, |bytes| bytes >= 3800).await;
    assert!(bytes <= 9000, "{bytes}");
    drop(refused);
    assert_eq!(held(&server, |bytes| bytes == 0).await, 0);
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn what_follows_a_login_is_not_read_before_that_is_decided() {
    let (server, _folder) = start().await;
    let mut guessing = connect(&server);
    let mut bytes = start_ok("guest", 4000);
    bytes.extend(vec![8; BEHIND]);
    guessing.write_all(&bytes).await.expect("sent");
    // The password is looked at on another thread meanwhile, and this one has looked at the rest.
    let most = held(&server, |bytes| bytes > 0).await;
    assert!(most < 20_000, "{most}");
    drop(guessing);
    held(&server, |bytes| bytes == 0).await;
    server.stop().await.expect("a clean stop");
}

/// What connections share where newcomers may make the broker hold so many bytes.
fn world(newcomers_bytes: u64) -> Arc<Shared> {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let limits = Limits { memory_high_bytes: 16 * newcomers_bytes, ..Limits::default() };
    Arc::new(shared(Broker::new(store, gauge, limits, 7), &Clock::of(|| 1_800_000_000_000)))
}

/// A client that has a place until another one needs it, and the end of the stream that the broker reads.
fn newcomer(shared: &Arc<Shared>, stopping: &watch::Receiver<bool>) -> DuplexStream {
    let (pipe, theirs) = tokio::io::duplex(1 << 20);
    let admission = shared.places.admit(|place| {
        let name = "a newcomer".to_owned();
        let serving = serve(pipe, INSIDE, place, name, Arc::clone(shared), stopping.clone());
        tokio::spawn(serving).abort_handle()
    });
    assert_eq!(admission, Admission::Admitted);
    theirs
}

/// Waits until no task has anything to do, where no time passes but that for which a task waits.
async fn until_idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Sends the beginning of a frame that is longer.
async fn send_half(client: &mut DuplexStream, bytes: usize) {
    let mut sent = PROTOCOL_HEADER.to_vec();
    sent.extend([1, 0, 0, 0, 0, 0x0f, 0xf0]);
    sent.resize(PROTOCOL_HEADER.len() + bytes, 0);
    client.write_all(&sent).await.expect("sent");
    until_idle().await;
}

/// Whether the broker has left.
async fn has_ended(client: &mut DuplexStream) -> bool {
    let mut said = Vec::new();
    let reading = client.read_to_end(&mut said);
    tokio::time::timeout(Duration::from_millis(1), reading).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn clients_that_never_log_in_stop_no_publisher_and_have_no_more_than_their_share() {
    let shared = world(64 * 1024);
    let (_stop, stopping) = watch::channel(false);
    let mut silent = newcomer(&shared, &stopping);
    let mut halves = Vec::new();
    for _ in 0..60 {
        let mut client = newcomer(&shared, &stopping);
        send_half(&mut client, 4000).await;
        halves.push(client);
        let uses = shared.broker.admin().memory_uses();
        assert!(uses.newcomers <= 64 * 1024, "{}", uses.newcomers);
        assert!(!shared.broker.admin().alarms().memory);
    }
    // Those that have come last have it: others come in as before.
    let mut ended = Vec::new();
    for client in &mut halves {
        ended.push(has_ended(client).await);
    }
    assert_eq!(ended.iter().filter(|has_ended| !**has_ended).count(), 64 * 1024 / 4000);
    assert!(ended.is_sorted_by(|before, after| before >= after), "{ended:?}");
    assert!(!has_ended(&mut silent).await, "nothing is kept for it");

    let options = Options { credentials: Credentials::Anonymous, ..Options::default() };
    let client = newcomer(&shared, &stopping);
    let connection = Connection::open_on(client, options).await.expect("a login");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::default()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    let confirm = channel.publish("", "q", Outgoing::new(b"m")).await.expect("it is sent");
    assert!(confirm.await.expect("an open connection").is_ack());
    drop(halves);
    until_idle().await;
    let most = shared.broker.admin().newcomers_max_bytes();
    assert_eq!(shared.places.kept_bytes(), 0);
    assert_eq!(most, 64 * 1024);
}

#[tokio::test(start_paused = true)]
async fn for_a_client_that_has_not_logged_in_no_more_is_kept_than_it_has_sent() {
    let shared = world(1 << 20);
    let (_stop, stopping) = watch::channel(false);
    let mut client = newcomer(&shared, &stopping);
    send_half(&mut client, 2100).await;
    client.write_all(b"x").await.expect("sent");
    until_idle().await;
    let kept = shared.broker.admin().memory_uses().newcomers;
    assert!((2101..2200).contains(&kept), "{kept}");
}

#[tokio::test]
async fn a_client_that_does_not_answer_the_brokers_farewell_keeps_it_for_five_seconds() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let broker = Broker::new(store, gauge, Limits::default(), 7);
    let shared = Arc::new(shared(broker, &Clock::system()));
    let (stop, stopping) = watch::channel(false);
    let place = shared.places.admit_own().expect("a place");
    let (pipe, mut theirs) = tokio::io::duplex(4096);
    let serving = serve(pipe, INSIDE, place, "a test".into(), Arc::clone(&shared), stopping);
    let serving = tokio::spawn(serving);
    theirs.write_all(&PROTOCOL_HEADER).await.expect("sent");
    theirs.read_exact(&mut [0; 7]).await.expect("connection.start");
    tokio::time::pause();
    let since = tokio::time::Instant::now();
    stop.send(true).expect("it is served");
    serving.await.expect("no panic");
    assert!(since.elapsed() <= Duration::from_secs(5), "{:?}", since.elapsed());
    assert_eq!(Arc::strong_count(&shared), 1);
}

//! What gets into the log, and what happens when it is not read.

use crate::support::operated::Operated;
use crate::support::{Client, Heard, Process, free_addresses, output, short, wait_until};
use crate::websocket::{open_at, pipe};
use courser_codec::{FieldTable, basic, exchange, queue};
use courser_connection::Credentials;
use courser_connection::client::Config;
use std::io::{PipeReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Ends a line and begins another one, colours it, and rings a bell.
const FORGED: &str = "x\r\n2026-01-01T00:00:00.000000Z ERROR forged \x1b[31m\x07\x7f\u{9b}\u{202e}";

/// A broker whose log goes into a file.
struct Logged {
    broker: Process,
    path: PathBuf,
    _folder: TempDir,
}

impl Logged {
    fn start(level: &str) -> Self {
        Self::start_with(level, |_| {})
    }

    fn start_with(level: &str, change: impl Fn(&mut Command)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut command = Process::command();
        command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
        command.env("COURSER_LOG_LEVEL", level);
        change(&mut command);
        command.stderr(Stdio::from(std::fs::File::create(&path).expect("a file")));
        Logged { broker: Process::start_with(command), path, _folder: folder }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.path).expect("text")
    }

    async fn wait_for(&self, part: &str) -> String {
        wait_until(part, async || self.text().contains(part)).await;
        self.text()
    }

    fn lines_with(&self, part: &str) -> usize {
        self.text().lines().filter(|line| line.contains(part)).count()
    }
}

#[tokio::test]
async fn a_node_warns_that_without_a_secret_all_users_of_the_machine_are_its_operators() {
    for has_secret in [true, false] {
        let node = Logged::start_with("info", |command| {
            command.arg("--cluster-listen").arg(free_addresses(1)[0].to_string());
            if has_secret {
                command.env("COURSER_CLUSTER_SECRET", "what all nodes of this test know");
            }
        });
        let warned = node.wait_for("this node is in the cluster").await;
        assert_eq!(warned.contains("any user of this machine can connect as a node"), !has_secret);
    }
}

#[tokio::test]
async fn a_broker_warns_of_logins_that_take_longer_than_their_handshake_may() {
    for (timeout_ms, warns) in [("9999", false), ("10000", true)] {
        let log = Logged::start_with("info", |command| {
            for path in ["USER", "VHOST", "RESOURCE", "TOPIC"] {
                command.env(format!("COURSER_AUTH_HTTP_{path}_PATH"), "http://127.0.0.1:1/");
            }
            command.env("COURSER_AUTH_HTTP_TIMEOUT_MS", timeout_ms);
        });
        let text = log.text();
        assert_eq!(text.contains("is not less than amqp.handshake_timeout_ms"), warns, "{text}");
    }
}

fn as_user(name: &str) -> Config {
    let credentials = Credentials::Plain { user: name.into(), password: "wrong".into() };
    Config { credentials, ..Config::default() }
}

/// Has the broker refuse something, and opens another channel. Returns what it says.
async fn refused_type(client: &mut Client, kind: &str) -> String {
    let declare =
        exchange::Declare { exchange: short("x"), kind: short(kind), ..Default::default() };
    match client.call(declare).await {
        Heard::ChannelClosed(_, text) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_control_character_of_a_client_reaches_the_log() {
    let log = Logged::start("debug");
    let mut client = Client::begin(log.broker.address, as_user(FORGED)).await;
    assert!(matches!(client.next().await, Heard::Closed(403, _)));
    let client_properties = FieldTable::new().with("connection_name", FORGED);
    let named = Config { client_properties, ..Config::default() };
    let mut client = Client::connect_with(log.broker.address, named).await;
    refused_type(&mut client, FORGED).await;
    let mut client = Client::connect(log.broker.address).await;
    let consume = basic::Consume { queue: short(FORGED), ..Default::default() };
    assert!(matches!(client.call(consume).await, Heard::ChannelClosed(_, _)));
    let mut client = Client::connect(log.broker.address).await;
    let arguments = FieldTable::new().with("x-overflow", FORGED);
    let mut encoded = Vec::new();
    arguments.encode(&mut encoded);
    let declare = queue::Declare {
        queue: short(FORGED),
        arguments: courser_codec::Table::from_entries(&encoded[4..]),
        ..Default::default()
    };
    assert!(matches!(client.call(declare).await, Heard::ChannelClosed(_, _)));
    let elsewhere = Config { virtual_host: FORGED.try_into().expect("short"), ..Config::default() };
    let mut client = Client::begin(log.broker.address, elsewhere).await;
    assert!(matches!(client.next().await, Heard::Closed(530, _)));

    let text = log.wait_for("vhost x").await;
    for line in text.lines() {
        assert!(line.starts_with("20") && !line.starts_with("2026-01-01"), "{line:?}");
        let obeyed = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!line.contains(obeyed), "{line:?}");
    }
    assert!(text.matches("forged").count() >= 5, "{text}");
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_in_the_log_too() {
    let log = Logged::start_with("info", |command| {
        command.env("COURSER_AMQP_MAX_MESSAGE_BYTES", "1000");
    });
    let mut client = Client::connect(log.broker.address).await;
    client.publish("q", &[7; 1001]).await;
    let heard = client.next().await;
    let Heard::ChannelClosed(_, reason) = heard else { panic!("{heard:?}") };
    let text = log.wait_for(&format!("406 {reason}")).await;
    assert!(text.contains("refused"), "{text}");
}

#[tokio::test]
async fn a_refused_login_names_the_user_and_the_reason() {
    let log = Logged::start("info");
    let mut client = Client::begin(log.broker.address, as_user("mallory")).await;
    assert!(matches!(client.next().await, Heard::Closed(403, _)));
    let text = log.wait_for("login refused").await;
    assert!(text.contains("user=mallory") && text.contains("mechanism=\"PLAIN\""), "{text}");
    assert!(!text.contains("wrong\""), "no password: {text}");
}

/// Whether a text has these bytes, as they are or in hexadecimal.
fn shows(text: &str, bytes: &str) -> bool {
    let hex: String = bytes.bytes().map(|byte| format!("{byte:02x}")).collect();
    let spaced: Vec<_> = bytes.bytes().map(|byte| format!("{byte:02x}")).collect();
    let text = text.to_lowercase();
    [bytes.to_lowercase(), hex, spaced.join(" ")].iter().any(|form| text.contains(form))
}

#[tokio::test]
async fn no_level_writes_passwords_and_bodies_of_websockets_into_the_log() {
    const PASSWORD: &str = "Xq7pass9word";
    const BODY: &str = "Zk3secret8body";
    for (at_start, later) in
        [("trace", None), ("info", Some("trace")), ("info,courser=trace", None)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let broker = Operated::start_with(|command| {
            command.env("COURSER_LOG_LEVEL", at_start);
            command.stderr(std::fs::File::create(&path).expect("a file"));
        });
        broker.quiet(&["add_user", "alice", PASSWORD]);
        broker.quiet(&["set_permissions", "alice", ".*", ".*", ".*"]);
        if let Some(level) = later {
            broker.quiet(&["set_log_level", level]);
        }
        let address = broker.url()["http://".len()..].trim_end_matches('/').parse();
        let opened = open_at(address.expect("an address"), "/ws/amqp", &[]).await;
        let credentials = Credentials::Plain { user: "alice".into(), password: PASSWORD.into() };
        let config = Config { credentials, ..Config::default() };
        let stream = pipe(opened.expect("a socket").0, 4096);
        let mut client = Client::connect_on(stream, config).await;
        client.declare("q").await;
        client.consume("q", true).await;
        client.publish("q", BODY.as_bytes()).await;
        assert_eq!(client.bodies(1).await, [BODY.as_bytes()]);
        client.close().await;
        drop(client);
        let log = || std::fs::read_to_string(&path).expect("text");
        wait_until("it has ended", async || log().contains("connection closed")).await;
        for text in [log(), broker.quiet(&["log_tail", "--number", "1000"])] {
            assert!(text.contains("vhost opened"), "the level is in effect: {text}");
            assert!(
                !shows(&text, PASSWORD) && !shows(&text, BODY),
                "{at_start}, {later:?}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn a_client_that_is_refused_again_and_again_does_not_fill_the_log() {
    let log = Logged::start("info");
    let start = Instant::now();
    let refuse = async |kind: &str| {
        let mut client = Client::connect(log.broker.address).await;
        for _ in 0..200 {
            refused_type(&mut client, kind).await;
            client.reopen().await;
        }
    };
    refuse("loud").await;
    // Another one is heard all the same, and what was left out before is counted.
    refuse("quiet").await;
    let text = log.wait_for("quiet").await;
    // Ten lines in ten seconds.
    let most = 10 * (start.elapsed().as_secs() as usize / 10 + 2);
    assert!((1..=most).contains(&log.lines_with("loud")), "{text}");
    assert!((1..=most).contains(&log.lines_with("quiet")), "{text}");
    assert!(text.contains("suppressed="), "{text}");
}

/// Connects once, which is one line at level debug.
async fn knock(address: std::net::SocketAddr) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(b"knock!!!").await.expect("sent");
    stream.read_to_end(&mut Vec::new()).await.expect("the right header, and the end");
}

async fn knock_many(address: std::net::SocketAddr, times: usize) {
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..times / 8 {
                    knock(address).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("all answered");
    }
}

fn read_all_of(mut log: PipeReader) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        log.read_to_end(&mut text).expect("a readable log");
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// A broker that writes its log into a pipe, which is not read yet.
fn start_with_pipe(folder: &TempDir) -> (Process, PipeReader) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = Process::command();
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
    command.env("COURSER_LOG_LEVEL", "debug").stderr(writer);
    (Process::start_with(command), reader)
}

#[tokio::test]
async fn a_reader_of_the_log_that_stalls_holds_no_client_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut broker, reader) = start_with_pipe(&folder);
    // More than pipe and queue hold.
    knock_many(broker.address, 5600).await;
    let mut client = Client::connect(broker.address).await;
    client.declare("q").await;
    let text = read_all_of(reader);
    client.close().await;
    broker.signal("TERM");
    assert!(broker.wait().success());
    let text = text.join().expect("a log");
    let dropped = text.rsplit_once("dropped=").expect("what was dropped is counted").1;
    let dropped: usize =
        dropped.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    assert!((1..5600).contains(&dropped), "{dropped}");
}

#[tokio::test]
async fn a_broker_whose_log_is_not_read_stops_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut broker, reader) = start_with_pipe(&folder);
    knock_many(broker.address, 1600).await;
    broker.signal("TERM");
    assert!(broker.wait().success());
    drop(reader);
}

#[test]
fn keys_of_definitions_that_mean_nothing_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("definitions.json");
    // It ends at what is no list.
    std::fs::write(&file, r#"{"queue": [], "rabbit_version": "4", "queues": 5}"#).expect("written");
    let mut command = Process::command();
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
    command.env("COURSER_MANAGEMENT_LOAD_DEFINITIONS", &file);
    let output = output(&mut command);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        said.contains("unknown keys: what is below them is not imported rows=1 first=\"queue\""),
        "{said}"
    );
    assert!(said.contains("queues is no list"), "{said}");
}

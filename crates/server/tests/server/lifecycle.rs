//! Starting and stopping: clients are told, names are free again, nothing is left behind.

use crate::cluster::node_config;
use crate::support::{
    Authority, Client, Heard, PATIENCE, Process, TestServer, free_addresses, wait_until,
};
use courser::{HttpListen, Node, Surroundings};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SHUTDOWN: &str =
    "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";

#[tokio::test]
async fn clients_are_told_when_the_broker_stops() {
    let server = TestServer::start().await;
    let address = server.address();
    let (mut one, mut two) = (Client::connect(address).await, Client::connect(address).await);
    one.declare("q").await;
    two.consume("q", true).await;
    let stopping = tokio::spawn(server.stop());
    for client in [&mut one, &mut two] {
        assert_eq!(client.next().await, Heard::Closed(320, SHUTDOWN.into()));
        assert_eq!(client.next().await, Heard::Gone);
    }
    stopping.await.expect("it stops");
    assert!(TcpStream::connect(address).await.is_err(), "it listens no more");
}

/// With one thread nothing goes on here between the stop and what follows.
#[tokio::test(flavor = "current_thread")]
async fn another_node_can_listen_where_one_has_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_addresses(1)[0];
    let config = node_config(&folder, "a", address, &[address]);
    let node = Node::start_within(config, Surroundings::default()).await.expect("a node");
    assert!(TcpListener::bind(address).is_err());
    node.stop().await.expect("a clean stop");
    drop(TcpListener::bind(address).expect("it listens no more"));
}

#[tokio::test]
async fn what_was_delivered_before_the_end_comes_before_the_farewell() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    client.declare("q").await;
    client.consume("q", true).await;
    client.publish("q", b"last").await;
    assert_eq!(client.next().await, Heard::Delivery { tag: 1, body: b"last".into() });
    client.publish("q", b"may still come").await;
    let stopping = tokio::spawn(server.stop());
    let farewell = client.wait_for(|heard| !matches!(heard, Heard::Delivery { .. })).await;
    assert_eq!(farewell, Heard::Closed(320, SHUTDOWN.into()));
    stopping.await.expect("it stops");
}

#[tokio::test]
async fn a_client_that_does_not_answer_does_not_keep_the_broker_from_stopping() {
    let server = TestServer::start().await;
    let mute = Client::connect(server.address()).await;
    let strange = TcpStream::connect(server.address()).await.expect("a connection");
    tokio::time::timeout(PATIENCE, server.stop()).await.expect("it stops");
    drop((mute, strange));
}

#[tokio::test]
async fn a_broker_that_is_dropped_serves_no_more() {
    let any_port = || HttpListen::At(vec![([127, 0, 0, 1], 0).into()]);
    let server = TestServer::start_with(|config| {
        config.management.listen = any_port();
        config.metrics.listen = any_port();
    })
    .await;
    let (http, metrics) = (server.http_addresses()[0], server.metrics_addresses()[0]);
    let addresses = [server.address(), http, metrics];
    let mut client = Client::connect(server.address()).await;
    let mut idle = TcpStream::connect(http).await.expect("a connection");
    let request = b"GET /health/live HTTP/1.1\r\nhost: broker\r\n\r\n";
    idle.write_all(request).await.expect("an open connection");
    idle.read_u8().await.expect("an answer");
    drop(server);
    client.wait_for(|heard| *heard == Heard::Gone).await;
    let ended = tokio::time::timeout(PATIENCE, idle.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "an HTTP connection goes on");
    for address in addresses {
        wait_until("the port is free", async || std::net::TcpListener::bind(address).is_ok()).await;
    }
}

#[tokio::test]
async fn sigterm_and_sigint_stop_the_command_cleanly() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut broker = Process::start(&folder);
        let mut client = Client::connect(broker.address).await;
        broker.signal(signal);
        assert_eq!(client.next().await, Heard::Closed(320, SHUTDOWN.into()));
        assert_eq!(client.next().await, Heard::Gone);
        assert!(broker.wait().success());
        drop(Process::start(&folder));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn signals_are_heard_before_the_banner_can_have_been_read() {
    use std::{io::Write, process::Stdio};
    let folder = tempfile::tempdir().expect("a folder");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    // All that it holds: the banner has to wait.
    writer.write_all(&[b' '; 64 << 10]).expect("written");
    let mut command = Process::command();
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
    let mut broker = Process::silent(command.stdout(writer).stderr(Stdio::null()));
    drop(command);
    // SIGHUP, SIGINT and SIGTERM, as a mask of what has a handler.
    let wanted = 1 | 1 << 1 | 1 << 14;
    let heard = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", broker.id()));
        let status = status.expect("a running process");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        u64::from_str_radix(mask.trim(), 16).expect("a number") & wanted == wanted
    };
    let start = Instant::now();
    while !heard() {
        assert!(start.elapsed() < Duration::from_secs(30), "no signal is heard");
        std::thread::sleep(Duration::from_millis(10));
    }
    broker.signal("TERM");
    // That the banner is not read after all is no reason to fail.
    drop(reader);
    assert!(broker.wait().success());
}

#[tokio::test]
async fn a_broker_whose_log_is_not_read_serves_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = Process::command();
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
    command.env("COURSER_LOG_LEVEL", "debug").stderr(writer);
    let broker = Process::start_with(command);
    drop(reader);
    for _ in 0..3 {
        let mut client = Client::connect(broker.address).await;
        client.stream.write_all(&[3, 0, 1, 0x7f, 0xff, 0xff, 0xff]).await.expect("sent");
        let heard = client.next().await;
        assert!(matches!(&heard, Heard::Closed(501, _)), "what is logged is told: {heard:?}");
    }
}

#[tokio::test]
async fn a_second_signal_stops_the_command_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut broker = Process::start(&folder);
    let mut mute = Client::connect(broker.address).await;
    broker.signal("TERM");
    // It has been told, and does not answer: the broker waits for it.
    let mut byte = [0];
    mute.stream.peek(&mut byte).await.expect("the farewell");
    let start = Instant::now();
    broker.signal("TERM");
    assert!(broker.wait().success());
    assert!(start.elapsed() < Duration::from_secs(4));
    assert!(matches!(mute.next().await, Heard::Closed(320, _)));
}

#[tokio::test]
async fn a_broker_can_be_started_again_where_one_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = crate::support::config_in(&folder);
    let server = courser::Server::start(config.clone()).await.expect("a broker");
    let mut client = Client::connect(server.addresses()[0]).await;
    config.listen = server.addresses().to_vec();
    let stopping = tokio::spawn(server.stop());
    assert!(matches!(client.next().await, Heard::Closed(320, _)));
    assert_eq!(client.next().await, Heard::Gone);
    stopping.await.expect("it stops").expect("cleanly");
    let again = courser::Server::start(config).await.expect("the same port and folder");
    drop(Client::connect(again.addresses()[0]).await);
    again.stop().await.expect("a clean stop");
}

#[test]
fn a_broker_that_stops_does_not_wait_for_a_file_whose_end_does_not_come() {
    let files = tempfile::tempdir().expect("a folder");
    let issued = Authority::new("test authority").issue(&["localhost"], &[], 10);
    let (certificate, key) = issued.write(files.path(), "server");
    let settings = files.path().join("courser.yaml");
    let (data, certificate) = (files.path().join("data"), certificate.display());
    let text = format!(
        "listen: '127.0.0.1:0'\ndata_dir: '{}'\n\
         tls: {{listen: '127.0.0.1:0', certificate: '{certificate}', key: '{}'}}\n",
        data.display(),
        key.display()
    );
    fs::write(&settings, text).expect("a file");
    let mut command = Process::command();
    command.arg("--config").arg(&settings);
    let mut broker = Process::start_with(command);
    stop_while_reading(&mut broker, key);
}

/// Stops a broker while it reads this file again, whose end does not come.
fn stop_while_reading(broker: &mut Process, file: PathBuf) {
    fs::remove_file(&file).expect("it is there");
    assert!(Command::new("mkfifo").arg(&file).status().expect("mkfifo runs").success());
    broker.signal("HUP");
    let (sender, opened) = mpsc::channel();
    // That waits for who reads it.
    std::thread::spawn(move || sender.send(fs::OpenOptions::new().write(true).open(&file)));
    let pipe = opened.recv_timeout(PATIENCE).expect("it is read").expect("a pipe");
    broker.signal("TERM");
    assert!(broker.wait().success());
    drop(pipe);
}

#[test]
fn a_broker_that_is_told_to_stop_does_not_wait_for_its_settings_to_be_read() {
    let files = tempfile::tempdir().expect("a folder");
    let settings = files.path().join("courser.yaml");
    let data = files.path().join("data");
    let text = format!("listen: '127.0.0.1:0'\ndata_dir: '{}'\n", data.display());
    fs::write(&settings, text).expect("a file");
    let mut command = Process::command();
    command.arg("--config").arg(&settings);
    let mut broker = Process::start_with(command);
    stop_while_reading(&mut broker, settings);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_told_to_stop_does_not_wait_for_its_definitions_to_be_read() {
    let files = tempfile::tempdir().expect("a folder");
    let (settings, definitions) = (files.path().join("courser.yaml"), files.path().join("d.json"));
    let (data, address) = (files.path().join("data"), free_addresses(1)[0]);
    let text = format!(
        "listen: '127.0.0.1:0'\ndata_dir: '{}'\nmanagement: {{load_definitions: '{}'}}\n\
         cluster: {{node_name: one, listen: '{address}'}}\n",
        data.display(),
        definitions.display()
    );
    fs::write(&definitions, "{}").expect("a file");
    fs::write(&settings, text).expect("a file");
    let mut command = Process::command();
    command.arg("--config").arg(&settings);
    let mut broker = Process::start_with(command);
    // It leads, and has read them.
    drop(Client::connect(broker.address).await);
    stop_while_reading(&mut broker, definitions);
}

//! What limits of the process do: descriptors, and sizes of files.

#[cfg(feature = "gateway")]
use crate::support::free_addresses;
use crate::support::{Client, Heard, Process};
use courser_codec::{confirm, queue};
use courser_connection::client::Config;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpStream;

/// A broker whose log has segments of 1 MiB, under a limit that the shell's `ulimit` sets.
fn limited(folder: &TempDir, limit: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$0\" --listen 127.0.0.1:0 \"$@\"")]);
    command.arg(Process::command().get_program()).current_dir(folder.path());
    command.env("COURSER_JOURNAL_SEGMENT_BYTES", "1048576");
    command.env("COURSER_MANAGEMENT_LISTEN", "none").env("COURSER_METRICS_LISTEN", "none");
    command
}

async fn with_durable_queue(broker: &Process) -> Client {
    let mut client = Client::connect(broker.address).await;
    let queue = "q".try_into().expect("short");
    let declare = queue::Declare { queue, durable: true, ..Default::default() };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    assert_eq!(
        client.call(confirm::Select { nowait: false }).await,
        Heard::Reply("confirm.select-ok")
    );
    client
}

/// Publishes some segments full. Returns the longest time that a confirm took.
async fn publish_segments(client: &mut Client) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..60 {
        let start = Instant::now();
        client.publish_persistent("q", &[7; 100_000]).await;
        assert!(matches!(client.next().await, Heard::Confirm { .. }));
        longest = longest.max(start.elapsed());
    }
    longest
}

#[tokio::test]
async fn clients_that_take_all_descriptors_leave_some_to_the_journal_and_the_operator() {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = Process::start_with(limited(&folder, "-n 128"));
    let mut publisher = with_durable_queue(&broker).await;
    let mut idle = Vec::new();
    loop {
        let mut client = Client::begin(broker.address, Config::default()).await;
        match client.next().await {
            Heard::Opened => idle.push(client),
            Heard::Gone => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(idle.len() > 50, "{} connections", idle.len());
    // A file that the journal has open at this moment takes one of those that are left to it.
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", broker.id())).expect("a process");
    let sockets = descriptors.filter_map(|descriptor| {
        let descriptor = descriptor.ok()?;
        let is_socket =
            std::fs::read_link(descriptor.path()).ok()?.to_str()?.starts_with("socket:");
        descriptor.file_name().to_str()?.parse().ok().filter(|_| is_socket)
    });
    let last: u32 = sockets.max().expect("sockets");
    assert!(last < 128 - 16, "a client has descriptor {last}");
    publish_segments(&mut publisher).await;
}

#[tokio::test]
async fn connections_that_never_log_in_hold_up_no_confirm() {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = Process::start_with(limited(&folder, "-n 128"));
    let mut publisher = with_durable_queue(&broker).await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(broker.address).await.expect("a connection"));
    }
    let longest = publish_segments(&mut publisher).await;
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    // Nor do they keep other clients out.
    with_durable_queue(&broker).await;
}

#[cfg(feature = "gateway")]
#[tokio::test]
async fn silent_connections_to_a_zeromq_endpoint_leave_descriptors_to_the_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let endpoint = free_addresses(1)[0];
    let settings = format!(
        "gateway: {{endpoints: [{{socket: pull, bind: 'tcp://{endpoint}', queue: tasks}}]}}"
    );
    std::fs::write(folder.path().join("settings.yaml"), settings).expect("a file");
    let mut command = limited(&folder, "-n 256");
    command.args(["--config", "settings.yaml"]);
    let broker = Process::start_with(command);
    let mut publisher = with_durable_queue(&broker).await;
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(endpoint).await.expect("a connection"));
    }
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", broker.id())).expect("a process");
    let free = 256 - descriptors.count();
    assert!(free >= 32, "{free} descriptors are left");
    let longest = publish_segments(&mut publisher).await;
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    with_durable_queue(&broker).await;
}

#[tokio::test]
async fn a_limit_of_file_sizes_is_like_a_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    // 2 MiB: room for segments, and none for a message that needs one of its own.
    let broker = Process::start_with(limited(&folder, "-f 4096"));
    let mut client = with_durable_queue(&broker).await;
    client.publish_persistent("q", b"before").await;
    assert!(matches!(client.next().await, Heard::Confirm { .. }));
    let mut large = with_durable_queue(&broker).await;
    large.publish_persistent("q", &vec![7; 5_000_000]).await;
    let heard = large.next().await;
    assert!(matches!(&heard, Heard::Blocked(_) | Heard::Closed(506, _)), "{heard:?}");
    drop(large);
    // What was confirmed is still there, and can be consumed.
    let mut other = Client::connect(broker.address).await;
    other.consume("q", false).await;
    assert_eq!(other.bodies(1).await, [b"before"]);
}

#[test]
fn a_limit_below_the_size_of_a_segment_is_told_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = limited(&folder, "-f 64").output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "no signal: {output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("File too large"), "{error}");
}

//! Many declares in a pipeline: each is answered when it is durable, and they share their syncs.

use crate::support::{Client, Heard, PATIENCE, Process, TestServer, short};
use courser_codec::{Method, queue};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const QUEUES: usize = 10_000;

fn name(number: usize) -> String {
    format!("queue-{number:05}")
}

/// Declares durable queues without waiting for any answer. Returns how long the answers took, which
/// have to come in order.
async fn declare_all(address: SocketAddr, passive: bool) -> Duration {
    let mut client = Client::connect(address).await;
    let (mut asked, mut expected) = (Vec::new(), Vec::new());
    for name in (0..QUEUES).map(name) {
        let declare =
            queue::Declare { queue: short(&name), durable: true, passive, ..Default::default() };
        Method::from(declare).write_frame(1, &mut asked);
        let answer = queue::DeclareOk { queue: short(&name), message_count: 0, consumer_count: 0 };
        Method::from(answer).write_frame(1, &mut expected);
    }
    let start = Instant::now();
    let mut answers = vec![0; expected.len()];
    let (mut input, mut output) = client.stream.split();
    let (written, read) = tokio::join!(output.write_all(&asked), input.read_exact(&mut answers));
    written.expect("an open connection");
    read.expect("an answer to each");
    assert!(answers == expected, "answers are missing or out of order");
    start.elapsed()
}

/// How often a process has asked the system to write: to the disk and to sockets.
fn writes(process: &Process) -> u64 {
    let path = format!("/proc/{}/io", process.id());
    let io = std::fs::read_to_string(path).expect("a running process");
    let line = io.lines().find_map(|line| line.strip_prefix("syscw: ")).expect("a line syscw");
    line.parse().expect("a number")
}

#[tokio::test]
async fn ten_thousand_declares_in_a_pipeline_share_their_syncs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(&folder);
    let before = writes(&process);
    let declaring = declare_all(process.address, false);
    let elapsed = tokio::time::timeout(PATIENCE, declaring).await.expect("all answers");
    let writes = writes(&process) - before;
    println!("{QUEUES} declares took {elapsed:?} and {writes} writes");
    // One by one, each takes two: one to the disk, one to its client. How many share them is up to the disk; in memory,
    // which makes no client wait, they still take a third of that.
    assert!(writes < QUEUES as u64 * 3 / 2, "{writes} writes for {QUEUES} declares");
    // What was answered is there, however the broker ends.
    process.signal("KILL");
    process.wait();
    let process = Process::start(&folder);
    declare_all(process.address, true).await;
}

#[tokio::test]
async fn declares_one_by_one_are_answered_by_the_thread_that_syncs_them() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    for number in 0..200 {
        let name = name(number);
        let declare = queue::Declare { queue: short(&name), durable: true, ..Default::default() };
        assert_eq!(client.call(declare).await, Heard::DeclareOk { messages: 0, consumers: 0 });
    }
    client.close().await;
    server.stop().await;
}

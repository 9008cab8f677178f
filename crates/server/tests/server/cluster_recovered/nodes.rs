//! Three nodes with messages, of which one is stopped.

use crate::support::{Process, free_addresses, output, wait_until};
use courser_client::{Channel, Connection, Outgoing, QueueOptions};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
pub const A: usize = 0;
pub const B: usize = 1;
pub const C: usize = 2;
pub const D: usize = 3;
pub const MESSAGES: u32 = 50;

/// Three nodes, and a place for a fourth one.
pub struct Nodes {
    pub folder: TempDir,
    pub addresses: Vec<SocketAddr>,
    pub running: [Option<Process>; 4],
}

impl Nodes {
    pub fn data(&self, node: usize) -> PathBuf {
        self.folder.path().join(NAMES[node])
    }

    /// The command with what a node is started with; the nodes of the list are the first three.
    fn command(&self, node: usize) -> Command {
        let mut command = Process::command();
        let join: Vec<String> = self.addresses[..3].iter().map(SocketAddr::to_string).collect();
        command.env("COURSER_CLUSTER_SECRET", "what all nodes of this test know");
        command.env("COURSER_CLUSTER_GROUPS", "2").env("COURSER_LOG_LEVEL", "warn");
        command.env("COURSER_JOURNAL_SEGMENT_BYTES", "1048576");
        command.args(["--cluster-name", "prod", "--node-name", NAMES[node]]);
        command.args(["--cluster-listen", &self.addresses[node].to_string()]);
        command.args(["--join", &join.join(",")]).arg("--data-dir").arg(self.data(node));
        command.args(["--listen", "127.0.0.1:0"]);
        command
    }

    /// Where a node writes its log.
    pub fn log(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", NAMES[node]))
    }

    pub fn start(&mut self, node: usize) {
        let mut command = self.command(node);
        command.stderr(File::create(self.log(node)).expect("a file"));
        self.running[node] = Some(Process::start_with(command));
    }

    pub fn end(&mut self, node: usize, signal: &str) {
        let mut process = self.running[node].take().expect("a node that runs");
        process.signal(signal);
        process.wait();
    }

    pub fn url(&self, node: usize, user: &str, vhost: &str) -> String {
        let address = self.running[node].as_ref().expect("a node that runs").address;
        format!("amqp://{user}@{address}/{vhost}")
    }

    pub async fn channel(&self, node: usize, vhost: &str) -> Channel {
        let url = self.url(node, "guest:guest", vhost);
        let mut connection = None;
        wait_until("a connection", async || {
            connection = Connection::open(&url).await.ok();
            connection.is_some()
        })
        .await;
        connection.expect("one").open_channel().await.expect("a channel")
    }

    /// Publishes messages from this number on, until they are confirmed.
    pub async fn publish(&self, node: usize, from: u32) {
        self.publish_in(node, "%2f", from).await;
    }

    pub async fn publish_in(&self, node: usize, vhost: &str, from: u32) {
        let channel = self.channel(node, vhost).await;
        channel.queue_declare("orders", QueueOptions::durable()).await.expect("a queue");
        channel.confirm_select().await.expect("confirms");
        for number in from..from + MESSAGES {
            let body = body(number);
            let confirm = channel.publish("", "orders", Outgoing::new(&body).persistent()).await;
            assert!(confirm.expect("published").await.expect("a confirm").is_ack());
        }
    }

    pub async fn consume(&self, node: usize, numbers: std::ops::Range<u32>) {
        self.consume_in(node, "%2f", numbers).await;
    }

    pub async fn consume_in(&self, node: usize, vhost: &str, numbers: std::ops::Range<u32>) {
        let channel = self.channel(node, vhost).await;
        for number in numbers {
            let message = channel.get("orders", true).await.expect("a queue").expect("a message");
            assert_eq!(message.body(), body(number));
        }
    }

    pub fn recover(&self, node: usize, arguments: &[&str]) -> Output {
        let mut command = self.command(node);
        output(command.args(["cluster", "recover"]).args(arguments))
    }

    pub fn ctl(&self, node: usize, arguments: &[&str]) -> String {
        let mut command = Process::command();
        command.arg("ctl").arg("--data-dir").arg(self.data(node)).args(arguments);
        let output = output(&mut command);
        text(&output.stdout) + &text(&output.stderr)
    }
}

pub fn body(number: u32) -> Vec<u8> {
    format!("this is order {number} of some").into_bytes()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn has(folder: &Path, bytes: &[u8]) -> bool {
    files(folder).iter().any(|(_, found)| found.windows(bytes.len()).any(|one| one == bytes))
}

/// What is in all files below a folder but locks.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension() == Some("log".as_ref()) || path.ends_with("replica") => {
                found.push((path.clone(), fs::read(&path).unwrap_or_default()));
            }
            false => {}
        }
    }
    found.sort();
    found
}

/// Three nodes with messages that all of them have, of which one is stopped.
pub async fn three_nodes() -> Nodes {
    let folder = tempfile::tempdir().expect("a folder");
    let mut nodes = Nodes { folder, addresses: free_addresses(4), running: Default::default() };
    [A, B, C].into_iter().for_each(|node| nodes.start(node));
    nodes.publish(A, 0).await;
    for node in [A, B, C] {
        let data = nodes.data(node);
        let has_all = || has(&data.join("group"), &body(MESSAGES - 1));
        wait_until("a copy", async || has_all() && data.join("group-1/replica").exists()).await;
    }
    nodes.end(C, "TERM");
    nodes
}

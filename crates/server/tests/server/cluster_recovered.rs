//! The worst day, step by step as `docs/cluster.md` has it: two of three nodes are lost with their disks.

use crate::support::{Process, free_addresses, wait_until};
use courser_client::{Connection, Outgoing, QueueOptions};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;
const MESSAGES: u32 = 50;

/// Three nodes, and a place for a fourth one.
struct Nodes {
    folder: TempDir,
    addresses: Vec<SocketAddr>,
    running: [Option<Process>; 4],
}

impl Nodes {
    fn data(&self, node: usize) -> PathBuf {
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
    fn log(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", NAMES[node]))
    }

    fn start(&mut self, node: usize) {
        let mut command = self.command(node);
        command.stderr(File::create(self.log(node)).expect("a file"));
        self.running[node] = Some(Process::start_with(command));
    }

    fn end(&mut self, node: usize, signal: &str) {
        let mut process = self.running[node].take().expect("a node that runs");
        process.signal(signal);
        process.wait();
    }

    async fn connect(&self, node: usize) -> Connection {
        let address = self.running[node].as_ref().expect("a node that runs").address;
        let mut connection = None;
        wait_until("a connection", async || {
            connection = Connection::open(&format!("amqp://{address}")).await.ok();
            connection.is_some()
        })
        .await;
        connection.expect("one")
    }

    /// Publishes messages from this number on, until they are confirmed.
    async fn publish(&self, node: usize, from: u32) {
        let channel = self.connect(node).await.open_channel().await.expect("a channel");
        channel.queue_declare("orders", QueueOptions::durable()).await.expect("a queue");
        channel.confirm_select().await.expect("confirms");
        for number in from..from + MESSAGES {
            let body = body(number);
            let confirm = channel.publish("", "orders", Outgoing::new(&body).persistent()).await;
            assert!(confirm.expect("published").await.expect("a confirm").is_ack());
        }
    }

    async fn consume(&self, node: usize, numbers: std::ops::Range<u32>) {
        let channel = self.connect(node).await.open_channel().await.expect("a channel");
        for number in numbers {
            let message = channel.get("orders", true).await.expect("a queue").expect("a message");
            assert_eq!(message.body(), body(number));
        }
    }

    fn recover(&self, node: usize, arguments: &[&str]) -> Output {
        let mut command = self.command(node);
        command.args(["cluster", "recover"]).args(arguments).output().expect("it runs")
    }

    fn ctl(&self, node: usize, arguments: &[&str]) -> String {
        let mut command = Process::command();
        command.arg("ctl").arg("--data-dir").arg(self.data(node)).args(arguments);
        let output = command.output().expect("it runs");
        text(&output.stdout) + &text(&output.stderr)
    }
}

fn body(number: u32) -> Vec<u8> {
    format!("this is order {number} of some").into_bytes()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn has(folder: &Path, bytes: &[u8]) -> bool {
    files(folder).iter().any(|(_, found)| found.windows(bytes.len()).any(|one| one == bytes))
}

/// What is in all files below a folder but locks.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
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
async fn three_nodes() -> Nodes {
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

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_for_the_worst_day_bring_a_cluster_back_with_what_one_node_has() {
    let mut nodes = three_nodes().await;
    // With the others it is a majority: nothing has to be lost.
    let before = files(&nodes.data(C));
    let refused = nodes.recover(C, &["--from-this-copy"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let why = text(&refused.stderr);
    assert!(why.contains("'a', 'b' and this node are 3 of 3 voting members"), "{why}");

    // The day: one folder is gone, and one comes back when nothing counts on it any more.
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    fs::remove_dir_all(nodes.data(B)).expect("removed");
    let kept = nodes.folder.path().join("a-of-before");
    fs::rename(nodes.data(A), &kept).expect("renamed");

    // Step 2 and 3.
    let data = nodes.data(C);
    let arguments = ["journal", "verify", "--data-dir", data.to_str().expect("text")];
    let verified = Process::run(&arguments);
    assert!(verified.status.success(), "{verified:?}");
    let asked = nodes.recover(C, &[]);
    assert!(asked.status.success(), "{asked:?}");
    let said = text(&asked.stdout);
    for part in
        ["voting members were", "group 0: the last entry is", "group 1:", "Nothing was changed"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("no member answers").count(), 2, "{said}");
    assert_eq!(said.matches("last written to at 2").count(), 2, "{said}");
    assert!(files(&data) == before, "asking has changed something");

    // Steps 4 and 5.
    let recovered = nodes.recover(C, &["--from-this-copy"]);
    assert!(recovered.status.success(), "{recovered:?}");
    assert!(text(&recovered.stdout).contains("is node 'c' alone now"), "{recovered:?}");
    let again = nodes.recover(C, &["--from-this-copy"]);
    assert!(text(&again.stderr).contains("the only member"), "{again:?}");
    nodes.start(C);
    let in_use = nodes.recover(C, &[]);
    assert!(text(&in_use.stderr).contains("in use"), "{in_use:?}");
    nodes.consume(C, 0..MESSAGES / 2).await;
    nodes.publish(C, MESSAGES).await;
    let status = nodes.ctl(C, &["cluster", "status"]);
    assert!(!status.contains("\na\t") && !status.contains("\nb\t"), "{status}");
    assert!(status.contains("group 1\tleader c"), "{status}");

    // Step 6.
    nodes.start(D);
    let address = nodes.addresses[D].to_string();
    wait_until("the new node is added", async || {
        nodes.ctl(C, &["cluster", "add", &address]);
        nodes.ctl(C, &["cluster", "status"]).contains("\nd\tfollower")
    })
    .await;
    wait_until("it has all", async || {
        has(&nodes.data(D).join("group"), &body(2 * MESSAGES - 1))
            && nodes.data(D).join("group-1/replica").exists()
    })
    .await;

    // One of before has no part in it.
    fs::rename(&kept, nodes.data(A)).expect("renamed");
    nodes.start(A);
    let status = nodes.running[A].as_mut().expect("a node").wait();
    assert_eq!(status.code(), Some(1));
    let log = fs::read_to_string(nodes.log(A)).expect("readable");
    assert!(log.contains("cluster 'prod' was recovered without node 'a'"), "{log}");
    nodes.running[A] = None;

    nodes.consume(D, MESSAGES / 2..2 * MESSAGES).await;
    nodes.end(D, "TERM");
    nodes.end(C, "TERM");
}

/// Recovers a node that was lost before it had kept that it has the group which home's log names.
async fn recover_without_its_group(has_copy: bool) {
    let mut nodes = three_nodes().await;
    [A, B].into_iter().for_each(|node| nodes.end(node, "KILL"));
    let file = nodes.data(C).join("cluster.json");
    let kept = fs::read_to_string(&file).expect("readable");
    let mut kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    kept.as_object_mut().expect("an object").remove("groups");
    fs::write(&file, kept.to_string()).expect("written");
    if !has_copy {
        fs::remove_dir_all(nodes.data(C).join("group-1")).expect("removed");
    }
    let recovered = nodes.recover(C, &["--from-this-copy"]);
    assert!(recovered.status.success(), "{recovered:?}");
    nodes.start(C);
    nodes.consume(C, 0..MESSAGES).await;
    wait_until("a leader of the group", async || {
        nodes.ctl(C, &["cluster", "status"]).contains("group 1\tleader c")
    })
    .await;
    nodes.end(C, "TERM");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_the_node_had_only_just_made_is_recovered() {
    recover_without_its_group(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_which_the_node_had_no_copy_begins_anew_with_that_node() {
    recover_without_its_group(false).await;
}

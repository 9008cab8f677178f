//! Messages that disks change after they were written, in a cluster.

use crate::cluster::{Three, connect};
use crate::cluster_operated::ctl;
use crate::support::{Client, PATIENCE, wait_until};
use courser::{Config, Inherited, Node};
use courser_client::{Channel, Connection, Outgoing, QueueOptions};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(crate) const MESSAGES: u8 = 5;
/// The one that is harmed.
pub(crate) const HARMED: u8 = 2;

pub(crate) fn body(number: u8) -> Vec<u8> {
    format!("this is message {number} of some").into_bytes().repeat(10)
}

async fn start() -> Three {
    Three::start_with(|config| config.journal.checkpoint_after_bytes = 1 << 20).await
}

/// Publishes messages, until all nodes have them on their disks. Returns the connection.
async fn publish_behind_checkpoints(three: &Three, leader: usize) -> Connection {
    publish_behind_checkpoints_of(three, leader, &[0, 1, 2]).await
}

/// The same of those nodes that run.
pub(crate) async fn publish_behind_checkpoints_of(
    three: &Three,
    leader: usize,
    nodes: &[usize],
) -> Connection {
    let connection = connect(three.node(leader)).await;
    let channel = connection.open_channel().await.expect("a channel");
    for queue in ["q", "filler"] {
        channel.queue_declare(queue, QueueOptions::durable()).await.expect("a queue");
    }
    publish_one_by_one(&channel, (0..MESSAGES).map(body)).await;
    for node in nodes {
        let (folder, last) = (&three.configs[*node].data_dir, body(MESSAGES - 1));
        wait_until("all copies", async || place(folder, &last).is_some()).await;
    }
    connection
}

/// Publishes messages that are each an entry of its own.
pub(crate) async fn publish_one_by_one(channel: &Channel, bodies: impl Iterator<Item = Vec<u8>>) {
    channel.confirm_select().await.expect("confirms");
    for body in bodies {
        let message = Outgoing::new(&body).persistent();
        let confirm = channel.publish("", "q", message).await.expect("published");
        assert!(confirm.await.expect("a confirm").is_ack());
    }
}

/// Publishes messages, until all nodes have them on their disks, and in checkpoints.
async fn publish(three: &Three, leader: usize) {
    let connection = publish_behind_checkpoints(three, leader).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.confirm_select().await.expect("confirms");
    // What a checkpoint stands for is not read by a node that comes to lead.
    let before: Vec<u64> = three.configs.iter().map(newest_checkpoint).collect();
    wait_until("checkpoints of all nodes", async || {
        let filler = Outgoing::new(&[0; 256 << 10]).persistent();
        let confirm = channel.publish("", "filler", filler).await.expect("published");
        assert!(confirm.await.expect("a confirm").is_ack());
        channel.queue_purge("filler").await.expect("a queue");
        let now = three.configs.iter().map(newest_checkpoint);
        now.zip(&before).all(|(now, before)| now > before + 1)
    })
    .await;
}

/// The number of the last checkpoint of a node.
fn newest_checkpoint(config: &Config) -> u64 {
    let number = |path: PathBuf| {
        let is_checkpoint = path.extension() == Some("checkpoint".as_ref());
        let stem = path.file_stem()?.to_str()?;
        is_checkpoint.then(|| u64::from_str_radix(stem, 16).ok()).flatten()
    };
    files(&config.data_dir).into_iter().filter_map(number).max().unwrap_or(0)
}

/// A consumer, which gets messages in this order.
pub(crate) async fn consume(node: &Node, numbers: impl IntoIterator<Item = u8>) -> Client {
    let mut client = Client::connect(node.addresses().amqp[0]).await;
    client.consume("q", true).await;
    receive(&mut client, numbers).await;
    client
}

async fn receive(client: &mut Client, numbers: impl IntoIterator<Item = u8>) {
    for number in numbers {
        assert_eq!(client.bodies(1).await, [body(number)], "message {number}");
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .flat_map(|entry| match entry.path().is_dir() {
            true => files(&entry.path()),
            false => vec![entry.path()],
        })
        .collect()
}

/// The log of a node with a message, and where in it that is.
pub(crate) fn place(folder: &Path, body: &[u8]) -> Option<(PathBuf, u64)> {
    let logs = files(folder).into_iter().filter(|path| path.extension() == Some("log".as_ref()));
    logs.into_iter().find_map(|path| {
        let content = fs::read(&path).ok()?;
        let at = content.windows(body.len()).position(|window| window == body)?;
        Some((path, at as u64))
    })
}

/// Changes a byte of the harmed message in the log of a node.
fn harm(folder: &Path) {
    let (path, at) = place(folder, &body(HARMED)).expect("it is there");
    let file = fs::File::options().write(true).open(path).expect("a log");
    file.write_all_at(b"#", at + 7).expect("written");
}

/// Changes the harmed message, and what stands in front of its record's frame.
pub(crate) fn harm_frame(folder: &Path) {
    let (log, at) = place(folder, &body(HARMED)).expect("it is there");
    harm(folder);
    let before = fs::read(&log).expect("a log");
    let frame = frame_before(&before, at as usize);
    let file = fs::File::options().write(true).open(&log).expect("a log");
    file.write_all_at(&[!before[frame]], frame as u64).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_leaders_disk_has_changed_comes_from_another_node_and_is_written_again() {
    let three = start().await;
    let leader = three.wait_for_leader().await;
    publish(&three, leader).await;
    let folder = three.configs[leader].data_dir.clone();
    harm(&folder);
    assert!(place(&folder, &body(HARMED)).is_none());
    consume(three.node(leader), 0..MESSAGES).await;
    // On a busy machine another node may have come to lead, which has read its own copy.
    let is_whole = place(&folder, &body(HARMED)).is_some();
    assert!(is_whole || three.wait_for_leader().await != leader, "it is whole again on the disk");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_disks_have_changed_waits_for_the_node_that_is_away() {
    let mut three = start().await;
    let leader = three.wait_for_leader().await;
    let (away, other) = ((leader + 1) % 3, (leader + 2) % 3);
    publish(&three, leader).await;
    let folders: Vec<_> = three.configs.iter().map(|config| config.data_dir.clone()).collect();
    three.nodes[away].take().expect("a node").stop().await.expect("a clean stop");
    harm(&folders[leader]);
    harm(&folders[other]);
    let mut client = consume(three.node(leader), 0..HARMED).await;
    // Longer than it takes to ask, and than a queue waits before it goes on behind what it can't read.
    receive(&mut client, HARMED + 1..MESSAGES).await;
    let back = Node::start_on(three.configs[away].clone(), Inherited::default()).await;
    three.nodes[away] = Some(back.expect("a node"));
    receive(&mut client, [HARMED]).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_disks_have_changed_is_lost_and_nothing_else() {
    let three = start().await;
    let leader = three.wait_for_leader().await;
    publish(&three, leader).await;
    for config in &three.configs {
        harm(&config.data_dir);
    }
    let others = (0..MESSAGES).filter(|number| *number != HARMED);
    let mut client = consume(three.node(leader), others).await;
    assert_eq!(client.count("q").await, 0);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_followers_disk_has_changed_is_written_again_before_it_leads() {
    let three = start().await;
    let leader = three.wait_for_leader().await;
    publish(&three, leader).await;
    let follower = (leader + 1) % 3;
    let folder = three.configs[follower].data_dir.clone();
    let (log, at) = place(&folder, &body(HARMED)).expect("it is there");
    harm_frame(&folder);
    let scrubbed = ctl(&three.configs[follower], &["-q", "journal", "scrub"]).await;
    let said = String::from_utf8_lossy(&scrubbed.stdout);
    assert!(scrubbed.status.success(), "{scrubbed:?}");
    assert!(said.contains("what was damaged is written again"), "{said}");
    assert_eq!(place(&folder, &body(HARMED)), Some((log.clone(), at)));
    let again = ctl(&three.configs[follower], &["-q", "journal", "scrub"]).await;
    assert!(String::from_utf8_lossy(&again.stdout).contains("nothing is damaged"), "{again:?}");
    lead(&three, follower).await;
    consume(three.node(follower), 0..MESSAGES).await;
    three.stop().await;
}

/// Has a node come to lead.
pub(crate) async fn lead(three: &Three, node: usize) {
    let leads: [&[&str]; 3] = [
        &["cluster", "transfer-leader", "a"],
        &["cluster", "transfer-leader", "b"],
        &["cluster", "transfer-leader", "c"],
    ];
    wait_until("the node leads", async || {
        ctl(&three.configs[node], leads[node]).await;
        three.wait_for_leader().await == node
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_disk_of_a_node_has_changed_that_comes_to_lead_is_written_again_before() {
    let three = start().await;
    let leader = three.wait_for_leader().await;
    publish_behind_checkpoints(&three, leader).await;
    let next = (leader + 1) % 3;
    let folder = three.configs[next].data_dir.clone();
    harm(&folder);
    lead(&three, next).await;
    consume(three.node(next), 0..MESSAGES).await;
    assert!(place(&folder, &body(HARMED)).is_some(), "it is whole again on the disk");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_to_lead_waits_for_the_node_that_has_what_its_own_disk_has_changed() {
    let mut three = start().await;
    let leader = three.wait_for_leader().await;
    publish_behind_checkpoints(&three, leader).await;
    for other in [(leader + 1) % 3, (leader + 2) % 3] {
        harm(&three.configs[other].data_dir);
    }
    three.nodes[leader].take().expect("a node").stop().await.expect("a clean stop");
    // One of the others comes to lead, and can't serve.
    three.wait_for_leader().await;
    let back = Node::start_on(three.configs[leader].clone(), Inherited::default()).await;
    three.nodes[leader] = Some(back.expect("a node"));
    let leads = three.wait_for_leader().await;
    consume(three.node(leads), 0..MESSAGES).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sector_of_two_frames_is_written_again_before_its_node_leads() {
    let three = start().await;
    let leader = three.wait_for_leader().await;
    publish_behind_checkpoints(&three, leader).await;
    let next = (leader + 1) % 3;
    let folder = three.configs[next].data_dir.clone();
    let (log, at) = place(&folder, &body(HARMED)).expect("it is there");
    let file = fs::File::options().write(true).open(&log).expect("a log");
    // The rest of the message, and the frame that closes its entry.
    let end = at + body(HARMED).len() as u64;
    file.write_all_at(&[0; 64], end - 30).expect("written");
    lead(&three, next).await;
    consume(three.node(next), 0..MESSAGES).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_ends_that_leads_without_what_no_voter_has_though_one_has_not_come_so_far() {
    let mut three = start().await;
    let leader = three.wait_for_leader().await;
    let (next, behind) = ((leader + 1) % 3, (leader + 2) % 3);
    three.nodes[behind].take().expect("a node").stop().await.expect("a clean stop");
    publish_behind_checkpoints_of(&three, leader, &[leader, next]).await;
    harm(&three.configs[leader].data_dir);
    harm(&three.configs[next].data_dir);
    let back = Node::start_on(three.configs[behind].clone(), Inherited::default()).await;
    three.nodes[behind] = Some(back.expect("a node"));
    let name: &[&[&str]; 3] = &[
        &["cluster", "transfer-leader", "a"],
        &["cluster", "transfer-leader", "b"],
        &["cluster", "transfer-leader", "c"],
    ];
    ctl(&three.configs[leader], name[next]).await;
    let ended = tokio::time::timeout(PATIENCE, three.node(next).failed()).await;
    let reason = ended.expect("it ends").reason;
    assert!(reason.contains("is damaged at offset"), "{reason}");
    for node in three.nodes.into_iter().flatten() {
        drop(node.stop().await);
    }
}

/// Where the frame begins that has this place: it names its own position, as an offset behind the start of its segment.
fn frame_before(log: &[u8], at: usize) -> usize {
    let number = |at: usize| u64::from_le_bytes(log[at..at + 8].try_into().expect("8 bytes"));
    let start = number(24);
    let names_itself = |offset: &usize| number(*offset) == start + *offset as u64;
    (4096..at).step_by(8).rfind(names_itself).expect("a frame")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_again_after_the_journal_was_read_is_told_no_more() {
    let mut three = start().await;
    let leader = three.wait_for_leader().await;
    let (away, other) = ((leader + 1) % 3, (leader + 2) % 3);
    publish(&three, leader).await;
    three.nodes[away].take().expect("a node").stop().await.expect("a clean stop");
    let both = [leader, other];
    both.iter().for_each(|node| harm(&three.configs[*node].data_dir));
    for node in both {
        let scrubbed = ctl(&three.configs[node], &["journal", "scrub"]).await;
        assert_eq!(scrubbed.status.code(), Some(69), "{scrubbed:?}");
        assert_eq!(figures(&three, node).await, [1, 0, 1]);
    }
    for kind in ["\"journal_damaged\"", "\"journal_damaged_elsewhere\""] {
        wait_until("it is told", async || told(&three, leader).await.contains(kind)).await;
    }
    let back = Node::start_on(three.configs[away].clone(), Inherited::default()).await;
    three.nodes[away] = Some(back.expect("a node"));
    for node in both {
        wait_until("it is whole", async || figures(&three, node).await == [0, 1, 1]).await;
    }
    wait_until("nothing is told", async || !told(&three, leader).await.contains("journal_damaged"))
        .await;
    three.stop().await;
}

/// What operators should know, as a node answers.
async fn told(three: &Three, node: usize) -> String {
    let told = ctl(&three.configs[node], &["-q", "--formatter", "json", "attention"]).await;
    String::from_utf8_lossy(&told.stdout).into_owned()
}

/// How many parts of a node's logs are damaged, were repaired, and were found to be damaged.
async fn figures(three: &Three, node: usize) -> [u64; 3] {
    let said = ctl(&three.configs[node], &["-q", "--formatter", "json", "journal", "status"]).await;
    let state: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    ["unrepaired", "repaired", "damaged"].map(|name| state[name].as_u64().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_disk_has_any_more_is_told_when_the_journal_is_read() {
    let three = start().await;
    let leader = three.wait_for_leader().await;
    publish(&three, leader).await;
    for config in &three.configs {
        harm(&config.data_dir);
    }
    let scrubbed = ctl(&three.configs[leader], &["journal", "scrub"]).await;
    assert_eq!(scrubbed.status.code(), Some(69), "{scrubbed:?}");
    let said = String::from_utf8_lossy(&scrubbed.stderr);
    assert!(said.contains("1 part is damaged"), "{said}");
    let has = async |node: usize, kind: &str| told(&three, node).await.contains(kind);
    wait_until("it is told", async || has(leader, "\"journal_damaged\"").await).await;
    let follower = (leader + 1) % 3;
    let scrubbed = ctl(&three.configs[follower], &["journal", "scrub"]).await;
    assert_eq!(scrubbed.status.code(), Some(69), "{scrubbed:?}");
    wait_until("that of others is told too", async || {
        has(leader, "\"journal_damaged_elsewhere\"").await
    })
    .await;
    three.stop().await;
}

use super::super::front::Serves;
use super::super::testing::{HOME, PATIENCE, Three, wait_until};
use super::*;
use courser_client::{Connection, Options, Outgoing, QueueOptions};
use courser_connection::Credentials;
use courser_journal::Damaged;
use courser_management::Scrub as _;
use courser_store::Lsn;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use tokio::net::TcpStream;

const MESSAGES: usize = 20;
/// In front of the first frame of a segment's file.
const SEGMENT_HEADER_BYTES: usize = 4096;
/// Where in a frame its sum is.
const FRAME_SUM: u64 = 28;

fn body(number: usize) -> Vec<u8> {
    format!("this is message {number:03} of some").into_bytes()
}

/// Publishes messages at the node that leads home, each an entry of its own, until all of these nodes have them on their disks.
async fn publish(three: &Three, leader: usize, nodes: &[usize]) {
    let bodies: Vec<_> = (0..MESSAGES).map(body).collect();
    publish_these(three, leader, nodes, &bodies).await;
}

async fn publish_these(three: &Three, leader: usize, nodes: &[usize], bodies: &[Vec<u8>]) {
    let stream = TcpStream::connect(three.nodes[leader].addresses().amqp[0]).await;
    let options = Options {
        credentials: Credentials::Plain { user: b"guest".into(), password: "guest".into() },
        ..Options::default()
    };
    let connection = Connection::open_on(stream.expect("it runs"), options).await;
    let connection = connection.expect("it leads");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    for message in bodies {
        let message = Outgoing::new(message).persistent();
        let confirm = channel.publish("", "q", message).await.expect("published");
        assert!(confirm.await.expect("a confirm").is_ack());
    }
    connection.close().await.expect("a good end");
    let last = bodies.last().expect("there are some");
    for node in nodes {
        let folder = folder_of(three, *node);
        wait_until("all copies", async || place(&folder, last).is_some()).await;
    }
}

/// Where a node has its copy of home's log.
fn folder_of(three: &Three, node: usize) -> PathBuf {
    three.nodes[node].inner.folder.copy_dir(HOME).expect("a folder")
}

/// The file with this message, what is in it, and where in it the message is.
fn place(folder: &Path, body: &[u8]) -> Option<(PathBuf, Vec<u8>, usize)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
    let logs = entries.filter(|path| path.extension() == Some("log".as_ref()));
    logs.into_iter().find_map(|path| {
        let content = fs::read(&path).ok()?;
        let at = content.windows(body.len()).position(|window| window == body)?;
        Some((path, content, at))
    })
}

fn flip(path: &Path, content: &[u8], at: u64) {
    let file = fs::File::options().write(true).open(path).expect("a log");
    file.write_all_at(&[!content[at as usize]], at).expect("written");
}

/// What is found to be damaged.
#[derive(Default)]
struct Found(Vec<Part>);

impl Scrubbing for Found {
    fn may_read(&mut self, _: u64) -> bool {
        true
    }

    fn found(&mut self, damaged: Damaged) {
        self.0.push(damaged.part);
    }
}

/// Harms two frames that follow each other, in the middle of the messages.
fn harm_two_frames(folder: &Path) {
    let (path, content, at) = place(folder, &body(MESSAGES / 2)).expect("it is there");
    let number = |at: usize| u64::from_le_bytes(content[at..at + 8].try_into().expect("8 bytes"));
    let start = number(24);
    let is_frame = |offset: &usize| number(*offset) == start + *offset as u64;
    let behind = (at.next_multiple_of(8)..content.len() - 8).step_by(8);
    assert!(at > SEGMENT_HEADER_BYTES);
    let frames: Vec<usize> = behind.filter(is_frame).take(2).collect();
    frames.iter().for_each(|frame| flip(&path, &content, *frame as u64 + FRAME_SUM));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_with_a_repair_counts_as_damaged_no_more_before_the_pass_ends() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    publish(&three, leader, &[0, 1, 2]).await;
    let follower = (leader + 1) % 3;
    harm_two_frames(&folder_of(&three, follower));
    let inner = &three.nodes[follower].inner;
    let scrub = Arc::clone(inner.members.scrub.get().expect("a thread that reads"));
    let member = inner.groups.home().member().expect("it runs");
    let own = OwnCopy { members: Arc::clone(&inner.members), group: HOME, member };
    let looking = tokio::task::spawn_blocking(move || {
        let mut found = Found::default();
        own.scrub(&mut found);
        let [first, second] = found.0[..] else { panic!("two frames: {:?}", found.0) };
        // As an earlier pass that no other node has answered.
        scrub.note_damaged(&journal_of(HOME), second);
        assert_eq!(scrub.state().unrepaired, 1);
        assert!(own.repair(first), "another node has it");
        scrub.state()
    });
    let state = looking.await.expect("no panic");
    assert_eq!((state.unrepaired, state.repaired_total), (0, 1));
    three.stop().await;
}

/// What other nodes bring in parts.
const LONG_BYTES: usize = ANSWER_BYTES_MAX + (1 << 20);

#[tokio::test(flavor = "multi_thread")]
async fn a_long_message_that_is_damaged_everywhere_is_asked_for_no_more() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    let body: Vec<u8> = (0..LONG_BYTES).map(|at| (at / 7) as u8 ^ (at / 4000) as u8).collect();
    publish_these(&three, leader, &[0, 1, 2], std::slice::from_ref(&body)).await;
    for node in 0..3 {
        let (path, content, at) = place(&folder_of(&three, node), &body).expect("it is there");
        flip(&path, &content, (at + LONG_BYTES / 2) as u64);
    }
    let inner = &three.nodes[(leader + 1) % 3].inner;
    let member = inner.groups.home().member().expect("it runs");
    let own = OwnCopy { members: Arc::clone(&inner.members), group: HOME, member };
    let looking = tokio::task::spawn_blocking(move || {
        let mut found = Found::default();
        own.scrub(&mut found);
        let [Part::Record(position)] = found.0[..] else { panic!("a record: {:?}", found.0) };
        // A node that is slow to answer is asked again.
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            assert!(!own.repair(Part::Record(position)), "no node has it");
            if own.member.damaged(9).is_empty() {
                return true;
            }
            thread::sleep(Duration::from_millis(100));
        }
        false
    });
    assert!(looking.await.expect("no panic"), "it is not given up");
    three.stop().await;
}

/// Harms a message, so that no broker can be opened on the log before it is mended.
fn harm(folder: &Path) {
    let (path, content, at) = place(folder, &body(MESSAGES / 2)).expect("it is there");
    flip(&path, &content, at as u64 + 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_can_not_mend_its_log_leads_for_a_while_and_no_longer() {
    let mut three = Three::start().await;
    let leader = three.leader(HOME).await;
    publish(&three, leader, &[0, 1, 2]).await;
    // What the others lack from now on is there, where it can't be asked for.
    let away = three.nodes.remove(leader);
    let config = away.inner.config();
    away.stop().await.expect("a clean stop");
    let served = three.leader(HOME).await;
    [0, 1].iter().for_each(|node| harm(&folder_of(&three, *node)));
    let [before, next] = [served, 1 - served].map(|node| {
        let group = three.nodes[node].inner.groups.home();
        group.member().expect("it runs")
    });
    let leads =
        |member: &Member| matches!(*member.leadership().borrow(), Leadership::Serving { .. });
    let to = three.nodes[1 - served].inner.folder.node();
    wait_until("the other one leads", async || {
        let from = Arc::clone(&before);
        let moving = tokio::task::spawn_blocking(move || from.transfer_to(to));
        // One that lags behind can't yet.
        let _ = moving.await.expect("no panic");
        tokio::time::sleep(Duration::from_millis(100)).await;
        leads(&next)
    })
    .await;
    wait_until("the lead goes back, as it can't be served with", async || leads(&before)).await;
    for node in &three.nodes {
        assert!(!matches!(node.inner.front.serves(), Serves::Here(_)), "it lacks a message");
    }
    drop((before, next));
    let back = crate::Node::start_on(config, crate::Inherited::default()).await.expect("a node");
    back.inner.members.spread.is_off.store(true, std::sync::atomic::Ordering::Relaxed);
    three.nodes.insert(leader, back);
    let admin = tokio::time::timeout(PATIENCE, three.admin(HOME)).await.expect("a node serves");
    assert_eq!(admin.queue("/", b"q").expect("the queue").ready, MESSAGES);
    three.stop().await;
}

#[test]
fn no_node_is_believed_that_a_piece_is_longer_than_any() {
    for piece in [Piece::Record(Lsn(0)), Piece::Frame(Lsn(0))] {
        let why = is_whole(piece, &[0xff; 64]).expect_err("4 GiB");
        assert!(matches!(why, NoPiece::Failed(why) if why.contains("longer")), "{piece:?}");
        let short = is_whole(piece, &[0; 1024]).is_ok_and(|is_whole| is_whole);
        assert!(short && is_whole(piece, &[0; 2]).is_ok_and(|is_whole| !is_whole), "{piece:?}");
    }
}

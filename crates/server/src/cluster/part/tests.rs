//! A node whose disk stands still when it does not lead any more, or when it comes to lead; one that needs a copy of the log
//! while it does something with its own; one whose disk is full while it sends a copy, or while it joins.

mod beginning;
mod ending;
mod letting_go;
mod opening;
mod strangers;

use super::super::copies;
use super::super::group::Group;
use super::super::node::Inner;
use super::super::testing::{HOME, ONE, PATIENCE, Three, wait_until};
use courser_client::{Connection, Options, Outgoing, QueueOptions};
use courser_cluster::{
    GroupNumber, Identity, Leadership, Member, MemberConfig, NodeId, Options as GroupOptions,
    Origin, Packet, Peers,
};
use courser_connection::Credentials;
use courser_journal::testing::FakeDisk;
use courser_store::{
    Lsn, OpenShard, Opening, Position, Record, Recovered, ShardId, ShardState, Shards, Store, Sync,
};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

fn member(three: &Three, node: usize) -> Arc<Member> {
    let group = three.nodes[node].inner.groups.get(ONE).expect("it is there");
    group.member().expect("it runs")
}

/// Has a node lead as far as the nodes agree on it, whether it serves or not. Others may be elected meanwhile.
async fn elect(three: &Three, to: usize) {
    let next = three.nodes[to].inner.folder.node();
    let leads = |node: usize| {
        matches!(*member(three, node).leadership().borrow(), Leadership::Serving { .. })
    };
    wait_until("the lead has moved", async || {
        for from in (0..3).filter(|from| *from != to && leads(*from)) {
            let from = member(three, from);
            let moving = tokio::task::spawn_blocking(move || from.transfer_to(next));
            // One that lags behind can't yet.
            let _ = moving.await.expect("no panic");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        leads(to)
    })
    .await;
}

/// Has a node lead, and waits until another one has taken note of it.
async fn elect_and_tell(three: &Three, to: usize, told: usize) {
    let [leader, own] = [to, told].map(|node| three.nodes[node].inner.folder.node());
    let group = three.nodes[told].inner.groups.get(ONE).expect("it is there");
    wait_until("it knows who leads", async || {
        elect(three, to).await;
        group.leader(own) == Some(leader)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_for_its_disk_knows_who_leads_meanwhile() {
    let three = Three::start().await;
    let first = three.leader(ONE).await;
    let (second, third) = ((first + 1) % 3, (first + 2) % 3);
    // What it does with its disk is not done while this is held.
    let disk = Arc::clone(&three.nodes[first].inner.busy).write_owned().await;
    // Its broker is let go of.
    elect_and_tell(&three, second, first).await;
    elect_and_tell(&three, third, first).await;
    // It leads again, and opens its broker.
    elect(&three, first).await;
    elect_and_tell(&three, second, first).await;
    drop(disk);
    three.move_lead(ONE, first).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_needs_a_copy_lets_go_of_its_log_though_it_sends_one() {
    let three = Three::start().await;
    let leader = three.leader(ONE).await;
    let to = three.nodes[(leader + 1) % 3].inner.folder.node();
    let group = three.nodes[leader].inner.groups.get(ONE).expect("it leads");
    let (ours, mut theirs) = tokio::io::duplex(8);
    let (of, runtime) = (Arc::clone(&group), Handle::current());
    let sending = move || copies::send(&of, to, "null", ours, &runtime);
    let sending = tokio::task::spawn_blocking(sending);
    // It has begun, and the other node takes nothing more.
    theirs.read_u8().await.expect("a byte");
    let member = group.set_member(None);
    group.nothing_sent().await;
    let why = sending.await.expect("no panic").expect_err("it was not taken");
    assert!(why.contains("does not have its log any more"), "{why}");
    group.set_member(member);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_for_a_copy_is_freed_before_the_same_node_gets_another_one() {
    let three = Three::start().await;
    let leader = three.leader(ONE).await;
    let to = three.nodes[(leader + 1) % 3].inner.folder.node();
    let group = three.nodes[leader].inner.groups.get(ONE).expect("it leads");
    let send = || {
        let (ours, theirs) = tokio::io::duplex(8);
        let (of, runtime) = (Arc::clone(&group), Handle::current());
        let sending = move || copies::send(&of, to, "null", ours, &runtime);
        (tokio::task::spawn_blocking(sending), theirs)
    };
    let (first, mut taken) = send();
    taken.read_u8().await.expect("it has begun");
    let (second, _theirs) = send();
    let why = second.await.expect("no panic").expect_err("the first one is there");
    assert!(why.contains("freed first"), "{why}");
    let why = first.await.expect("no panic").expect_err("it was not taken");
    assert!(why.contains("asked for another copy"), "{why}");
    let (third, mut taken) = send();
    taken.read_u8().await.expect("it has begun");
    drop(taken);
    third.await.expect("no panic").expect_err("it was not taken");
    three.stop().await;
}

/// A node without others.
struct Alone;

impl Peers for Alone {
    fn send(&self, _to: NodeId, _packets: Vec<Packet>) {}
}

/// What a broker that has nothing makes checkpoints of.
struct Empty(Arc<dyn Store>);

impl ShardState for Empty {
    fn start(&self) -> Lsn {
        self.0.end()
    }

    fn for_each_live(&self, _start: Lsn, _each: &mut dyn FnMut(Position)) {}

    fn write(&self, _start: Lsn, out: &mut dyn Write) -> io::Result<()> {
        Recovered::default().write(out)
    }
}

const SEGMENT_BYTES: u64 = 64 << 10;

fn alone_on(disk: &FakeDisk) -> MemberConfig {
    MemberConfig {
        dir: "group".into(),
        disk: Arc::new(disk.clone()),
        identity: Identity { group: 7, segment_bytes: SEGMENT_BYTES },
        origin: Origin::Founders(vec![NodeId(1)]),
        options: GroupOptions::new(NodeId(1)),
        tick: Duration::from_millis(5),
        journal: courser_journal::Options { segment_bytes: SEGMENT_BYTES, ..Default::default() },
    }
}

/// A group of one member, which leads it in a term, on a disk of its own.
async fn leading(
    inner: &Inner,
    number: GroupNumber,
    disk: &FakeDisk,
) -> (Arc<Group>, Arc<Member>, u64) {
    let group = Group::start(number, &inner.endpoint, &inner.roster).expect("a thread");
    let member = Member::start(alone_on(disk), Arc::new(Alone), &group.thread);
    let member = Arc::new(member.expect("an empty folder"));
    group.set_member(Some(Arc::clone(&member)));
    let mut leadership = member.leadership();
    let serves = |now: &Leadership| matches!(now, Leadership::Serving { .. });
    leadership.wait_for(serves).await.expect("it is alone");
    let term = member.status().term;
    (group, member, term)
}

/// The same, and what it keeps.
async fn lone(
    inner: &Inner,
    number: GroupNumber,
    disk: &FakeDisk,
) -> (Arc<Group>, Arc<Member>, Arc<dyn OpenShard>) {
    let (group, member, term) = leading(inner, number, disk).await;
    let shards = member.shards(term, Arc::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    (group, member, opened.expect("it serves").shard)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_that_leads_shows_which_members_have_no_room_on_their_disks() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    let short = &three.nodes[(leader + 1) % 3];
    let disk = FakeDisk::new(1);
    let (group, member, shard) = lone(&short.inner, GroupNumber(9), &disk).await;
    short.inner.groups.add(group);
    disk.set_capacity(disk.used_bytes());
    let store = shard.store();
    wait_until("its disk is full", async || {
        let record = Record::Defined { key: b"key", value: &[1; 10_000] };
        // What is refused is not kept.
        let _ = store.append(&[record], Sync::Wanted, &mut Vec::new());
        !member.has_room()
    })
    .await;
    let name = short.name();
    wait_until("it is shown", async || {
        let status = three.nodes[leader].status();
        let members = status["members"].as_array().cloned().unwrap_or_default();
        members.len() == 3 && members.iter().all(|one| one["room"] == (one["name"] != *name))
    })
    .await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_taken_slowly_is_given_up_when_it_keeps_the_disk_full() {
    let three = Three::start().await;
    let disk = FakeDisk::new(1);
    let (group, member, shard) = lone(&three.nodes[0].inner, ONE, &disk).await;
    let store = shard.store();
    let append = || {
        let record = Record::Defined { key: b"key", value: &[1; 10_000] };
        store.append(&[record], Sync::Wanted, &mut Vec::new()).is_ok()
    };
    let many = || (0..100).all(|_| append());
    assert!(many(), "there is room");

    let (ours, mut theirs) = tokio::io::duplex(8);
    let (of, runtime) = (Arc::clone(&group), Handle::current());
    let sending = move || copies::send(&of, NodeId(1), "null", ours, &runtime);
    let sending = tokio::task::spawn_blocking(sending);
    theirs.read_u8().await.expect("a byte");
    assert!(many(), "there is room");
    for _ in 0..2 {
        shard.checkpoint(&Empty(Arc::clone(&store))).expect("a good disk");
    }
    disk.set_capacity(disk.used_bytes());
    wait_until("the copy has ended", async || {
        // By the next segment the disk is full.
        append();
        sending.is_finished()
    })
    .await;
    let why = sending.await.expect("no panic").expect_err("it was not taken");
    assert!(why.contains("disk is full"), "{why}");
    wait_until("what was kept is freed", async || member.has_room()).await;
    three.stop().await;
}

/// Publishes at a node, which leads home, until there are so many checkpoints more of it.
async fn write_checkpoints(three: &Three, node: usize, more: u64) {
    let stream = TcpStream::connect(three.nodes[node].addresses().amqp[0]).await.expect("it runs");
    let options = Options {
        credentials: Credentials::Plain { user: b"guest".into(), password: "guest".into() },
        ..Options::default()
    };
    let connection = Connection::open_on(stream, options).await.expect("it leads");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    let folder = three.nodes[node].inner.folder.copy_dir(HOME).expect("a folder");
    let newest = || {
        let names =
            std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a name"));
        let numbers = names.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            u64::from_str_radix(name.strip_suffix(".checkpoint")?, 16).ok()
        });
        numbers.max().unwrap_or(0)
    };
    let wanted = newest() + more;
    wait_until("checkpoints", async || {
        let message = Outgoing::new(&[0; 256 << 10]).persistent();
        let confirm = channel.publish("", "q", message).await.expect("published");
        assert!(confirm.await.expect("a confirm").is_ack());
        channel.queue_purge("q").await.expect("a queue");
        newest() >= wanted
    })
    .await;
    connection.close().await.expect("a good end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_something_with_its_log_takes_a_copy_when_that_is_done() {
    let three = Three::start_with(|config| config.journal.checkpoint_after_bytes = 1 << 20).await;
    let leader = three.leader(HOME).await;
    let away = &three.nodes[(leader + 1) % 3];
    let group = away.inner.groups.home();
    // As while it asks other nodes for what its disk has damaged. It hears of nothing meanwhile.
    let held = group.set_member(None).expect("it runs");
    write_checkpoints(&three, leader, 4).await;
    group.set_member(Some(Arc::clone(&held)));
    let lacks = |now: &Leadership| matches!(now, Leadership::Lacks { .. });
    let mut leadership = held.leadership();
    let lacking = leadership.wait_for(lacks);
    tokio::time::timeout(PATIENCE, lacking).await.expect("it lacks").expect("it runs");
    // Long enough to try a few times.
    tokio::time::sleep(Duration::from_secs(3)).await;
    wait_until("it ends its part", async || group.member().is_none()).await;
    drop((held, leadership));
    wait_until("it has its copy", async || {
        let status = |node: &crate::Node| node.inner.groups.home().status();
        let (Some(now), Some(leads)) = (status(away), status(&three.nodes[leader])) else {
            return false;
        };
        now.committed >= leads.committed
    })
    .await;
    three.stop().await;
}

//! A disk on which there is no room left, not even for acknowledgements.

mod definitions;

use courser_broker::{Broker, StateOfShard};
use courser_codec::{FieldTable, Method, ShortStr, basic, queue};
use courser_journal::testing::FakeDisk;
use courser_journal::{JournalStore, Options};
use courser_sim::{Client, PLAIN, Received, Start, TX, checkpoint, state, use_up_all_room};
use courser_store::{Log, Lsn, Position, ShardState};
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

type Running = (Arc<JournalStore>, Arc<Broker>, Client);

const MESSAGES: u64 = 60;

fn start(disk: &FakeDisk) -> Running {
    start_with(false, disk)
}

fn start_with(threads: bool, disk: &FakeDisk) -> Running {
    let options = Options { segment_bytes: 32 << 10, threads, ..Options::default() };
    Start { options, ..Start::default() }.on(disk)
}

/// A broker with queue `q`, whose messages fill some segments, on a disk without any room.
fn on_a_full_disk(disk: &FakeDisk) -> Running {
    filled(disk, start(disk))
}

fn filled(disk: &FakeDisk, (store, broker, mut client): Running) -> Running {
    declare_limited(&mut client, "q");
    publish(&store, &mut client, 1..=MESSAGES);
    use_up_all_room(disk, &store);
    assert!(!store.has_room());
    (store, broker, client)
}

/// A queue that counts how often messages return.
fn declare_limited(client: &mut Client, name: &str) {
    let arguments = FieldTable::new().with("x-delivery-limit", 5);
    client.declare_with(name, &arguments).expect("declared");
}

/// Makes checkpoints on a thread whenever one is wanted, until the store calls for none any more.
fn make_checkpoints(store: &Arc<JournalStore>, broker: &Arc<Broker>) -> JoinHandle<()> {
    let (store, broker) = (Arc::clone(store), Arc::clone(broker));
    std::thread::spawn(move || {
        while store.wait_for_checkpoint() {
            checkpoint(&store, &broker);
        }
    })
}

fn wait_for(done: &dyn Fn() -> bool) {
    let since = std::time::Instant::now();
    while !done() {
        assert!(since.elapsed().as_secs() < 60, "no checkpoint was made");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn publish(store: &JournalStore, client: &mut Client, ids: impl Iterator<Item = u64>) {
    for id in ids {
        client.publish(PLAIN, "", "q", &[(id, 2000)], true).expect("there is room");
        store.journal().flush_once();
        store.journal().maintain_once();
    }
}

/// Gets a message and keeps it. Returns its tag and number.
fn get(client: &mut Client, channel: u16) -> Option<(u64, u64)> {
    let get = basic::Get { queue: ShortStr::from_static("q"), no_ack: false };
    client.request(channel, &Method::BasicGet(get)).expect("it is taken even now");
    client.receive().into_iter().find_map(|received| match received {
        Received::Message { tag, id, .. } => Some((tag, id)),
        _ => None,
    })
}

fn ack(client: &mut Client, channel: u16, delivery_tag: u64) {
    let ack = basic::Ack { delivery_tag, multiple: false };
    client.request(channel, &Method::BasicAck(ack)).expect("it is taken even now");
}

/// Gives a message back in a way that counts.
fn fail_on(client: &mut Client, delivery_tag: u64) {
    let reject = basic::Reject { delivery_tag, requeue: true };
    client.request(PLAIN, &Method::BasicReject(reject)).expect("it is taken even now");
}

fn ack_next(client: &mut Client, messages: u64) {
    for _ in 0..messages {
        let (tag, _) = get(client, PLAIN).expect("there is one");
        ack(client, PLAIN, tag);
    }
}

fn ready(broker: &Broker) -> usize {
    let vhost = broker.vhost("/").expect("always there");
    vhost.queue(b"q").expect("declared").status().ready
}

/// Ends a broker as the power does, and starts it again.
fn crash(disk: &FakeDisk, running: Running) -> Running {
    disk.lose_power();
    drop(running);
    start(disk)
}

fn give_room(disk: &FakeDisk, store: &JournalStore) {
    disk.set_capacity(u64::MAX);
    store.journal().maintain_once();
    assert!(store.has_room());
}

#[test]
fn acknowledgements_without_room_free_the_disk_by_the_next_checkpoint() {
    let disk = FakeDisk::new(1);
    let (store, broker, mut client) = on_a_full_disk(&disk);
    let before = store.journal().usage();
    let end = store.end();
    ack_next(&mut client, MESSAGES / 2);
    assert_eq!(client.take_all("q").expect("it is taken even now").len() as u64, MESSAGES / 2);
    assert_eq!(store.end(), end, "there was room");
    assert!(store.journal().has_unlogged() && store.journal().wants_checkpoint());
    store.journal().maintain_once();
    assert_eq!(store.journal().usage().segments, before.segments, "what says so is nowhere yet");
    assert!(checkpoint(&store, &broker));
    assert!(store.has_room() && !store.journal().has_unlogged());
    assert!(store.journal().usage().segments < before.segments / 2);
    publish(&store, &mut client, 100..=101);
    let (_store, _broker, mut client) = crash(&disk, (store, broker, client));
    assert_eq!(client.take_all("q").expect("declared"), [100, 101]);
}

#[test]
fn a_crash_before_there_is_room_brings_back_what_it_could_not_log_and_loses_nothing() {
    let disk = FakeDisk::new(2);
    let (store, broker, mut client) = on_a_full_disk(&disk);
    assert!(checkpoint(&store, &broker));
    use_up_all_room(&disk, &store);
    ack_next(&mut client, MESSAGES);
    // All their segments lie before the checkpoint, which has the messages.
    store.journal().maintain_once();
    give_room(&disk, &store);
    publish(&store, &mut client, 100..=100);
    store.journal().maintain_once();
    let (store, broker, mut client) = crash(&disk, (store, broker, client));
    let expected: Vec<u64> = (1..=MESSAGES).chain([100]).collect();
    assert_eq!(client.take_all("q").expect("declared"), expected);
    assert!(checkpoint(&store, &broker));
    assert!(store.journal().usage().segments <= 2);
}

/// A state that is written while its messages are acknowledged.
struct Acknowledging {
    state: StateOfShard,
    client: RefCell<Client>,
    writes: Cell<u32>,
    /// During which of the writes.
    during: u32,
}

impl Acknowledging {
    fn new(during: u32, broker: &Arc<Broker>, client: Client) -> Self {
        let client = RefCell::new(client);
        Acknowledging { state: state(broker), client, writes: Cell::new(0), during }
    }
}

impl ShardState for Acknowledging {
    fn start(&self) -> Lsn {
        self.state.start()
    }

    fn for_each_live(&self, start: Lsn, each: &mut dyn FnMut(Position)) {
        self.state.for_each_live(start, each);
    }

    fn write(&self, start: Lsn, out: &mut dyn Write) -> io::Result<()> {
        self.state.write(start, out)?;
        self.writes.set(self.writes.get() + 1);
        if self.writes.get() == self.during {
            ack_next(&mut self.client.borrow_mut(), MESSAGES);
        }
        Ok(())
    }
}

#[test]
fn a_checkpoint_does_not_stand_for_what_comes_while_it_is_written() {
    let disk = FakeDisk::new(8);
    let (store, broker, client) = on_a_full_disk(&disk);
    // Without room there is a second one at once, so that what nothing needs is freed.
    let acknowledging = Acknowledging::new(2, &broker, client);
    let made = store.checkpoint(&acknowledging);
    let client = acknowledging.client.into_inner();
    assert!(made.is_ok() && store.journal().has_unlogged());
    store.journal().maintain_once();
    let (store, broker, client) = crash(&disk, (store, broker, client));
    assert_eq!(ready(&broker) as u64, MESSAGES);
    drop((client, store));
}

#[test]
fn a_checkpoint_is_called_for_until_both_that_are_kept_stand_for_what_has_gone() {
    let disk = FakeDisk::new(11);
    let (store, broker, client) = on_a_full_disk(&disk);
    let acknowledging = Acknowledging::new(1, &broker, client);
    assert!(store.checkpoint(&acknowledging).is_ok());
    store.journal().maintain_once();
    // The second one knows all, the first one does not, so that nothing is freed yet.
    assert!(!store.journal().has_unlogged() && !store.has_room());
    assert!(store.journal().awaits_checkpoint() && store.journal().wants_checkpoint());
    assert!(checkpoint(&store, &broker));
    store.journal().maintain_once();
    assert!(store.has_room() && !store.journal().awaits_checkpoint());
}

#[test]
fn what_was_acknowledged_does_not_come_back_after_a_stop_on_the_full_disk() {
    let disk = FakeDisk::new(3);
    let (store, broker, mut client) = on_a_full_disk(&disk);
    ack_next(&mut client, 10);
    assert!(checkpoint(&store, &broker) && !store.journal().has_unlogged());
    store.journal().close().expect("nothing fails");
    drop((client, broker, store));
    let (store, broker, mut client) = start(&disk);
    assert_eq!(ready(&broker) as u64, MESSAGES - 10);
    let expected: Vec<u64> = (11..=MESSAGES).collect();
    assert_eq!(client.take_all("q").expect("declared"), expected);
    assert!(checkpoint(&store, &broker) && store.has_room());
}

#[test]
fn a_purge_and_returns_without_room_are_kept_by_a_checkpoint() {
    let disk = FakeDisk::new(4);
    let (store, broker, mut client) = on_a_full_disk(&disk);
    let (tag, first) = get(&mut client, PLAIN).expect("there is one");
    fail_on(&mut client, tag);
    assert!(store.journal().has_unlogged());
    assert!(checkpoint(&store, &broker));
    use_up_all_room(&disk, &store);
    let (store, broker, mut client) = crash(&disk, (store, broker, client));
    assert_eq!(ready(&broker) as u64, MESSAGES);
    let (tag, again) = get(&mut client, PLAIN).expect("it is back");
    assert_eq!(again, first);
    fail_on(&mut client, tag);
    use_up_all_room(&disk, &store);
    let purge = queue::Purge { queue: ShortStr::from_static("q"), nowait: false };
    client.request(PLAIN, &Method::QueuePurge(purge)).expect("it is taken even now");
    assert!(checkpoint(&store, &broker) && store.has_room());
    let (_store, broker, _client) = crash(&disk, (store, broker, client));
    assert_eq!(ready(&broker), 0);
}

#[test]
fn a_refused_commit_leaves_its_acknowledgements_undone() {
    let disk = FakeDisk::new(5);
    let (store, broker, mut client) = on_a_full_disk(&disk);
    let (tag, id) = get(&mut client, TX).expect("there is one");
    ack(&mut client, TX, tag);
    client.publish(TX, "", "q", &[(200, 20)], true).expect("kept for the commit");
    let commit = client.request(TX, &Method::TxCommit(Default::default()));
    let refused = commit.expect_err("there is no room").to_string();
    assert_eq!(refused, "506 RESOURCE_ERROR - the disk of the broker's data folder is full");
    // That ended the connection.
    drop(client);
    let mut client = Client::new(&broker);
    assert_eq!(ready(&broker) as u64, MESSAGES);
    assert_eq!(get(&mut client, PLAIN).map(|(_, id)| id), Some(id));
    drop(store);
}

#[test]
fn a_broker_starts_on_a_full_disk_and_its_consumers_free_it() {
    let disk = FakeDisk::new(7);
    let running = on_a_full_disk(&disk);
    let (store, broker, mut client) = crash(&disk, running);
    store.journal().maintain_once();
    assert_eq!(ready(&broker) as u64, MESSAGES);
    ack_next(&mut client, MESSAGES);
    assert!(checkpoint(&store, &broker));
    store.journal().maintain_once();
    assert!(store.has_room());
    publish(&store, &mut client, 100..=100);
}

#[test]
fn a_checkpoint_is_called_for_when_it_would_free_something_or_there_is_room() {
    let disk = FakeDisk::new(9);
    let (store, broker, mut client) = filled(&disk, start_with(true, &disk));
    let checkpoints = make_checkpoints(&store, &broker);
    ack_next(&mut client, MESSAGES - 1);
    wait_for(&|| store.has_room());
    use_up_all_room(&disk, &store);
    ack_next(&mut client, 1);
    disk.set_capacity(u64::MAX);
    wait_for(&|| !store.journal().has_unlogged());
    store.stop_checkpoints();
    checkpoints.join().expect("it does not panic");
}

#[test]
fn a_stream_lets_go_of_what_is_too_old_without_room() {
    let disk = FakeDisk::new(10);
    let (store, broker, mut client) = start(&disk);
    broker.set_time(1000);
    let stream = FieldTable::new().with("x-queue-type", "stream").with("x-max-age", "10s");
    client.declare_with("s", &stream).expect("declared");
    for id in 1..=MESSAGES {
        client.publish(PLAIN, "", "s", &[(id, 2000)], true).expect("there is room");
        broker.tick(1000 + id * 1000);
        store.journal().flush_once();
        store.journal().maintain_once();
    }
    assert!(checkpoint(&store, &broker));
    use_up_all_room(&disk, &store);
    let before = store.journal().usage().segments;
    let now_ms = 1_000_000;
    while broker.tick(now_ms).is_some_and(|next_ms| next_ms <= now_ms) {}
    assert!(store.journal().has_unlogged(), "it keeps what is too old");
    store.journal().maintain_once();
    assert_eq!(store.journal().usage().segments, before);
    assert!(checkpoint(&store, &broker));
    assert!(store.has_room());
    let (_store, broker, _client) = crash(&disk, (store, broker, client));
    let vhost = broker.vhost("/").expect("always there");
    assert!(vhost.queue(b"s").expect("declared").status().ready <= 1);
}

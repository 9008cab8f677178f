//! Dead letters and crashes: wherever the log ends, the message is in one of the two queues.

mod support;

use courser_broker::{Broker, Limits};
use courser_codec::{FieldTable, Method, ShortStr, basic};
use courser_journal::testing::{Call, FakeDisk, WatchedStore};
use courser_journal::{JournalStore, Options};
use courser_sim::{Client, PLAIN, Start, checkpoint, state};
use courser_store::{ShardState, Store, StoreError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(disk: &FakeDisk) -> Files {
    let contents = |path: PathBuf| disk.contents(&path).map(|contents| (path, contents));
    disk.names().into_iter().filter_map(contents).collect()
}

fn disk_of(files: &Files) -> FakeDisk {
    let disk = FakeDisk::new(1);
    files.iter().for_each(|(path, contents)| disk.put(path, contents));
    disk
}

/// How many messages are in queues `dying` and `dead` of a broker that starts with these files.
fn counts(files: &Files) -> (usize, usize) {
    let (_store, broker, _client) = Start::default().on(&disk_of(files));
    (ready(&broker, "dying"), ready(&broker, "dead"))
}

fn ready(broker: &Broker, queue: &str) -> usize {
    let vhost = broker.vhost("/").expect("always there");
    vhost.queue(queue.as_bytes()).expect("declared").status().ready
}

/// Declares queue `dying`, whose dead letters go to `dead`, and puts persistent messages into it.
fn fill_dying(client: &mut Client, messages: std::ops::Range<u64>, at_least_once: bool) {
    let mut arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    if at_least_once {
        arguments = arguments
            .with("x-dead-letter-strategy", "at-least-once")
            .with("x-overflow", "reject-publish");
    }
    client.declare_with("dying", &arguments).expect("declared");
    let messages: Vec<(u64, usize)> = messages.map(|id| (id, 40)).collect();
    client.publish(PLAIN, "", "dying", &messages, true).expect("published");
}

fn reject_all(client: &mut Client) {
    while client.reject_next("dying").expect("the queue is there") {}
}

/// What is in a queue, taken out of it.
fn take_all(client: &mut Client, queue: &str) -> Vec<u64> {
    client.take_all(queue).expect("the queue is there")
}

/// Lets time pass until `now_ms`.
fn run_until(broker: &Broker, now_ms: u64) {
    while broker.tick(now_ms).is_some_and(|next_ms| next_ms <= now_ms) {}
}

#[test]
fn a_dead_letter_is_in_one_queue_wherever_the_log_is_cut() {
    let disk = FakeDisk::new(1);
    let (store, _broker, mut client) = Start::default().on(&disk);
    client.declare("dead", None).expect("declared");
    client.declare("dying", Some("dead")).expect("declared");
    client.publish(PLAIN, "", "dying", &[(101, 40), (102, 40)], true).expect("published");
    store.journal().flush_once();
    let before = files(&disk);
    client.reject_next("dying").expect("the queue is there");
    store.journal().flush_once();
    let after = files(&disk);
    assert_eq!((counts(&before), counts(&after)), ((2, 0), (1, 1)));
    let changed = after.iter().find(|(path, contents)| before.get(*path) != Some(*contents));
    let (path, new) = changed.expect("the log has grown");
    let old = &before[path];
    let differs: Vec<usize> = (0..new.len()).filter(|at| old.get(*at) != new.get(*at)).collect();
    let (first, last) = (differs[0], differs[differs.len() - 1]);
    let mut seen = Vec::new();
    for cut in first..=last {
        let mut torn = after.clone();
        torn.insert(path.clone(), [&new[..cut], old.get(cut..).unwrap_or_default()].concat());
        seen.push(counts(&torn));
    }
    seen.dedup();
    assert_eq!(seen, [(2, 0)], "a letter is whole or nowhere");
}

#[test]
fn a_checkpoint_keeps_letters_that_find_no_queue() {
    let disk = FakeDisk::new(1);
    let (store, broker, mut client) = Start::default().on(&disk);
    fill_dying(&mut client, 1..5, true);
    reject_all(&mut client);
    assert_eq!(ready(&broker, "dying"), 0);
    // Twice: what the first one says has to be enough for the second.
    for _ in 0..2 {
        assert!(checkpoint(&store, &broker));
        store.journal().flush_once();
        disk.kill();
        let (store, broker, mut client) = Start::default().on(&disk);
        assert_eq!(ready(&broker, "dying"), 4);
        reject_all(&mut client);
        assert!(checkpoint(&store, &broker));
        store.journal().close().expect("nothing fails");
    }
    let (_store, broker, mut client) = Start::default().on(&disk);
    client.declare("dead", None).expect("declared");
    reject_all(&mut client);
    assert_eq!((ready(&broker, "dying"), take_all(&mut client, "dead")), (0, vec![1, 2, 3, 4]));
}

#[test]
fn a_checkpoint_keeps_letters_whose_queue_is_full() {
    let disk = FakeDisk::new(1);
    let (store, broker, mut client) = Start::default().on(&disk);
    let full = FieldTable::new().with("x-max-length", 1).with("x-overflow", "reject-publish");
    client.declare_with("dead", &full).expect("declared");
    client.publish(PLAIN, "", "dead", &[(100, 0)], true).expect("published");
    fill_dying(&mut client, 1..4, true);
    reject_all(&mut client);
    assert!(checkpoint(&store, &broker));
    // One of them finds room behind the checkpoint, and is in one queue only after a crash.
    assert_eq!(take_all(&mut client, "dead"), [100]);
    run_until(&broker, 1000);
    store.journal().flush_once();
    disk.kill();
    drop((client, broker, store));
    let (_store, broker, mut client) = Start::default().on(&disk);
    assert_eq!((ready(&broker, "dying"), take_all(&mut client, "dead")), (2, vec![1]));
    assert_eq!(take_all(&mut client, "dying"), [2, 3]);
}

#[test]
fn a_checkpoint_keeps_letters_that_are_on_their_way() {
    let disk = FakeDisk::new(1);
    let (journal, recovered, gauge) = support::open(&disk);
    let store = Arc::new(WatchedStore::new(Arc::clone(&journal) as Arc<dyn Store>));
    let broker = Broker::new(Arc::clone(&store) as _, gauge, Limits::default(), 1);
    broker.restore(recovered).expect("nothing is there");
    let mut client = Client::new(&broker);
    client.declare("dead", None).expect("declared");
    fill_dying(&mut client, 1..2, false);
    journal.journal().flush_once();
    let start = state(&broker).start();
    let (the_journal, the_broker) = (Arc::clone(&journal), Arc::clone(&broker));
    let (begin, begun) = channel();
    // It is in no queue now, and what says where it goes never comes into the log. The checkpoint ends behind that; too short a
    // time only finds less.
    store.before_next_append(move || {
        let checkpoint = move || support::checkpoint_from(start, &the_journal, &the_broker);
        begin.send(thread::spawn(checkpoint)).expect("it is waited for");
        thread::sleep(Duration::from_millis(100));
    });
    store.set_faults(|call| (call == Call::Append).then_some(StoreError::Full));
    reject_all(&mut client);
    let checkpoint = begun.try_recv().expect("it has begun");
    assert!(checkpoint.join().expect("no panic"));
    assert_eq!(ready(&broker, "dead"), 0);
    disk.kill();
    drop((client, broker, store, journal));
    let (_store, broker, _client) = Start::default().on(&disk);
    assert_eq!((ready(&broker, "dying"), ready(&broker, "dead")), (1, 0));
}

/// Fills the disk with messages of `fill` until the smallest is refused.
fn fill_the_disk(disk: &FakeDisk, store: &JournalStore, client: &mut Client) {
    store.journal().maintain_once();
    disk.set_capacity(disk.used_bytes() + (128 << 10));
    for padding in [4000, 100, 0] {
        while client.publish(PLAIN, "", "fill", &[(7, padding)], true).is_ok() {
            store.journal().flush_once();
            store.journal().maintain_once();
        }
    }
    assert!(!store.journal().has_room());
}

/// A broker on a small disk with an empty queue `dead`, a queue `dying`, and `fill`, which is not.
fn on_a_full_disk(disk: &FakeDisk) -> (Arc<JournalStore>, Arc<Broker>, Client) {
    let options = Options { segment_bytes: 32 << 10, threads: false, ..Options::default() };
    let (store, broker, mut client) = Start { options, ..Start::default() }.on(disk);
    client.declare("dead", None).expect("declared");
    client.declare("fill", None).expect("declared");
    fill_dying(&mut client, 1..6, false);
    fill_the_disk(disk, &store, &mut client);
    (store, broker, client)
}

#[test]
fn letters_wait_while_the_disk_is_full_and_go_on_when_there_is_room() {
    let disk = FakeDisk::new(1);
    let (store, broker, mut client) = on_a_full_disk(&disk);
    reject_all(&mut client);
    run_until(&broker, 5000);
    assert_eq!((ready(&broker, "dying"), ready(&broker, "dead")), (0, 0));
    // Only consumers make room meanwhile: the disk stays as large as it is.
    for _ in 0..100 {
        if store.journal().has_room() {
            break;
        }
        let get = basic::Get { queue: ShortStr::from_static("fill"), no_ack: true };
        (0..20).for_each(|_| {
            client.request(PLAIN, &Method::BasicGet(get)).expect("it is taken even now");
        });
        assert!(checkpoint(&store, &broker));
        store.journal().flush_once();
        store.journal().maintain_once();
    }
    assert!(store.journal().has_room());
    client.receive();
    run_until(&broker, 7000);
    assert_eq!(take_all(&mut client, "dead"), [1, 2, 3, 4, 5]);
    client.publish(PLAIN, "", "dying", &[(6, 0)], true).expect("there is room");
    reject_all(&mut client);
    assert_eq!(take_all(&mut client, "dead"), [6]);
    assert_eq!(ready(&broker, "dying"), 0);
}

#[test]
fn letters_that_waited_for_room_survive_a_crash() {
    for with_checkpoint in [false, true] {
        let disk = FakeDisk::new(1);
        let (store, broker, mut client) = on_a_full_disk(&disk);
        reject_all(&mut client);
        run_until(&broker, 3000);
        if with_checkpoint {
            disk.set_capacity(u64::MAX);
            assert!(checkpoint(&store, &broker));
        }
        store.journal().flush_once();
        disk.kill();
        drop((client, broker, store));
        disk.set_capacity(u64::MAX);
        let (_store, broker, mut client) = Start::default().on(&disk);
        assert_eq!((ready(&broker, "dying"), ready(&broker, "dead")), (5, 0));
        reject_all(&mut client);
        assert_eq!(take_all(&mut client, "dead"), [1, 2, 3, 4, 5]);
    }
}

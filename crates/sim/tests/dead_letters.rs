//! Dead letters and crashes: wherever the log ends, the message is in one of the two queues.

use courser_codec::{Method, ShortStr, basic};
use courser_journal::testing::FakeDisk;
use courser_sim::{Client, Received, Start};
use std::collections::BTreeMap;
use std::path::PathBuf;

const PLAIN: u16 = 1;

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

/// Gets a message and refuses it.
fn reject(client: &mut Client, queue: &'static str) {
    let get = basic::Get { queue: ShortStr::from_static(queue), no_ack: false };
    client.request(PLAIN, &Method::BasicGet(get)).expect("the queue is there");
    for received in client.receive() {
        if let Received::Message { tag, .. } = received {
            let reject = basic::Reject { delivery_tag: tag, requeue: false };
            client.request(PLAIN, &Method::BasicReject(reject)).expect("it was delivered");
        }
    }
}

/// How many messages are in queues `dying` and `dead` of a broker that starts with these files.
fn counts(files: &Files) -> (usize, usize) {
    let (_store, broker, _client) = Start::default().on(&disk_of(files));
    let vhost = broker.vhost("/").expect("always there");
    let ready = |name: &str| vhost.queue(name.as_bytes()).expect("declared").status().ready;
    (ready("dying"), ready("dead"))
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
    reject(&mut client, "dying");
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

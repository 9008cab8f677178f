//! What a disk that damages bytes does to a broker: as little as possible.

use courser_journal::testing::FakeDisk;
use courser_journal::{JournalStore, Options};
use courser_sim::{Start, checkpoint};
use courser_store::MemoryGauge;
use std::path::Path;
use std::sync::Arc;

const PLAIN: u16 = 1;

/// Flips a bit in the message with this number, wherever it lies.
fn damage(disk: &FakeDisk, id: u64) {
    let mut body = id.to_le_bytes().to_vec();
    body.resize(8 + 40, id as u8);
    for path in disk.names() {
        let contents = disk.contents(&path).expect("it has a name");
        if let Some(at) = contents.windows(body.len()).position(|window| window == body) {
            return disk.corrupt(&path, at + 20, 1);
        }
    }
    panic!("the message is nowhere");
}

#[test]
fn a_damaged_message_is_lost_alone() {
    let disk = FakeDisk::new(1);
    let (store, broker, mut client) = Start::default().on(&disk);
    client.declare("q", None).expect("declared");
    let messages: Vec<(u64, usize)> = (101..=105).map(|id| (id, 40)).collect();
    client.publish(PLAIN, "", "q", &messages, true).expect("published");
    assert!(checkpoint(&store, &broker));
    store.journal().close().expect("closed");
    drop((client, broker, store));
    damage(&disk, 102);
    damage(&disk, 105);
    let (_store, _broker, mut client) = Start::default().on(&disk);
    assert_eq!(client.take_all("q").expect("the queue is there"), [101, 103, 104]);
}

#[test]
fn damage_in_what_has_to_be_replayed_stops_the_start_and_names_file_and_offset() {
    let disk = FakeDisk::new(1);
    let (store, broker, mut client) = Start::default().on(&disk);
    client.declare("q", None).expect("declared");
    for id in 101..=105 {
        client.publish(PLAIN, "", "q", &[(id, 40)], true).expect("published");
        store.journal().flush_once();
    }
    store.journal().close().expect("closed");
    drop((client, broker, store));
    damage(&disk, 102);
    let options = Options { segment_bytes: 64 << 10, threads: false, ..Options::default() };
    let gauge = Arc::new(MemoryGauge::default());
    let path = Path::new("journal");
    let opened = JournalStore::open(path, options, Arc::new(disk), gauge, u64::MAX, &mut |_| {});
    let error = opened.err().expect("it does not open").to_string();
    assert!(error.contains(".log") && error.contains("offset"), "{error}");
    assert!(error.contains("courser journal repair"), "{error}");
}

//! What the in-memory store promises: messages come back as they went in, and memory is counted.

use bytes::Bytes;
use courser_store::chunk::CHUNK_TARGET_BYTES;
use courser_store::record::SHARED_BODY_MIN_BYTES;
use courser_store::{
    Location, Log, MemoryGauge, MemoryStore, MessageRef, Messages, Record, SharedBody, Sync,
};
use proptest::prelude::*;
use std::sync::Arc;

fn keep(
    store: &MemoryStore,
    gauge: &Arc<MemoryGauge>,
    messages: &[(Vec<u8>, Vec<u8>, Bytes)],
) -> Vec<Location> {
    let mut locations = Vec::new();
    let share = |(_, _, body): &(_, _, Bytes)| SharedBody::new(body.clone(), gauge);
    let shared: Vec<SharedBody> = messages.iter().map(share).collect();
    store
        .keep(
            &mut messages.iter().zip(&shared).map(|((address, header, body), shared)| MessageRef {
                address,
                header,
                body,
                shared_body: Some(shared),
                published_ms: 0,
                recorded_deaths: false,
                one_key: false,
            }),
            &mut locations,
        )
        .expect("kept");
    locations
}

proptest! {
    #[test]
    fn messages_come_back_as_they_were_appended(
        messages in prop::collection::vec(
            (
                prop::collection::vec(any::<u8>(), 0..60),
                prop::collection::vec(any::<u8>(), 0..300),
                (0..SHARED_BODY_MIN_BYTES + 100, any::<u8>()).prop_map(|(len, byte)| Bytes::from(vec![byte; len])),
            ),
            0..40,
        )
    ) {
        let gauge = Arc::new(MemoryGauge::default());
        let store = MemoryStore::new(Arc::clone(&gauge));
        let locations = keep(&store, &gauge, &messages);
        prop_assert_eq!(locations.len(), messages.len());
        for (location, (address, header, body)) in locations.iter().zip(&messages) {
            let message = location.in_memory().expect("in memory");
            prop_assert_eq!(message.address, &address[..]);
            prop_assert_eq!(message.header, &header[..]);
            prop_assert_eq!(message.body, &body[..]);
        }
        drop(locations);
        prop_assert_eq!(gauge.used_bytes(), 0);
    }
}

#[test]
fn the_index_of_a_waiting_message_is_sixteen_bytes() {
    assert_eq!(size_of::<Location>(), 16);
}

#[test]
fn a_large_body_is_shared_and_not_copied() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = MemoryStore::new(Arc::clone(&gauge));
    let body = Bytes::from(vec![7; SHARED_BODY_MIN_BYTES]);
    let locations = keep(&store, &gauge, &[(vec![0, 0], vec![0; 14], body.clone())]);
    assert_eq!(locations[0].in_memory().expect("in memory").body.as_ptr(), body.as_ptr());
}

#[test]
fn a_large_body_counts_once_until_its_last_part_is_gone() {
    const LEN: u64 = 1_000_000;
    let gauge = Arc::new(MemoryGauge::default());
    let store = MemoryStore::new(Arc::clone(&gauge));
    let body = SharedBody::new(Bytes::from(vec![7; LEN as usize]), &gauge);
    let message = MessageRef { body: &body, shared_body: Some(&body), ..MessageRef::default() };
    let mut locations = Vec::new();
    for _ in 0..3 {
        store.keep(&mut std::iter::once(message), &mut locations).expect("kept");
    }
    assert!((LEN..LEN + 1000).contains(&gauge.used_bytes()), "{}", gauge.used_bytes());
    assert!(gauge.waiting_bytes() > 3 * LEN, "in three places");
    let part = body.slice(10..20);
    drop((body, locations));
    assert_eq!(gauge.waiting_bytes(), 0);
    assert!((LEN..LEN + 200).contains(&gauge.used_bytes()), "{}", gauge.used_bytes());
    drop(part);
    assert_eq!(gauge.used_bytes(), 0);
}

#[test]
fn one_unsettled_message_pins_no_more_than_its_chunk() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = MemoryStore::new(Arc::clone(&gauge));
    let message = (vec![0, 0], vec![0; 14], Bytes::from(vec![7; 1000]));
    let mut locations = keep(&store, &gauge, &vec![message; 10_000]);
    assert!(gauge.used_bytes() > 10_000_000);
    locations.truncate(1);
    assert!(gauge.used_bytes() < 2 * CHUNK_TARGET_BYTES as u64);
}

#[test]
fn the_lsn_of_a_batch_is_durable_once_it_is_kept() {
    let store = MemoryStore::default();
    let mut locations = Vec::new();
    let message =
        MessageRef { address: &[0, 0], header: &[0; 14], body: b"x", ..Default::default() };
    let records = [
        Record::Defined { key: b"k", value: b"v" },
        Record::Message { queues: &[1], holders: 1, message },
    ];
    let lsn = store.append(&records, Sync::Wanted, &mut locations).expect("kept");
    assert!(store.durable() >= lsn);
    assert_eq!(locations.len(), 1);
    assert_eq!(locations[0].in_memory().expect("in memory").body, b"x");
}

#[test]
fn exchange_and_routing_key_are_read_from_the_address() {
    let address = b"\x05topic\x04a.b.";
    let message = MessageRef { address, ..Default::default() };
    assert_eq!(message.exchange(), b"topic");
    assert_eq!(message.routing_key(), b"a.b.");
}

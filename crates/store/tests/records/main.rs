//! Records and checkpoints come back as they were written, and nothing malformed is taken for one.

mod checkpoints;

use courser_store::change::{
    QUEUES_PER_RECORD_MAX, Replayed, ascending, message_of, put_ascending,
};
use courser_store::{Key, MessageRef, NO_KEY, Noting, Position, Record, Recovered};
use proptest::prelude::*;

/// A record as a log holds it.
fn encode(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode_head(&mut bytes).expect("short");
    if let Some(message) = record.message() {
        let (prefix, parts) = message.record_parts().expect("small");
        bytes.extend_from_slice(&prefix);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
    }
    bytes
}

/// Takes the first byte of a body for a priority, and 0 for none.
#[derive(Debug)]
struct FirstOfBody;

impl Noting for FirstOfBody {
    fn priority(&self, message: &MessageRef<'_>) -> Option<u8> {
        message.body.first().copied().filter(|first| *first > 0)
    }

    /// Those whose definitions begin with `k`, which say their number and which byte of the body counts.
    fn keeps_apart(&self, key: &[u8], value: &[u8]) -> Option<(u64, Box<[u8]>)> {
        (key.first() == Some(&b'k')).then(|| (value[0].into(), value[1..].into()))
    }

    fn key(&self, by: &[u8], message: &MessageRef<'_>) -> Key {
        message.body.get(usize::from(by[0])).map_or(NO_KEY, |byte| [*byte; 16])
    }
}

const MESSAGE: MessageRef<'static> = MessageRef {
    address: b"\x01x\x01k",
    header: &[0; 14],
    body: b"body",
    shared_body: None,
    published_ms: 0,
    recorded_deaths: false,
    one_key: false,
};

#[test]
fn a_stamp_costs_nothing_where_there_is_none_and_comes_back() {
    let plain = encode(&Record::Spilled { message: MESSAGE });
    let stamped = MessageRef { published_ms: 1_700_000_000_000, ..MESSAGE };
    let bytes = encode(&Record::Spilled { message: stamped });
    assert_eq!(bytes.len(), plain.len() + 8);
    assert_eq!(stamped.record_len(), MESSAGE.record_len() + 8);
    let read = message_of(&bytes).expect("a message");
    assert_eq!((read.published_ms, read.address), (1_700_000_000_000, MESSAGE.address));
    assert_eq!((read.header, read.body), (MESSAGE.header, MESSAGE.body));
    assert_eq!(message_of(&plain).expect("a message").published_ms, 0);
}

#[test]
fn what_the_broker_knows_of_a_message_comes_back() {
    for (recorded_deaths, one_key) in [(false, false), (true, false), (false, true), (true, true)] {
        let bytes = encode(&Record::Spilled {
            message: MessageRef { recorded_deaths, one_key, ..MESSAGE },
        });
        let read = message_of(&bytes).expect("a message");
        assert_eq!((read.recorded_deaths, read.one_key), (recorded_deaths, one_key));
        assert_eq!((read.address, read.body), (MESSAGE.address, MESSAGE.body));
    }
}

#[test]
fn a_message_names_its_queues_and_keeps_its_parts() {
    let bytes = encode(&Record::Message { queues: &[7, u64::MAX], holders: 3, message: MESSAGE });
    let Some(Replayed::Message { queues, .. }) = Replayed::parse(&bytes) else { panic!() };
    assert_eq!(queues, [7, u64::MAX]);
    let message = message_of(&bytes).expect("a message");
    assert_eq!((message.address, message.header), (MESSAGE.address, MESSAGE.header));
    assert_eq!(message.body, MESSAGE.body);
}

#[test]
fn a_spilled_message_can_be_read_but_is_in_no_queue_after_a_restart() {
    let bytes = encode(&Record::Spilled { message: MESSAGE });
    assert_eq!(message_of(&bytes).expect("a message").body, MESSAGE.body);
    let mut recovered = Recovered::default();
    recovered.apply(Position(1), Replayed::parse(&bytes).expect("a record"));
    assert_eq!(recovered, Recovered::default());
}

#[test]
fn a_delayed_message_keeps_its_parts_and_its_time_until_it_is_settled() {
    let bytes = encode(&Record::Delayed { queue: 7, due_ms: 1_800_000_000_123, message: MESSAGE });
    let message = message_of(&bytes).expect("a message");
    assert_eq!((message.address, message.header), (MESSAGE.address, MESSAGE.header));
    assert_eq!(message.body, MESSAGE.body);
    let mut recovered = Recovered::default();
    recovered.apply(Position(5), Replayed::parse(&bytes).expect("a record"));
    recovered.apply(Position(9), Replayed::parse(&bytes).expect("a record"));
    recovered.apply(Position(20), Replayed::Settled { queue: 7, positions: vec![Position(5)] });
    assert_eq!(
        recovered.delayed[&7].pairs().collect::<Vec<_>>(),
        [(Position(9), 1_800_000_000_123)]
    );
    let mut positions = Vec::new();
    recovered.for_each_position(&mut |position| positions.push(position.0));
    assert_eq!(positions, [9]);
    recovered.apply(Position(30), Replayed::Dropped { queue: 7 });
    assert!(recovered.delayed.is_empty());
}

#[test]
fn what_a_record_can_not_say_is_refused() {
    let (long, most) = (vec![7; 65_536], vec![7; 65_535]);
    let defined = Record::Defined { key: &most, value: b"value" };
    let read = encode(&defined);
    let Some(Replayed::Defined { key, value }) = Replayed::parse(&read) else { panic!() };
    assert!(key == most && value == b"value");
    let refused = |record: Record<'_>| record.encode_head(&mut Vec::new()).is_err();
    assert!(refused(Record::Defined { key: &long, value: b"value" }));
    let queues = vec![7; QUEUES_PER_RECORD_MAX + 1];
    assert!(refused(Record::Message { queues: &queues, holders: 1, message: MESSAGE }));
    // No length stands before this one.
    let forgotten = encode(&Record::Forgotten { key: &long });
    assert!(
        matches!(Replayed::parse(&forgotten), Some(Replayed::Forgotten { key }) if key == long)
    );
}

#[test]
fn a_record_cut_anywhere_is_no_record() {
    let records = [
        Record::Message { queues: &[7], holders: 1, message: MESSAGE },
        Record::Spilled { message: MESSAGE },
        Record::Spilled { message: MessageRef { published_ms: 1, ..MESSAGE } },
        Record::Dropped { queue: 9 },
        Record::Delayed { queue: 9, due_ms: 1, message: MESSAGE },
    ];
    for record in &records {
        let bytes = encode(record);
        for len in 0..bytes.len() {
            assert!(Replayed::parse(&bytes[..len]).is_none(), "{record:?} cut to {len}");
        }
    }
}

#[test]
fn a_queue_that_was_dropped_has_no_messages_whatever_comes_for_it_before() {
    let mut recovered = Recovered::default();
    let message = encode(&Record::Message { queues: &[7, 8], holders: 2, message: MESSAGE });
    recovered.apply(Position(100), Replayed::parse(&message).expect("a record"));
    recovered.apply(Position(200), Replayed::Dropped { queue: 7 });
    let mut positions = Vec::new();
    recovered.for_each_position(&mut |position| positions.push(position.0));
    assert_eq!(positions, [100]);
}

proptest! {
    #[test]
    fn ascending_numbers_come_back(mut numbers in prop::collection::vec(any::<u64>(), 0..100)) {
        numbers.sort_unstable();
        let mut bytes = Vec::new();
        let positions: Vec<Position> = numbers.into_iter().map(Position).collect();
        put_ascending(&mut bytes, positions.iter().copied());
        prop_assert_eq!(ascending(&bytes), Some(positions));
    }

    #[test]
    fn anything_is_a_record_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Replayed::parse(&bytes);
        let _ = message_of(&bytes);
        let _ = Recovered::from_checkpoint(&bytes);
    }
}

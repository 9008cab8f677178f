//! What a checkpoint says, and what a replay of the records behind it makes of that.

use super::{FirstOfBody, MESSAGE, encode};
use courser_store::change::Replayed;
use courser_store::recovered::{CheckpointWriter, IndexedMessage, QueueIndex};
use courser_store::{BodySize, MessageRef, NO_KEY, Noting, Position, Priority, Record, Recovered};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn sizes_that_do_not_fit_their_messages_are_refused() {
    let size = BodySize::of(3);
    let mut whole = Vec::new();
    let run = [(Position(1), size), (Position(2), size)];
    let written = CheckpointWriter::new(&mut whole).messages(7, &run, Priority::Unknown);
    written.expect("there is room");
    let recovered = Recovered::from_checkpoint(&whole).expect("whole");
    let found = recovered.queues[&7].messages().map(|found| (found.position, found.body));
    assert_eq!(found.collect::<Vec<_>>(), run);
    // It ends with how often the size comes, and the size.
    let at = whole.len() - 2;
    for wrong in [0, 1, 3] {
        whole[at] = wrong;
        assert_eq!(Recovered::from_checkpoint(&whole), None, "{wrong}");
    }
}

#[test]
fn priorities_that_do_not_fit_their_messages_are_refused() {
    let mut whole = Vec::new();
    let run = [(Position(1), BodySize::UNKNOWN), (Position(2), BodySize::UNKNOWN)];
    let written = CheckpointWriter::new(&mut whole).messages(7, &run, Priority::Is(9));
    written.expect("there is room");
    assert!(Recovered::from_checkpoint(&whole).is_some());
    // It ends with how often the priority comes, and the priority.
    let at = whole.len() - 2;
    for wrong in [0, 1, 3] {
        whole[at] = wrong;
        assert_eq!(Recovered::from_checkpoint(&whole), None, "{wrong}");
    }
}

#[test]
fn what_identifies_messages_is_noted_in_a_replay_and_kept_in_checkpoints() {
    let message = |queues: &[u64], body: &'static [u8]| Replayed::Message {
        queues: queues.to_vec(),
        size_bytes: 1,
        message: MessageRef { body, ..MESSAGE },
    };
    let mut recovered = Recovered::default().noting(Some(&FirstOfBody));
    recovered.apply(Position(1), Replayed::Defined { key: b"k7", value: &[7, 1] });
    recovered.apply(Position(2), message(&[7, 8], b"abc"));
    recovered.apply(Position(3), message(&[7], b"a"));
    recovered.apply(Position(4), message(&[7], b"xyz"));
    let keys = |recovered: &Recovered, queue: u64| {
        [2, 3, 4, 5].map(|at| recovered.queues[&queue].key(Position(at)))
    };
    let noted = [Some([b'b'; 16]), Some(NO_KEY), Some([b'y'; 16]), None];
    assert_eq!(keys(&recovered, 7), noted);
    assert_eq!(keys(&recovered, 8), [None; 4]);
    recovered.apply(Position(5), Replayed::Settled { queue: 7, positions: vec![Position(4)] });
    let mut bytes = Vec::new();
    recovered.write(&mut bytes).expect("there is room");
    // What comes behind it is noted by the definitions in it.
    let recovered = Recovered::from_checkpoint(&bytes).expect("whole");
    let mut recovered = recovered.noting(Some(&FirstOfBody));
    recovered.apply(Position(5), message(&[7], b"de"));
    assert_eq!(keys(&recovered, 7), [noted[0], noted[1], None, Some([b'e'; 16])]);
    assert_eq!(keys(&recovered, 8), [None; 4]);
    for len in 0..bytes.len() {
        // Whatever is read of it, nothing panics.
        let _ = Recovered::from_checkpoint(&bytes[..len]);
    }
}

/// How often the messages at these positions have come back.
fn came_back(index: &QueueIndex) -> BTreeMap<u64, u64> {
    let count = |one: IndexedMessage| Some((one.position.0, one.returns?.into()));
    index.messages().filter_map(count).collect()
}

proptest! {
    #[test]
    fn a_checkpoint_comes_back(
        definitions in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 0..20),
            prop::collection::vec(any::<u8>(), 0..200),
            0..10,
        ),
        queues in prop::collection::btree_map(
            any::<u64>(),
            prop::collection::btree_set(any::<u64>(), 0..50),
            0..10,
        ),
    ) {
        let mut bytes = Vec::new();
        let mut writer = CheckpointWriter::new(&mut bytes);
        for (key, value) in &definitions {
            writer.definition(key, value).expect("there is room");
        }
        for (queue, positions) in &queues {
            let positions: Vec<Position> = positions.iter().copied().map(Position).collect();
            writer.queue(*queue, &[]).expect("there is room");
            for run in positions.chunks(7) {
                writer.queue(*queue, run).expect("there is room");
            }
        }
        let recovered = Recovered::from_checkpoint(&bytes).expect("whole");
        prop_assert_eq!(&recovered.definitions, &definitions);
        prop_assert_eq!(recovered.queues.len(), queues.len());
        for (queue, index) in recovered.queues {
            let wanted: Vec<Position> =
                queues[&queue].iter().copied().map(Position).collect();
            prop_assert_eq!(index.positions().collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn sizes_and_priorities_come_back_from_checkpoints_and_stay_with_what_is_left(
        sizes in prop::collection::vec((0usize..4, 0u8..3), 1..3000),
        (knows_sizes, knows_priorities) in any::<(bool, bool)>(),
        run_len in 1usize..100,
        in_checkpoint in 0usize..3000,
        settled in prop::collection::btree_set(0u64..3000, 0..3000),
    ) {
        let noting: Option<&'static dyn Noting> = if knows_priorities { Some(&FirstOfBody) } else { None };
        let size = |size: usize| if knows_sizes { BodySize::of(size) } else { BodySize::UNKNOWN };
        let said = |said: u8| match said {
            _ if !knows_priorities => Priority::Unknown,
            0 => Priority::Unsaid,
            other => Priority::Is(other),
        };
        let (before, behind) = sizes.split_at(in_checkpoint.min(sizes.len()));
        let mut bytes = Vec::new();
        let mut writer = CheckpointWriter::new(&mut bytes);
        let before: Vec<_> = (0..).map(Position).zip(before).collect();
        let mut all = Vec::new();
        for run in before.chunk_by(|one, next| one.1.1 == next.1.1) {
            let priority = said(run[0].1.1);
            for run in run.chunks(run_len) {
                let placed: Vec<_> = run.iter().map(|(at, (bytes, _))| (*at, size(*bytes))).collect();
                writer.messages(7, &placed, priority).expect("there is room");
                all.extend(placed.iter().map(|(position, body)| IndexedMessage { position: *position, body: *body, priority, returns: None }));
            }
        }
        let mut recovered = Recovered::from_checkpoint(&bytes).expect("whole").noting(noting);
        for (position, (bytes, priority)) in (before.len() as u64..).map(Position).zip(behind) {
            let body = vec![*priority; 1 + bytes];
            let message = MessageRef { body: &body, ..MESSAGE };
            recovered.apply(position, Replayed::Message { queues: vec![7], size_bytes: 1, message });
            all.push(IndexedMessage { position, body: BodySize::of(body.len()), priority: said(*priority), returns: None });
        }
        let positions = settled.iter().copied().map(Position).collect();
        recovered.apply(Position(5000), Replayed::Settled { queue: 7, positions });
        let left: Vec<_> = all.into_iter().filter(|one| !settled.contains(&one.position.0)).collect();
        prop_assert_eq!(recovered.queues[&7].messages().collect::<Vec<_>>(), left.clone());
        let mut again = Vec::new();
        recovered.write(&mut again).expect("there is room");
        let recovered = Recovered::from_checkpoint(&again).expect("whole");
        let found: Vec<_> = recovered.queues.values().flat_map(|index| index.messages()).collect();
        prop_assert_eq!(found, left);
    }

    #[test]
    fn delayed_messages_come_back_from_a_checkpoint_and_the_log_behind_it(
        times in prop::collection::vec(any::<u64>(), 0..3000),
        in_checkpoint in 0usize..3000,
        settled in prop::collection::btree_set(0u64..3000, 0..3000),
    ) {
        let all: Vec<(u64, u64)> = (0..).zip(times).collect();
        let (before, behind) = all.split_at(in_checkpoint.min(all.len()));
        let mut bytes = Vec::new();
        let mut writer = CheckpointWriter::new(&mut bytes);
        for run in before.chunks(100) {
            writer.delayed(7, run.iter().map(|(position, due_ms)| (Position(*position), *due_ms))).expect("there is room");
        }
        let mut recovered = Recovered::from_checkpoint(&bytes).expect("whole");
        for (position, due_ms) in behind {
            recovered.apply(Position(*position), Replayed::Delayed { queue: 7, due_ms: *due_ms });
        }
        for position in &settled {
            recovered.apply(Position(5000), Replayed::Settled { queue: 7, positions: vec![Position(*position)] });
        }
        let left = all.iter().filter(|(at, _)| !settled.contains(at));
        let left: Vec<_> = left.map(|(at, due_ms)| (Position(*at), *due_ms)).collect();
        let found = recovered.delayed.remove(&7).unwrap_or_default();
        prop_assert_eq!(found.pairs().collect::<Vec<_>>(), left);
    }

    #[test]
    fn how_often_messages_came_back_is_known_after_a_restart(
        in_checkpoint in prop::collection::btree_map(0u64..100, 1u64..5000, 0..50),
        behind in prop::collection::btree_map(0u64..100, 0u64..3, 0..50),
    ) {
        let mut bytes = Vec::new();
        let mut writer = CheckpointWriter::new(&mut bytes);
        writer.queue(7, &(0..100).map(Position).collect::<Vec<_>>()).expect("there is room");
        let pairs = in_checkpoint.iter().map(|(position, count)| (Position(*position), *count));
        writer.returns(7, pairs).expect("there is room");
        let mut recovered = Recovered::from_checkpoint(&bytes).expect("whole");
        let returns = behind.iter().map(|(position, count)| (Position(*position), *count));
        let returns: Vec<(Position, u64)> = returns.collect();
        let record = encode(&Record::Returned { queue: 7, returns: &returns });
        recovered.apply(Position(200), Replayed::parse(&record).expect("whole"));
        recovered.apply(Position(201), Replayed::Settled { queue: 7, positions: vec![Position(0)] });
        let found = came_back(&recovered.queues[&7]);
        for position in 1..100 {
            // That it was handed out says nothing of how often it came back before, nor does a record that comes late.
            let count = in_checkpoint.get(&position).max(behind.get(&position));
            prop_assert_eq!(found.get(&position), count);
        }
    }

    #[test]
    fn returns_are_known_of_what_is_left_alone(
        settled in prop::collection::btree_set(0u64..3000, 0..3000),
        returned in prop::collection::btree_set(0u64..3000, 1..100),
    ) {
        let mut bytes = Vec::new();
        let mut writer = CheckpointWriter::new(&mut bytes);
        writer.queue(7, &(0..3000).map(Position).collect::<Vec<_>>()).expect("there is room");
        let mut recovered = Recovered::from_checkpoint(&bytes).expect("whole");
        let positions = settled.iter().copied().map(Position).collect();
        recovered.apply(Position(3000), Replayed::Settled { queue: 7, positions });
        // A thread may append that it handed something out behind what another one settles.
        let returns = returned.iter().map(|position| (Position(*position), 0)).collect();
        recovered.apply(Position(3001), Replayed::Returned { queue: 7, returns });
        // So many more come and go that what is settled is swept out.
        for position in 4000..8000 {
            recovered.apply(Position(position), Replayed::Message { queues: vec![7], size_bytes: 1, message: MessageRef::default() });
        }
        let positions = (4000..8000).map(Position).collect();
        recovered.apply(Position(8000), Replayed::Settled { queue: 7, positions });
        let found = came_back(&recovered.queues[&7]);
        for position in 0..3000 {
            let is_known = returned.contains(&position) && !settled.contains(&position);
            prop_assert_eq!(found.get(&position).copied(), is_known.then_some(0), "{}", position);
        }
    }

    #[test]
    fn what_is_settled_is_gone_and_the_rest_stays_in_order(
        settled in prop::collection::btree_set(0u64..3000, 0..3000),
        in_checkpoint in 0u64..3000,
    ) {
        let mut bytes = Vec::new();
        let mut writer = CheckpointWriter::new(&mut bytes);
        for run in (0..in_checkpoint).map(Position).collect::<Vec<_>>().chunks(100) {
            writer.queue(1, run).expect("there is room");
        }
        let mut recovered = Recovered::from_checkpoint(&bytes).expect("whole");
        for position in in_checkpoint..3000 {
            recovered.apply(Position(position), Replayed::Message { queues: vec![1], size_bytes: 1, message: MessageRef::default() });
        }
        for position in &settled {
            recovered.apply(Position(9999), Replayed::Settled { queue: 1, positions: vec![Position(*position)] });
        }
        let left = (0..3000).filter(|position| !settled.contains(position));
        let left: Vec<Position> = left.map(Position).collect();
        let index = recovered.queues.remove(&1).expect("it has messages");
        prop_assert_eq!(index.positions().collect::<Vec<_>>(), left);
    }
}

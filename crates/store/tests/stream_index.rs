//! The index of a stream against a plain list of its messages.

use courser_store::change::Replayed;
use courser_store::recovered::{CheckpointWriter, Recovered};
use courser_store::stream::{PageLimits, Retention, StreamIndex};
use courser_store::work::steps;
use courser_store::{Location, MemoryStore, MessageRef, Messages, Position};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Position, size and time of a message.
type Known = (u64, u64, u64);

/// A stream as a list.
#[derive(Default)]
struct Model {
    first_offset: u64,
    messages: VecDeque<Known>,
}

impl Model {
    fn trim(&mut self, first_offset: u64) {
        while self.first_offset < first_offset {
            self.messages.pop_front();
            self.first_offset += 1;
        }
    }
}

fn log(position: u64) -> Location {
    Location::logged(Position(position))
}

/// The positions from `offset` on, page by page.
fn read_all(index: &StreamIndex, mut offset: u64) -> Vec<u64> {
    let mut positions = Vec::new();
    loop {
        let mut places = VecDeque::new();
        offset = index.read_from(offset, &mut places);
        if places.is_empty() {
            return positions;
        }
        offset += places.len() as u64;
        positions.extend(places.iter().filter_map(Location::position).map(|position| position.0));
    }
}

/// What a checkpoint keeps of an index.
fn pieces(index: &StreamIndex) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut offset = Some(0);
    while let Some(from) = offset {
        let mut piece = Vec::new();
        offset = index.encode_piece(from, &mut piece);
        pieces.push(piece);
    }
    pieces
}

fn check(index: &StreamIndex, model: &Model, at_times: &[u64]) {
    assert_eq!(index.first_offset(), model.first_offset);
    assert_eq!(index.len(), model.messages.len() as u64);
    let positions: Vec<u64> = model.messages.iter().map(|(position, ..)| *position).collect();
    assert_eq!(read_all(index, 0), positions);
    let middle = positions.len() / 2;
    assert_eq!(read_all(index, model.first_offset + middle as u64), &positions[middle..]);
    let mut all = Vec::new();
    index.for_each_position(&mut |position| all.push(position.0));
    assert_eq!(all, positions);
    for time in at_times {
        let later = model.messages.iter().position(|(_, _, at)| at >= time);
        let later = later.unwrap_or(model.messages.len());
        assert_eq!(index.offset_at(*time, u64::MAX), model.first_offset + later as u64, "{time}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn it_has_what_was_pushed_and_not_trimmed(
        steps in prop::collection::vec((1u64..2000, 1u64..300, 0u64..3, 0u64..200), 1..4000),
        size_bytes in 1u64..200_000,
        span_ms in 1u64..500,
        checkpoint_at in 0usize..4000,
        odd_trim in 0u64..2000,
    ) {
        let limits = PageLimits { size_bytes, span_ms };
        let mut index = StreamIndex::new(0, limits);
        let mut model = Model::default();
        let mut checkpoint = Vec::new();
        let (mut position, mut now_ms) = (0, 1000);
        for (step, (distance, size, later_ms, action)) in steps.iter().enumerate() {
            position += distance;
            now_ms += later_ms;
            index.push(&log(position), *size, now_ms);
            model.messages.push_back((position, *size, now_ms));
            if *action == 0 {
                let kept = Retention {
                    size_bytes_max: Some(50_000),
                    arrived_before_ms: Some(now_ms - 500),
                    now_ms,
                };
                let first_offset = index.kept_from(&kept);
                let before = model.messages.len();
                model.trim(first_offset);
                prop_assert_eq!(index.trim(first_offset).len(), before - model.messages.len());
            }
            if step == checkpoint_at {
                index.encode_piece(0, &mut checkpoint);
            }
        }
        let times = [0, 1000, now_ms - 100, now_ms - 1, now_ms, now_ms + 1];
        check(&index, &model, &times);
        let mut decoded = StreamIndex::default();
        for piece in pieces(&index) {
            decoded.add_piece(&piece).expect("it was encoded");
        }
        check(&decoded, &model, &times);
        prop_assert_eq!(decoded.size_bytes(), index.size_bytes());
        // A trim that is not at the end of a page.
        model.trim((model.first_offset + odd_trim).min(model.first_offset + index.len()));
        index.trim(model.first_offset);
        check(&index, &model, &times);
        for cut in 0..checkpoint.len().min(64) {
            // Whatever is read of it, nothing panics.
            let _ = StreamIndex::default().add_piece(&checkpoint[..cut]);
        }
    }
}

#[test]
fn a_replay_goes_on_where_the_checkpoint_ends() {
    let pages = PageLimits { size_bytes: 100, span_ms: 10 };
    let mut recovered = Recovered::default();
    let begin = || Replayed::Stream { queue: 5, first_offset: 0, pages };
    recovered.apply(Position(1), begin());
    let message =
        || Replayed::Message { queues: vec![5, 6], size_bytes: 60, message: MessageRef::default() };
    for position in 2..10 {
        recovered.apply(Position(position), message());
    }
    let mut bytes = Vec::new();
    for piece in pieces(&recovered.streams[&5]) {
        CheckpointWriter::new(&mut bytes).stream(5, &piece).expect("there is room");
    }
    // The checkpoint begins before what the index already knows.
    let mut again = Recovered::from_checkpoint(&bytes).expect("whole");
    for position in 6..15 {
        again.apply(Position(position), message());
    }
    again.apply(Position(15), Replayed::Stream { queue: 5, first_offset: 3, pages });
    let stream = &again.streams[&5];
    assert_eq!((stream.first_offset(), stream.next_offset()), (3, 13));
    assert_eq!(read_all(stream, 0), (5..15).collect::<Vec<u64>>());
    assert_eq!(again.queues[&6].positions().count(), 9);
    again.apply(Position(16), Replayed::Dropped { queue: 5 });
    assert!(again.streams.is_empty());
}

#[test]
fn a_stream_that_changes_between_the_pieces_of_a_checkpoint_is_whole() {
    let pages = PageLimits { size_bytes: 1, span_ms: 10 };
    let mut index = StreamIndex::new(0, pages);
    (0..200).for_each(|position| index.push(&log(position), 1, 0));
    let mut first = Vec::new();
    let next = index.encode_piece(0, &mut first).expect("there is more");
    index.trim(100);
    (200..210).for_each(|position| index.push(&log(position), 1, 0));
    let mut decoded = StreamIndex::default();
    decoded.add_piece(&first).expect("it was encoded");
    let mut offset = Some(next);
    while let Some(from) = offset {
        let mut piece = Vec::new();
        offset = index.encode_piece(from, &mut piece);
        decoded.add_piece(&piece).expect("it was encoded");
    }
    assert_eq!((decoded.first_offset(), decoded.next_offset()), (100, 210));
    assert_eq!(read_all(&decoded, 0), (100..210).collect::<Vec<u64>>());
    // What is replayed is known already.
    (150..212).for_each(|position| decoded.replay(Position(position), 1, 0));
    assert_eq!(decoded.next_offset(), 212);
}

#[test]
fn a_checkpoint_visits_each_page_of_a_stream_once() {
    const PAGES: u64 = 20_000;
    let mut index = StreamIndex::new(0, PageLimits { size_bytes: 1, span_ms: 10 });
    (0..PAGES).for_each(|position| index.push(&log(position), 1, 0));
    assert_eq!(index.page_count() as u64, PAGES);
    let before = steps();
    assert!(pieces(&index).len() > 100);
    let taken = steps() - before;
    assert!((PAGES..2 * PAGES).contains(&taken), "{taken}");
}

#[test]
fn a_checkpoint_leaves_out_what_is_not_in_the_log_and_all_before_it() {
    let store = MemoryStore::default();
    let mut index = StreamIndex::new(0, PageLimits { size_bytes: 1, span_ms: 10 });
    let in_memory =
        || store.keep_one(MessageRef::default()).expect("it is small").expect("a place");
    (0..100).for_each(|position| index.push(&log(position), 1, 0));
    (100..200).for_each(|_| index.push(&in_memory(), 1, 0));
    assert_eq!(index.encode_piece(0, &mut Vec::new()), None, "there is nothing yet");
    (200..300).for_each(|position| index.push(&log(position), 1, 0));
    let mut decoded = StreamIndex::default();
    for piece in pieces(&index) {
        decoded.add_piece(&piece).expect("it was encoded");
    }
    assert_eq!((decoded.first_offset(), decoded.next_offset()), (200, 300));
    assert_eq!(read_all(&decoded, 0), (200..300).collect::<Vec<u64>>());
}

#[test]
fn a_page_costs_few_bytes_a_message() {
    let mut index = StreamIndex::new(0, PageLimits::default());
    for number in 0..100_000u64 {
        index.push(&log(number * 180), 150, number / 100);
    }
    assert!(index.footprint_bytes() < 100_000 * 5 / 2, "{}", index.footprint_bytes());
}

#[test]
fn far_behind_the_end_there_is_nothing() {
    let mut index = StreamIndex::new(0, PageLimits::default());
    (0..3).for_each(|position| index.push(&log(position), 1, 1));
    for offset in [3, 1 << 32, (1 << 32) + 1, u64::MAX] {
        let mut places = VecDeque::new();
        assert_eq!(index.read_from(offset, &mut places), offset);
        assert_eq!(places.len(), 0, "from {offset} on");
    }
}

/// What is kept of it at `now_ms`, where messages may be this old.
fn kept_from(index: &StreamIndex, now_ms: u64, age_max_ms: u64) -> u64 {
    let arrived_before_ms = Some(now_ms.saturating_sub(age_max_ms));
    index.kept_from(&Retention { arrived_before_ms, now_ms, ..Retention::default() })
}

const HOUR_MS: u64 = 3_600_000;
const NOW_MS: u64 = 1_000_000 * HOUR_MS;
const YEAR_MS: u64 = 365 * 24 * HOUR_MS;

/// A stream to which one message came before the clock was ahead by a year, one meanwhile, and one each minute of an hour after.
fn ahead_for_one_message(limits: PageLimits) -> StreamIndex {
    let mut index = StreamIndex::new(0, limits);
    index.push(&log(0), 1, NOW_MS);
    index.push(&log(1), 1, NOW_MS + YEAR_MS);
    (2..62).for_each(|at| index.push(&log(at), 1, NOW_MS + at * 60_000));
    index
}

fn restarted(index: &StreamIndex) -> StreamIndex {
    let mut again = StreamIndex::default();
    pieces(index).iter().for_each(|piece| again.add_piece(piece).expect("it was encoded"));
    assert_eq!(again, *index);
    // What a checkpoint does not know yet comes from the log.
    let next = index.next_offset();
    again.replay(Position(next), 1, NOW_MS + next * 60_000);
    again
}

#[test]
fn what_comes_after_the_clock_was_ahead_leaves_in_time() {
    for span_ms in [u64::MAX, 1000] {
        let index = ahead_for_one_message(PageLimits { span_ms, ..PageLimits::default() });
        for index in [restarted(&index), index] {
            assert_eq!(kept_from(&index, NOW_MS + HOUR_MS, 2 * HOUR_MS), 0, "none is old");
            let all_old_ms = NOW_MS + 2 * HOUR_MS + 3 * 60_000;
            let mut index = index;
            while kept_from(&index, all_old_ms, HOUR_MS) > index.first_offset() {
                index.trim(kept_from(&index, all_old_ms, HOUR_MS));
            }
            assert_eq!(index.len(), 0);
        }
    }
}

#[test]
fn what_came_before_the_clock_was_behind_stays() {
    let mut index = StreamIndex::new(0, PageLimits { span_ms: 1000, ..PageLimits::default() });
    index.push(&log(0), 1, NOW_MS);
    index.push(&log(1), 1, NOW_MS - YEAR_MS);
    index.push(&log(2), 1, NOW_MS + 1);
    assert_eq!(kept_from(&index, NOW_MS - YEAR_MS, HOUR_MS), 0);
    assert_eq!(kept_from(&index, NOW_MS + 1, HOUR_MS), 0);
}

#[test]
fn a_time_is_found_behind_what_came_while_the_clock_was_ahead() {
    for span_ms in [u64::MAX, 1000] {
        let index = ahead_for_one_message(PageLimits { span_ms, ..PageLimits::default() });
        let at = |index: &StreamIndex, time_ms| index.offset_at(time_ms, NOW_MS + 2 * HOUR_MS);
        for index in [restarted(&index), index] {
            assert_eq!(at(&index, 0), 0);
            assert_eq!(at(&index, NOW_MS), 0);
            assert_eq!(at(&index, NOW_MS + 1), 1, "it may have come then");
            for later in [10, 30, 61] {
                assert_eq!(at(&index, NOW_MS + later * 60_000), later);
            }
            assert_eq!(at(&index, NOW_MS + HOUR_MS + 2 * 60_000 + 1), index.next_offset());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_time_is_found_however_often_the_clock_was_set(
        steps in prop::collection::vec((0u64..3 * HOUR_MS, 0u64..5), 1..60),
        trim in 0u64..40,
        times in prop::collection::vec(0u64..100 * HOUR_MS, 1..30),
        later in 0u64..100 * HOUR_MS,
    ) {
        // Each message has a page of its own.
        let limits = PageLimits { size_bytes: 1, ..PageLimits::default() };
        let (mut index, mut clock) = (StreamIndex::new(0, limits), 50 * HOUR_MS);
        let mut arrived = Vec::new();
        for (nth, (by, back)) in steps.iter().enumerate() {
            clock = if *back == 0 { clock.saturating_sub(5 * by) } else { clock + by };
            index.push(&log(nth as u64), 1, clock);
            let last = arrived.last().copied().unwrap_or_default();
            // Going back a little counts as standing still.
            arrived.push(if clock + 60_000 >= last { clock.max(last) } else { clock });
        }
        let trim = trim.min(arrived.len() as u64);
        index.trim(trim);
        let is_ahead = |at: &u64| *at > later + 60_000;
        let expected = |time: u64| {
            let left = &arrived[trim as usize..];
            let is_later = |at: &u64| *at >= time && !is_ahead(at);
            let found = left.iter().position(is_later).unwrap_or(left.len());
            let ahead = left[..found].iter().rev().take_while(|at| is_ahead(at)).count();
            let first = found - ahead;
            let is_earlier = left.get(first).is_some_and(|at| *at < time);
            trim + first as u64 + u64::from(is_earlier)
        };
        for index in [restarted(&index), index] {
            for time in &times {
                prop_assert_eq!(index.offset_at(*time, later), expected(*time), "{}", time);
            }
        }
    }
}

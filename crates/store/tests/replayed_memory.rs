//! How much memory a replay takes goes by what is left at each time, and not by how long the log is.

use courser_store::change::Replayed;
use courser_store::{MessageRef, Position, Recovered};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what the current thread holds.
struct Counting;

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static MOST_BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; the counters are constants that need no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD_BYTES.set(HELD_BYTES.get() + layout.size() as i64);
        MOST_BYTES.set(MOST_BYTES.get().max(HELD_BYTES.get()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD_BYTES.set(HELD_BYTES.get() - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const QUEUE: u64 = 7;
const DELAYED: u64 = 8;
/// Messages that the queue has at each time.
const WAITING: u64 = 10_000;

/// Replays this: a message comes, comes back from a consumer, and is settled when there are many behind it. Of those that were
/// settled, the log says once more that they came back. One that waits for its time is sent with each.
fn replay(recovered: &mut Recovered, at: u64) {
    let position = Position(10 * at);
    let message =
        Replayed::Message { queues: vec![QUEUE], size_bytes: 100, message: MessageRef::default() };
    recovered.apply(position, message);
    recovered.apply(Position(10 * at + 1), Replayed::Delayed { queue: DELAYED, due_ms: at });
    let Some(earlier) = at.checked_sub(WAITING) else { return };
    let settled = |queue, position| Replayed::Settled { queue, positions: vec![position] };
    let returned =
        || Replayed::Returned { queue: QUEUE, returns: vec![(Position(10 * earlier), 1)] };
    recovered.apply(Position(10 * at + 2), returned());
    recovered.apply(Position(10 * at + 3), settled(QUEUE, Position(10 * earlier)));
    recovered.apply(Position(10 * at + 4), returned());
    recovered.apply(Position(10 * at + 5), settled(DELAYED, Position(10 * earlier + 1)));
}

#[test]
fn a_replay_remembers_no_more_of_what_was_settled_the_longer_the_log_is() {
    let mut recovered = Recovered::default();
    let before = HELD_BYTES.get();
    let mut most_of = |messages: std::ops::Range<u64>| {
        MOST_BYTES.set(HELD_BYTES.get());
        messages.for_each(|at| replay(&mut recovered, at));
        MOST_BYTES.get() - before
    };
    let first = most_of(0..4 * WAITING);
    let later = most_of(4 * WAITING..40 * WAITING);
    assert!(later <= first + first / 4, "{first} bytes, and {later} later");
    let left = recovered.queues[&QUEUE].positions().count() as u64;
    assert_eq!(left, WAITING);
    assert_eq!(recovered.delayed[&DELAYED].pairs().count() as u64, WAITING);
}

/// What is held at most, and in the end, while `act` runs.
fn held(act: impl FnOnce()) -> (i64, i64) {
    let before = HELD_BYTES.get();
    MOST_BYTES.set(before);
    act();
    (MOST_BYTES.get() - before, HELD_BYTES.get() - before)
}

/// Messages of 100 bytes, each in all of the queues.
fn come(recovered: &mut Recovered, numbers: std::ops::Range<u64>, queues: u64) {
    for number in numbers {
        let queues = (0..queues).collect();
        let message = Replayed::Message { queues, size_bytes: 100, message: MessageRef::default() };
        recovered.apply(Position(100 * number), message);
    }
}

/// Bytes that each message of a queue may take.
const EACH: i64 = 8;

#[test]
fn a_replay_takes_a_few_bytes_for_each_message_of_a_queue() {
    const MESSAGES: u64 = 200_000;
    for queues in [1, 100] {
        let (mut recovered, each) = (Recovered::default(), MESSAGES / queues);
        let spare = 16_384 * queues as i64;
        let (most, _) = held(|| come(&mut recovered, 0..each, queues));
        assert!(most <= EACH * MESSAGES as i64 + spare, "{queues} queues: {most} come");
        // Each has come back once, and many are settled, from the middle on.
        let positions =
            |part: u64| (each / 4..each / 4 * part).map(|number| Position(100 * number));
        let (most, _) = held(|| {
            for queue in 0..queues {
                for position in positions(4) {
                    let returns = vec![(position, 1)];
                    recovered.apply(Position(0), Replayed::Returned { queue, returns });
                }
            }
        });
        assert!(most <= EACH * MESSAGES as i64 / 2 + 4 * spare, "{queues} queues: {most} return");
        let (most, _) = held(|| {
            for queue in 0..queues {
                for position in positions(3) {
                    let positions = vec![position];
                    recovered.apply(Position(0), Replayed::Settled { queue, positions });
                }
            }
        });
        assert!(most <= EACH * MESSAGES as i64 / 2 + 4 * spare, "{queues} queues: {most} settled");
        let left = recovered.queues.values().flat_map(|index| index.messages());
        assert_eq!(left.count() as u64, (each - positions(3).count() as u64) * queues);
    }
}

#[test]
fn a_checkpoint_is_written_without_a_list_of_all_messages() {
    let mut recovered = Recovered::default();
    come(&mut recovered, 0..200_000, 1);
    for at in 0..200_000 {
        recovered.apply(Position(100 * at + 1), Replayed::Delayed { queue: DELAYED, due_ms: at });
    }
    let (most, left) = held(|| recovered.write(&mut std::io::sink()).expect("a sink takes all"));
    assert!(most < 300_000 && left == 0, "{most} bytes, {left} left");
}

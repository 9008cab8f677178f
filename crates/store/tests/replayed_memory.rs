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

//! Numbers that a seed determines, and the order in which tasks go on.

use parking_lot::Mutex;
use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Turns of tasks at the same moment, from which on it is taken for standing still.
const TURNS_MAX: u64 = 200_000;

/// A generator (SplitMix64) that all of a world ask.
#[derive(Clone)]
pub(super) struct Chance(Arc<Mutex<State>>);

struct State {
    number: u64,
    begun: Instant,
    /// What has been asked, and when.
    digest: u64,
    /// The last moment at which a task had its turn, and how many had theirs at that.
    moment: Instant,
    turns: u64,
}

impl Chance {
    /// Within a runtime.
    pub fn new(seed: u64) -> Self {
        let now = Instant::now();
        let state = State { number: seed, begun: now, digest: seed, moment: now, turns: 0 };
        Chance(Arc::new(Mutex::new(state)))
    }

    /// A number that differs where what happens, or when, has differed.
    pub fn digest(&self) -> u64 {
        self.0.lock().digest
    }

    /// Takes note of something that happens.
    pub fn note(&self, what: u64) {
        let mut state = self.0.lock();
        let at = state.begun.elapsed().as_nanos() as u64;
        for value in [at, what] {
            state.digest = mixed(state.digest.wrapping_mul(31) ^ value);
        }
    }

    /// The next number.
    pub fn number(&self) -> u64 {
        let mut state = self.0.lock();
        state.number = state.number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(state.number)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&self, bound: u64) -> u64 {
        self.note(bound);
        self.number() % bound
    }

    /// A number of a range.
    pub fn within(&self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// True once in `times` on average.
    pub fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// As many milliseconds as a number of the range.
    pub fn ms(&self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    /// Some of `most`, which is not zero: often all of it, sometimes hardly any.
    pub fn some_of(&self, most: usize) -> usize {
        match self.below(4) {
            0 => 1 + self.below(most.min(16) as u64) as usize,
            1 => 1 + self.below(most as u64) as usize,
            _ => most,
        }
    }

    fn note_turn(&self) {
        let now = Instant::now();
        let mut state = self.0.lock();
        state.turns = if state.moment == now { state.turns + 1 } else { 0 };
        state.moment = now;
        assert!(
            state.turns < TURNS_MAX,
            "tasks have one turn after another, and time stands still"
        );
    }
}

fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A task that others may overtake whenever it is woken. It is polled once for each time that it is woken, no more: a wake
/// that is lost is not made up for.
pub(super) struct Overtaken<F> {
    task: Pin<Box<F>>,
    chance: Chance,
    /// How many turns it leaves to others, once it is woken.
    left: Option<u64>,
}

impl<F> Overtaken<F> {
    pub fn new(task: F, chance: &Chance) -> Self {
        Overtaken { task: Box::pin(task), chance: chance.clone(), left: None }
    }
}

impl<F: Future> Future for Overtaken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.chance.note_turn();
        let left = match self.left {
            Some(left) => left,
            None if self.chance.one_in(3) => self.chance.within(1..=3),
            None => 0,
        };
        if left > 0 {
            self.left = Some(left - 1);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.left = None;
        self.task.as_mut().poll(cx)
    }
}

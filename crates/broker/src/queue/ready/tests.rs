//! Random histories of what waits against a sorted list, and what one hold of the lock may cost.

use super::*;
use crate::limits::Limits;
use crate::memory::{Memory, Use};
use crate::queue::backlog::SPILLED;
use crate::queue::logged::logged;
use crate::queue::packed::PAGE_LOCATIONS;
use crate::queue::walk::WALKED_AT_ONCE;
use crate::work::steps;
use courser_store::{BodySize, Position};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one hold of the lock may look at: a page begun is looked at to its end.
const HOLD_MAX: u64 = (WALKED_AT_ONCE + 2 * PAGE_LOCATIONS) as u64;

/// A queue's messages, and what they use.
struct Waiting {
    ready: Ready,
    memory: Arc<Memory>,
}

impl Waiting {
    fn new(ranks: Option<Ranks>) -> Self {
        let memory = Memory::new(&Limits::default());
        Waiting { ready: Ready::new(ranks, memory.charge(Use::Places, 0)), memory }
    }

    fn of(messages: u64) -> Self {
        let mut waiting = Waiting::new(None);
        (1..=messages).for_each(|at| waiting.ready.push(location(at, 0), 0, size_of(at) as usize));
        waiting
    }

    fn used_bytes(&self) -> u64 {
        self.memory.used(Use::Places)
    }

    /// What is found from `cursor` on, and the most steps of one hold.
    fn walk(&self, mut cursor: Cursor, count: usize) -> (Vec<(u64, u64)>, u64) {
        let (mut found, mut longest) = (Vec::new(), 0);
        loop {
            let before = steps();
            let goes_on = self.ready.walk(&mut cursor, count, &mut found);
            longest = longest.max(steps() - before);
            if !goes_on {
                break;
            }
        }
        (found.iter().map(|(number, location)| (*number, position(location))).collect(), longest)
    }

    /// What is taken of these numbers, and the most steps of one hold.
    fn take(&mut self, mut numbers: &[u64]) -> (Vec<(u64, Location)>, u64) {
        let (mut taken, mut longest) = (Vec::new(), 0);
        while !numbers.is_empty() {
            let before = steps();
            let done = self.ready.take(numbers, &mut |number, at| taken.push((number, at)));
            longest = longest.max(steps() - before);
            assert!(done > 0, "it goes on");
            numbers = &numbers[done..];
        }
        (taken, longest)
    }
}

fn location(at: u64, marks: u16) -> Location {
    let body = match at % 997 {
        0 => BodySize::UNKNOWN,
        _ => BodySize::of(size_of(at) as usize),
    };
    Location::Log { position: Position(at), body, marks }
}

fn position(location: &Location) -> u64 {
    location.position().expect("all are in the log").0
}

/// Bytes of the body at this position.
fn size_of(position: u64) -> u32 {
    (position % 50) as u32
}

#[derive(Clone, Debug)]
enum Op {
    Push {
        count: usize,
        level: u8,
        marks: u16,
    },
    Pop(usize),
    /// Takes messages from the middle: so many, each so far behind the one before.
    Take {
        skip: usize,
        stride: usize,
        count: usize,
    },
    PutBack {
        pick: usize,
        count: usize,
        is_known: bool,
    },
    CountBytes(bool),
    ReadSizes(usize),
    Walk {
        skip: usize,
        count: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (1..3000_usize, 0..3_u8, prop_oneof![Just(0), Just(SPILLED)])
            .prop_map(|(count, level, marks)| Op::Push { count, level, marks }),
        2 => (1..2500_usize).prop_map(Op::Pop),
        4 => (0..5000_usize, 1..9_usize, 1..2000_usize)
            .prop_map(|(skip, stride, count)| Op::Take { skip, stride, count }),
        3 => (any::<usize>(), 1..300_usize, any::<bool>())
            .prop_map(|(pick, count, is_known)| Op::PutBack { pick, count, is_known }),
        1 => any::<bool>().prop_map(Op::CountBytes),
        2 => (1..3000_usize).prop_map(Op::ReadSizes),
        3 => (0..6000_usize, 0..500_usize).prop_map(|(skip, count)| Op::Walk { skip, count }),
    ]
}

/// Where the turn of a message is: by level, then by number.
type Turn = (Reverse<u64>, u64);

fn turn(number: u64) -> Turn {
    (Reverse(number >> 56), number)
}

/// A queue's messages, and a list of what they should be.
struct Trial {
    waiting: Waiting,
    /// Their positions.
    model: BTreeMap<Turn, u64>,
    out: Vec<(u64, Location)>,
    next_position: u64,
}

impl Trial {
    fn new(ranks: Option<Ranks>) -> Self {
        let (model, out) = (BTreeMap::new(), Vec::new());
        Trial { waiting: Waiting::new(ranks), model, out, next_position: 1 }
    }

    fn expected(&self, skip: usize, count: usize) -> Vec<(u64, u64)> {
        self.model.iter().skip(skip).take(count).map(|((_, at), place)| (*at, *place)).collect()
    }

    fn step(&mut self, op: &Op) {
        let ready = &mut self.waiting.ready;
        match *op {
            Op::Push { count, level, marks } => self.push(count, level, marks),
            Op::Pop(count) => {
                for _ in 0..count.min(self.model.len()) {
                    let front = ready.front().map(|(number, at)| (number, position(at)));
                    let (number, at) = ready.pop().expect("the model has one");
                    assert_eq!(front, Some((number, position(&at))));
                    let first = self.model.pop_first().expect("it has one");
                    assert_eq!((turn(number), position(&at)), first);
                    self.out.push((number, at));
                }
            }
            Op::Take { skip, stride, count } => self.take(skip, stride, count),
            Op::PutBack { pick, count, is_known } => {
                for _ in 0..count.min(self.out.len()) {
                    let (number, at) = self.out.swap_remove(pick % self.out.len());
                    self.model.insert(turn(number), position(&at));
                    let bytes = is_known.then(|| size_of(position(&at)));
                    ready.put_back(number, at, bytes);
                }
            }
            Op::CountBytes(true) if !ready.counts_bytes() => ready.count_bytes(),
            Op::CountBytes(true) => {}
            Op::CountBytes(false) => ready.count_no_bytes(),
            Op::ReadSizes(most) => {
                ready.read_sizes(most, &mut |at| Some(size_of(position(at))));
            }
            Op::Walk { skip, count } => {
                let (found, longest) = self.waiting.walk(Cursor::skipping(skip), count);
                assert_eq!(found, self.expected(skip, count));
                assert!(longest <= HOLD_MAX, "{longest}");
            }
        }
    }

    fn push(&mut self, count: usize, level: u8, marks: u16) {
        let ready = &mut self.waiting.ready;
        let level = if ready.has_levels() { level } else { 0 };
        for at in self.next_position..self.next_position + count as u64 {
            ready.push(location(at, marks), level, size_of(at) as usize);
        }
        let cursor = Cursor { behind: self.model.keys().map(|(_, at)| *at).max(), skip: 0 };
        let pushed = match ready.has_levels() {
            // What else has been pushed with this level stands in front.
            true => self.waiting.walk(Cursor::default(), usize::MAX).0,
            false => self.waiting.walk(cursor, usize::MAX).0,
        };
        let new = pushed.into_iter().filter(|(_, at)| *at >= self.next_position);
        self.model.extend(new.map(|(number, at)| (turn(number), at)));
        self.next_position += count as u64;
    }

    fn take(&mut self, skip: usize, stride: usize, count: usize) {
        let chosen: Vec<_> = self.expected(skip, usize::MAX);
        let chosen: Vec<_> = chosen.into_iter().step_by(stride).take(count).collect();
        let mut numbers: Vec<u64> = chosen.iter().map(|(number, _)| *number).collect();
        // These are not there any more.
        numbers.extend(self.out.iter().map(|(number, _)| *number));
        numbers.sort_unstable_by_key(|number| turn(*number));
        let (taken, longest) = self.waiting.take(&numbers);
        assert!(longest <= HOLD_MAX, "{longest}");
        let positions: Vec<_> = taken.iter().map(|(at, place)| (*at, position(place))).collect();
        assert_eq!(positions, chosen);
        for (number, _) in &taken {
            self.model.remove(&turn(*number));
        }
        self.out.extend(taken);
    }

    /// A checkpoint has what is out where it would come back to.
    fn check_with_those_out(&self) {
        let ready = &self.waiting.ready;
        let out = self
            .out
            .iter()
            .map(|(number, at)| (ready.rank_of(*number), logged(at).expect("in the log")));
        let mut found = Vec::new();
        for line in ready.lines_with(out).into_values().rev() {
            line.for_each_run(&mut |run| {
                let mut run: Vec<u64> = run.iter().map(|(at, ..)| at.0).collect();
                run.sort_unstable();
                found.append(&mut run);
            });
        }
        let mut all = self.model.clone();
        all.extend(self.out.iter().map(|(number, at)| (turn(*number), position(at))));
        assert_eq!(found, all.into_values().collect::<Vec<_>>());
    }

    fn check(&self) {
        let ready = &self.waiting.ready;
        assert_eq!((ready.len(), ready.is_empty()), (self.model.len(), self.model.is_empty()));
        assert_eq!(ready.front().map(|(at, _)| at), self.expected(0, 1).first().map(|one| one.0));
        let lines = ready.lines_with(std::iter::empty()).into_values().rev();
        let logged: Vec<u64> =
            lines.flat_map(|line| line.into_entries()).map(|(at, ..)| at.0).collect();
        assert_eq!(logged, self.model.values().copied().collect::<Vec<_>>());
        self.check_with_those_out();
        let mut all = Vec::new();
        ready.for_each(&mut |at| all.push(position(at)));
        all.sort_unstable();
        let mut positions: Vec<_> = self.model.values().copied().collect();
        positions.sort_unstable();
        assert_eq!(all, positions);
        let knows_all = positions.iter().all(|at| at % 997 != 0);
        let bytes: u64 = positions.iter().map(|at| u64::from(size_of(*at))).sum();
        assert_eq!(ready.amounts().bytes(), knows_all.then_some(bytes));
        if ready.counts_bytes() && !ready.lacks_sizes() {
            let bytes: u64 = positions.iter().map(|at| u64::from(size_of(*at))).sum();
            assert_eq!(ready.bytes(), bytes);
            let front = self.model.first_key_value().map(|(_, at)| size_of(*at));
            assert_eq!(ready.front_bytes(), front);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_waits_keeps_its_order_whatever_is_taken_out_of_the_middle_and_comes_back(
        ops in prop::collection::vec(op(), 1..25),
        has_levels in any::<bool>(),
    ) {
        let mut trial = Trial::new(has_levels.then_some(Ranks::UpTo(2)));
        for op in &ops {
            trial.step(op);
            trial.check();
        }
        trial.step(&Op::Pop(usize::MAX));
        trial.check();
        prop_assert!(trial.waiting.used_bytes() < 16 * 1024, "{}", trial.waiting.used_bytes());
    }
}

const MANY: u64 = 300_000;

/// The numbers and positions of a thousand of these messages, as far as there are any.
fn thousand_from(skip: usize) -> Vec<(u64, u64)> {
    (skip as u64..MANY).take(1000).map(|number| (number, number + 1)).collect()
}

#[test]
fn a_look_at_a_long_queue_passes_its_pages_by_their_lengths() {
    let waiting = Waiting::of(MANY);
    for skip in [0, 5, 1024, 150_000, 299_500, 299_999, 300_000, usize::MAX] {
        let before = steps();
        let (found, longest) = waiting.walk(Cursor::skipping(skip), 1000);
        assert_eq!(found, thousand_from(skip), "from {skip} on");
        assert!(longest <= HOLD_MAX, "from {skip} on: {longest} in one hold");
        let taken = steps() - before;
        assert!(taken <= MANY / 1024 + 4 * 1024, "from {skip} on: {taken}");
        assert!(skip < MANY as usize || taken == 0, "there is nothing: {taken}");
    }
}

#[test]
fn a_look_past_many_that_came_back_lets_others_have_their_turns() {
    let mut waiting = Waiting::of(MANY);
    let popped: Vec<_> = (0..MANY / 2).map_while(|_| waiting.ready.pop()).collect();
    popped.into_iter().for_each(|(number, at)| waiting.ready.put_back(number, at, None));
    for skip in [0, 100_000, 149_990, 299_990, 300_000, usize::MAX] {
        let (found, longest) = waiting.walk(Cursor::skipping(skip), 1000);
        assert_eq!(found, thousand_from(skip), "from {skip} on");
        assert!(longest <= HOLD_MAX, "from {skip} on: {longest} in one hold");
    }
    let numbers: Vec<_> = (0..MANY).step_by(500).collect();
    let (taken, longest) = waiting.take(&numbers);
    assert!(taken.len() == numbers.len() && longest <= HOLD_MAX, "{longest} in one hold");
}

#[test]
fn what_is_taken_from_far_out_costs_its_pages_and_no_memory() {
    let mut waiting = Waiting::of(MANY);
    let before = waiting.used_bytes();
    let numbers: Vec<_> = (290_000..290_256).collect();
    let began = steps();
    let (taken, _) = waiting.take(&numbers);
    let cost = steps() - began;
    assert_eq!(taken.iter().map(|(number, _)| *number).collect::<Vec<_>>(), numbers);
    assert!(cost <= 3 * 1024, "{cost}");
    assert!(waiting.used_bytes() <= before + 2048, "{} of {before}", waiting.used_bytes());
    let numbers: Vec<_> = (100_000..290_000).collect();
    waiting.take(&numbers);
    let used = waiting.used_bytes();
    assert!(used < before / 2, "{used} of {before} for what is left of them");
}

#[test]
fn sizes_count_also_where_enough_has_been_read_before_all_are_known() {
    let mut waiting = Waiting::of(10_000);
    waiting.ready.count_bytes();
    let (before, mut left) = (waiting.used_bytes(), 1000);
    let read = waiting.ready.read_sizes(10_000, &mut |at| {
        left -= 1;
        (left >= 0).then(|| size_of(position(at)))
    });
    assert_eq!(read, 1000);
    let counted = waiting.used_bytes() - before;
    assert!(counted >= 4 * 1000, "{counted}");
}

#[test]
fn what_is_left_here_and_there_costs_by_its_number() {
    let mut waiting = Waiting::of(MANY);
    let before = waiting.used_bytes();
    let (left, taken): (Vec<_>, Vec<_>) = (0..MANY).partition(|number| number % 1000 == 7);
    taken.chunks(256).for_each(|chosen| drop(waiting.take(chosen)));
    assert!(waiting.used_bytes() < before / 5, "{} of {before}", waiting.used_bytes());
    let began = steps();
    let (found, _) = waiting.walk(Cursor::skipping(100), usize::MAX);
    // Those at both ends are open, with their gaps.
    assert!(steps() - began < 3000, "{}", steps() - began);
    assert_eq!(found.into_iter().map(|(number, _)| number).collect::<Vec<_>>(), left[100..]);
    let (taken, longest) = waiting.take(&left[20..276]);
    assert!(taken.len() == 256 && longest <= HOLD_MAX, "{longest} in one hold");
}

#[test]
fn what_came_back_in_a_burst_uses_nothing_once_it_has_left_though_one_waits_in_a_gap() {
    let mut waiting = Waiting::of(MANY);
    waiting.ready.count_bytes();
    let (taken, _) = waiting.take(&[200_000]);
    let put_back = |waiting: &mut Waiting, all: Vec<(u64, Location)>| {
        all.into_iter().for_each(|(number, at)| waiting.ready.put_back(number, at, Some(1)));
    };
    put_back(&mut waiting, taken);
    let before = waiting.used_bytes();
    let popped: Vec<_> = (0..MANY / 2).map_while(|_| waiting.ready.pop()).collect();
    let count = popped.len();
    put_back(&mut waiting, popped);
    assert!(waiting.used_bytes() > before + 100 * count as u64 / 2);
    assert_eq!((0..count).map_while(|_| waiting.ready.pop()).count(), count);
    let used = waiting.used_bytes();
    assert!(used <= before + 4096, "{used}, {before} before");
}

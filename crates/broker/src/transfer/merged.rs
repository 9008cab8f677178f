//! The messages of several queues as one sequence, each once however many of them hold it.

use crate::exchange::Exchange;
use crate::queue::{Entries, Entry, Queue, SPILLED};
use courser_store::{BodySize, Location, Position};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Messages of one holder that keep their order.
pub(super) struct Line {
    pub holder: Holder,
    source: Source,
    /// What comes next.
    head: Option<Entry>,
    /// How many have been taken.
    pub taken: u64,
}

/// Who has messages.
pub(super) enum Holder {
    Queue(Arc<Queue>),
    /// A recent history.
    Exchange(Arc<Exchange>),
}

enum Source {
    Entries(Entries),
    Positions(std::vec::IntoIter<Position>),
    /// The places of some messages, and the offset behind them.
    Stream(VecDeque<Location>, u64),
}

/// The entry of a message that has neither marks nor a known size.
fn without_marks(position: Position) -> Entry {
    (position, 0, BodySize::UNKNOWN)
}

impl Holder {
    /// The number by which the log knows it.
    pub fn number(&self) -> u64 {
        match self {
            Holder::Queue(queue) => queue.id,
            Holder::Exchange(exchange) => exchange.id,
        }
    }
}

impl Line {
    /// Messages of a queue.
    pub fn of_queue(queue: &Arc<Queue>, entries: Entries) -> Self {
        Self::new(Holder::Queue(Arc::clone(queue)), Source::Entries(entries))
    }

    /// A recent history.
    pub fn of_history(exchange: &Arc<Exchange>, positions: Vec<Position>) -> Self {
        Self::new(Holder::Exchange(Arc::clone(exchange)), Source::Positions(positions.into_iter()))
    }

    /// A stream, from its first message on.
    pub fn of_stream(queue: &Arc<Queue>, first_offset: u64) -> Self {
        let source = Source::Stream(VecDeque::new(), first_offset);
        Self::new(Holder::Queue(Arc::clone(queue)), source)
    }

    fn new(holder: Holder, source: Source) -> Self {
        let mut line = Line { holder, source, head: None, taken: 0 };
        line.head = line.next();
        line
    }

    fn next(&mut self) -> Option<Entry> {
        match &mut self.source {
            // What is in the log only because memory was short does not survive.
            Source::Entries(entries) => entries.find(|(_, marks, _)| marks & SPILLED == 0),
            Source::Positions(positions) => positions.next().map(without_marks),
            Source::Stream(places, next_offset) => {
                if places.is_empty()
                    && let Holder::Queue(queue) = &self.holder
                    && let Some(stream) = queue.stream()
                {
                    *places = stream.places_from(*next_offset);
                    *next_offset += places.len() as u64;
                }
                places.pop_front()?.position().map(without_marks)
            }
        }
    }

    /// Whether its messages have offsets.
    pub fn is_stream(&self) -> bool {
        matches!(self.source, Source::Stream(..))
    }

    /// Takes the message that comes next.
    fn take(&mut self) -> Option<Entry> {
        let next = self.next();
        self.taken += 1;
        std::mem::replace(&mut self.head, next)
    }
}

/// Lines that are merged by the places of their messages in the log: mostly ascending, as they were appended. Where two queues
/// have two messages the other way round, as can be after publishes at the same moment, one of these comes twice.
#[derive(Default)]
pub(super) struct Merged {
    pub lines: Vec<Line>,
    /// By the places of their heads.
    order: BinaryHeap<Reverse<(Position, usize)>>,
}

impl Merged {
    pub fn add(&mut self, line: Line) {
        if let Some((position, ..)) = line.head {
            self.order.push(Reverse((position, self.lines.len())));
            self.lines.push(line);
        }
    }

    /// Takes the next message: its place, and in `held` the line of each that has it, with its marks. At most `most`
    /// at a time; then it comes once more for the others.
    pub fn next(&mut self, most: usize, held: &mut Vec<(usize, u16)>) -> Option<Position> {
        held.clear();
        let Reverse((position, _)) = *self.order.peek()?;
        while held.len() < most
            && let Some(Reverse((at, index))) = self.order.peek().copied()
            && at == position
        {
            self.order.pop();
            let line = &mut self.lines[index];
            if let Some((_, marks, _)) = line.take() {
                held.push((index, marks));
            }
            if let Some((next, ..)) = line.head {
                self.order.push(Reverse((next, index)));
            }
        }
        Some(position)
    }
}

//! Messages of a vhost that arrives, as they go into the log together.

use crate::exchange::Exchange;
use crate::queue::{CameBack, Queue, Returns};
use crate::work;
use courser_store::{Location, MessageRef, Position, Record, Store, StoreError, Sync};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Who gets messages here.
#[derive(Clone)]
pub(super) enum Target {
    Queue(Arc<Queue>),
    History(Arc<Exchange>),
    Delay(Arc<Exchange>),
}

impl Target {
    fn number(&self) -> u64 {
        match self {
            Target::Queue(queue) => queue.id,
            Target::History(exchange) | Target::Delay(exchange) => exchange.id,
        }
    }
}

/// One message.
struct Arriving<'a> {
    message: MessageRef<'a>,
    /// Who holds it, and how it came back there: in the order of their numbers.
    targets: Vec<(Target, Option<Returns>)>,
    numbers: Vec<u64>,
    /// When it is due, if it waits for that.
    due_ms: Option<u64>,
}

/// Messages in the order in which they arrive.
#[derive(Default)]
pub(super) struct Batch<'a> {
    messages: Vec<Arriving<'a>>,
}

impl<'a> Batch<'a> {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds a message.
    pub fn push(&mut self, message: MessageRef<'a>, mut targets: Vec<Target>, due_ms: Option<u64>) {
        // Each of very many may have sent it back.
        targets.sort_unstable_by_key(Target::number);
        let numbers = targets.iter().map(Target::number).collect();
        let targets = targets.into_iter().map(|target| (target, None)).collect();
        self.messages.push(Arriving { message, targets, numbers, due_ms });
    }

    /// Notes how the message that was added last came back in a queue. Returns whether that holds it.
    pub fn note_returns(&mut self, queue: u64, how: Returns) -> bool {
        let Some(Arriving { targets, numbers, .. }) = self.messages.last_mut() else {
            return false;
        };
        let place = numbers.binary_search_by(|number| {
            work::count(1);
            number.cmp(&queue)
        });
        place.map(|place| targets[place].1 = Some(how)).is_ok()
    }

    /// Puts all of them into the log, and to the queues and exchanges that hold them. Returns how many they were. Called in
    /// [`Vhost::take_in`](crate::vhost::Vhost::take_in).
    pub fn settle_in(&mut self, store: &dyn Store) -> Result<u64, StoreError> {
        let messages = std::mem::take(&mut self.messages);
        let records: Vec<Record<'_>> = messages.iter().map(Arriving::record).collect();
        let mut locations = Vec::with_capacity(records.len());
        store.append(&records, Sync::Later, &mut locations)?;
        let mut returns = FxHashMap::<u64, Vec<(Position, u64)>>::default();
        for (one, location) in messages.iter().zip(locations) {
            one.settle_in(&location, &mut returns);
        }
        let returns = returns.iter();
        let records: Vec<Record<'_>> =
            returns.map(|(queue, returns)| Record::Returned { queue: *queue, returns }).collect();
        if !records.is_empty() {
            store.append(&records, Sync::Later, &mut Vec::new())?;
        }
        Ok(messages.len() as u64)
    }
}

impl Arriving<'_> {
    fn record(&self) -> Record<'_> {
        match (self.due_ms, &self.numbers[..]) {
            (Some(due_ms), [queue]) => {
                Record::Delayed { queue: *queue, due_ms, message: self.message }
            }
            (_, queues) => {
                Record::Message { queues, holders: queues.len() as u32, message: self.message }
            }
        }
    }

    /// Gives the message to what holds it. What the log has to know of its returns goes into `returns`.
    fn settle_in(&self, location: &Location, returns: &mut FxHashMap<u64, Vec<(Position, u64)>>) {
        for (target, returned) in &self.targets {
            match target {
                Target::Queue(queue) => {
                    if let (Some(Returns { how: CameBack::Counted(count), .. }), Some(position)) =
                        (*returned, location.position())
                    {
                        returns.entry(queue.id).or_default().push((position, count));
                    }
                    match queue.stream() {
                        Some(stream) => stream.take_in(location, &self.message),
                        None => queue.take_in(location.clone(), &self.message, *returned),
                    }
                }
                Target::History(exchange) => {
                    exchange.history().into_iter().for_each(|one| one.admit(location.clone()));
                }
                Target::Delay(exchange) => {
                    if let (Some(delay), Some(due_ms)) = (exchange.delay(), self.due_ms) {
                        delay.take_in(due_ms, location.clone());
                    }
                }
            }
        }
    }
}

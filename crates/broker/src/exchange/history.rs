//! `x-recent-history` exchanges: fanout exchanges that remember their last messages, and send them
//! to everything that is bound later.
//!
//! A durable exchange remembers persistent messages in the log, which knows the history as it knows a
//! queue: by a number, under which messages come and are settled when they are too old.
//!
//! Consumers make no history shorter. So the places of all of them together use a quarter of the memory from which on there is
//! an alarm: beyond that, each forgets its oldest sooner.

use super::Context;
use crate::gate;
use crate::headers;
use crate::memory::{Charge, Use};
use crate::queue::SPILLED;
use crate::routing::cc;
use courser_codec::{FieldTable, RawProperties, Value};
use courser_store::blocking::Lock;
use courser_store::change::QUEUES_PER_RECORD_MAX;
use courser_store::critical;
use courser_store::{Location, Lsn, MessageRef, Position, Record, Store, StoreError, Sync};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How many messages an exchange remembers unless it says something else.
const USUAL_LENGTH: usize = 20;
/// Room that there is for the places of each, up to its length, however little memory is left.
const ROOM_LEAST: usize = USUAL_LENGTH;
/// The longest history that an exchange can ask for.
pub(crate) const LENGTH_MAX: i64 = 100_000;
/// The argument of the exchange that says how many messages it remembers.
pub(crate) const LENGTH: &str = "x-recent-history-length";
/// The header of a message that is not to be remembered.
const NO_STORE: &str = "x-recent-history-no-store";

/// The last messages of an exchange, oldest first.
pub(crate) struct History {
    /// What the log knows it by; it is never used again.
    number: u64,
    durable: bool,
    length: usize,
    store: Arc<dyn Store>,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    last: VecDeque<Location>,
    /// Messages that were forgotten since the start, which is the number of the first that is not.
    forgotten: u64,
    closed: bool,
    charge: Charge,
}

impl State {
    /// Remembers one more message. Returns the oldest if it is forgotten for that: there are `length`, or all histories together
    /// use what they may.
    fn remember(&mut self, location: Location, length: usize) -> Option<Location> {
        let oldest = if self.has_room(length) { None } else { self.last.pop_front() };
        self.forgotten += u64::from(oldest.is_some());
        self.last.push_back(location);
        oldest
    }

    fn has_room(&mut self, length: usize) -> bool {
        let (count, room) = (self.last.len(), self.last.capacity());
        count < length && (count < room || self.grow(length))
    }

    /// Makes room for twice as many, and at most `length`, unless all histories together use what they may.
    #[cold]
    fn grow(&mut self, length: usize) -> bool {
        let (count, room) = (self.last.len(), self.last.capacity());
        let more = (2 * room).max(ROOM_LEAST).min(length) - count;
        let bytes = more * size_of::<Location>();
        let admitted = self.charge.memory().is_none_or(|memory| memory.admits_history(bytes));
        if room >= ROOM_LEAST && !admitted {
            return false;
        }
        self.last.reserve_exact(more);
        self.count_memory();
        true
    }

    /// Counts the places that there is room for.
    fn count_memory(&mut self) {
        self.charge.set(self.last.capacity() * size_of::<Location>());
    }
}

/// A message that is about to be remembered, once for all histories that it passes.
pub(crate) struct RecentMessage<'m> {
    message: MessageRef<'m>,
    /// The content header as consumers get it.
    header: Cow<'m, [u8]>,
    /// Where it survives a restart, and their numbers.
    surviving: Vec<Arc<History>>,
    numbers: Vec<u64>,
    /// Where it does not, and its place there.
    passing: Vec<Arc<History>>,
    transient: Option<Location>,
}

/// Whether a message with these properties is to be remembered.
pub(crate) fn is_remembered(properties: RawProperties<'_>) -> bool {
    let headers = properties.headers().ok().flatten().unwrap_or_default();
    let refused = headers::find(headers, |name| name == NO_STORE.as_bytes()).ok().flatten();
    !matches!(refused, Some(Value::Bool(true)))
}

impl History {
    /// An empty history, as long as these arguments, which have been found good, want it.
    pub fn new(number: u64, durable: bool, arguments: &FieldTable, context: Context) -> Arc<Self> {
        let asked = arguments.get(LENGTH).and_then(|length| length.as_integer());
        let length = asked.and_then(|length| usize::try_from(length).ok()).unwrap_or(USUAL_LENGTH);
        let Context { store, memory, .. } = context;
        let state = State { charge: memory.charge(Use::Histories, 0), ..State::default() };
        let state = Lock::new(state);
        Arc::new(History { number, durable, length, store, state })
    }

    /// Remembers one more message, instead of the oldest one.
    pub fn admit(&self, location: Location) {
        let mut state = self.state.lock();
        if state.closed {
            // The log has it behind the end of the history.
            return self.forget(&[location]);
        }
        let oldest = state.remember(location, self.length);
        self.forget(oldest.as_slice());
    }

    /// Lets go of messages that are remembered no more.
    fn forget(&self, gone: &[Location]) {
        let survived = gone.iter().filter(|location| location.marks() & SPILLED == 0);
        let mut positions: Vec<Position> = survived.filter_map(Location::position).collect();
        positions.sort_unstable();
        let settled = Record::Settled { queue: self.number, positions: &positions };
        if !positions.is_empty() {
            gate::assert_inside("a history forgets");
            // If the store has failed, the log still has them in the history at the next start.
            drop(self.store.settle(&[settled], Sync::Later, &positions));
        }
        let spilled = gone.iter().filter(|location| location.marks() & SPILLED != 0);
        let spilled: Vec<Position> = spilled.filter_map(Location::position).collect();
        self.store.release(&spilled);
    }

    /// How many places it wants for so many messages besides the room that it has in any case.
    pub fn wants(&self, count: usize) -> u64 {
        count.min(self.length).saturating_sub(ROOM_LEAST) as u64
    }

    /// Takes back the newest of what it remembered before a restart: all, if `room` is what it wants.
    pub fn restore(&self, positions: impl Iterator<Item = Position>, room: u64) {
        let mut last: VecDeque<Location> = positions.map(Location::logged).collect();
        let kept = last.len().min(self.length).min(ROOM_LEAST + room as usize);
        // What is beyond its length was to be forgotten before.
        let mut gone: Vec<Location> =
            last.drain(..last.len().saturating_sub(self.length)).collect();
        let forgotten = last.len() - kept;
        gone.extend(last.drain(..forgotten));
        let mut state = self.state.lock();
        state.forgotten = forgotten as u64;
        state.last.reserve_exact(kept.max(ROOM_LEAST).min(self.length));
        state.last.extend(last);
        state.count_memory();
        self.forget(&gone);
    }

    /// Whether what is persistent is remembered after a restart.
    pub fn survives(&self) -> bool {
        self.durable
    }

    /// The number that the log knows it by.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The exchange is gone. Returns the positions in the log of what it remembered.
    pub fn close(&self) -> Vec<Position> {
        let mut state = self.state.lock();
        state.closed = true;
        let last = std::mem::take(&mut state.last);
        state.count_memory();
        last.iter().filter_map(Location::position).collect()
    }

    /// The numbers of the messages remembered now.
    pub fn numbers(&self) -> Range<u64> {
        let state = self.state.lock();
        state.forgotten..state.forgotten + state.last.len() as u64
    }

    /// Calls `each` with the messages of these numbers that are still remembered, oldest first, until it
    /// says that it is enough. Leaves the numbers of those that come after that. The history is not locked while the disk is read,
    /// which publishers would wait for.
    pub fn read(
        &self,
        numbers: &mut Range<u64>,
        each: &mut dyn FnMut(&MessageRef<'_>) -> bool,
    ) -> Result<(), StoreError> {
        critical::assert_outside("a history is read");
        let mut reader = self.store.reader();
        let mut wanted = true;
        while wanted && let Some(location) = self.hold_next(numbers) {
            let read = match location.in_memory() {
                Some(message) => Ok(each(&message)),
                None => match reader.read(&location) {
                    Err(StoreError::Lost(_)) => Ok(true),
                    read => read.map(|message| each(&message)),
                },
            };
            self.store.release(location.position().as_slice());
            wanted = read?;
        }
        Ok(())
    }

    /// The first message of these numbers that is still remembered, which the log holds until it is released; leaves the numbers
    /// of the others.
    fn hold_next(&self, numbers: &mut Range<u64>) -> Option<Location> {
        let state = self.state.lock();
        numbers.start = numbers.start.max(state.forgotten);
        let number = numbers.next()?;
        let Some(location) = state.last.get((number - state.forgotten) as usize) else {
            // The exchange is gone.
            numbers.start = numbers.end;
            return None;
        };
        location.position().into_iter().for_each(|position| self.store.hold(position));
        Some(location.clone())
    }

    /// The positions of the messages that survive a restart, oldest first, and how many messages there are.
    pub fn surviving(&self) -> (Vec<Position>, usize) {
        let state = self.state.lock();
        let survives = |location: &&Location| location.marks() & SPILLED == 0;
        let surviving = state.last.iter().filter(survives).filter_map(Location::position);
        (surviving.collect(), state.last.len())
    }

    /// The ascending positions before `end` of the messages that are in the log: of all, or only of
    /// those that survive a restart.
    pub fn positions_below(&self, end: Lsn, only_surviving: bool) -> Vec<Position> {
        let state = self.state.lock();
        let counts = |location: &&Location| !(only_surviving && location.marks() & SPILLED != 0);
        let logged = state.last.iter().filter(counts).filter_map(Location::position);
        let mut positions: Vec<Position> =
            logged.filter(|position| position.is_before(end)).collect();
        drop(state);
        positions.sort_unstable();
        positions
    }
}

impl<'m> RecentMessage<'m> {
    /// A message that passes `histories`; none if these are none.
    pub fn new<'h>(
        histories: impl Iterator<Item = &'h Arc<History>>,
        message: &MessageRef<'m>,
        persistent: bool,
    ) -> Option<Self> {
        let is_surviving = |history: &Arc<History>| persistent && history.durable;
        let (surviving, passing): (Vec<_>, Vec<_>) = histories.cloned().partition(is_surviving);
        if surviving.is_empty() && passing.is_empty() {
            return None;
        }
        let numbers = surviving.iter().map(|history| history.number).collect();
        let (message, header) = (*message, cc::shown(message.header));
        Some(RecentMessage { message, header, surviving, numbers, passing, transient: None })
    }

    fn message(&self) -> MessageRef<'_> {
        // Its time to live begins when a queue gets it.
        MessageRef { header: &self.header, published_ms: 0, ..self.message }
    }

    /// What the log is told, where the message survives a restart: one record for as many histories as it can name.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.numbers.chunks(QUEUES_PER_RECORD_MAX).map(|queues| {
            let holders = queues.len() as u32;
            Record::Message { queues, holders, message: self.message() }
        })
    }

    /// Keeps the message if there are histories where it does not survive a restart.
    pub fn keep_transient(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if !self.passing.is_empty() {
            self.transient = store.keep_one(self.message())?;
        }
        Ok(())
    }

    /// Its place in the log, where it is as there was no memory for it.
    pub fn spilled(&self) -> Option<Position> {
        self.transient.as_ref().and_then(Location::position)
    }

    /// The message is remembered from now on. Where it survives, its places are the next of `appended`.
    pub fn admit_from(self, appended: &mut impl Iterator<Item = Location>) {
        for histories in self.surviving.chunks(QUEUES_PER_RECORD_MAX) {
            let Some(location) = appended.next() else { break };
            histories.iter().for_each(|history| history.admit(location.clone()));
        }
        let Some(mut location) = self.transient else { return };
        for history in self.passing {
            if let Some(position) = location.position() {
                history.store.hold(position);
                *location.marks_mut() |= SPILLED;
            }
            history.admit(location.clone());
        }
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("length", &self.length).finish_non_exhaustive()
    }
}

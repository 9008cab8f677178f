//! `x-recent-history` exchanges: fanout exchanges that remember their last messages, and send them
//! to everything that is bound later.
//!
//! A durable exchange remembers persistent messages in the log, which knows the history as it knows a
//! queue: by a number, under which messages come and are settled when they are too old.

use crate::queue::SPILLED;
use crate::routing::cc;
use courser_codec::{FieldTable, RawProperties, Value};
use courser_store::{Location, Lsn, MessageRef, Position, Record, Store, StoreError, Sync};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// How many messages an exchange remembers unless it says something else.
const USUAL_LENGTH: usize = 20;
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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: VecDeque<Location>,
    closed: bool,
}

/// A message that is about to be remembered.
pub(crate) struct RecentMessage<'m> {
    history: Arc<History>,
    message: MessageRef<'m>,
    /// The content header as consumers get it.
    header: Cow<'m, [u8]>,
    persistent: bool,
}

/// Whether a message with these properties is to be remembered.
pub(crate) fn is_remembered(properties: RawProperties<'_>) -> bool {
    let headers = properties.headers().ok().flatten();
    let refused = headers.and_then(|headers| headers.get(NO_STORE).ok().flatten());
    !matches!(refused, Some(Value::Bool(true)))
}

impl History {
    /// An empty history, as long as these arguments, which have been found good, want it.
    pub fn new(
        number: u64,
        durable: bool,
        arguments: &FieldTable,
        store: Arc<dyn Store>,
    ) -> Arc<Self> {
        let asked = arguments.get(LENGTH).and_then(|length| length.as_integer());
        let length = asked.and_then(|length| usize::try_from(length).ok()).unwrap_or(USUAL_LENGTH);
        Arc::new(History { number, durable, length, store, state: Mutex::default() })
    }

    /// Remembers one more message, instead of the oldest one.
    pub fn admit(&self, location: Location) {
        let mut state = self.state.lock();
        if state.closed {
            self.store.release(location.position().as_slice());
            return;
        }
        state.last.push_back(location);
        self.forget_oldest(&mut state);
    }

    /// Forgets what is more than may be remembered.
    fn forget_oldest(&self, state: &mut State) {
        let excess = state.last.len().saturating_sub(self.length);
        let forgotten: Vec<Location> = state.last.drain(..excess).collect();
        let survived = forgotten.iter().filter(|location| location.marks() & SPILLED == 0);
        let mut positions: Vec<Position> = survived.filter_map(Location::position).collect();
        positions.sort_unstable();
        let settled = Record::Settled { queue: self.number, positions: &positions };
        if !positions.is_empty() {
            // If the store has failed, the log still has them in the history at the next start.
            drop(self.store.settle(&[settled], Sync::Later, &positions));
        }
        let spilled = forgotten.iter().filter(|location| location.marks() & SPILLED != 0);
        let spilled: Vec<Position> = spilled.filter_map(Location::position).collect();
        self.store.release(&spilled);
    }

    /// Takes back what it remembered before a restart.
    pub fn restore(&self, positions: impl Iterator<Item = Position>) {
        let mut state = self.state.lock();
        state.last.extend(positions.map(|position| Location::Log { position, marks: 0 }));
        self.forget_oldest(&mut state);
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
        last.iter().filter_map(Location::position).collect()
    }

    /// Calls `each` with every message remembered, oldest first.
    pub fn for_each(&self, each: &mut dyn FnMut(&MessageRef<'_>)) -> Result<(), StoreError> {
        let mut reader = self.store.reader();
        // The lock keeps what lies in the log from being let go of while it is read.
        for location in &self.state.lock().last {
            match location.in_memory() {
                Some(message) => each(&message),
                None => match reader.read(location) {
                    Err(StoreError::Lost(_)) => {}
                    read => each(&read?),
                },
            }
        }
        Ok(())
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
    /// A message that passes `history`.
    pub fn new(history: &Arc<History>, message: &MessageRef<'m>, persistent: bool) -> Self {
        RecentMessage {
            persistent: persistent && history.durable,
            history: Arc::clone(history),
            message: *message,
            header: cc::shown(message.header),
        }
    }

    fn message(&self) -> MessageRef<'_> {
        // Its life begins when somebody gets it.
        MessageRef { header: &self.header, published_ms: 0, ..self.message }
    }

    /// What the log is told, if the message survives a restart.
    pub fn record(&self) -> Option<Record<'_>> {
        let queues = std::slice::from_ref(&self.history.number);
        let record = || Record::Message { queues, holders: 1, message: self.message() };
        self.persistent.then(record)
    }

    /// The message is remembered from now on. If it survives, its place is the next of `appended`.
    pub fn admit_from(
        self,
        appended: &mut impl Iterator<Item = Location>,
    ) -> Result<(), StoreError> {
        if self.persistent {
            appended.next().into_iter().for_each(|location| self.history.admit(location));
            return Ok(());
        }
        let mut kept = Vec::new();
        self.history.store.keep(&mut std::iter::once(self.message()), &mut kept)?;
        for mut location in kept {
            if let Some(position) = location.position() {
                self.history.store.hold(position);
                *location.marks_mut() |= SPILLED;
            }
            self.history.admit(location);
        }
        Ok(())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("length", &self.length).finish_non_exhaustive()
    }
}

//! `x-recent-history` exchanges: fanout exchanges that remember their last messages, and send them
//! to everything that is bound later.
//!
//! The history is in memory and does not survive a restart, as in RabbitMQ's plug-in.

use crate::copies;
use crate::queue::SPILLED;
use courser_codec::{FieldTable, RawProperties, Value};
use courser_store::{Location, MessageRef, Store, StoreError};
use parking_lot::Mutex;
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
    length: usize,
    store: Arc<dyn Store>,
    last: Mutex<VecDeque<Location>>,
}

/// Whether a message with these properties is to be remembered.
pub(crate) fn is_remembered(properties: RawProperties<'_>) -> bool {
    let headers = properties.headers().ok().flatten();
    let refused = headers.and_then(|headers| headers.get(NO_STORE).ok().flatten());
    !matches!(refused, Some(Value::Bool(true)))
}

impl History {
    /// An empty history, as long as these arguments, which have been found good, want it.
    pub fn new(arguments: &FieldTable, store: Arc<dyn Store>) -> Self {
        let asked = arguments.get(LENGTH).and_then(|length| length.as_integer());
        let length = asked.and_then(|length| usize::try_from(length).ok()).unwrap_or(USUAL_LENGTH);
        History { length, store, last: Mutex::default() }
    }

    /// Remembers a message, instead of the oldest one.
    pub fn put(&self, message: &MessageRef<'_>) -> Result<(), StoreError> {
        let shown = copies::shown(message.header);
        let message = MessageRef { header: &shown, ..*message };
        let mut kept = Vec::new();
        self.store.keep(&mut std::iter::once(message), &mut kept)?;
        let mut last = self.last.lock();
        for mut location in kept {
            if let Some(position) = location.position() {
                self.store.hold(position);
                *location.marks_mut() |= SPILLED;
            }
            last.push_back(location);
        }
        while last.len() > self.length {
            self.let_go(last.pop_front());
        }
        Ok(())
    }

    /// Calls `each` with every message remembered, oldest first.
    pub fn for_each(&self, each: &mut dyn FnMut(&MessageRef<'_>)) -> Result<(), StoreError> {
        let mut reader = self.store.reader();
        // The lock keeps what lies in the log from being let go of while it is read.
        for location in self.last.lock().iter() {
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

    /// Calls `each` with the position before `end` of every message that is in the log.
    pub fn for_each_position_below(&self, end: u64, each: &mut dyn FnMut(u64)) {
        let positions: Vec<u64> = self.last.lock().iter().filter_map(Location::position).collect();
        positions.into_iter().filter(|position| *position < end).for_each(each);
    }

    fn let_go(&self, location: Option<Location>) {
        if let Some(position) = location.and_then(|location| location.position()) {
            self.store.release(position);
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        let last = std::mem::take(self.last.get_mut());
        last.into_iter().for_each(|location| self.let_go(Some(location)));
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("length", &self.length).finish_non_exhaustive()
    }
}

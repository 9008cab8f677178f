//! How large what a queue holds is, and how much of it is persistent or in memory, for operators.

use super::{Amount, Queue, State};
use courser_codec::ContentHeader;
use courser_store::{Location, MessageRef, Store};
use std::ops::AddAssign;

/// What the messages of a queue amount to: those that wait, and those that were delivered and are not
/// acknowledged. Bytes are those of bodies. They are not known while the queue has a message from the
/// checkpoint of an earlier version, which does not tell how large it is; that is known again once
/// the message has been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueContents {
    /// Bytes of those that wait, for a consumer or for another try, if known.
    pub ready_bytes: Option<u64>,
    /// Bytes of those that are not acknowledged, if known.
    pub unacked_bytes: Option<u64>,
    /// Those that wait in memory, for a consumer or for another try; the others are in the log.
    pub ready_in_memory: Amount,
    /// Those that are not acknowledged and in memory.
    pub unacked_in_memory: Amount,
    /// How many survive a restart.
    pub persistent: u64,
    /// Bytes of those that survive a restart, if known.
    pub persistent_bytes: Option<u64>,
}

impl QueueContents {
    /// Those of no message.
    pub const NONE: QueueContents = QueueContents {
        ready_bytes: Some(0),
        unacked_bytes: Some(0),
        ready_in_memory: Amount { messages: 0, bytes: 0 },
        unacked_in_memory: Amount { messages: 0, bytes: 0 },
        persistent: 0,
        persistent_bytes: Some(0),
    };

    /// Bytes of all, if known.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.ready_bytes? + self.unacked_bytes?)
    }

    /// All that are in memory.
    pub fn in_memory(&self) -> Amount {
        let (ready, unacked) = (self.ready_in_memory, self.unacked_in_memory);
        Amount { messages: ready.messages + unacked.messages, bytes: ready.bytes + unacked.bytes }
    }
}

impl AddAssign<&QueueContents> for QueueContents {
    fn add_assign(&mut self, more: &QueueContents) {
        let sum = |one: Option<u64>, more: Option<u64>| Some(one? + more?);
        self.ready_bytes = sum(self.ready_bytes, more.ready_bytes);
        self.unacked_bytes = sum(self.unacked_bytes, more.unacked_bytes);
        self.persistent_bytes = sum(self.persistent_bytes, more.persistent_bytes);
        self.persistent += more.persistent;
        for (one, more) in [
            (&mut self.ready_in_memory, more.ready_in_memory),
            (&mut self.unacked_in_memory, more.unacked_in_memory),
        ] {
            one.messages += more.messages;
            one.bytes += more.bytes;
        }
    }
}

impl Queue {
    /// What its messages amount to; none for a stream.
    pub(super) fn contents_of(&self, state: &State) -> Option<QueueContents> {
        if self.stream.is_some() {
            return None;
        }
        let (mut ready, mut unacked) = (*state.ready.amounts(), *state.unacked.amounts());
        ready.add_all(state.delayed.amounts());
        // They wait, as in the queue's lengths.
        state.for_each_passed_over(&mut |location| {
            unacked.sub(location);
            ready.add(location);
        });
        let survives = self.settings.survives();
        let (ready_bytes, unacked_bytes) = (ready.bytes(), unacked.bytes());
        let persistent_bytes = match survives {
            true => ready_bytes
                .and(unacked_bytes)
                .map(|_| ready.in_log_bytes() + unacked.in_log_bytes()),
            false => Some(0),
        };
        Some(QueueContents {
            ready_bytes,
            unacked_bytes,
            ready_in_memory: ready.in_memory(),
            unacked_in_memory: unacked.in_memory(),
            persistent: if survives { ready.in_log() + unacked.in_log() } else { 0 },
            persistent_bytes,
        })
    }

    /// The `timestamp` of the message whose turn it is, if it has one: read without the queue's lock, if it can be read.
    pub(crate) fn head_timestamp(&self, store: &dyn Store) -> Option<u64> {
        let head = {
            let state = self.state.look()?;
            let head = state.ready.front()?.1.clone();
            // So that the store keeps it meanwhile.
            head.position().into_iter().for_each(|at| store.hold(at));
            head
        };
        let found = match head.in_memory() {
            Some(message) => timestamp_of(&message),
            None => store.reader().read(&head).ok().and_then(|message| timestamp_of(&message)),
        };
        store.release(head.position().as_slice());
        found
    }
}

impl State {
    /// Calls `each` with the places of messages that have been passed over.
    fn for_each_passed_over(&self, each: &mut dyn FnMut(&Location)) {
        self.passed_over_numbers().filter_map(|at| self.unacked.get(at)).for_each(each);
    }
}

pub(super) fn timestamp_of(message: &MessageRef<'_>) -> Option<u64> {
    ContentHeader::parse(message.header).ok()?.properties.timestamp().ok().flatten()
}

//! What a queue takes back at a start.
//!
//! What it has to know of a message is noted in the checkpoint, and while the log behind it is replayed: no message is read, however many
//! there are. Those of a checkpoint that says less, as earlier versions wrote it, are.

use super::backlog::{FAILED, REDELIVERED};
use super::priority::priority_of;
use super::{Queue, State};
use courser_store::recovered::{IndexedMessage, QueueIndex};
use courser_store::{BodySize, Location, MessageRef, NO_KEY, Priority, Reader, Store, StoreError};

/// Reads messages of which a start has to know more, for as long as the store can be read.
pub(crate) struct Rereader(Option<Box<dyn Reader>>);

impl Rereader {
    /// Reads from this store.
    pub fn of(store: &dyn Store) -> Self {
        Rereader(Some(store.reader()))
    }

    /// Has `look` look at the message, if it can be read. What the disk refuses is asked for once more.
    fn read<T>(
        &mut self,
        location: &Location,
        look: impl FnOnce(&MessageRef<'_>) -> T,
    ) -> Option<T> {
        let reader = self.0.as_mut()?;
        for _ in 0..2 {
            match reader.read(location) {
                Ok(message) => return Some(look(&message)),
                Err(StoreError::Unread(_)) => {}
                Err(StoreError::Lost(_)) => return None,
                // The broker that is to be made of this can serve no one, and the next one may wait for the end of this start.
                Err(_) => {
                    self.0 = None;
                    return None;
                }
            }
        }
        None
    }
}

impl Queue {
    /// Takes back the messages that it had before a restart. Returns how many they are.
    pub(crate) fn restore(
        &self,
        index: &QueueIndex,
        store: &dyn Store,
        rereader: &mut Rereader,
    ) -> usize {
        let mut state = self.state.lock();
        let keeps_apart = state.notes.as_ref().is_some_and(|notes| notes.keeps_apart());
        for IndexedMessage { position, body, priority, returns } in index.messages() {
            let mut location = Location::Log { position, body, marks: 0 };
            match returns.map(u64::from) {
                None => {}
                Some(0) => {
                    *location.marks_mut() = REDELIVERED;
                    state.has_returned = true;
                }
                Some(count) => {
                    *location.marks_mut() = REDELIVERED | FAILED;
                    state.set_count(&mut location, count);
                }
            }
            let State { ready, notes, .. } = &mut *state;
            let mut said = match priority {
                Priority::Is(priority) => Some(priority),
                Priority::Unsaid | Priority::Unknown => None,
            };
            let mut key = index.key(position);
            // One that can't be read is found out when its turn comes.
            if keeps_apart && key.is_none() || ready.has_levels() && priority == Priority::Unknown {
                let read = rereader.read(&location, |message| {
                    let key = notes.as_ref().and_then(|notes| notes.key_in(message));
                    (priority_of(message), key, BodySize::of(message.body.len()))
                });
                if let Some((priority, read_key, body)) = read {
                    (said, key) = (priority, Some(read_key.unwrap_or(NO_KEY)));
                    location.set_body_size(body);
                }
            }
            if let (Some(notes), Some(key)) = (notes, key) {
                // One of the same is no reason to drop it: that may be a dead letter that had not arrived elsewhere, which made
                // room for this one when it left.
                notes.enter_known(Some(key).filter(|key| *key != NO_KEY), &location);
            }
            let rank = ready.level(said);
            ready.push(location, rank, 0);
        }
        let messages = state.ready.len();
        state.ready.count_no_bytes();
        Self::count_bytes(&mut state);
        if state.ready.lacks_sizes() {
            Self::read_sizes(&mut state, store);
        }
        self.finish(&mut state, Ok(()));
        // Whether they may expire is not known until their turn comes.
        self.watch_head(&mut state);
        messages
    }
}

//! The messages of one run of publishes that go the same way, and their places in the store as far
//! as they needed one.

use crate::queue::{FAILED, REDELIVERED, SPILLED, has_expiration};
use crate::routing::deduplication::HeaderKeys;
use courser_store::{Location, MessageRef, Position, Record, Store, StoreError};

/// Consecutive publishes with the same route, all of them persistent or none. A message is copied
/// into the store at most once, however many queues it goes to: a persistent one when the run is
/// flushed, a transient one when the first queue needs to keep it.
#[derive(Debug, Default)]
pub(crate) struct PublishRun<'m> {
    messages: Vec<MessageRef<'m>>,
    body_bytes: u64,
    /// Places of `messages[first_kept..first_kept + kept.len()]`.
    kept: Vec<Location>,
    first_kept: usize,
    /// The run was put into the log because memory is short, or for the streams of its route alone: every
    /// other queue that takes a message counts.
    spilled: bool,
    /// Some message has an `expiration` of its own.
    may_expire: bool,
    /// Each message of the run is held once more, so that it does not go before all queues had it.
    guarded: bool,
    /// All of them have been delivered before, elsewhere.
    redelivered: bool,
    /// A full queue may refuse its messages.
    refusable: bool,
    /// Which messages a full queue has refused; empty if none.
    refused: Vec<bool>,
    /// What its messages say of themselves, once a queue has asked for it.
    keys: Vec<HeaderKeys<'m>>,
}

impl<'m> PublishRun<'m> {
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// How long the bodies of its messages are, from that at `index` on.
    pub fn body_lens(&self, index: usize) -> impl ExactSizeIterator<Item = usize> {
        self.messages.get(index..).unwrap_or_default().iter().map(|message| message.body.len())
    }

    /// Bytes of the bodies of its messages.
    #[inline]
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    #[inline]
    pub fn push(&mut self, message: MessageRef<'m>) {
        // Whatever may expire has a stamp.
        if message.published_ms != 0 {
            self.may_expire |= has_expiration(message.header);
        }
        self.body_bytes += message.body.len() as u64;
        self.messages.push(message);
    }

    /// Whether its messages have been delivered before.
    pub fn set_redelivered(&mut self, redelivered: bool) {
        self.redelivered = redelivered;
    }

    #[inline]
    pub fn is_redelivered(&self) -> bool {
        self.redelivered
    }

    /// Whether queues may refuse messages that they have no room for; otherwise they take them.
    pub fn set_refusable(&mut self, refusable: bool) {
        self.refusable = refusable;
    }

    pub fn is_refusable(&self) -> bool {
        self.refusable
    }

    /// A queue refuses a message.
    pub fn refuse(&mut self, index: usize) {
        self.refused.resize(self.messages.len(), false);
        self.refused[index] = true;
    }

    /// The only queue of the route refuses all of them.
    pub fn refuse_all(&mut self) {
        self.refused.clear();
        self.refused.resize(self.messages.len(), true);
    }

    /// Whether some queue has refused any message.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Whether it is in the log, for a restart to find.
    pub fn is_logged(&self) -> bool {
        !self.spilled && self.kept.first().is_some_and(|kept| kept.position().is_some())
    }

    /// Whether some queue has refused a message.
    pub fn is_refused(&self, index: usize) -> bool {
        self.refused.get(index).is_some_and(|refused| *refused)
    }

    /// Whether some message may expire, whatever its queue says.
    #[inline]
    pub fn may_expire(&self) -> bool {
        self.may_expire
    }

    #[inline]
    pub fn message(&self, index: usize) -> Option<MessageRef<'m>> {
        self.messages.get(index).copied()
    }

    /// Where a message is kept, for one more queue to hold it there; after [`PublishRun::keep_from`] for
    /// it or for one before it.
    #[inline]
    pub fn location(&self, index: usize, store: &dyn Store) -> Option<Location> {
        let mut location = self.kept.get(index.checked_sub(self.first_kept)?)?.clone();
        if self.spilled
            && let Some(position) = location.position()
        {
            store.hold(position);
            *location.marks_mut() |= SPILLED;
        }
        if self.redelivered {
            *location.marks_mut() |= REDELIVERED | FAILED;
        }
        Some(location)
    }

    /// The position in the log of a message that every queue of the route holds.
    #[inline]
    pub fn position(&self, index: usize) -> Option<Position> {
        if self.spilled { None } else { self.logged_at(index) }
    }

    /// The position in the log of a message that is there.
    #[inline]
    pub fn logged_at(&self, index: usize) -> Option<Position> {
        self.kept.get(index.checked_sub(self.first_kept)?)?.position()
    }

    /// The records that make the run survive in the queues with these numbers.
    pub fn records<'a>(&'a self, queues: &'a [u64], holders: u32) -> Vec<Record<'a>> {
        let record =
            |message: &MessageRef<'a>| Record::Message { queues, holders, message: *message };
        self.messages.iter().map(record).collect()
    }

    /// Where the store has put the run, in the order of its messages: one that is not persistent
    /// for the streams of its route alone, and once more for [`PublishRun::let_go`].
    pub fn set_locations(&mut self, locations: Vec<Location>, persistent: bool) {
        self.kept = locations;
        self.first_kept = 0;
        self.spilled = !persistent;
        self.guarded = !persistent;
    }

    /// Where a message is, if it is kept already: as it is there for a stream, or to know it by.
    pub fn held(&self, index: usize) -> Option<Location> {
        self.kept.get(index.checked_sub(self.first_kept)?).cloned()
    }

    /// What a message says of itself, read once for all queues.
    pub fn header_keys(&mut self, index: usize) -> Option<&mut HeaderKeys<'m>> {
        if self.keys.is_empty() {
            let of = |message: &MessageRef<'m>| HeaderKeys::of_content(message.header);
            self.keys = self.messages.iter().map(of).collect();
        }
        self.keys.get_mut(index)
    }

    /// One of its messages, for a queue that takes each by itself.
    pub fn one(&self, index: usize) -> Self {
        PublishRun {
            messages: self.message(index).into_iter().collect(),
            body_bytes: self.message(index).map_or(0, |message| message.body.len() as u64),
            kept: self.held(index).into_iter().collect(),
            spilled: self.spilled,
            may_expire: self.may_expire,
            redelivered: self.redelivered,
            refusable: self.refusable,
            ..PublishRun::default()
        }
    }

    /// All queues have the run.
    pub fn let_go(&mut self, store: &dyn Store) {
        if std::mem::take(&mut self.guarded) {
            let kept: Vec<Position> = self.kept.iter().filter_map(Location::position).collect();
            store.release(&kept);
        }
    }

    /// Copies the messages from `index` on into the store, unless they are there already.
    pub fn keep_from(&mut self, index: usize, store: &dyn Store) -> Result<(), StoreError> {
        if self.kept.is_empty() {
            store.keep(&mut self.messages[index..].iter().copied(), &mut self.kept)?;
            self.first_kept = index;
            self.spilled = self.kept.iter().any(|kept| kept.position().is_some());
        } else if index < self.first_kept {
            let mut kept = Vec::with_capacity(self.messages.len() - index);
            let earlier = &self.messages[index..self.first_kept];
            store.keep(&mut earlier.iter().copied(), &mut kept)?;
            self.spilled |= kept.iter().any(|kept| kept.position().is_some());
            kept.append(&mut self.kept);
            self.kept = kept;
            self.first_kept = index;
        }
        Ok(())
    }

    /// Copies all messages into the store before the first of several queues gets them: there is room for
    /// all of these or for none.
    pub fn keep_for_several(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.kept.is_empty() {
            self.keep_from(0, store)?;
            self.guarded = self.spilled;
            if self.guarded {
                self.kept.iter().filter_map(Location::position).for_each(|at| store.hold(at));
            }
        }
        Ok(())
    }

    /// Empties it for the next run.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.body_bytes = 0;
        self.kept.clear();
        self.spilled = false;
        self.may_expire = false;
        self.guarded = false;
        self.refused.clear();
        self.keys.clear();
    }

    /// Empties it and keeps its memory for messages borrowed from elsewhere.
    pub fn recycle<'n>(mut self) -> PublishRun<'n> {
        self.clear();
        // Collecting an emptied vector of the same layout reuses its memory.
        let messages = self.messages.into_iter().map_while(|_| None).collect();
        PublishRun { messages, kept: self.kept, ..PublishRun::default() }
    }
}

//! What a queue knows of some of its messages besides their places: what identifies them, where it
//! holds no two of the same, and how often they came back, where that is more than fits the marks or did no harm.
//!
//! A message that leaves takes this along, but for what identifies one of whose end the log has yet to be told.

use super::settle::Settling;
use super::untold::Untold;
use super::{Queue, State};
use crate::keyed::{KeyedMap, KeyedSet};
use crate::memory::Charge;
use crate::posting::PublishRun;
use crate::routing::deduplication::{HeaderKeys, Marker};
use crate::wakes::Wakes;
use courser_codec::FieldTable;
use courser_store::{Key, Location, MessageRef, NO_KEY, Position, Store, StoreError, Sync};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Identifies a message among those of a queue: its position in the log, or its place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Log(Position),
    Memory(usize, u32),
}

impl Place {
    fn of(location: &Location) -> Self {
        match location {
            Location::Log { position, .. } => Place::Log(*position),
            Location::Memory { chunk, offset, .. } => {
                Place::Memory(Arc::as_ptr(chunk).addr(), *offset)
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct MessageNotes {
    present: Option<Present>,
    counts: FxHashMap<Place, u64>,
    /// How often a message has come back in a way that does not count for a delivery limit, in a quorum queue.
    unharmed: FxHashMap<Place, u64>,
    charge: Charge,
}

/// Places that are kept once nothing is noted.
const KEPT_PLACES: usize = 1024;

/// The messages in a queue that say what identifies them, delivered ones included.
#[derive(Debug)]
struct Present {
    marker: Marker,
    keys: KeyedSet<Key>,
    /// How many more there are of some: dead letters that a restart has found in the queue.
    more: KeyedMap<Key, usize>,
    /// [`NO_KEY`] for those in the log that say nothing: a checkpoint tells that too, so that a start does not read them.
    by_place: FxHashMap<Place, Key>,
    /// Those of dead letters that the log still has, likewise: after a restart they are in the queue as before.
    letters: FxHashMap<Position, Key>,
    /// Those that the queue has refused, and of whose end the log has yet to be told: a few, each by a thread that does that next.
    refused: Vec<(Place, Key)>,
    /// Those that have gone while the log had no room to be told so.
    untold: Untold,
}

impl MessageNotes {
    /// What a queue with these arguments needs from its beginning.
    pub fn of(arguments: &FieldTable, charge: Charge) -> Option<Box<Self>> {
        let marker = Marker::of_what_is_present(arguments)?;
        let (keys, more, by_place, letters) = Default::default();
        let (refused, untold) = Default::default();
        let present = Some(Present { marker, keys, more, by_place, letters, refused, untold });
        Some(Box::new(MessageNotes { present, ..MessageNotes::counted_by(charge) }))
    }

    /// Nothing is noted yet; what it uses is counted by `charge`.
    pub fn counted_by(charge: Charge) -> Self {
        MessageNotes { charge, ..MessageNotes::default() }
    }

    /// Bytes of memory that it uses.
    pub fn used_bytes(&self) -> usize {
        self.charge.bytes()
    }

    /// Counts what the tables have room for: entries and control bytes, of which an eighth stays free.
    fn count_memory(&mut self) {
        let present = self.present.as_ref().map_or(0, |present| {
            present.keys.capacity() * (size_of::<Key>() + 1)
                + present.more.capacity() * (size_of::<(Key, usize)>() + 1)
                + present.by_place.capacity() * (size_of::<(Place, Key)>() + 1)
                + present.letters.capacity() * (size_of::<(Position, Key)>() + 1)
                + present.untold.used_bytes()
        });
        let counts = self.counts.capacity() + self.unharmed.capacity();
        let counts = counts * (size_of::<(Place, u64)>() + 1);
        self.charge.set((present + counts) * 8 / 7);
    }

    /// A message comes in. Returns false, and nothing has happened, if it is there already.
    pub fn enter(&mut self, keys: &mut HeaderKeys<'_>, location: &Location) -> bool {
        let key = self.present.as_ref().and_then(|present| present.marker.key(keys));
        self.enter_as(key, location)
    }

    /// What identifies a message here, if anything does.
    pub fn key_in(&self, message: &MessageRef<'_>) -> Option<Key> {
        self.present.as_ref()?.marker.key_in(message.header)
    }

    /// The queue refuses a message that has come in, and tells the log of that next: until then, others like it are refused as well.
    #[cold]
    pub fn refuse(&mut self, location: &Location) {
        let place = Place::of(location);
        if let Some(key) = self.leave_place(place)
            && let Some(present) = &mut self.present
        {
            present.refused.push((place, key));
        }
    }

    /// A message comes in while the log has yet to be told that one of the same was refused: if it came in and the log was never told, a
    /// restart would find both. Returns whether it is refused, then until the log has been told of it.
    pub fn refuse_like(&mut self, keys: &mut HeaderKeys<'_>, location: &Location) -> bool {
        let Some(present) = self.present.as_mut().filter(|one| !one.refused.is_empty()) else {
            return false;
        };
        let key = present.marker.key(keys);
        let same =
            present.refused.iter().map(|(_, refused)| *refused).find(|one| key == Some(*one));
        present.refused.extend(same.map(|key| (Place::of(location), key)));
        same.is_some()
    }

    fn enter_as(&mut self, key: Option<Key>, location: &Location) -> bool {
        let Some(present) = &mut self.present else { return true };
        let is_new = key.is_none_or(|key| present.keys.insert(key));
        if is_new && (key.is_some() || location.position().is_some()) {
            present.by_place.insert(Place::of(location), key.unwrap_or(NO_KEY));
            self.count_memory();
        }
        is_new
    }

    /// A message is there, and maybe one of the same beside it.
    pub fn enter_beside(&mut self, message: &MessageRef<'_>, location: &Location) {
        self.enter_known(self.key_in(message), location);
    }

    /// The same of a message that is known to have this key, or none.
    pub fn enter_known(&mut self, key: Option<Key>, location: &Location) {
        if self.enter_as(key, location) {
            return;
        }
        if let (Some(present), Some(key)) = (&mut self.present, key) {
            *present.more.entry(key).or_default() += 1;
            present.by_place.insert(Place::of(location), key);
            self.count_memory();
        }
    }

    /// What identifies those of these messages in the log of which that is known, where no two of the same are held.
    pub fn keys_at<'a>(
        &'a self,
        positions: impl Iterator<Item = Position> + 'a,
    ) -> impl Iterator<Item = (Position, Key)> + 'a {
        let known = |present: &'a Present, at| {
            present.by_place.get(&Place::Log(at)).or_else(|| present.letters.get(&at)).copied()
        };
        positions.filter_map(move |at| Some((at, known(self.present.as_ref()?, at)?)))
    }

    /// Whether there is a message of the same already.
    fn has(&self, keys: &mut HeaderKeys<'_>) -> bool {
        let present = self.present.as_ref();
        present.is_some_and(|one| one.marker.key(keys).is_some_and(|key| one.keys.contains(&key)))
    }

    /// Whether the queue holds no two messages of the same.
    pub fn keeps_apart(&self) -> bool {
        self.present.is_some()
    }

    /// A message leaves.
    #[cold]
    pub fn leave(&mut self, location: &Location) {
        self.leave_place(Place::of(location));
    }

    /// A message leaves as a dead letter: those like it may come, but the log has it until it has arrived.
    #[cold]
    pub fn leave_as_letter(&mut self, location: &Location) {
        let key = self.take_place(Place::of(location));
        if let (Some(present), Some(key), Some(position)) =
            (&mut self.present, key, location.position())
        {
            present.letters.insert(position, key);
            self.count_memory();
        }
    }

    /// A message leaves, of which [`Queue::settle`] tells the log, if that has it: what identifies it leaves behind that then.
    #[cold]
    pub fn leave_to_settle(&mut self, location: &Location) {
        if !self.keeps_apart() || location.position().is_none() {
            self.leave(location);
        }
    }

    /// Messages leave.
    #[cold]
    pub fn leave_all(&mut self, locations: &[Location]) {
        locations.iter().for_each(|location| self.leave(location));
    }

    /// The messages at these positions of the log leave.
    #[cold]
    pub fn leave_positions(&mut self, positions: &[Position]) {
        positions.iter().for_each(|position| self.leave_position(*position));
    }

    /// Messages leave, of whose end the log has been told, or had no room for that.
    pub fn leave_told(&mut self, positions: &[Position], is_told: bool) {
        match &mut self.present {
            Some(present) if !is_told => {
                present.untold.add(positions);
                self.count_memory();
            }
            _ => self.leave_positions(positions),
        }
    }

    /// Those that have gone while the log had no room to be told so.
    pub fn untold(&self) -> Option<&Untold> {
        self.present.as_ref().map(|present| &present.untold)
    }

    /// The log has been told of these, which were the first of them.
    pub fn leave_untold(&mut self, positions: &[Position]) {
        if let Some(present) = &mut self.present {
            present.untold.remove_first(positions.len());
        }
        self.leave_positions(positions);
        self.count_memory();
    }

    /// The message at this position of the log leaves.
    pub fn leave_position(&mut self, position: Position) {
        self.leave_place(Place::Log(position));
    }

    /// Returns what identified the message, if it was there and anything did.
    fn leave_place(&mut self, place: Place) -> Option<Key> {
        if let (Some(present), Place::Log(position)) = (&mut self.present, place)
            && present.letters.remove(&position).is_some()
        {
            if present.letters.is_empty() && present.letters.capacity() > KEPT_PLACES {
                present.letters.shrink_to(KEPT_PLACES);
                self.count_memory();
            }
            return None;
        }
        self.take_place(place).filter(|key| *key != NO_KEY)
    }

    /// The same, or [`NO_KEY`].
    fn take_place(&mut self, place: Place) -> Option<Key> {
        self.counts.remove(&place);
        if self.unharmed.remove(&place).is_some()
            && self.unharmed.is_empty()
            && self.unharmed.capacity() > KEPT_PLACES
        {
            self.unharmed.shrink_to(KEPT_PLACES);
            self.count_memory();
        }
        let present = self.present.as_mut()?;
        present.refused.retain(|(refused, _)| *refused != place);
        let key = present.by_place.remove(&place)?;
        match present.more.get_mut(&key) {
            None => drop(present.keys.remove(&key)),
            Some(1) => drop(present.more.remove(&key)),
            Some(more) => *more -= 1,
        }
        if present.by_place.is_empty() && present.by_place.capacity() > KEPT_PLACES {
            present.keys.shrink_to(KEPT_PLACES);
            present.more.shrink_to(KEPT_PLACES);
            present.by_place.shrink_to(KEPT_PLACES);
            self.count_memory();
        }
        Some(key)
    }

    /// How often the message has come back, if that was noted here.
    pub fn count(&self, location: &Location) -> Option<u64> {
        self.counts.get(&Place::of(location)).copied()
    }

    /// The same of the message at this position of the log.
    pub fn count_at(&self, position: Position) -> Option<u64> {
        self.counts.get(&Place::Log(position)).copied()
    }

    pub fn set_count(&mut self, location: &Location, count: u64) {
        self.counts.insert(Place::of(location), count);
        self.count_memory();
    }

    /// How often the message has come back unharmed.
    pub fn unharmed(&self, location: &Location) -> u64 {
        self.unharmed.get(&Place::of(location)).copied().unwrap_or(0)
    }

    /// The message has come back unharmed so often, besides what is noted.
    pub fn add_unharmed(&mut self, location: &Location, times: u64) {
        let noted = self.unharmed.entry(Place::of(location)).or_default();
        *noted = noted.saturating_add(times);
        self.count_memory();
    }
}

impl State {
    /// A message leaves the queue.
    #[inline]
    pub(super) fn leave(&mut self, location: &Location) {
        if let Some(notes) = &mut self.notes {
            notes.leave(location);
        }
    }

    /// A message leaves as a dead letter.
    pub(super) fn leave_as_letter(&mut self, location: &Location) {
        if let Some(notes) = &mut self.notes {
            notes.leave_as_letter(location);
        }
    }

    /// The dead letters at these positions are with the queue no more.
    pub(super) fn leave_letters(&mut self, positions: &[Position]) {
        if let Some(notes) = &mut self.notes {
            notes.leave_positions(positions);
        }
    }

    /// Messages have been handed to consumers who need not acknowledge them, before they had a place
    /// among those that wait: all of this run but those that were `unacked` since. Those that
    /// [`Queue::settle`] tells the log of leave behind that.
    pub(super) fn leave_passed(&mut self, run: &PublishRun<'_>, passed: usize, unacked: usize) {
        if passed > 0 && self.unacked.len() == unacked && self.notes.is_some() {
            let are_left = (0..passed).filter(|index| run.position(*index).is_none());
            are_left.filter_map(|index| run.held(index)).for_each(|one| self.leave(&one));
        }
    }
}

impl Queue {
    /// Whether it would drop a message that was published now and says this of itself, as it holds one of the same.
    pub(crate) fn holds_one_with(&self, keys: &mut HeaderKeys<'_>) -> bool {
        self.holds_no_two() && self.state.lock().notes.as_ref().is_some_and(|notes| notes.has(keys))
    }

    /// Adds the messages of `run` to a queue that holds no two of the same: one after the other, as
    /// each may be what the next one must not be.
    #[cold]
    pub(super) fn publish_apart(
        self: &Arc<Self>,
        run: &mut PublishRun<'_>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        for index in 0..run.len() {
            let mut one = run.one(index);
            one.keep_from(0, store)?;
            let keys = run.header_keys(index);
            let mut state = self.state.lock();
            if let (Some(notes), Some(keys), Some(location)) = (&mut state.notes, keys, one.held(0))
            {
                let position = one.position(0);
                if one.is_refusable() && position.is_some() && notes.refuse_like(keys, &location) {
                    self.count_published(&mut state, &one, wakes);
                    run.refuse(index);
                    settling.positions.extend(position);
                    continue;
                }
                if !notes.enter(keys, &location) {
                    settling.positions.extend(position);
                    continue;
                }
            }
            self.publish_locked::<true>(state, &mut one, store, wakes)?;
            if one.is_refused(0) {
                run.refuse(index);
            }
        }
        self.settle(settling, Sync::Later, store)
    }
}

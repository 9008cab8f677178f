//! Deduplication: a publish that says in a header that it has been there before is dropped.
//!
//! An exchange or a queue that is to do so remembers the values of that header, the last so many and
//! each for some time. What could not be kept after all is forgotten again, so that a publisher who
//! repeats it is heard. A restart forgets everything. All of them together use a quarter of the memory
//! from which on there is an alarm: with more to remember, each forgets its oldest sooner.
//!
//! A queue that is not told how much to remember goes by the messages that it has (see
//! `queue::message_notes`), also after a restart.

use crate::memory::Charge;
use courser_codec::{
    DecodeError, FieldTable, FieldValue, RawProperties, ShortStr, ShortString, Table,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Switches it on.
pub(crate) const ARGUMENT: &str = "x-message-deduplication";
/// Names the header, instead of the one of the same name.
pub(crate) const HEADER: &str = "x-deduplication-header";
/// How many values are remembered.
pub(crate) const CACHE_SIZE: &str = "x-cache-size";
/// How long values are remembered, in milliseconds; a header of the same name goes before it.
pub(crate) const CACHE_TTL: &str = "x-cache-ttl";

/// The most that may be remembered in one place.
pub(crate) const CACHE_SIZE_MAX: i64 = 1_000_000;
/// What is remembered where nobody says how much.
const CACHE_SIZE_DEFAULT: usize = 128;

/// What identifies a value: two hashes, with keys that nobody knows.
pub(crate) type Key = (u64, u64);

/// Knows what identifies a message: the value of a header.
pub(crate) struct Marker {
    header: ShortString,
    hashers: (RandomState, RandomState),
}

/// What an exchange or a queue remembers.
pub(crate) struct Deduplication {
    marker: Marker,
    size: usize,
    ttl_ms: Option<u64>,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    /// Until when a value counts.
    until_ms: FxHashMap<Key, u64>,
    /// The oldest first; no more than may be remembered.
    order: VecDeque<Key>,
    /// For how many values memory is counted.
    room: usize,
    charge: Charge,
}

/// What a value uses: in a table of which an eighth stays free, and in the line.
const VALUE_BYTES: usize = (size_of::<(Key, u64)>() + 1) * 8 / 7 + size_of::<Key>();
/// Room that there is for the values of each, however little memory is left.
const ROOM_LEAST: usize = 16;

impl Cache {
    /// Whether one more may be remembered without forgetting another.
    fn has_room(&mut self) -> bool {
        self.order.len() < self.room || self.grow()
    }

    /// Makes room for twice as many, unless all caches together use what they may.
    #[cold]
    fn grow(&mut self) -> bool {
        let room = (self.room * 2).max(ROOM_LEAST);
        let more = (room - self.room) * VALUE_BYTES;
        let admitted = self.charge.memory().is_none_or(|memory| memory.admits_deduplication(more));
        if self.room >= ROOM_LEAST && !admitted {
            return false;
        }
        self.room = room;
        self.charge.set(room * VALUE_BYTES);
        true
    }
}

/// What is known of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sighting {
    /// It says nothing of itself.
    Unmarked,
    /// It is new, and remembered from now on.
    First(Key),
    /// It has been there.
    Again,
}

impl Marker {
    fn of(arguments: &FieldTable) -> Self {
        let named = arguments.get(HEADER).and_then(FieldValue::as_long_str);
        let named = named.and_then(|name| ShortString::new(name).ok());
        let header = named.unwrap_or_else(|| ShortString::from(ShortStr::from_static(HEADER)));
        Marker { header, hashers: Default::default() }
    }

    /// There for a queue that goes by the messages that it has, and not by what it remembers.
    pub fn of_what_is_present(arguments: &FieldTable) -> Option<Self> {
        let remembers = [CACHE_SIZE, CACHE_TTL].iter().any(|name| arguments.get(*name).is_some());
        (is_wanted(arguments) && !remembers).then(|| Marker::of(arguments))
    }

    /// What identifies a message with these headers; none if it does not say.
    pub fn key(&self, headers: Table<'_>) -> Result<Option<Key>, DecodeError> {
        let Some(value) = headers.get(self.header.as_bytes())? else { return Ok(None) };
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        Ok(Some((self.hashers.0.hash_one(&bytes), self.hashers.1.hash_one(&bytes))))
    }
}

impl std::fmt::Debug for Marker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Marker").field("header", &self.header).finish_non_exhaustive()
    }
}

fn is_wanted(arguments: &FieldTable) -> bool {
    arguments.get(ARGUMENT).and_then(FieldValue::as_bool).unwrap_or(false)
}

impl Deduplication {
    /// What these arguments, which have been found good, ask for. What it remembers is counted by
    /// `charge`.
    pub fn of(arguments: &FieldTable, charge: Charge) -> Option<Arc<Self>> {
        is_wanted(arguments).then(|| Self::with(arguments, charge))
    }

    /// As the arguments around it say, whether they ask for it or not.
    pub fn with(arguments: &FieldTable, charge: Charge) -> Arc<Self> {
        let number = |name| {
            let number = arguments.get(name).and_then(FieldValue::as_integer)?;
            u64::try_from(number).ok()
        };
        let size = number(CACHE_SIZE).map_or(CACHE_SIZE_DEFAULT, |size| size as usize);
        Arc::new(Deduplication {
            marker: Marker::of(arguments),
            size: size.clamp(1, CACHE_SIZE_MAX as usize),
            ttl_ms: number(CACHE_TTL),
            cache: Mutex::new(Cache { charge, ..Cache::default() }),
        })
    }

    /// Looks whether a message with these properties has been there, and remembers it.
    pub fn see(&self, properties: RawProperties<'_>, now_ms: u64) -> Result<Sighting, DecodeError> {
        let Some(headers) = properties.headers()? else { return Ok(Sighting::Unmarked) };
        let Some(key) = self.marker.key(headers)? else { return Ok(Sighting::Unmarked) };
        let own_ttl_ms = headers.get(CACHE_TTL)?.and_then(|value| value.as_integer());
        let ttl_ms = own_ttl_ms.and_then(|ttl_ms| u64::try_from(ttl_ms).ok()).or(self.ttl_ms);
        let until_ms = ttl_ms.map_or(u64::MAX, |ttl_ms| now_ms.saturating_add(ttl_ms));
        let mut cache = self.cache.lock();
        if let Some(known) = cache.until_ms.get_mut(&key) {
            if now_ms < *known {
                return Ok(Sighting::Again);
            }
            *known = until_ms;
            return Ok(Sighting::First(key));
        }
        while cache.order.len() >= self.size || !cache.has_room() {
            let Some(oldest) = cache.order.pop_front() else { break };
            cache.until_ms.remove(&oldest);
        }
        cache.order.push_back(key);
        cache.until_ms.insert(key, until_ms);
        Ok(Sighting::First(key))
    }

    /// Takes back that a message has been there.
    pub fn forget(&self, key: Key) {
        self.cache.lock().until_ms.remove(&key);
    }
}

impl std::fmt::Debug for Deduplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deduplication").field("size", &self.size).finish_non_exhaustive()
    }
}

/// What has been remembered of messages that have yet to be kept: who remembers it, and the number
/// of the message in its run. Forgotten, when this is dropped, unless it was settled.
#[derive(Debug, Default)]
pub(crate) struct Remembered(Vec<(usize, Arc<Deduplication>, Key)>);

impl Remembered {
    pub fn push(&mut self, by: &Arc<Deduplication>, key: Key) {
        self.0.push((0, Arc::clone(by), key));
    }

    /// Adds what has been remembered of the message with this number.
    pub fn add(&mut self, index: usize, mut of_one: Remembered) {
        self.0.extend(of_one.0.drain(..).map(|(_, by, key)| (index, by, key)));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends the matter; forgets the messages for whose numbers `lost` holds.
    pub fn settle(&mut self, lost: impl Fn(usize) -> bool) {
        for (_, by, key) in self.0.drain(..).filter(|(index, ..)| lost(*index)) {
            by.forget(key);
        }
    }
}

impl Drop for Remembered {
    fn drop(&mut self) {
        self.settle(|_| true);
    }
}

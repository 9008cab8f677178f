//! Deduplication: a publish that says in a header that it has been there before is dropped.
//!
//! An exchange or a queue that is to do so remembers the values of that header, the last so many and
//! each for some time: of messages that have arrived, so that a publisher who repeats what was refused is
//! heard (see [`super::screening`]). A restart forgets everything. All of them together use a quarter of
//! the memory from which on there is an alarm: with more to remember, each forgets its oldest sooner.
//!
//! A queue that is not told how much to remember goes by the messages that it has (see
//! `queue::message_notes`), also after a restart.

use crate::headers;
use crate::keyed::KeyedMap;
use crate::memory::Charge;
use crate::work;
use courser_codec::{
    ContentHeader, DecodeError, FieldTable, FieldValue, RawProperties, ShortStr, ShortString, Value,
};
use courser_store::Key;
use courser_store::blocking::Lock;
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
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
/// What is remembered without an `x-cache-size`.
const CACHE_SIZE_DEFAULT: usize = 128;

/// What a message says of itself in its headers. Each is read once, however many exchanges and queues ask for it: a message may have
/// tens of thousands, or a very long one, and come to as many places.
#[derive(Debug, Default)]
pub(crate) struct HeaderKeys<'m> {
    /// The first value of each name, and its key once that has been asked for.
    by_name: KeyedMap<&'m [u8], (Value<'m>, Option<Key>)>,
}

impl<'m> HeaderKeys<'m> {
    /// Of a message with these properties.
    pub fn of(properties: RawProperties<'m>) -> Result<Self, DecodeError> {
        let mut by_name = KeyedMap::default();
        for entry in properties.headers()?.unwrap_or_default().iter() {
            let (name, value) = entry?;
            work::count(1);
            by_name.entry(name.as_bytes()).or_insert((value, None));
        }
        Ok(HeaderKeys { by_name })
    }

    /// Of a message with this content header; one that is malformed says nothing.
    pub fn of_content(header: &'m [u8]) -> Self {
        let content = ContentHeader::parse(header);
        content.and_then(|content| Self::of(content.properties)).unwrap_or_default()
    }

    fn integer(&self, name: &str) -> Option<i64> {
        self.by_name.get(name.as_bytes())?.0.as_integer()
    }

    fn key(&mut self, name: &ShortString) -> Option<Key> {
        let (value, key) = self.by_name.get_mut(name.as_bytes())?;
        Some(*key.get_or_insert_with(|| {
            work::count_bytes(value.encoded_len());
            key_of(value)
        }))
    }
}

/// What identifies a value: half of a hash, of which no two values are found that are the same. Checkpoints keep it, so that it has to
/// be the same at each start and on each node. Tables by it have a hash of their own, as clients know this one.
fn key_of(value: &Value<'_>) -> Key {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    let mut key = Key::default();
    let len = key.len();
    key.copy_from_slice(&Sha256::digest(&bytes)[..len]);
    key
}

/// What identifies a message with this content header by the header `name`, if it says. What stands behind that is not read.
pub(crate) fn key_in(name: &[u8], header: &[u8]) -> Option<Key> {
    let headers = ContentHeader::parse(header).ok()?.properties.headers().ok()??;
    headers::find(headers, |found| found == name).ok()?.as_ref().map(key_of)
}

/// Knows what identifies a message: the value of a header.
#[derive(Debug)]
pub(crate) struct Marker {
    header: ShortString,
}

/// What an exchange or a queue remembers.
pub(crate) struct Deduplication {
    marker: Marker,
    size: usize,
    ttl_ms: Option<u64>,
    /// Held from the look at what is remembered until more is.
    order: Lock<()>,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    /// How long a value counts, and its place in the line.
    known: KeyedMap<Key, (Lifetime, u64)>,
    /// By their places, the longest remembered first.
    line: BTreeMap<u64, Key>,
    next_place: u64,
    /// For how many values memory is counted.
    room: usize,
    charge: Charge,
}

/// What a value uses: in a table of which an eighth stays free, and in the line, whose nodes are at least
/// half full.
const VALUE_BYTES: usize =
    (size_of::<(Key, (Lifetime, u64))>() + 1) * 8 / 7 + 2 * size_of::<(u64, Key)>();
/// Room that there is for the values of each, however little memory is left.
const ROOM_LEAST: usize = 16;

impl Cache {
    /// Whether one more may be remembered without forgetting another.
    fn has_room(&mut self) -> bool {
        self.known.len() < self.room || self.grow()
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

/// When a value is remembered, and until when, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    since_ms: u64,
    until_ms: u64,
}

impl Lifetime {
    /// Whether the value still counts. One that has more than twice its time left was remembered while the clock was ahead.
    fn holds(&self, now_ms: u64) -> bool {
        let ttl_ms = self.until_ms - self.since_ms;
        now_ms < self.until_ms && self.since_ms <= now_ms.saturating_add(ttl_ms)
    }
}

/// What is known of a message that says what identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub key: Key,
    pub lifetime: Lifetime,
    /// It has been there.
    pub is_repeated: bool,
}

impl Marker {
    fn of(arguments: &FieldTable) -> Self {
        let named = arguments.get(HEADER).and_then(FieldValue::as_long_str);
        let named = named.and_then(|name| ShortString::new(name).ok());
        let header = named.unwrap_or_else(|| ShortString::from(ShortStr::from_static(HEADER)));
        Marker { header }
    }

    /// There for a queue that goes by the messages that it has, and not by what it remembers.
    pub fn of_what_is_present(arguments: &FieldTable) -> Option<Self> {
        let remembers = [CACHE_SIZE, CACHE_TTL].iter().any(|name| arguments.get(*name).is_some());
        (is_wanted(arguments) && !remembers).then(|| Marker::of(arguments))
    }

    /// What identifies a message; none if it does not say.
    pub fn key(&self, keys: &mut HeaderKeys<'_>) -> Option<Key> {
        keys.key(&self.header)
    }

    /// The same of a message with this content header that is asked for nothing else.
    pub fn key_in(&self, header: &[u8]) -> Option<Key> {
        key_in(self.name(), header)
    }

    /// The name of the header.
    pub fn name(&self) -> &[u8] {
        self.header.as_bytes()
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
            order: Lock::new(()),
            cache: Mutex::new(Cache { charge, ..Cache::default() }),
        })
    }

    /// Keeps others from looking until the guard is dropped.
    pub fn lock_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock()
    }

    /// Whether a message has been there; none if it does not say what identifies it.
    pub fn look(&self, keys: &mut HeaderKeys<'_>, now_ms: u64) -> Option<Sighting> {
        let key = self.marker.key(keys)?;
        let own_ttl_ms = keys.integer(CACHE_TTL).and_then(|ttl_ms| u64::try_from(ttl_ms).ok());
        let ttl_ms = own_ttl_ms.or(self.ttl_ms);
        let until_ms = ttl_ms.map_or(u64::MAX, |ttl_ms| now_ms.saturating_add(ttl_ms));
        let lifetime = Lifetime { since_ms: now_ms, until_ms };
        let known = self.cache.lock().known.get(&key).map(|(lifetime, _)| *lifetime);
        let is_repeated = known.is_some_and(|known| known.holds(now_ms));
        Some(Sighting { key, lifetime, is_repeated })
    }

    /// Remembers a message that has arrived, as the latest one.
    pub fn remember(&self, key: Key, lifetime: Lifetime) {
        let mut cache = self.cache.lock();
        if let Some((_, place)) = cache.known.remove(&key) {
            cache.line.remove(&place);
        }
        while cache.known.len() >= self.size || !cache.has_room() {
            let Some((_, oldest)) = cache.line.pop_first() else { break };
            cache.known.remove(&oldest);
        }
        let place = cache.next_place;
        cache.next_place += 1;
        cache.line.insert(place, key);
        cache.known.insert(key, (lifetime, place));
    }
}

impl std::fmt::Debug for Deduplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deduplication").field("size", &self.size).finish_non_exhaustive()
    }
}

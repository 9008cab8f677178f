//! The consumers of a queue by their keys, which they keep for as long as they are there.

use super::Consumer;
use rustc_hash::FxHashMap;

/// Keys below this are found by index, and used again first: few queues ever need others. The room of these stays until all
/// have gone, as any may stay; what others need is given back when most of them have gone.
const NEAR_KEYS: usize = 1024;

/// Consumers by key.
#[derive(Debug, Default)]
pub(super) struct ConsumerTable {
    near: Vec<Option<Consumer>>,
    /// Keys of `near` that were in use and are not.
    free: Vec<u32>,
    far: FxHashMap<u32, Consumer>,
    /// How many `far` has room for. It says less itself when some have gone.
    far_room: usize,
    /// The key that was given last of those in `far`.
    last_far: u32,
}

impl ConsumerTable {
    pub fn len(&self) -> usize {
        self.near.len() - self.free.len() + self.far.len()
    }

    #[inline]
    pub fn get(&self, key: u32) -> Option<&Consumer> {
        match self.near.get(key as usize) {
            Some(consumer) => consumer.as_ref(),
            None => self.far(key),
        }
    }

    #[cold]
    #[inline(never)]
    fn far(&self, key: u32) -> Option<&Consumer> {
        self.far.get(&key)
    }

    #[inline]
    pub fn get_mut(&mut self, key: u32) -> Option<&mut Consumer> {
        match (key as usize) < self.near.len() {
            true => self.near.get_mut(key as usize)?.as_mut(),
            false => self.far_mut(key),
        }
    }

    #[cold]
    #[inline(never)]
    fn far_mut(&mut self, key: u32) -> Option<&mut Consumer> {
        self.far.get_mut(&key)
    }

    /// Adds a consumer. Returns its key.
    pub fn add(&mut self, consumer: Consumer) -> u32 {
        if let Some(free) = self.free.pop() {
            self.near[free as usize] = Some(consumer);
            return free;
        }
        if self.near.len() < NEAR_KEYS {
            self.near.push(Some(consumer));
            return self.near.len() as u32 - 1;
        }
        let key = self.free_far();
        self.far.insert(key, consumer);
        self.far_room = self.far_room.max(self.far.capacity());
        key
    }

    /// A key that none of the others has.
    fn free_far(&mut self) -> u32 {
        loop {
            self.last_far = self.last_far.wrapping_add(1).max(NEAR_KEYS as u32);
            if !self.far.contains_key(&self.last_far) {
                return self.last_far;
            }
        }
    }

    pub fn remove(&mut self, key: u32) -> Option<Consumer> {
        let Some(near) = self.near.get_mut(key as usize) else {
            let removed = self.far.remove(&key);
            if self.far.len() * 4 < self.far_room {
                self.far.shrink_to(2 * self.far.len());
                self.far_room = self.far.capacity();
            }
            return removed;
        };
        let removed = near.take()?;
        self.free.push(key);
        if self.free.len() == self.near.len() {
            self.near = Vec::new();
            self.free = Vec::new();
        }
        Some(removed)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Consumer)> {
        let near = (0..).zip(&self.near);
        let near = near.filter_map(|(key, consumer)| Some((key, consumer.as_ref()?)));
        near.chain(self.far.iter().map(|(key, consumer)| (*key, consumer)))
    }

    pub fn into_consumers(self) -> impl Iterator<Item = Consumer> {
        self.near.into_iter().flatten().chain(self.far.into_values())
    }

    /// What it has room for.
    pub fn used_bytes(&self) -> usize {
        // An entry of the map has a control byte, and an eighth stays free.
        self.near.capacity() * size_of::<Option<Consumer>>()
            + self.free.capacity() * size_of::<u32>()
            + self.far_room * (size_of::<(u32, Consumer)>() + 1) * 8 / 7
    }
}

//! Things by name, in an order that can be paged through while it changes.
//!
//! Names are kept in sorted chunks of bounded size. A change touches one chunk; a reader takes the
//! chunks as they are, which counts a reference for each few hundred names, and looks at them
//! without a lock. The item with a given rank is found by adding up the lengths of the chunks, so the
//! last page costs what the first one costs.

use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// Items in a chunk. One that grows beyond it is split.
const CHUNK_MAX: usize = 512;
/// Neighbours that have no more than this together become one.
const MERGED_MAX: usize = CHUNK_MAX / 4;

/// What has a place in an order.
pub(crate) trait Named {
    /// Unique in its order; items lie in the order of these bytes.
    fn name(&self) -> &[u8];
}

type Chunk<T> = Arc<Vec<Arc<T>>>;

/// Items by name.
pub(crate) struct Ordered<T> {
    /// None of them is empty.
    chunks: Mutex<Vec<Chunk<T>>>,
}

/// What an [`Ordered`] held at one moment.
pub(crate) struct Snapshot<T> {
    chunks: Vec<Chunk<T>>,
    len: usize,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Ordered { chunks: Mutex::new(Vec::new()) }
    }
}

impl<T: Named> Ordered<T> {
    /// Adds an item, in place of the one of its name.
    pub fn insert(&self, item: Arc<T>) {
        insert(&mut self.chunks.lock(), item);
    }

    /// Adds an item unless there is one of its name; then it is given back.
    pub fn try_insert(&self, item: Arc<T>) -> Result<Arc<T>, Arc<T>> {
        let chunks = &mut self.chunks.lock();
        if find(chunks, item.name()).is_some() {
            return Err(item);
        }
        insert(chunks, Arc::clone(&item));
        Ok(item)
    }

    /// The item of this name.
    pub fn get(&self, name: &[u8]) -> Option<Arc<T>> {
        find(&self.chunks.lock(), name).cloned()
    }

    /// Removes the item of this name if `is_meant` says so. Returns whether it was there.
    pub fn remove_if(&self, name: &[u8], is_meant: impl FnOnce(&Arc<T>) -> bool) -> bool {
        let mut chunks = self.chunks.lock();
        let at = chunk_of(&chunks, name);
        let Some(found) = chunks.get(at) else { return false };
        let Ok(place) = found.binary_search_by(|other| other.name().cmp(name)) else {
            return false;
        };
        if !is_meant(&found[place]) {
            return false;
        }
        let chunk = Arc::make_mut(&mut chunks[at]);
        chunk.remove(place);
        let len = chunk.len();
        if len == 0 {
            chunks.remove(at);
        } else if chunks.get(at + 1).is_some_and(|next| next.len() + len <= MERGED_MAX) {
            let next = chunks.remove(at + 1);
            Arc::make_mut(&mut chunks[at]).extend(next.iter().cloned());
        }
        true
    }

    /// Everything there is now.
    pub fn snapshot(&self) -> Snapshot<T> {
        let chunks = self.chunks.lock().clone();
        let len = chunks.iter().map(|chunk| chunk.len()).sum();
        Snapshot { chunks, len }
    }
}

impl<T: Named> Snapshot<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// What is left of it without those that are not wanted.
    pub fn only(&self, mut is_wanted: impl FnMut(&T) -> bool) -> Self {
        let wanted: Vec<Arc<T>> =
            self.starting_at(0).filter(|one| is_wanted(one)).cloned().collect();
        let len = wanted.len();
        let chunks = if wanted.is_empty() { Vec::new() } else { vec![Arc::new(wanted)] };
        Snapshot { chunks, len }
    }

    /// The items from this rank on.
    pub fn starting_at(&self, rank: usize) -> impl Iterator<Item = &Arc<T>> {
        let (mut at, mut left) = (0, rank);
        while let Some(chunk) = self.chunks.get(at)
            && left >= chunk.len()
        {
            left -= chunk.len();
            at += 1;
        }
        self.chunks[at..].iter().flat_map(|chunk| chunk.iter()).skip(left)
    }

    /// How many items have this name or one before it: the rank of what comes behind it.
    pub fn rank_after(&self, name: &[u8]) -> usize {
        let at = chunk_of(&self.chunks, name);
        let before: usize = self.chunks[..at].iter().map(|chunk| chunk.len()).sum();
        let within = self
            .chunks
            .get(at)
            .map_or(0, |chunk| chunk.partition_point(|other| other.name() <= name));
        before + within
    }
}

/// The chunk that has this name, or that it would go into; the number of chunks if it is behind all.
fn chunk_of<T: Named>(chunks: &[Chunk<T>], name: &[u8]) -> usize {
    chunks.partition_point(|chunk| chunk.last().is_some_and(|last| last.name() < name))
}

fn find<'c, T: Named>(chunks: &'c [Chunk<T>], name: &[u8]) -> Option<&'c Arc<T>> {
    let chunk = chunks.get(chunk_of(chunks, name))?;
    let place = chunk.binary_search_by(|other| other.name().cmp(name)).ok()?;
    chunk.get(place)
}

/// Adds an item, in place of the one of its name.
fn insert<T: Named>(chunks: &mut Vec<Chunk<T>>, item: Arc<T>) {
    let at = chunk_of(chunks, item.name());
    let is_behind_all = at == chunks.len();
    let at = if is_behind_all { at.saturating_sub(1) } else { at };
    if chunks.is_empty() || is_behind_all && chunks[at].len() >= CHUNK_MAX {
        // Names that come in their order leave full chunks behind.
        chunks.push(Arc::new(vec![item]));
        return;
    }
    let chunk = Arc::make_mut(&mut chunks[at]);
    match chunk.binary_search_by(|other| other.name().cmp(item.name())) {
        Ok(place) => chunk[place] = item,
        Err(place) => chunk.insert(place, item),
    }
    if chunk.len() > CHUNK_MAX {
        let upper = chunk.split_off(CHUNK_MAX / 2);
        chunks.insert(at + 1, Arc::new(upper));
    }
}

impl<T> fmt::Debug for Ordered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ordered").finish_non_exhaustive()
    }
}

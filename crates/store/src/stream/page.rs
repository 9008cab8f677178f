//! A run of a stream's messages: their places and times, packed.

use super::{PAGE_MESSAGES, PageLimits};
use crate::change::{put_varint, take_varint};
use crate::{Location, Position};
use std::collections::VecDeque;

/// A time that goes back by more than this says that the clock was set. By less it goes back all the time: messages of several
/// connections are not written in the order in which they came.
const SET_BACK_MS: u64 = 60_000;

/// Up to [`PAGE_MESSAGES`] messages with consecutive offsets.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub first_offset: u64,
    /// Bytes of its messages.
    pub size_bytes: u64,
    first_ms: u64,
    pub last_ms: u64,
    count: u32,
    /// Which message was the last to arrive later than the one before it.
    changed_at: u32,
    places: Places,
    /// Where the time changes: how many messages after the last change, and by how many
    /// milliseconds; varints.
    changes: Vec<u8>,
}

/// The places of a page's messages.
#[derive(Debug)]
enum Places {
    /// Positions in the log: a varint of the first, varints of the differences.
    Log { bytes: Vec<u8>, last: Position },
    /// In memory, where a store survives nothing.
    Memory(Vec<Location>),
}

impl PartialEq for Places {
    /// Only what is in the log can be compared.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Places::Log { bytes, .. }, Places::Log { bytes: others, .. }) => bytes == others,
            _ => false,
        }
    }
}

impl Page {
    pub fn new(first_offset: u64, now_ms: u64, in_log: bool) -> Self {
        let places = if in_log {
            Places::Log { bytes: Vec::new(), last: Position(0) }
        } else {
            Places::Memory(Vec::new())
        };
        Page {
            first_offset,
            size_bytes: 0,
            first_ms: now_ms,
            last_ms: now_ms,
            count: 0,
            changed_at: 0,
            places,
            changes: Vec::new(),
        }
    }

    /// The offset behind its last message.
    pub fn end_offset(&self) -> u64 {
        self.first_offset.saturating_add(u64::from(self.count))
    }

    pub fn is_in_log(&self) -> bool {
        matches!(self.places, Places::Log { .. })
    }

    /// Whether its last message arrived so much later than now that the clock was ahead then.
    pub fn is_ahead_of(&self, now_ms: u64) -> bool {
        self.last_ms > now_ms.saturating_add(SET_BACK_MS)
    }

    /// Whether a message that arrives now belongs into the next page.
    pub fn is_full(&self, limits: &PageLimits, now_ms: u64) -> bool {
        self.count >= PAGE_MESSAGES
            || self.is_ahead_of(now_ms)
            || self.size_bytes >= limits.size_bytes
            || now_ms.saturating_sub(self.first_ms) > limits.span_ms
    }

    /// The position of its last message, if that is in the log.
    pub fn last_position(&self) -> Option<Position> {
        match &self.places {
            Places::Log { last, .. } => Some(*last),
            Places::Memory(_) => None,
        }
    }

    pub fn footprint_bytes(&self) -> usize {
        let places = match &self.places {
            Places::Log { bytes, .. } => bytes.capacity(),
            Places::Memory(locations) => locations.capacity() * size_of::<Location>(),
        };
        size_of::<Self>() + places + self.changes.capacity()
    }

    /// Adds a message, whose place is of the same kind as all others here.
    pub fn push(&mut self, location: &Location, size_bytes: u64, now_ms: u64) {
        match (&mut self.places, location) {
            (Places::Log { bytes, last }, Location::Log { position, .. }) => {
                put_varint(bytes, position.0.wrapping_sub(last.0));
                *last = *position;
            }
            (Places::Memory(locations), location) => locations.push(location.clone()),
            (Places::Log { .. }, Location::Memory { .. }) => return,
        }
        if now_ms > self.last_ms {
            put_varint(&mut self.changes, u64::from(self.count - self.changed_at));
            put_varint(&mut self.changes, now_ms - self.last_ms);
            self.changed_at = self.count;
            self.last_ms = now_ms;
        }
        self.count += 1;
        self.size_bytes += size_bytes;
    }

    /// Gives back the memory that no further message will need.
    pub fn close(&mut self) {
        match &mut self.places {
            Places::Log { bytes, .. } => bytes.shrink_to_fit(),
            Places::Memory(locations) => locations.shrink_to_fit(),
        }
        self.changes.shrink_to_fit();
    }

    /// Appends the places from the message at `index` on to `places`.
    pub fn read(&self, index: u32, places: &mut VecDeque<Location>) {
        let index = index as usize;
        match &self.places {
            Places::Memory(locations) => places.extend(locations.iter().skip(index).cloned()),
            Places::Log { bytes, .. } => {
                let positions = Positions { bytes, position: 0 }.skip(index);
                places.extend(positions.map(Location::logged));
            }
        }
    }

    /// Which message is the first that arrived at `time_ms` or later, if one did.
    pub fn index_at(&self, time_ms: u64) -> u32 {
        let (mut index, mut now_ms) = (0, self.first_ms);
        for (after, later_ms) in Changes(&self.changes) {
            if now_ms >= time_ms {
                break;
            }
            index += after;
            now_ms = now_ms.saturating_add(later_ms);
        }
        if now_ms >= time_ms { index.min(self.count) } else { self.count }
    }

    /// Lets the messages before `first_offset` go, which is in here. Returns their bytes, which
    /// are known for the page as a whole only.
    pub fn trim(&mut self, first_offset: u64, gone: &mut Vec<Position>) -> u64 {
        let dropped = (first_offset - self.first_offset) as u32;
        let size_bytes = self.size_bytes / u64::from(self.count.max(1)) * u64::from(dropped);
        let mut places = VecDeque::new();
        self.read(0, &mut places);
        gone.extend(places.drain(..dropped as usize).filter_map(|place| place.position()));
        let mut rest = Page::new(first_offset, self.first_ms, self.is_in_log());
        let (mut index, mut now_ms) = (0, self.first_ms);
        let mut changes = Changes(&self.changes).map(|(after, later_ms)| {
            index += after;
            now_ms = now_ms.saturating_add(later_ms);
            (index, now_ms)
        });
        let mut next = changes.next();
        let mut arrived_ms = self.first_ms;
        let mut advance = |to: u32| {
            while let Some((index, now_ms)) = next.filter(|(index, _)| *index <= to) {
                debug_assert!(index <= to);
                arrived_ms = now_ms;
                next = changes.next();
            }
            arrived_ms
        };
        rest.first_ms = advance(dropped);
        rest.last_ms = rest.first_ms;
        for (index, place) in (dropped..).zip(&places) {
            rest.push(place, 0, advance(index));
        }
        rest.size_bytes = self.size_bytes - size_bytes;
        *self = rest;
        size_bytes
    }

    pub fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        if let Places::Log { bytes, .. } = &self.places {
            Positions { bytes, position: 0 }.for_each(each);
        }
    }

    /// Appends a page that is in the log to a checkpoint.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Places::Log { bytes, .. } = &self.places else { return };
        put_varint(out, self.size_bytes);
        put_varint(out, self.first_ms);
        for part in [bytes, &self.changes] {
            put_varint(out, part.len() as u64);
            out.extend_from_slice(part);
        }
    }

    /// Reads what [`Page::encode`] wrote; none if it is malformed.
    pub fn decode(first_offset: u64, bytes: &mut &[u8]) -> Option<Self> {
        let size_bytes = take_varint(bytes)?;
        let first_ms = take_varint(bytes)?;
        let (places, changes) = (take_part(bytes)?, take_part(bytes)?);
        let mut page = Page::new(first_offset, first_ms, true);
        let mut rest = places;
        let mut last = 0u64;
        while !rest.is_empty() {
            last = last.checked_add(take_varint(&mut rest)?)?;
            page.count = page.count.checked_add(1)?;
        }
        let mut rest = changes;
        while !rest.is_empty() {
            let after = u32::try_from(take_varint(&mut rest)?).ok()?;
            page.changed_at = page.changed_at.checked_add(after)?;
            page.last_ms = page.last_ms.checked_add(take_varint(&mut rest)?)?;
        }
        if page.count == 0 || page.changed_at >= page.count {
            return None;
        }
        first_offset.checked_add(u64::from(page.count))?;
        page.size_bytes = size_bytes;
        page.places = Places::Log { bytes: places.to_vec(), last: Position(last) };
        page.changes = changes.to_vec();
        Some(page)
    }
}

fn take_part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(bytes)?).ok()?;
    let (part, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(part)
}

/// Positions out of their varints.
struct Positions<'a> {
    bytes: &'a [u8],
    position: u64,
}

impl Iterator for Positions<'_> {
    type Item = Position;

    fn next(&mut self) -> Option<Position> {
        self.position = self.position.wrapping_add(take_varint(&mut self.bytes)?);
        Some(Position(self.position))
    }
}

/// Changes of the time out of their varints.
struct Changes<'a>(&'a [u8]);

impl Iterator for Changes<'_> {
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        let after = take_varint(&mut self.0)?;
        Some((after as u32, take_varint(&mut self.0)?))
    }
}

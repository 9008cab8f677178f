//! Locations in the middle of a long backlog, packed.

use super::logged::{Entry, logged};
use courser_store::change::{put_varint, take_varint};
use courser_store::{BodySize, Location, Position};
use std::collections::VecDeque;
use std::sync::Arc;

/// Slots that are packed together once neither end of the queue needs them.
pub(super) const PAGE_LOCATIONS: usize = 1024;

/// Places in a line, each with a location, or with a gap where a message has been taken out.
pub(super) type Slots = VecDeque<Option<Location>>;

const _: () = assert!(size_of::<Option<Location>>() == size_of::<Location>());

/// A page of slots that are not needed for a while.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// Which slots hold a location; there only if some do not.
    held: Option<Arc<[u16]>>,
    places: Places,
}

#[derive(Clone, Debug)]
enum Places {
    /// Messages in the log whose marks are the same.
    Logged(Logged),
    /// Anything else, as it is.
    Plain(Arc<[Location]>),
}

/// Positions in the log and sizes of bodies: the differences from one to the next, zigzag-coded.
#[derive(Clone, Debug)]
struct Logged {
    bytes: Arc<[u8]>,
    /// The size of all bodies, if they have one size: then only positions are coded.
    size: Option<BodySize>,
    marks: u16,
}

impl Logged {
    /// None where marks differ.
    fn of(places: &[Entry]) -> Option<Self> {
        let (marks, first) =
            places.first().map_or((0, BodySize::UNKNOWN), |(_, marks, size)| (*marks, *size));
        if places.iter().any(|(_, of_this, _)| *of_this != marks) {
            return None;
        }
        let size = places.iter().all(|(.., size)| *size == first).then_some(first);
        let mut bytes = Vec::with_capacity(places.len() * 3);
        let (mut position_before, mut size_before) = (0, 0);
        for (position, _, of_this) in places {
            put_difference(&mut bytes, &mut position_before, position.0 as i64);
            if size.is_none() {
                put_difference(&mut bytes, &mut size_before, of_this.coded().into());
            }
        }
        Some(Logged { bytes: bytes.into(), size, marks })
    }

    fn iter(&self) -> impl Iterator<Item = Entry> {
        let (mut bytes, mut position, mut size) = (&*self.bytes, 0, 0);
        std::iter::from_fn(move || {
            take_difference(&mut bytes, &mut position)?;
            let of_this = match self.size {
                Some(size) => size,
                None => {
                    take_difference(&mut bytes, &mut size)?;
                    BodySize::from_coded(size as u32)
                }
            };
            Some((Position(position as u64), self.marks, of_this))
        })
    }
}

fn put_difference(bytes: &mut Vec<u8>, before: &mut i64, number: i64) {
    let difference = number.wrapping_sub(*before);
    put_varint(bytes, ((difference << 1) ^ (difference >> 63)) as u64);
    *before = number;
}

fn take_difference(bytes: &mut &[u8], before: &mut i64) -> Option<()> {
    let coded = take_varint(bytes)?;
    let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
    *before = before.wrapping_add(difference);
    Some(())
}

impl Packed {
    /// Packs a page, leaving `slots` empty.
    pub fn pack(slots: &mut Slots) -> Self {
        debug_assert_eq!(slots.len(), PAGE_LOCATIONS);
        let has_gaps = slots.iter().any(Option::is_none);
        let held = has_gaps.then(|| {
            let held = slots.iter().zip(0..).filter(|(location, _)| location.is_some());
            held.map(|(_, slot)| slot).collect()
        });
        let entries: Option<Vec<_>> = slots.iter().flatten().map(logged).collect();
        let Some(logged) = entries.and_then(|entries| Logged::of(&entries)) else {
            // How many there are is not known to the iterator, which would grow step by step.
            let mut plain = Vec::with_capacity(slots.len());
            plain.extend(slots.drain(..).flatten());
            return Packed { held, places: Places::Plain(plain.into()) };
        };
        slots.clear();
        Packed { held, places: Places::Logged(logged) }
    }

    /// How many locations it holds.
    pub fn len(&self) -> usize {
        self.held.as_ref().map_or(PAGE_LOCATIONS, |held| held.len())
    }

    /// Bytes that it uses besides itself.
    pub fn size_bytes(&self) -> usize {
        let held = self.held.as_ref().map_or(0, |held| size_of_val(&**held));
        held + match &self.places {
            Places::Logged(logged) => logged.bytes.len(),
            Places::Plain(plain) => size_of_val(&**plain),
        }
    }

    /// Appends what was packed to `slots`.
    pub fn unpack(&self, slots: &mut Slots) {
        let start = slots.len();
        self.all(&mut |slot, location| {
            while slots.len() < start + slot {
                slots.push_back(None);
            }
            slots.push_back(Some(location.clone()));
            true
        });
        slots.resize(start + PAGE_LOCATIONS, None);
    }

    /// Calls `each` with every location and the slot that holds it, until it has enough. Returns whether it
    /// wants more.
    pub fn all(&self, each: &mut dyn FnMut(usize, &Location) -> bool) -> bool {
        let held = self.held.as_deref();
        let mut slots = (0..self.len()).map(|nth| held.map_or(nth, |held| usize::from(held[nth])));
        match &self.places {
            Places::Logged(logged) => {
                slots.zip(logged.iter()).all(|(slot, (position, marks, body))| {
                    each(slot, &Location::Log { position, body, marks })
                })
            }
            Places::Plain(plain) => {
                plain.iter().all(|location| slots.next().is_some_and(|slot| each(slot, location)))
            }
        }
    }

    /// Calls `each` with every message that is in the log.
    pub fn for_each_logged(&self, each: &mut dyn FnMut(Entry)) {
        match &self.places {
            Places::Logged(logged) => logged.iter().for_each(each),
            Places::Plain(plain) => plain.iter().filter_map(logged).for_each(each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(marks: impl Fn(usize) -> u16) -> Slots {
        let location = |nth: usize| Location::Log {
            position: Position(1000 + 300 * nth as u64),
            body: BodySize::of(100),
            marks: marks(nth),
        };
        (0..PAGE_LOCATIONS).map(|nth| (nth % 7 != 0).then(|| location(nth))).collect()
    }

    fn entries(slots: &Slots) -> Vec<Option<Entry>> {
        slots.iter().map(|slot| slot.as_ref().and_then(logged)).collect()
    }

    #[test]
    fn messages_that_are_marked_alike_are_packed_as_well_as_those_without_marks() {
        let size = |marks: &dyn Fn(usize) -> u16| {
            let mut slots = page(marks);
            let before = entries(&slots);
            let packed = Packed::pack(&mut slots);
            packed.unpack(&mut slots);
            assert_eq!(entries(&slots), before);
            packed.size_bytes()
        };
        assert_eq!(size(&|_| 5), size(&|_| 0));
        assert!(size(&|_| 5) < size(&|nth| nth as u16 % 2) / 2);
    }
}

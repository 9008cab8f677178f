//! Locations in the middle of a long backlog, packed.

use super::logged::logged;
use courser_store::change::{put_varint, take_varint};
use courser_store::{Location, Position};
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
    /// Unmarked messages in the log: the differences of their positions, zigzag-coded.
    Positions(Arc<[u8]>),
    /// Anything else, as it is.
    Plain(Arc<[Location]>),
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
        let unmarked = |location: &Location| match location {
            Location::Log { position, marks: 0 } => Some(*position),
            _ => None,
        };
        let positions: Option<Vec<Position>> = slots.iter().flatten().map(unmarked).collect();
        let Some(positions) = positions else {
            // How many there are is not known to the iterator, which would grow step by step.
            let mut plain = Vec::with_capacity(slots.len());
            plain.extend(slots.drain(..).flatten());
            return Packed { held, places: Places::Plain(plain.into()) };
        };
        slots.clear();
        let mut bytes = Vec::with_capacity(positions.len() * 3);
        let mut before = 0i64;
        for position in positions {
            let difference = (position.0 as i64).wrapping_sub(before);
            put_varint(&mut bytes, ((difference << 1) ^ (difference >> 63)) as u64);
            before = position.0 as i64;
        }
        Packed { held, places: Places::Positions(bytes.into()) }
    }

    /// How many locations it holds.
    pub fn len(&self) -> usize {
        self.held.as_ref().map_or(PAGE_LOCATIONS, |held| held.len())
    }

    /// Bytes that it uses besides itself.
    pub fn size_bytes(&self) -> usize {
        let held = self.held.as_ref().map_or(0, |held| size_of_val(&**held));
        held + match &self.places {
            Places::Positions(bytes) => bytes.len(),
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
            Places::Positions(bytes) => slots
                .zip(positions(bytes))
                .all(|(slot, position)| each(slot, &Location::Log { position, marks: 0 })),
            Places::Plain(plain) => {
                plain.iter().all(|location| slots.next().is_some_and(|slot| each(slot, location)))
            }
        }
    }

    /// Calls `each` with the position and the marks of every message that is in the log.
    pub fn for_each_logged(&self, each: &mut dyn FnMut(Position, u16)) {
        match &self.places {
            Places::Positions(bytes) => positions(bytes).for_each(|at| each(at, 0)),
            Places::Plain(plain) => {
                plain.iter().filter_map(logged).for_each(|(position, marks)| each(position, marks));
            }
        }
    }
}

fn positions(mut bytes: &[u8]) -> impl Iterator<Item = Position> {
    let mut position = 0i64;
    std::iter::from_fn(move || {
        let coded = take_varint(&mut bytes)?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        position = position.wrapping_add(difference);
        Some(Position(position as u64))
    })
}

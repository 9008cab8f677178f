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
    /// Unmarked messages in the log.
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
}

impl Logged {
    fn of(places: &[(Position, BodySize)]) -> Self {
        let first = places.first().map_or(BodySize::UNKNOWN, |(_, size)| *size);
        let size = places.iter().all(|(_, size)| *size == first).then_some(first);
        let mut bytes = Vec::with_capacity(places.len() * 3);
        let (mut position_before, mut size_before) = (0, 0);
        for (position, of_this) in places {
            put_difference(&mut bytes, &mut position_before, position.0 as i64);
            if size.is_none() {
                put_difference(&mut bytes, &mut size_before, of_this.coded().into());
            }
        }
        Logged { bytes: bytes.into(), size }
    }

    fn iter(&self) -> impl Iterator<Item = (Position, BodySize)> {
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
            Some((Position(position as u64), of_this))
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
        let unmarked = |location: &Location| match location {
            Location::Log { position, body, marks: 0 } => Some((*position, *body)),
            _ => None,
        };
        let logged: Option<Vec<_>> = slots.iter().flatten().map(unmarked).collect();
        let Some(logged) = logged else {
            // How many there are is not known to the iterator, which would grow step by step.
            let mut plain = Vec::with_capacity(slots.len());
            plain.extend(slots.drain(..).flatten());
            return Packed { held, places: Places::Plain(plain.into()) };
        };
        slots.clear();
        Packed { held, places: Places::Logged(Logged::of(&logged)) }
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
            Places::Logged(logged) => slots.zip(logged.iter()).all(|(slot, (position, body))| {
                each(slot, &Location::Log { position, body, marks: 0 })
            }),
            Places::Plain(plain) => {
                plain.iter().all(|location| slots.next().is_some_and(|slot| each(slot, location)))
            }
        }
    }

    /// Calls `each` with every message that is in the log.
    pub fn for_each_logged(&self, each: &mut dyn FnMut(Entry)) {
        match &self.places {
            Places::Logged(logged) => logged.iter().for_each(|(at, body)| each((at, 0, body))),
            Places::Plain(plain) => {
                plain.iter().filter_map(logged).for_each(each);
            }
        }
    }
}

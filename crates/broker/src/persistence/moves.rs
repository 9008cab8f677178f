//! Definitions of vhosts that are being moved: the move's number is kept, so that what comes late of an earlier move does nothing
//! to a later one, also after a restart.

use super::definition::{ARRIVAL, HELD, parse_settings, vhost_value};
use crate::vhost::VhostSettings;

/// Bits of the first byte of an arrival.
const WHOLE: u8 = 1;
const NUMBERED: u8 = 2;

pub(crate) fn arrival_key(vhost: &str) -> Vec<u8> {
    [&[ARRIVAL], vhost.as_bytes()].concat()
}

/// A vhost that is being moved here.
pub(crate) struct KeptArrival {
    /// Everything of it is here.
    pub is_whole: bool,
    /// Of the move; 0 if a version has written that which kept none.
    pub number: u64,
    /// What an operator says of it.
    pub settings: VhostSettings,
}

impl KeptArrival {
    pub fn value(&self) -> Vec<u8> {
        let flags = NUMBERED | (u8::from(self.is_whole) * WHOLE);
        let settings = vhost_value(&self.settings);
        [&[flags], self.number.to_le_bytes().as_slice(), &settings].concat()
    }

    /// None if it is malformed.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (flags, mut rest) = value.split_first()?;
        let mut number = 0;
        if flags & NUMBERED != 0 {
            let (bytes, after) = rest.split_first_chunk()?;
            (number, rest) = (u64::from_le_bytes(*bytes), after);
        }
        let settings = parse_settings(rest)?;
        Some(KeptArrival { is_whole: flags & WHOLE != 0, number, settings })
    }
}

pub(crate) fn held_key(vhost: &str) -> Vec<u8> {
    [&[HELD], vhost.as_bytes()].concat()
}

/// The value of a vhost that is held: the number of the move.
pub(crate) fn held_value(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// The number of the move that a vhost is held for; 0 if a version has written that which knew none.
pub(crate) fn parse_held(value: &[u8]) -> u64 {
    value.try_into().map(u64::from_le_bytes).unwrap_or_default()
}

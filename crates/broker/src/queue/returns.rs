//! `x-delivery-limit`: how often a message has come back from its consumers, which they are told in
//! `x-delivery-count`, and what comes back too often.
//!
//! The count lies in the marks of the message's location, and in the log.

use super::line::SPILLED;
use super::settle::Settling;
use super::{Queue, State};
use crate::dead_letter::Reason;
use crate::wakes::Wakes;
use courser_codec::{CONTENT_HEADER_FIXED_LEN, ContentHeader, DecodeError, Properties, Table};
use courser_codec::{FieldValue, ShortStr, ShortString};
use courser_store::{Location, MessageRef, Store};
use std::sync::Arc;

/// The marks' bits below it are others'.
const COUNT_SHIFT: u32 = 4;

/// The highest count that is kept; as a limit it means that there is none.
pub(crate) const RETURNS_MAX: u16 = u16::MAX >> COUNT_SHIFT;

/// What a redelivered message says of its returns.
const DELIVERY_COUNT: ShortStr<'static> = ShortStr::from_static("x-delivery-count");

/// How often the message with these marks has come back, where that is counted.
#[inline]
pub(super) fn returns(marks: u16) -> u16 {
    marks >> COUNT_SHIFT
}

/// Notes how often the message at `location` has come back.
pub(super) fn set_returns(location: &mut Location, count: u16) {
    let marks = location.marks_mut();
    *marks = *marks & ((1 << COUNT_SHIFT) - 1) | count << COUNT_SHIFT;
}

/// Writes the header of a message that has come back `count` times into `header`: its own, with the
/// count.
pub(super) fn put_count(
    message: &MessageRef<'_>,
    count: u16,
    header: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let properties = ContentHeader::parse(message.header)?.properties.decode()?;
    let mut headers = properties.headers.unwrap_or(Table::EMPTY).to_owned()?;
    headers.insert(ShortString::from(DELIVERY_COUNT), FieldValue::I64(count.into()));
    let entries = headers.to_entries();
    header.clear();
    header.extend_from_slice(&message.header[..CONTENT_HEADER_FIXED_LEN]);
    Properties { headers: Some(Table::from_entries(&entries)), ..properties }.encode(header);
    Ok(())
}

impl Queue {
    /// A message comes back to a queue that counts it: to its place, or out of the queue if that
    /// was once too often.
    pub(super) fn take_back(
        self: &Arc<Self>,
        state: &mut State,
        (sequence, mut location): (u64, Location),
        limit: u16,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) {
        let count = returns(location.marks()).saturating_add(1).min(RETURNS_MAX);
        if limit < RETURNS_MAX && count > limit {
            return self.bury(state, location, Reason::DeliveryLimit, settling, wakes);
        }
        set_returns(&mut location, count);
        if let Some(position) = location.position()
            && location.marks() & SPILLED == 0
        {
            settling.returns.push((position, count.into()));
        }
        self.put_back(state, sequence, location, store);
    }

    /// The positions below `end` of messages in the log that have come back, and how often.
    pub(crate) fn returns_below(&self, end: u64) -> Vec<(u64, u64)> {
        let logged = {
            let state = self.state.lock();
            if state.traits.as_ref().is_none_or(|traits| traits.delivery_limit.is_none()) {
                return Vec::new();
            }
            self.logged(&state)
        };
        let mut pairs = Vec::new();
        logged.for_each_run(&mut |run| {
            let counted = run.iter().filter(|(at, marks)| *at < end && returns(*marks) > 0);
            pairs.extend(counted.map(|(at, marks)| (*at, u64::from(returns(*marks)))));
        });
        pairs
    }
}

//! The index of a stream: where the messages of an append-only log are, by their offsets.
//!
//! A stream numbers its messages one after the other, from 0 on; a number is an *offset* and is
//! never used again. The index holds the places of the messages that the stream still has, in pages
//! of up to [`PAGE_MESSAGES`], with the time at which each arrived. A page costs two or three bytes
//! a message and about a hundred of its own. Messages leave at the front and by whole pages, so the
//! offset of a message is that of its page and how far in it stands.

mod page;

use crate::change::{put_varint, take_varint};
use crate::{Location, Position, work};
use page::Page;
use std::collections::VecDeque;

/// Messages in a page, at most.
pub const PAGE_MESSAGES: u32 = 1024;

/// Pages that leave at once, at most, and that a checkpoint writes in one piece.
const PAGES_AT_ONCE: usize = 64;

/// When a page ends, besides at [`PAGE_MESSAGES`]: the finer, the more exactly old messages leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// Bytes of messages in a page; the one that goes beyond is the last.
    pub size_bytes: u64,
    /// Milliseconds between the arrival of the first message and of the last.
    pub span_ms: u64,
}

impl Default for PageLimits {
    fn default() -> Self {
        PageLimits { size_bytes: 16 << 20, span_ms: u64::MAX }
    }
}

/// How much of a stream is to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Bytes of messages from which on the oldest page leaves, unless it is the only one.
    pub size_bytes_max: Option<u64>,
    /// The time (milliseconds since 1970) before which all messages of a page must have arrived for
    /// it to leave.
    pub arrived_before_ms: Option<u64>,
    /// What time it is: what has arrived later came while the clock was ahead.
    pub now_ms: u64,
}

/// The places of a stream's messages.
#[derive(Debug, Default, PartialEq)]
pub struct StreamIndex {
    pages: VecDeque<Page>,
    /// The first offsets of pages that came after the clock was set back: between two of them, times ascend.
    set_back: VecDeque<u64>,
    first_offset: u64,
    next_offset: u64,
    /// The first offset from which on all messages are in the log.
    logged_from: u64,
    size_bytes: u64,
    limits: PageLimits,
    /// The position of the last message that was ever added.
    last_position: Option<Position>,
}

impl StreamIndex {
    /// The index of a stream whose first message will be number `first_offset`.
    pub fn new(first_offset: u64, limits: PageLimits) -> Self {
        StreamIndex { first_offset, next_offset: first_offset, limits, ..Self::default() }
    }

    /// The offset of the oldest message that is there, or of the next one if there is none.
    pub fn first_offset(&self) -> u64 {
        self.first_offset
    }

    /// The offset that the next message gets.
    pub fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// How many messages there are.
    pub fn len(&self) -> u64 {
        self.next_offset - self.first_offset
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all messages that are there.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// How many pages it has.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Bytes of memory that the index uses, which takes a look at each page.
    pub fn footprint_bytes(&self) -> usize {
        self.pages.iter().map(Page::footprint_bytes).sum()
    }

    /// When pages end.
    pub fn limits(&self) -> PageLimits {
        self.limits
    }

    /// Sets when pages end from now on.
    pub fn set_limits(&mut self, limits: PageLimits) {
        self.limits = limits;
    }

    /// Adds a message of `size_bytes` bytes that arrived at `now_ms`. Positions ascend; a clock that goes back a little counts
    /// as standing still, and what arrives after it was set back has its own time, in another page.
    pub fn push(&mut self, location: &Location, size_bytes: u64, now_ms: u64) {
        let last = self.pages.back().filter(|page| !page.is_ahead_of(now_ms));
        let now_ms = last.map_or(now_ms, |page| now_ms.max(page.last_ms));
        let in_log = location.position().is_some();
        let full = |page: &Page| page.is_full(&self.limits, now_ms) || page.is_in_log() != in_log;
        if self.pages.back().is_none_or(full) {
            if let Some(page) = self.pages.back_mut() {
                page.close();
            }
            self.add_page(Page::new(self.next_offset, now_ms, in_log));
        }
        if let Some(page) = self.pages.back_mut() {
            page.push(location, size_bytes, now_ms);
        }
        self.last_position = location.position().or(self.last_position);
        self.size_bytes += size_bytes;
        self.next_offset += 1;
        if !in_log {
            self.logged_from = self.next_offset;
        }
    }

    fn add_page(&mut self, page: Page) {
        if self.pages.back().is_some_and(|last| page.last_ms < last.last_ms) {
            self.set_back.push_back(page.first_offset);
        }
        self.pages.push_back(page);
    }

    /// Adds a message of the log that is replayed, unless a checkpoint knew of it already.
    pub fn replay(&mut self, position: Position, size_bytes: u64, published_ms: u64) {
        if self.last_position.is_none_or(|last| position > last) {
            self.push(&Location::logged(position), size_bytes, published_ms);
        }
    }

    /// Appends to `places` those of the messages from `offset` on to the end of its page. Returns
    /// the offset of the first, which is later than asked for if that has left.
    pub fn read_from(&self, offset: u64, places: &mut VecDeque<Location>) -> u64 {
        let offset = offset.max(self.first_offset);
        let behind = self.pages.partition_point(|page| page.first_offset <= offset);
        if let Some(page) = behind.checked_sub(1).and_then(|index| self.pages.get(index)) {
            // As far behind the end as that, there is nothing.
            page.read(u32::try_from(offset - page.first_offset).unwrap_or(u32::MAX), places);
        }
        offset
    }

    /// The offset of the first message that arrived at `time_ms` or later, as far as is known at `now_ms`. Of what came while the
    /// clock was ahead nothing is known but what came before and after it.
    pub fn offset_at(&self, time_ms: u64, now_ms: u64) -> u64 {
        let is_ahead = |page: &&Page| page.is_ahead_of(now_ms);
        let later = self.first_later(time_ms, now_ms);
        let has_earlier = self.pages.get(later).is_some_and(|page| page.index_at(time_ms) > 0);
        // What comes just before may have come at that time.
        let ahead = match has_earlier {
            true => 0,
            false => self.pages.range(..later).rev().take_while(is_ahead).count(),
        };
        match self.pages.get(later - ahead) {
            Some(page) => page.first_offset + u64::from(page.index_at(time_ms)),
            None => self.next_offset,
        }
    }

    /// The index of the first page that ends at `time_ms` or later, of those that did not come while the clock was ahead; behind
    /// all if there is none.
    fn first_later(&self, time_ms: u64, now_ms: u64) -> usize {
        let page_of = |offset: u64| self.pages.partition_point(|page| page.first_offset < offset);
        let mut from = 0;
        for to in self.set_back.iter().map(|at| page_of(*at)).chain([self.pages.len()]) {
            // Times ascend up to there.
            let mut left = from..to;
            while !left.is_empty() {
                let middle = left.start + left.len() / 2;
                match self.pages[middle].last_ms >= time_ms {
                    true => left.end = middle,
                    false => left.start = middle + 1,
                }
            }
            if self.pages.range(left.start..to).next().is_some_and(|page| !page.is_ahead_of(now_ms))
            {
                return left.start;
            }
            from = to;
        }
        self.pages.len()
    }

    /// The first offset that is left when what need not be kept has left, or as much of it as leaves
    /// at once.
    pub fn kept_from(&self, retention: &Retention) -> u64 {
        let mut left_bytes = self.size_bytes;
        let is_old =
            |page: &Page| retention.arrived_before_ms.is_some_and(|time| page.last_ms < time);
        // What came while the clock was ahead leaves with what came after it.
        let is_ahead = |page: &Page| page.is_ahead_of(retention.now_ms);
        let ahead = match self.pages.front() {
            Some(page) if is_ahead(page) => self.pages.partition_point(is_ahead),
            _ => 0,
        };
        let are_ahead_old = self.pages.get(ahead).is_some_and(is_old);
        for (index, page) in self.pages.iter().enumerate() {
            let is_last = index + 1 == self.pages.len();
            let expired = if index < ahead { are_ahead_old } else { is_old(page) };
            let too_much = retention.size_bytes_max.is_some_and(|most| left_bytes > most);
            let goes = expired || too_much && !is_last;
            if !goes || index == PAGES_AT_ONCE {
                return page.first_offset;
            }
            left_bytes -= page.size_bytes.min(left_bytes);
        }
        self.next_offset
    }

    /// Lets everything before `first_offset` go. Returns the positions of what was in the log.
    pub fn trim(&mut self, first_offset: u64) -> Vec<Position> {
        let mut gone = Vec::new();
        while let Some(page) = self.pages.pop_front_if(|page| page.end_offset() <= first_offset) {
            self.size_bytes -= page.size_bytes.min(self.size_bytes);
            page.for_each_position(&mut |position| gone.push(position));
        }
        if let Some(page) = self.pages.front_mut()
            && page.first_offset < first_offset
        {
            self.size_bytes -= page.trim(first_offset, &mut gone).min(self.size_bytes);
        }
        self.first_offset = self.first_offset.max(first_offset);
        self.next_offset = self.next_offset.max(first_offset);
        while self.set_back.pop_front_if(|at| *at <= self.first_offset).is_some() {}
        gone
    }

    /// Calls `each` with the position of every message that is in the log, ascending.
    pub fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        self.pages.iter().for_each(|page| page.for_each_position(each));
    }

    /// Appends a piece of the index as a checkpoint keeps it: some pages from the one of `offset` on.
    /// Returns where the next piece begins, if there is one. What is not in the log is left out, and
    /// everything before it.
    pub fn encode_piece(&self, offset: u64, out: &mut Vec<u8>) -> Option<u64> {
        let offset = offset.max(self.logged_from);
        let from = self.pages.partition_point(|page| page.end_offset() <= offset);
        let to = self.pages.len().min(from + PAGES_AT_ONCE);
        work::count(to - from);
        let offset_of = |index| self.pages.get(index).map(|page: &Page| page.first_offset);
        put_varint(out, offset_of(from).unwrap_or(self.next_offset));
        put_varint(out, self.limits.size_bytes);
        put_varint(out, self.limits.span_ms);
        // The last of the pages says it, but where there is none any more.
        let last = if to < self.pages.len() { None } else { self.last_position };
        put_varint(out, last.map_or(0, |position| position.0 + 1));
        // Earlier versions took no message for older than this.
        put_varint(out, self.pages.back().map_or(0, |page| page.last_ms));
        self.pages.range(from..to).for_each(|page| page.encode(out));
        offset_of(to)
    }

    /// Adds a piece that [`StreamIndex::encode_piece`] wrote behind those that came before. None if
    /// it is malformed.
    pub fn add_piece(&mut self, mut bytes: &[u8]) -> Option<()> {
        let first_offset = take_varint(&mut bytes)?;
        let size_bytes = take_varint(&mut bytes)?;
        let span_ms = take_varint(&mut bytes)?;
        if first_offset < self.next_offset {
            return None;
        }
        if first_offset > self.next_offset {
            // What was written before has left since.
            self.trim(first_offset);
        }
        self.limits = PageLimits { size_bytes, span_ms };
        let last_position = take_varint(&mut bytes)?.checked_sub(1).map(Position);
        let _last_ms = take_varint(&mut bytes)?;
        while !bytes.is_empty() {
            let page = Page::decode(self.next_offset, &mut bytes)?;
            self.next_offset = page.end_offset();
            self.size_bytes = self.size_bytes.checked_add(page.size_bytes)?;
            self.last_position = page.last_position().or(self.last_position);
            self.add_page(page);
        }
        self.last_position = last_position.or(self.last_position);
        Some(())
    }
}

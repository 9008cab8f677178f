//! Streams: queues that are a log. Messages are appended and stay until they are too old or too
//! many; consumers read them without taking them away, each at its own pace from its own place.
//!
//! A stream hangs on its [`Queue`](crate::queue::Queue), which knows its consumers, and keeps an
//! index of where its messages are. Readers belong to the sessions of their consumers
//! ([`StreamReader`]): each connection's task reads for its own consumers, and holds the stream's
//! lock only to look up where the next messages are. So a slow reader costs the others nothing.
//!
//! Only what is durable is delivered. An offset that a consumer has seen is never given to another
//! message, whatever crashes.
//!
//! Lock order: the shard's gate, `order` of all streams of a route by their numbers, `state`.

mod arguments;
mod carry;
mod content;
mod read;
mod reader;
mod start;

pub(crate) use arguments::{check_consumer, check_sizes, parse_interval_ms};
pub(crate) use content::{FILTER, Filter, MATCH_UNFILTERED};
pub(crate) use reader::{Pumped, StreamReader};
pub(crate) use start::OFFSET;
pub use start::Start;

use crate::gate;
use crate::memory::Charge;
use crate::outbox::Outbox;
use crate::persistence::gone::HoldsPlaces;
use crate::posting::PublishRun;
use crate::queue::EffectiveSettings;
use crate::shrink::shrink;
use crate::timers::{Timed, Timer, TimerKind, Timers};
use crate::wakes::Wakes;
use arguments::Settings;
use courser_store::blocking::Lock;
use courser_store::stream::StreamIndex;
use courser_store::{Location, Lsn, Position, Record, Store, StoreError, Sync};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;

/// What a queue of the type `stream` has that others have not.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The number of its queue.
    id: u64,
    /// Held from the append of messages to the log until they are in the index, so that both have
    /// them in the same order: that is what makes offsets the same after a restart.
    order: Lock<()>,
    state: Mutex<State>,
    /// Copies of what the index says, read without the lock.
    first_offset: AtomicU64,
    next_offset: AtomicU64,
}

#[derive(Debug)]
struct State {
    index: StreamIndex,
    /// What the index uses, as it was when it had so many pages.
    charge: Charge,
    counted_pages: usize,
    settings: Settings,
    /// Readers that have seen everything, by their numbers, to be woken by the next message.
    sleeping: FxHashMap<u64, Arc<Outbox>>,
    /// Looks for messages that are too old.
    timer: Timer,
    deleted: bool,
}

impl State {
    /// Counts the memory of the index again once it has a sixteenth more pages, or fewer: that looks at each.
    fn count_memory(&mut self) {
        let pages = self.index.page_count();
        if pages.abs_diff(self.counted_pages) * 16 > pages {
            self.counted_pages = pages;
            self.charge.set(self.index.footprint_bytes());
        }
    }
}

/// Where the messages of a deleted stream are, counted as long as it is kept.
#[derive(Debug)]
struct Places {
    index: StreamIndex,
    _charge: Charge,
}

impl HoldsPlaces for Places {
    fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        self.index.for_each_position(each);
    }
}

impl Stream {
    /// An empty stream.
    pub fn new(id: u64, traits: Option<&EffectiveSettings>, charge: Charge) -> Self {
        let settings = Settings::of(traits);
        Stream {
            id,
            order: Lock::new(()),
            state: Mutex::new(State {
                index: StreamIndex::new(0, settings.pages()),
                charge,
                counted_pages: 0,
                settings,
                sleeping: FxHashMap::default(),
                timer: Timer::default(),
                deleted: false,
            }),
            first_offset: AtomicU64::new(0),
            next_offset: AtomicU64::new(0),
        }
    }

    /// The offset of the oldest message that is left.
    pub fn first_offset(&self) -> u64 {
        self.first_offset.load(Ordering::Acquire)
    }

    /// The offset that the next message gets.
    pub fn next_offset(&self) -> u64 {
        self.next_offset.load(Ordering::Acquire)
    }

    /// How many messages there are.
    pub fn len(&self) -> u64 {
        self.next_offset().saturating_sub(self.first_offset())
    }

    /// Bytes of memory that its index uses.
    pub fn used_bytes(&self) -> usize {
        self.state.lock().charge.bytes()
    }

    /// Makes the order of appends to the log that of the stream, as long as the guard lives.
    pub fn lock_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock()
    }

    /// The record that makes the queue a stream after a restart.
    pub fn record(&self) -> Record<'static> {
        let state = self.state.lock();
        Record::Stream {
            queue: self.id,
            first_offset: state.index.first_offset(),
            pages: state.index.limits(),
        }
    }

    /// Adds messages that the log has, and lets go of what need not be kept any more. The caller
    /// holds the guard of [`Stream::lock_order`] since before they were appended.
    pub fn append(
        &self,
        run: &PublishRun<'_>,
        now_ms: u64,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.deleted {
            drop(state);
            return self.refuse(run, store);
        }
        let mut last = None;
        for index in 0..run.len() {
            let held = run.held(index);
            debug_assert!(held.is_some(), "a message for a stream is not in the log");
            if let (Some(location), Some(message)) = (held, run.message(index)) {
                state.index.push(&location, message.stored_len() as u64, message.published_ms);
                last = location.position();
            }
        }
        state.count_memory();
        self.next_offset.store(state.index.next_offset(), Ordering::Release);
        let sleeping = std::mem::take(&mut state.sleeping);
        drop(state);
        for (_, outbox) in sleeping {
            match last {
                Some(position) => {
                    store.when_durable(position.durable_at(), Waker::from(outbox).into())
                }
                None => wakes.push(&outbox),
            }
        }
        self.retain(now_ms, store).map(drop)
    }

    /// Lets go of messages that came when the stream was gone, though the log has them for it.
    fn refuse(&self, run: &PublishRun<'_>, store: &dyn Store) -> Result<(), StoreError> {
        let held = (0..run.len()).filter_map(|index| run.held(index));
        let positions: Vec<Position> = held.filter_map(|location| location.position()).collect();
        if !positions.is_empty() {
            let record = Record::Settled { queue: self.id, positions: &positions };
            store.settle(&[record], Sync::Later, &positions)?;
        }
        Ok(())
    }

    /// Lets go of what need not be kept, or of a part of it. Returns whether that was anything. The
    /// caller holds the guard of [`Stream::lock_order`].
    fn retain(&self, now_ms: u64, store: &dyn Store) -> Result<bool, StoreError> {
        let record = {
            let state = self.state.lock();
            let first_offset = state.index.kept_from(&state.settings.retention(now_ms));
            if first_offset == state.index.first_offset() {
                return Ok(false);
            }
            Record::Stream { queue: self.id, first_offset, pages: state.index.limits() }
        };
        let Record::Stream { first_offset, .. } = record else { return Ok(false) };
        gate::assert_inside("a stream is cut");
        let gone = {
            let mut state = self.state.lock();
            let gone = state.index.trim(first_offset);
            state.count_memory();
            self.first_offset.store(state.index.first_offset(), Ordering::Release);
            gone
        };
        store.settle(&[record], Sync::Later, &gone)?;
        Ok(true)
    }

    /// Gives it other limits, which hold at the latest with the next message.
    pub fn set_traits(&self, traits: Option<&EffectiveSettings>) {
        let mut state = self.state.lock();
        state.settings = Settings::of(traits);
        let pages = state.settings.pages();
        state.index.set_limits(pages);
    }

    /// The timer for `fired_ms` has fired: lets go of what is too old, or of a part of it. Returns
    /// whether there may be more.
    pub fn expire(&self, fired_ms: u64, now_ms: u64, store: &dyn Store) -> bool {
        let _order = self.lock_order();
        self.state.lock().timer.fired(fired_ms);
        // A store that takes nothing more ends the broker, by its owner.
        self.retain(now_ms, store).unwrap_or(false)
    }

    /// Arms the timer that looks for messages that are too old, if their age matters: in so many
    /// milliseconds, or in the time of a page.
    pub fn watch_age(&self, wait_ms: Option<u64>, timers: &Timers, target: Weak<dyn Timed>) {
        let mut state = self.state.lock();
        let Some(age_max_ms) = state.settings.age_max_ms.filter(|_| !state.deleted) else { return };
        // By whole pages, a sixteenth of the age each: looking more often would find nothing.
        let wait_ms = wait_ms.unwrap_or((age_max_ms / 16).max(1000));
        let deadline_ms = timers.now_ms().saturating_add(wait_ms);
        timers.arm(&mut state.timer, deadline_ms, (self.id, TimerKind::Age), target);
    }

    /// Puts the places of the messages from `offset` on into `places`, which is empty: some of them,
    /// if there are any. Returns the offset of the first.
    pub(crate) fn look_up(&self, offset: u64, places: &mut VecDeque<Location>) -> u64 {
        self.state.lock().index.read_from(offset, places)
    }

    /// Has `outbox` woken by the next message, unless there is one from `offset` on already. Returns
    /// the offset that the next message will have.
    fn sleep(&self, reader: u64, offset: u64, outbox: &Arc<Outbox>) -> Option<u64> {
        let mut state = self.state.lock();
        let next_offset = state.index.next_offset();
        if next_offset > offset {
            return None;
        }
        if !state.deleted {
            state.sleeping.insert(reader, Arc::clone(outbox));
        }
        Some(next_offset)
    }

    /// A reader is gone and need not be woken.
    pub fn forget(&self, reader: u64) {
        let mut state = self.state.lock();
        state.sleeping.remove(&reader);
        shrink(&mut state.sleeping);
    }

    /// The offset at which a consumer begins that wants to start there, at this time.
    pub fn offset_of(&self, start: Start, now_ms: u64) -> u64 {
        let state = self.state.lock();
        let index = &state.index;
        match start {
            Start::First => index.first_offset(),
            Start::Last => index.next_offset().saturating_sub(1).max(index.first_offset()),
            Start::Next => index.next_offset(),
            Start::Offset(offset) => offset.max(index.first_offset()),
            Start::Time(time_ms) => index.offset_at(time_ms, now_ms),
        }
    }

    /// Takes back what it had before a restart. Returns how many messages that is.
    pub fn restore(&self, mut index: StreamIndex) -> u64 {
        let mut state = self.state.lock();
        index.set_limits(state.settings.pages());
        state.index = index;
        state.count_memory();
        self.first_offset.store(state.index.first_offset(), Ordering::Release);
        self.next_offset.store(state.index.next_offset(), Ordering::Release);
        state.index.len()
    }

    /// Calls `each` with the index as a checkpoint keeps it, piece by piece. It may be newer than the
    /// checkpoint's start: what is replayed then is known by its position.
    pub fn for_each_piece(&self, each: &mut dyn FnMut(&[u8])) {
        let mut bytes = Vec::new();
        let mut offset = Some(0);
        while let Some(from) = offset {
            bytes.clear();
            offset = self.state.lock().index.encode_piece(from, &mut bytes);
            each(&bytes);
        }
    }

    /// Calls `each` with the position before `end` of every message.
    pub fn for_each_position_below(&self, end: Lsn, each: &mut dyn FnMut(Position)) {
        let mut places = VecDeque::new();
        let mut offset = 0;
        loop {
            offset = self.look_up(offset, &mut places);
            if places.is_empty() {
                return;
            }
            offset += places.len() as u64;
            let positions = places.drain(..).filter_map(|place| place.position());
            positions.filter(|position| position.is_before(end)).for_each(&mut *each);
        }
    }

    /// Ends the stream. Returns how many messages it had, and where they are in the log.
    pub fn delete(&self, timers: &Timers) -> (u64, impl HoldsPlaces + use<>) {
        let mut state = self.state.lock();
        state.deleted = true;
        timers.disarm(&mut state.timer, (self.id, TimerKind::Age));
        let sleeping = std::mem::take(&mut state.sleeping);
        let next_offset = state.index.next_offset();
        let none = StreamIndex::new(next_offset, state.index.limits());
        let index = std::mem::replace(&mut state.index, none);
        let places = Places { index, _charge: std::mem::take(&mut state.charge) };
        self.first_offset.store(next_offset, Ordering::Release);
        drop(state);
        sleeping.values().for_each(|outbox| outbox.wake());
        (places.index.len(), places)
    }
}

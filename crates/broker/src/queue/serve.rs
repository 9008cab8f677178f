//! The end of every section under a queue's lock: what can be handed out is handed out, and what one
//! section may not do is left to the next one.
//!
//! No section takes long, so every loop under the lock has a limit, and a message that can't be read
//! stops it as well. Whatever has stopped it, [`Queue::finish`] decides by what is left in the queue
//! whether a timer has to go on.

use super::consumers::address;
use super::settle::Settling;
use super::unread::READ_AGAIN_MS;
use super::{Queue, State};
use crate::kept_reader::UNUSED_MS;
use crate::outbox::Outbox;
use crate::timers::TimerKind;
use crate::wakes::Wakes;
use courser_store::{Store, StoreError, Sync};
use std::sync::Arc;

impl Queue {
    /// Ends a section: lets another single active consumer take over if it is time, drops the messages
    /// beyond the limits, delivers to the consumers that have credit, and removes expired messages.
    #[inline]
    pub(super) fn serve(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) {
        if state.is_returning() {
            return self.finish(state, Ok(()));
        }
        if state.consumers.is_handing_over() {
            state.consumers.hand_over();
            state.offer_aside_to_next();
        }
        if state.ready.lacks_sizes() {
            Self::read_sizes(state, store);
        }
        let has_excess = self.drop_excess(state, settling, wakes);
        // What has to leave goes to no consumer. While the head can't be read, its timer alone tries that
        // again.
        let served = match has_excess || state.is_held_up() {
            true => Ok(()),
            false => self
                .feed_waiting(state, settling, store, wakes)
                .and_then(|()| self.expire(state, settling, store, wakes).map(drop)),
        };
        self.finish(state, served);
    }

    /// The one place that decides whether another section has to follow: while there is more than there
    /// may be or it is not known how much there is, a consumer could take what waits, something is to return
    /// to its place or on the way there, or could not be read.
    #[inline]
    pub(super) fn finish(&self, state: &mut State, served: Result<(), StoreError>) {
        if let Err(error) = served {
            self.note_unread(state, &error);
        }
        self.note_capacity(state);
        self.note_counts(state);
        let goes_on = state.is_returning()
            || state.has_excess()
            || state.has_unclaimed()
            || !state.ready.is_empty() && (self.can_feed(state) || state.ready.lacks_sizes());
        if goes_on {
            self.serve_in(state, 0);
        } else if state.unread.is_some() {
            self.serve_in(state, READ_AGAIN_MS);
        }
        if state.reader.is_open() {
            self.keep_reader(state);
        }
    }

    /// Keeps what has been read ahead for the next section, as far as memory allows and as long as that is used.
    fn keep_reader(&self, state: &mut State) {
        if state.reader.count(0) && state.read_ahead.deadline_ms().is_none() {
            let (deadline_ms, key) = (self.now_ms() + UNUSED_MS, (self.id, TimerKind::ReadAhead));
            self.timers.arm(&mut state.read_ahead, deadline_ms, key, self.timed());
        }
    }

    /// The timer for `fired_ms` has fired: gives back what has been read ahead, if nothing has been read since it was armed.
    pub(super) fn release_unused_reader(&self, fired_ms: u64) {
        let mut state = self.state.lock();
        state.read_ahead.fired(fired_ms);
        match state.reader.take_used() {
            true => self.keep_reader(&mut state),
            false => state.reader.close(),
        }
    }

    /// Whether a consumer could take what waits.
    #[inline]
    fn can_feed(&self, state: &State) -> bool {
        state.consumers.next().is_some() && !self.is_paused() && !state.is_held_up()
    }

    /// Has another section follow after so long, or earlier.
    #[cold]
    pub(super) fn serve_in(&self, state: &mut State, wait_ms: u64) {
        let deadline_ms = self.timers.now_ms().saturating_add(wait_ms);
        if state.serving.deadline_ms().is_none_or(|at| deadline_ms < at) {
            let key = (self.id, TimerKind::Serve);
            self.timers.arm(&mut state.serving, deadline_ms, key, self.timed());
        }
    }

    /// Has what follows without a client follow now.
    pub(crate) fn go_on_at_once(&self) {
        // Who has the lock says itself what follows.
        let Some(mut state) = self.state.try_lock() else { return };
        if state.serving.deadline_ms().is_some() {
            self.serve_in(&mut state, 0);
        }
        drop(state);
        self.post_more_soon();
        if let Some(stream) = self.stream() {
            stream.watch_age(Some(0), &self.timers, self.timed());
        }
    }

    /// The timer for `fired_ms` has fired: does what is left to be done, or a part of it.
    pub(super) fn serve_more(
        self: &Arc<Self>,
        fired_ms: u64,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        state.serving.fired(fired_ms);
        self.try_to_read(&mut state, store);
        self.return_unclaimed(&mut state);
        self.put_some_back(&mut state, &mut settling, wakes);
        if self.stream.is_some() {
            // What reads for its consumers goes on with the next turn of their connections.
            state.consumers.for_each_outbox(&mut |outbox| wakes.push(outbox));
        }
        self.serve(&mut state, &mut settling, store, wakes);
        drop(state);
        self.settle(settling, Sync::Later, store)
    }

    /// The connection of some consumers can send again, or the flow of its channels was resumed.
    pub(crate) fn resume(
        self: &Arc<Self>,
        outbox: &Arc<Outbox>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        self.section(store, wakes, |state| {
            state.consumers.unblock_outbox(outbox);
            state.consumers.promote_outbox(outbox);
            state.offer_aside(outbox);
        })
    }

    /// The limit for all consumers of a channel leaves room for one of them.
    pub(crate) fn resume_channel(
        self: &Arc<Self>,
        (outbox, channel): (&Arc<Outbox>, u16),
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        self.section(store, wakes, |state| {
            state.consumers.promote((address(outbox), channel));
            state.offer_aside(outbox);
        })
    }

    /// A section that changes what consumers can take.
    pub(super) fn section(
        self: &Arc<Self>,
        store: &dyn Store,
        wakes: &mut Wakes,
        change: impl FnOnce(&mut State),
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        change(&mut state);
        self.serve(&mut state, &mut settling, store, wakes);
        drop(state);
        self.settle(settling, Sync::Later, store)
    }
}

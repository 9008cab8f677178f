//! A store in memory that takes a while until what it was given is durable, as a disk does.

use super::chance::Chance;
use courser_store::{
    Location, Log, Lsn, MemoryGauge, MemoryStore, MessageRef, Messages, Position, Reader, Record,
    StoreError, Sync, Unlogged, Waiter,
};
use parking_lot::Mutex;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// The store.
pub(super) struct SlowStore {
    inner: MemoryStore,
    chance: Chance,
    /// How long a sync takes.
    sync_ms: RangeInclusive<u64>,
    /// Appends that may wait for a sync before publishers are held back.
    behind_from: u64,
    me: Weak<SlowStore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    end: u64,
    durable: u64,
    is_syncing: bool,
    waiters: Vec<(u64, Waiter)>,
}

impl SlowStore {
    pub fn new(
        gauge: &Arc<MemoryGauge>,
        chance: &Chance,
        sync_ms: RangeInclusive<u64>,
        behind_from: u64,
    ) -> Arc<Self> {
        let inner = MemoryStore::new(Arc::clone(gauge));
        Arc::new_cyclic(|me| SlowStore {
            inner,
            chance: chance.clone(),
            sync_ms,
            behind_from,
            me: Weak::clone(me),
            state: Mutex::default(),
        })
    }

    /// One more append, which the next sync is for.
    fn note_append(&self) -> Lsn {
        let mut state = self.state.lock();
        state.end += 1;
        let end = Lsn(state.end);
        self.start_sync(&mut state);
        end
    }

    fn start_sync(&self, state: &mut State) {
        let Some(me) = self.me.upgrade() else { return };
        if state.is_syncing || state.durable == state.end {
            return;
        }
        state.is_syncing = true;
        let (synced, takes) = (state.end, self.chance.ms(self.sync_ms.clone()));
        tokio::spawn(async move {
            tokio::time::sleep(takes).await;
            me.finish_sync(synced);
        });
    }

    fn finish_sync(&self, synced: u64) {
        let due = {
            let mut state = self.state.lock();
            (state.durable, state.is_syncing) = (synced, false);
            self.start_sync(&mut state);
            let waiters = std::mem::take(&mut state.waiters);
            let (due, rest) = waiters.into_iter().partition(|(lsn, _)| *lsn <= synced);
            state.waiters = rest;
            due
        };
        let may_run = self.chance.one_in(2);
        due.into_iter().for_each(|(_, waiter): (u64, Waiter)| waiter.notify(may_run));
    }
}

impl Log for SlowStore {
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        self.inner.append(records, sync, locations)?;
        Ok(self.note_append())
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<(), StoreError> {
        self.inner.settle(records, sync, positions)?;
        self.note_append();
        Ok(())
    }

    fn unlogged(&self) -> Option<&dyn Unlogged> {
        self.inner.unlogged()
    }

    fn end(&self) -> Lsn {
        Lsn(self.state.lock().end)
    }

    fn durable(&self) -> Lsn {
        Lsn(self.state.lock().durable)
    }

    fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        {
            let mut state = self.state.lock();
            if lsn.0 > state.durable {
                return state.waiters.push((lsn.0, waiter));
            }
        }
        waiter.notify(false);
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn has_room(&self) -> bool {
        true
    }

    fn is_behind(&self) -> bool {
        let state = self.state.lock();
        state.end - state.durable >= self.behind_from
    }

    fn when_room(&self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

impl Messages for SlowStore {
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        self.inner.keep(messages, locations)
    }

    fn reader(&self) -> Box<dyn Reader> {
        self.inner.reader()
    }

    fn hold(&self, position: Position) {
        self.inner.hold(position);
    }

    fn release(&self, positions: &[Position]) {
        self.inner.release(positions);
    }
}

//! A store that takes a while until what it was given is durable, as a disk does, and as other nodes do that have copies of it.

use super::chance::Chance;
use super::copies::Copies;
use courser_store::{
    Location, Log, Lsn, MemoryGauge, MemoryStore, MessageRef, Messages, Position, Proof, Reader,
    Record, Recovered, StoreError, Sync, Unlogged, Waiter,
};
use parking_lot::Mutex;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// Bytes of memory, where there is little.
const LITTLE_MEMORY: RangeInclusive<u64> = 500_000..=4_000_000;

/// How stores are in a world.
#[derive(Clone)]
pub(super) struct Kind {
    /// How long a sync takes, and a proof of the lead.
    pub sync_ms: RangeInclusive<u64>,
    /// Records that may wait for a sync before publishers are held back.
    pub behind_from: u64,
    /// Other nodes have copies of the log.
    pub is_copied: bool,
    /// Bytes of memory from which on publishers are not read. From half of them on, all messages go to the log.
    pub memory_high_bytes: u64,
}

impl Kind {
    pub fn any(chance: &Chance, sync_ms: RangeInclusive<u64>) -> Self {
        let memory_high_bytes = match chance.one_in(4) {
            true => chance.within(LITTLE_MEMORY),
            false => 1 << 30,
        };
        let behind_from = chance.within(2..=100);
        Kind { sync_ms, behind_from, is_copied: chance.one_in(2), memory_high_bytes }
    }
}

/// The store.
pub(super) struct SlowStore {
    memory: MemoryStore,
    gauge: Arc<MemoryGauge>,
    log: Arc<Copies>,
    chance: Chance,
    pub kind: Kind,
    me: Weak<SlowStore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How far it has come.
    durable: Progress,
    proven: Progress,
    /// Nothing is heard of the other nodes.
    is_cut_off: bool,
    /// Another one leads.
    is_deposed: bool,
}

/// Something that takes a while: all that is wanted when it begins is done when it ends.
#[derive(Default)]
struct Progress {
    wanted: u64,
    done: u64,
    is_running: bool,
    waiters: Vec<(u64, Waiter)>,
}

impl Progress {
    /// Those that have waited for nothing more than what is done; all, if there will be no more.
    fn take_due(&mut self, are_all: bool) -> Vec<Waiter> {
        let waiters = std::mem::take(&mut self.waiters);
        let is_due = |(at, _): &(u64, Waiter)| are_all || *at <= self.done;
        let (due, rest) = waiters.into_iter().partition(is_due);
        self.waiters = rest;
        let due: Vec<(u64, Waiter)> = due;
        due.into_iter().map(|(_, waiter)| waiter).collect()
    }
}

/// Which of the two.
type Which = fn(&mut State) -> &mut Progress;

const DURABLE: Which = |state| &mut state.durable;
const PROVEN: Which = |state| &mut state.proven;

impl SlowStore {
    pub fn new(gauge: &Arc<MemoryGauge>, chance: &Chance, kind: Kind) -> Arc<Self> {
        // No message is at the beginning.
        Self::with(gauge, chance, kind, Arc::default(), 1)
    }

    fn with(
        gauge: &Arc<MemoryGauge>,
        chance: &Chance,
        kind: Kind,
        log: Arc<Copies>,
        end: u64,
    ) -> Arc<Self> {
        let durable = Progress { wanted: end, done: end, ..Progress::default() };
        Arc::new_cyclic(|me| SlowStore {
            memory: MemoryStore::new(Arc::clone(gauge)),
            gauge: Arc::clone(gauge),
            log,
            chance: chance.clone(),
            kind,
            me: Weak::clone(me),
            state: Mutex::new(State { durable, ..State::default() }),
        })
    }

    /// The store of the node that leads next, and what it finds.
    pub fn next_leader(&self, gauge: &Arc<MemoryGauge>) -> (Arc<Self>, Recovered) {
        let end = self.durable();
        let recovered = self.log.recovered(end);
        let (log, kind) = (Arc::clone(&self.log), self.kind.clone());
        (Self::with(gauge, &self.chance, kind, log, end.0), recovered)
    }

    /// Has other nodes hear nothing of this one.
    pub fn cut_off(&self) {
        self.state.lock().is_cut_off = true;
    }

    /// Has another node lead, if others have copies.
    pub fn depose(&self) {
        let due = {
            let mut state = self.state.lock();
            state.is_deposed = self.kind.is_copied;
            let are_all = state.is_deposed;
            [DURABLE, PROVEN].map(|which| which(&mut state).take_due(are_all))
        };
        due.into_iter().flatten().for_each(|waiter| waiter.notify(false));
    }

    /// Whether others know the message of this number, or no other has to.
    pub fn has_committed(&self, number: u64) -> bool {
        let position = self.log.position(number);
        position.is_none_or(|position| position.is_before(self.durable()))
    }

    fn take_in(
        &self,
        records: &mut dyn Iterator<Item = Record<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        let mut state = self.state.lock();
        if state.is_deposed {
            return Err(StoreError::Deposed);
        }
        let end = self.log.push(state.durable.wanted, records, locations)?;
        state.durable.wanted = end;
        self.start(&mut state, DURABLE);
        Ok(Lsn(end))
    }

    fn start(&self, state: &mut State, which: Which) {
        let Some(me) = self.me.upgrade() else { return };
        // Nothing of a log that is not copied is cut off.
        let stands_still = state.is_cut_off && self.kind.is_copied;
        let progress = which(state);
        if stands_still || progress.is_running || progress.done == progress.wanted {
            return;
        }
        progress.is_running = true;
        let (reached, takes) = (progress.wanted, self.chance.ms(self.kind.sync_ms.clone()));
        tokio::spawn(async move {
            tokio::time::sleep(takes).await;
            me.finish(which, reached);
        });
    }

    fn finish(&self, which: Which, reached: u64) {
        let due = {
            let mut state = self.state.lock();
            if state.is_cut_off && self.kind.is_copied {
                return;
            }
            let progress = which(&mut state);
            (progress.done, progress.is_running) = (reached, false);
            self.start(&mut state, which);
            which(&mut state).take_due(false)
        };
        let may_run = self.chance.one_in(2);
        due.into_iter().for_each(|waiter| waiter.notify(may_run));
    }

    fn when(&self, which: Which, at: u64, waiter: Waiter) {
        {
            let mut state = self.state.lock();
            let is_deposed = state.is_deposed;
            let progress = which(&mut state);
            if at > progress.done && !is_deposed {
                return progress.waiters.push((at, waiter));
            }
        }
        waiter.notify(false);
    }
}

impl Log for SlowStore {
    fn append(
        &self,
        records: &[Record<'_>],
        _sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        self.take_in(&mut records.iter().copied(), locations)
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        _positions: &[Position],
    ) -> Result<bool, StoreError> {
        self.append(records, sync, &mut Vec::new()).map(|_| true)
    }

    fn unlogged(&self) -> Option<&dyn Unlogged> {
        None
    }

    fn end(&self) -> Lsn {
        Lsn(self.state.lock().durable.wanted)
    }

    fn durable(&self) -> Lsn {
        Lsn(self.state.lock().durable.done)
    }

    fn deliverable(&self) -> Lsn {
        if self.kind.is_copied { self.durable() } else { Lsn::MAX }
    }

    fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        self.when(DURABLE, lsn.0, waiter);
    }

    fn prove_lead(&self) -> Proof {
        if !self.kind.is_copied {
            return Proof::default();
        }
        let mut state = self.state.lock();
        state.proven.wanted += 1;
        self.start(&mut state, PROVEN);
        Proof(state.proven.wanted)
    }

    fn proven(&self) -> Proof {
        let state = self.state.lock();
        if state.is_deposed { Proof::default() } else { Proof(state.proven.done) }
    }

    fn when_proven(&self, proof: Proof, waiter: Waiter) {
        self.when(PROVEN, proof.0, waiter);
    }

    fn failure(&self) -> Option<String> {
        self.is_deposed().then(|| "another machine leads".to_owned())
    }

    fn is_deposed(&self) -> bool {
        self.state.lock().is_deposed
    }

    fn has_room(&self) -> bool {
        true
    }

    fn is_behind(&self) -> bool {
        let state = self.state.lock();
        state.durable.wanted - state.durable.done >= self.kind.behind_from
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
        if self.gauge.used_bytes() < self.kind.memory_high_bytes / 2 {
            return self.memory.keep(messages, locations);
        }
        let mut records = messages.map(|message| Record::Spilled { message });
        self.take_in(&mut records, locations).map(drop)
    }

    fn reader(&self) -> Box<dyn Reader> {
        self.log.reader()
    }

    fn spill_from(&self, _bytes: u64) {}

    fn hold(&self, _position: Position) {}

    fn release(&self, _positions: &[Position]) {}
}

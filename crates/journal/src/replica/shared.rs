//! What a journal has besides, if it is a copy of a replicated log.

use super::{
    Applied, Aside, Events, Identity, bootstrap::Pins, entries::Entries, entry::Base, mend::Damage,
    proofs::Proofs, state::StateFile,
};
use crate::{Lsn, log::FOLLOWS};
use parking_lot::{Mutex, RwLock};
use std::sync::{
    Arc,
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// What a journal has besides, if it is a copy of a replicated log.
pub struct Shared {
    pub identity: Identity,
    pub events: Arc<dyn Events>,
    /// Locked below the log.
    pub entries: Mutex<Entries>,
    pub state: Mutex<StateFile>,
    /// Where the entries end that the last checkpoint stands for.
    pub latest_base: Mutex<Base>,
    /// It is known what is live in each segment.
    pub counted: AtomicBool,
    /// Copies that are being sent, which keep segments as they are.
    pub pins: Mutex<Pins>,
    synced: AtomicU64,
    synced_ticket: AtomicU64,
    /// Held, to read, by what relies on leading.
    epoch_lock: RwLock<()>,
    epoch: AtomicU64,
    stalled: AtomicBool,
    /// [`Events::room`] is waited for.
    pub wants_room: AtomicBool,
    pub applied: Applied,
    pub aside: Aside,
    pub proofs: Proofs,
    /// Records that can't be read here.
    pub damage: Mutex<Damage>,
}

impl Shared {
    pub fn new(
        identity: Identity,
        events: Arc<dyn Events>,
        entries: Entries,
        state: StateFile,
    ) -> Self {
        Shared {
            identity,
            events,
            synced: AtomicU64::new(entries.end.0),
            latest_base: Mutex::new(Base { id: entries.base, end: entries.base_end }),
            entries: Mutex::new(entries),
            state: Mutex::new(state),
            counted: AtomicBool::new(false),
            pins: Mutex::default(),
            synced_ticket: AtomicU64::new(0),
            epoch_lock: RwLock::new(()),
            epoch: AtomicU64::new(FOLLOWS),
            stalled: AtomicBool::new(false),
            wants_room: AtomicBool::new(false),
            applied: Applied::default(),
            aside: Aside::default(),
            proofs: Proofs::default(),
            damage: Mutex::default(),
        }
    }

    /// Says where the log ends at the start, all of which is synced.
    pub fn begins(&self, end: Lsn) {
        let mut entries = self.entries.lock();
        if entries.last.index == 0 {
            (entries.base_end, entries.end) = (end, end);
        }
        drop(entries);
        self.synced.store(end.0, Release);
    }

    /// Where the last entry ends that is committed for certain at the start: what a checkpoint has that
    /// starts at `start`, at least.
    pub fn base_end(&self, start: Lsn) -> Lsn {
        self.entries.lock().base_end.max(start)
    }

    pub fn synced(&self) -> Lsn {
        Lsn(self.synced.load(Acquire))
    }

    pub fn synced_ticket(&self) -> u64 {
        self.synced_ticket.load(Acquire)
    }

    pub fn publish_synced(&self, lsn: Lsn, ticket: Option<u64>) {
        self.synced.store(lsn.0, Release);
        if let Some(ticket) = ticket {
            self.synced_ticket.store(ticket, Release);
            self.events.synced(ticket);
        }
    }

    /// The log was cut: all that is left is synced.
    pub fn synced_ends_at(&self, lsn: Lsn) {
        self.synced.store(lsn.0, Release);
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Acquire)
    }

    /// From now on, another one appends.
    pub fn set_epoch(&self, epoch: u64) {
        let _none_relies = self.epoch_lock.write();
        self.epoch.store(epoch, Release);
        self.counted.store(false, Release);
    }

    /// Does something that only the leader of this term may do, if it still leads.
    pub fn while_leading(&self, epoch: u64, work: impl FnOnce()) {
        let _stays = self.epoch_lock.read();
        if self.epoch() == epoch {
            work();
        }
    }

    pub fn stall(&self, stalled: bool) {
        self.stalled.store(stalled, Relaxed);
    }

    pub fn is_stalled(&self) -> bool {
        self.stalled.load(Relaxed)
    }
}

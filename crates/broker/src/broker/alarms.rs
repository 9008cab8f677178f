//! The alarms: what is short, and that publishers wait meanwhile.

use super::Broker;
use crate::fault::{Fault, STOPPING};
use crate::monitor::{Event, EventKind};
use crate::outbox::Outbox;
use crate::shard::Shard;
use crate::work;
use courser_codec::reply_code::CONNECTION_FORCED;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

/// What is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alarms {
    /// Messages take more memory than they may.
    pub memory: bool,
    /// The disk is nearly full.
    pub disk: bool,
}

/// Connections that wait for the end of the alarm, by their turns: those that have waited longest are woken first.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    waiting: BTreeMap<u64, Arc<Outbox>>,
    next_turn: u64,
}

impl HeldBack {
    fn enter(&mut self, outbox: &Arc<Outbox>, turn: &mut Option<u64>) {
        let turn = *turn.get_or_insert(self.next_turn);
        self.next_turn = self.next_turn.max(turn + 1);
        self.waiting.entry(turn).or_insert_with(|| Arc::clone(outbox));
    }
}

impl Broker {
    /// What is short, if publishers have to wait: a reason for `connection.blocked`.
    pub fn alarm(&self) -> Option<&'static str> {
        let Alarms { memory, disk } = self.alarms();
        match (memory, disk) {
            (false, false) => None,
            (true, false) => Some("low on memory"),
            (false, true) => Some("low on disk"),
            (true, true) => Some("low on memory & disk"),
        }
    }

    /// What is short.
    pub(crate) fn alarms(&self) -> Alarms {
        let memory = self.memory_alarm.load(Ordering::Acquire);
        Alarms { memory, disk: self.disk_alarm.load(Ordering::Acquire) }
    }

    /// Refuses what publishes without a connection that could be held back, or goes on publishing: during an alarm, and once
    /// the broker stops.
    pub(crate) fn refuse_to_publish(&self) -> Result<(), Fault> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(Fault::new(CONNECTION_FORCED, STOPPING));
        }
        self.check_alarms();
        match self.alarm() {
            None => Ok(()),
            Some(reason) => {
                let held_back = format_args!("publishers are held back: {reason}");
                Err(Fault::precondition_failed(held_back))
            }
        }
    }

    /// The broker is about to be stopped: what publishes for long ends soon.
    pub fn begin_stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Has the connection of `outbox` woken when no alarm is left, in the order of turns: it keeps its turn until it comes
    /// here and there is no alarm. Returns the reason of the alarm.
    pub(crate) fn hold_back(
        &self,
        outbox: &Arc<Outbox>,
        turn: &mut Option<u64>,
    ) -> Option<&'static str> {
        let reason = self.alarm().and_then(|_| {
            let mut held_back = self.held_back.lock();
            let reason = self.alarm()?;
            work::count(1);
            held_back.enter(outbox, turn);
            Some(reason)
        });
        if reason.is_none() {
            // One alarm may have ended and another one begun meanwhile.
            self.let_go(turn.take());
        }
        reason
    }

    /// Forgets a connection that is over.
    pub(crate) fn let_go(&self, turn: Option<u64>) {
        if let Some(turn) = turn {
            self.held_back.lock().waiting.remove(&turn);
        }
    }

    /// Raises or ends the alarms by what is used now.
    pub fn check_alarms(&self) {
        self.check_failure();
        let now =
            Alarms { memory: self.is_short_of_memory(), disk: self.shard_without_room().is_some() };
        if self.alarms() != now {
            self.set_alarms();
        }
    }

    /// Bytes of memory from which on publishers are held back.
    pub fn memory_high_bytes(&self) -> u64 {
        self.memory.high_bytes()
    }

    /// Whether what is on its way to clients has no more room: what a connection keeps for what it sends next is to be given back.
    pub fn is_short_of_room_for_clients(&self) -> bool {
        self.memory.shortage.is_there()
    }

    /// Has publishers be held back from so many bytes on. The alarm is raised or ends at once if that follows from it, and more
    /// messages go to the disk, or fewer.
    pub fn set_memory_high_bytes(&self, bytes: u64) {
        self.memory.set_high_bytes(bytes);
        self.shards.load().iter().for_each(|shard| shard.store.spill_from(spill_bytes(bytes)));
        self.check_alarms();
    }

    /// Whether there is a memory alarm now. It ends a little below its beginning, so that it does not flutter.
    fn is_short_of_memory(&self) -> bool {
        let high = self.memory.high_bytes();
        let is_set = self.memory_alarm.load(Ordering::Relaxed);
        self.messages_bytes() + self.memory.alarming() > if is_set { high / 10 * 9 } else { high }
    }

    #[cold]
    fn set_alarms(&self) {
        let mut woken = BTreeMap::new();
        let (before, without_room) = {
            let mut held_back = self.held_back.lock();
            // Read again under the lock, so that the last to come here leaves the truth behind.
            let before = self.alarms();
            self.memory_alarm.store(self.is_short_of_memory(), Ordering::Release);
            let without_room = self.shard_without_room();
            self.disk_alarm.store(without_room.is_some(), Ordering::Release);
            self.tell_of_alarms(before, self.alarms());
            if self.alarm().is_none() {
                woken = std::mem::take(&mut held_back.waiting);
            }
            (before, without_room)
        };
        for outbox in woken.into_values() {
            outbox.wake();
        }
        if !before.disk
            && let Some(shard) = without_room
        {
            self.watch_room(&shard);
        }
    }

    /// Looks again when a shard that has no room has some. While there is a disk alarm, one shard is watched.
    fn watch_room(&self, shard: &Shard) {
        shard.store.when_room(&Waker::from(Arc::new(RoomWatch(Weak::clone(&self.me)))));
    }

    fn tell_of_alarms(&self, before: Alarms, now: Alarms) {
        let changes = [("memory", before.memory, now.memory), ("disk", before.disk, now.disk)];
        for (what, was, is) in changes {
            if was != is {
                let kind = if is { EventKind::AlarmSet } else { EventKind::AlarmCleared };
                self.monitor.events.tell(|| Event::new(self.now_ms(), kind, "", what));
            }
        }
    }

    /// A shard that takes no more messages, if there is one.
    fn shard_without_room(&self) -> Option<Arc<Shard>> {
        self.shards.load().iter().find(|shard| !shard.store.has_room()).cloned()
    }
}

/// Bytes of messages in memory from which on more of them go to the disk, where the alarm begins at so many.
pub fn spill_bytes(memory_high_bytes: u64) -> u64 {
    memory_high_bytes / 2
}

/// Woken when the store has room again.
struct RoomWatch(Weak<Broker>);

impl Wake for RoomWatch {
    fn wake(self: Arc<Self>) {
        let Some(broker) = self.0.upgrade() else { return };
        // It may be another one than before. One that has failed never has room again.
        let is_full =
            |shard: &&Arc<Shard>| !shard.store.has_room() && shard.store.failure().is_none();
        loop {
            if let Some(shard) = broker.shards.load().iter().find(is_full) {
                return broker.watch_room(shard);
            }
            broker.check_alarms();
            // A shard may have had room only for a moment, and the alarm not ended. Then one is watched all the same.
            let has_failed = |shard: &Arc<Shard>| shard.store.failure().is_some();
            if !broker.alarms().disk || broker.shards.load().iter().any(has_failed) {
                return;
            }
        }
    }
}

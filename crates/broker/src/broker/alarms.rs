//! The alarms: what is short, and that publishers wait meanwhile.

use super::Broker;
use crate::fault::{Fault, STOPPING};
use crate::monitor::{Event, EventKind};
use crate::outbox::Outbox;
use crate::shard::Shard;
use crate::work;
use courser_codec::reply_code::CONNECTION_FORCED;
use rustc_hash::FxHashMap;
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

    /// Has the connection of `outbox` woken when no alarm is left. Returns the reason of the alarm,
    /// or does nothing when there is none.
    pub fn hold_back(&self, outbox: &Arc<Outbox>) -> Option<&'static str> {
        self.alarm()?;
        let mut held_back = self.held_back.lock();
        let reason = self.alarm()?;
        work::count(1);
        held_back.entry(Arc::as_ptr(outbox).addr()).or_insert_with(|| Arc::clone(outbox));
        Some(reason)
    }

    /// Forgets a connection that is over.
    pub(crate) fn let_go(&self, outbox: &Arc<Outbox>) {
        self.held_back.lock().remove(&Arc::as_ptr(outbox).addr());
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

    /// Whether there is a memory alarm now. It ends a little below its beginning, so that it does not flutter.
    fn is_short_of_memory(&self) -> bool {
        let high = self.limits.memory_high_bytes;
        let is_set = self.memory_alarm.load(Ordering::Relaxed);
        self.messages_bytes() + self.memory.alarming() > if is_set { high / 10 * 9 } else { high }
    }

    #[cold]
    fn set_alarms(&self) {
        let mut woken = FxHashMap::default();
        let (before, without_room) = {
            let mut held_back = self.held_back.lock();
            // Read again under the lock, so that the last to come here leaves the truth behind.
            let before = self.alarms();
            self.memory_alarm.store(self.is_short_of_memory(), Ordering::Release);
            let without_room = self.shard_without_room();
            self.disk_alarm.store(without_room.is_some(), Ordering::Release);
            self.tell_of_alarms(before, self.alarms());
            if self.alarm().is_none() {
                woken = std::mem::take(&mut *held_back);
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

/// Woken when the store has room again.
struct RoomWatch(Weak<Broker>);

impl Wake for RoomWatch {
    fn wake(self: Arc<Self>) {
        let Some(broker) = self.0.upgrade() else { return };
        // It may be another one than before. One that has failed never has room again.
        let is_full =
            |shard: &&Arc<Shard>| !shard.store.has_room() && shard.store.failure().is_none();
        match broker.shards.load().iter().find(is_full) {
            Some(shard) => broker.watch_room(shard),
            None => broker.check_alarms(),
        }
    }
}

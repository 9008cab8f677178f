//! Exchanges that keep messages: until their time has come, or for those who come later.

use super::Exchange;
use super::delay::{Delay, Delayed, Overdue};
use super::history::{History, RecentMessage};
use crate::memory::Memory;
use crate::routing::Namespace;
use crate::shard::Shard;
use crate::timers::Timers;
use courser_store::{Location, MessageRef, Position, Record, Store, StoreError};
use std::sync::{Arc, Weak};

/// What an exchange that keeps messages has to know of the world around it.
#[derive(Clone)]
pub(crate) struct Context {
    pub namespace: Weak<dyn Namespace>,
    pub store: Arc<dyn Store>,
    pub timers: Arc<Timers>,
    pub memory: Arc<Memory>,
}

impl Context {
    /// What an exchange of this vhost has to know.
    pub fn new(namespace: Weak<dyn Namespace>, shard: &Shard) -> Self {
        let (store, timers) = (Arc::clone(&shard.store), Arc::clone(&shard.timers));
        Context { namespace, store, timers, memory: Arc::clone(&shard.memory) }
    }
}

/// What an exchange keeps.
#[derive(Debug)]
pub(crate) enum Retention {
    /// Nothing, as most do.
    Nothing,
    /// `x-delayed-message`: what waits for its time.
    Delay(Arc<Delay>),
    /// `x-recent-history`: the last messages, for the queue or exchange that is bound next.
    History(Arc<History>),
}

/// A message that exchanges are about to keep.
pub(crate) enum Arrival<'m> {
    /// It waits for its time, at one of them.
    Waits(Delayed<'m>),
    /// It is remembered, by all that remember it.
    Remembered(RecentMessage<'m>),
}

impl<'m> Arrival<'m> {
    /// A message that passes `keepers`, as it is to be kept there.
    pub fn all(keepers: &[Arc<Exchange>], message: &MessageRef<'m>, persistent: bool) -> Vec<Self> {
        let delays = keepers.iter().filter_map(|keeper| keeper.delay());
        let waits = delays.filter_map(|delay| delay.prepare(message, persistent));
        let mut all: Vec<Self> = waits.map(Arrival::Waits).collect();
        let histories = keepers.iter().filter_map(|keeper| keeper.history());
        let remembered = RecentMessage::new(histories, message, persistent);
        all.extend(remembered.map(Arrival::Remembered));
        all
    }

    /// Adds what the log is told, where the message survives a restart.
    pub fn add_records<'a>(&'a self, records: &mut Vec<Record<'a>>) {
        match self {
            Arrival::Waits(newcomer) => records.extend(newcomer.record()),
            Arrival::Remembered(memory) => records.extend(memory.records()),
        }
    }

    /// Bytes of messages in these records.
    pub fn logged_bytes(&self) -> u64 {
        let bytes = |record: Record<'_>| record.message().map_or(0, MessageRef::stored_len) as u64;
        match self {
            Arrival::Waits(newcomer) => newcomer.record().map_or(0, bytes),
            Arrival::Remembered(memory) => memory.records().map(bytes).sum(),
        }
    }

    /// Keeps one message for those of these exchanges where it does not survive a restart: once for all that delay it, and once for
    /// all that remember it, as each of these have it with the same content header.
    pub fn keep_transient(all: &mut [Self], store: &dyn Store) -> Result<(), StoreError> {
        let mut waits = None;
        all.iter_mut().try_for_each(|one| match one {
            Arrival::Waits(newcomer) => newcomer.keep_transient(&mut waits, store),
            Arrival::Remembered(memory) => memory.keep_transient(store),
        })
    }

    /// The place in the log of a message that does not survive a restart, where it is as there was no memory for it.
    pub fn spilled(&self) -> Option<Position> {
        match self {
            Arrival::Waits(newcomer) => newcomer.spilled(),
            Arrival::Remembered(memory) => memory.spilled(),
        }
    }

    /// The message is kept from now on. Where it survives, its places are the next of `appended`.
    pub fn admit_from(self, appended: &mut impl Iterator<Item = Location>) {
        match self {
            Arrival::Waits(newcomer) => newcomer.admit_from(appended),
            Arrival::Remembered(memory) => memory.admit_from(appended),
        }
    }
}

impl Exchange {
    /// What waits here for its time, if that is what this exchange is for.
    pub(crate) fn delay(&self) -> Option<&Arc<Delay>> {
        match &self.retention {
            Retention::Delay(delay) => Some(delay),
            _ => None,
        }
    }

    /// The last messages, if that is what this exchange is for.
    pub(crate) fn history(&self) -> Option<&Arc<History>> {
        match &self.retention {
            Retention::History(history) => Some(history),
            _ => None,
        }
    }

    /// The number under which the log has what it keeps, if it keeps anything that survives.
    pub(crate) fn number_in_log(&self) -> Option<u64> {
        let keeps = !matches!(self.retention, Retention::Nothing);
        (keeps && self.settings.durable).then_some(self.id)
    }

    /// That messages stay here whose delay is over, if some do.
    pub fn overdue(&self) -> Option<Overdue> {
        self.delay()?.overdue()
    }

    /// Messages that wait here for their time.
    pub fn messages_delayed(&self) -> usize {
        self.delay().map_or(0, |delay| delay.len())
    }
}

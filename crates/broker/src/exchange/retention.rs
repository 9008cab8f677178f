//! Exchanges that keep messages: until their time has come, or for those who come later.

use super::Exchange;
use super::delay::{Delay, Delayed};
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
    /// `x-recent-history`: the last messages, for whoever is bound next.
    History(Arc<History>),
}

/// A message that an exchange is about to keep.
pub(crate) enum Arrival<'m> {
    /// It waits for its time.
    Waits(Delayed<'m>),
    /// It is remembered.
    Remembered(RecentMessage<'m>),
}

impl Arrival<'_> {
    /// What the log is told, if the message survives a restart here.
    pub fn record(&self) -> Option<Record<'_>> {
        match self {
            Arrival::Waits(newcomer) => newcomer.record(),
            Arrival::Remembered(memory) => memory.record(),
        }
    }

    /// Keeps one message for those of these exchanges where it does not survive a restart: once for all that delay it, and once for
    /// all that remember it, as each of these have it with the same content header.
    pub fn keep_transient(all: &mut [Self], store: &dyn Store) -> Result<(), StoreError> {
        let (mut waits, mut remembered) = (None, None);
        all.iter_mut().try_for_each(|one| match one {
            Arrival::Waits(newcomer) => newcomer.keep_transient(&mut waits, store),
            Arrival::Remembered(memory) => memory.keep_transient(&mut remembered, store),
        })
    }

    /// The place in the log of a message that does not survive a restart, where it is as there was no memory for it.
    pub fn spilled(&self) -> Option<Position> {
        match self {
            Arrival::Waits(newcomer) => newcomer.spilled(),
            Arrival::Remembered(memory) => memory.spilled(),
        }
    }

    /// The message is kept from now on. If it survives, its place is the next of `appended`.
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

    /// Messages that wait here for their time.
    pub fn messages_delayed(&self) -> usize {
        self.delay().map_or(0, |delay| delay.len())
    }

    /// A message that passes, as it is to be kept here; none if it is not.
    pub(crate) fn prepare<'m>(
        &self,
        message: &MessageRef<'m>,
        persistent: bool,
    ) -> Option<Arrival<'m>> {
        match &self.retention {
            Retention::Nothing => None,
            Retention::Delay(delay) => delay.prepare(message, persistent).map(Arrival::Waits),
            Retention::History(history) => {
                Some(Arrival::Remembered(RecentMessage::new(history, message, persistent)))
            }
        }
    }
}

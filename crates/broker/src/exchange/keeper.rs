//! Exchanges that keep messages: until their time has come, or for those who come later.

use super::Exchange;
use super::history::History;
use crate::delay::Delay;
use crate::timers::Timers;
use crate::vhost::Vhost;
use courser_store::{Lsn, MessageRef, Store, StoreError, Sync};
use std::sync::{Arc, Weak};

/// What an exchange that keeps messages has to know of the world around it.
#[derive(Clone)]
pub(crate) struct Home {
    pub vhost: Weak<Vhost>,
    pub store: Arc<dyn Store>,
    pub timers: Arc<Timers>,
}

/// What an exchange keeps.
#[derive(Debug)]
pub(crate) enum Keeper {
    /// Nothing, as most do.
    Nothing,
    /// `x-delayed-message`: what waits for its time.
    Delay(Arc<Delay>),
    /// `x-recent-history`: the last messages, for whoever is bound next.
    History(History),
}

impl Exchange {
    /// What waits here for its time, if that is what this exchange is for.
    pub(crate) fn delay(&self) -> Option<&Arc<Delay>> {
        match &self.keeper {
            Keeper::Delay(delay) => Some(delay),
            _ => None,
        }
    }

    /// The last messages, if that is what this exchange is for.
    pub(crate) fn history(&self) -> Option<&History> {
        match &self.keeper {
            Keeper::History(history) => Some(history),
            _ => None,
        }
    }

    /// Messages that wait here for their time.
    pub fn messages_delayed(&self) -> usize {
        self.delay().map_or(0, |delay| delay.len())
    }

    /// Keeps a message that passes. Returns how far the store has to be durable for that. Called
    /// with the broker's gate held.
    pub(crate) fn keep(
        &self,
        message: &MessageRef<'_>,
        persistent: bool,
        sync: Sync,
    ) -> Result<Lsn, StoreError> {
        match &self.keeper {
            Keeper::Nothing => Ok(Lsn::default()),
            Keeper::Delay(delay) => delay.put(message, persistent, sync),
            Keeper::History(history) => history.put(message).map(|()| Lsn::default()),
        }
    }
}

//! Consumers that come to a queue, and those that go.

use super::settle::Settling;
use super::{Consumer, Queue, State};
use crate::fault::Fault;
use crate::outbox::Outbox;
use crate::wakes::Wakes;
use courser_codec::ShortString;
use courser_store::{Lsn, Store, StoreError, Sync};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a consumer that has gone leaves to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    Unnoticed,
    /// The queue, being auto-delete, has to go with it. Where it stays, as another consumer has come, the others may go on.
    QueueIsUseless {
        leaves_place: bool,
    },
    /// Another one may be the single active consumer: if it was the one, when all that it had is back.
    OthersMayGoOn {
        leaves_place: bool,
    },
}

/// Who wants to consume, as [`Queue::add_consumer`] needs it.
pub(crate) struct NewConsumer<'a> {
    pub outbox: &'a Arc<Outbox>,
    pub channel: u16,
    pub tag: ShortString,
    pub no_ack: bool,
    pub exclusive: bool,
    pub prefetch: u32,
    pub priority: i64,
    /// How long it may take to acknowledge a message (`x-consumer-timeout`), if not as long as all others.
    pub timeout_ms: Option<u64>,
    /// How many consumers the queue may have.
    pub consumers_max: usize,
    /// Puts consume-ok into the outbox, in front of the first delivery.
    pub reply: &'a mut dyn FnMut(&mut Vec<u8>),
}

impl Queue {
    /// Adds a consumer and feeds it.
    pub(crate) fn add_consumer(
        self: &Arc<Self>,
        new: NewConsumer<'_>,
        vhost: &str,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), Fault> {
        let mut state = self.state.lock();
        if state.deleted {
            let name = self.name.as_short_str();
            return Err(Fault::not_found(format_args!("no queue '{name}' in vhost '{vhost}'")));
        }
        // As RabbitMQ's, a quorum queue has no exclusive consumers: `x-single-active-consumer` is for that there.
        let exclusive = new.exclusive && !self.is_quorum;
        let taken = state.consumers.exclusive.is_some();
        let shared = state.consumers.len() > 0 || state.consumers.has_single_active();
        if taken || exclusive && shared {
            return Err(Fault::access_refused(format_args!(
                "queue '{}' in vhost '{vhost}' in exclusive use",
                self.name.as_short_str()
            )));
        }
        if state.consumers.len() >= new.consumers_max {
            return Err(Fault::precondition_failed(format_args!(
                "consumer limit ({}) of queue '{}' in vhost '{vhost}' reached",
                new.consumers_max,
                self.name.as_short_str()
            )));
        }
        let mut outbox = new.outbox.lock();
        let Some(channel) = outbox.channel(new.channel) else { return Ok(()) };
        let slot = channel.add_consumer(self, new.tag.clone(), new.no_ack, new.prefetch);
        let consumer = Consumer::new(&new, slot);
        if state.consumers.len() == 0 {
            state.capacity.begin(self.now_ms());
        }
        let key = state.consumers.add(consumer);
        if let Some(slot) = channel.slot_mut(slot) {
            slot.consumer_key = key;
        }
        outbox.put(new.channel, |wire| (new.reply)(wire.bytes_mut()));
        drop(outbox);
        if exclusive {
            state.consumers.exclusive = Some(key);
        }
        state.consumers.hand_over();
        state.had_consumer = true;
        self.active_consumers.store(state.consumers.len(), Ordering::Relaxed);
        let mut settling = Settling::default();
        state.offer_aside(new.outbox);
        self.serve(&mut state, &mut settling, store, wakes);
        drop(state);
        self.settle(settling, Sync::Later, store).map_err(|error| self.fault(error))
    }

    /// Removes the consumer with this key, if it is one of this connection and channel. Returns what has
    /// to be done for the queue without it.
    pub(crate) fn remove_consumer(
        &self,
        key: u32,
        (outbox, channel): (&Arc<Outbox>, u16),
    ) -> Departure {
        let mut state = self.state.lock();
        // An operator may have removed it, and another one have its key.
        if !state.consumers.is_of(key, outbox, channel) {
            return Departure::Unnoticed;
        }
        let leaves_place = state.consumers.is_single_active(key);
        state.consumers.remove(key);
        self.departure(&mut state, leaves_place)
    }

    /// Removes a consumer for an operator, and tells its client. None if it is gone.
    pub(crate) fn evict(
        self: &Arc<Self>,
        key: u32,
        (outbox, channel): (&Arc<Outbox>, u16),
        wakes: &mut Wakes,
    ) -> Option<Departure> {
        let mut state = self.state.lock();
        if !state.consumers.is_of(key, outbox, channel) {
            return None;
        }
        let leaves_place = state.consumers.is_single_active(key);
        let consumer = state.consumers.remove(key)?;
        consumer.cancel(self, Lsn::default(), wakes);
        // What reads for it, if the queue is a stream, notices then.
        wakes.push(outbox);
        Some(self.departure(&mut state, leaves_place))
    }

    /// What has to be done without a consumer that has just been removed.
    fn departure(&self, state: &mut State, leaves_place: bool) -> Departure {
        self.note_departure(state);
        if self.settings.auto_delete && state.had_consumer && state.consumers.len() == 0 {
            Departure::QueueIsUseless { leaves_place }
        } else if leaves_place || state.consumers.is_handing_over() {
            Departure::OthersMayGoOn { leaves_place }
        } else {
            Departure::Unnoticed
        }
    }

    /// Takes note that a consumer has been removed.
    pub(super) fn note_departure(&self, state: &mut State) {
        if state.consumers.len() == 0 {
            self.renew_lease(state);
            self.return_unclaimed(state);
        }
        self.active_consumers.store(state.consumers.len(), Ordering::Relaxed);
        self.note_capacity(state);
    }

    /// Lets the next consumer be the single active one, where the one before makes way, or `leaves_place`: all that it had
    /// to return has returned.
    pub(crate) fn activate_next(
        self: &Arc<Self>,
        leaves_place: bool,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        self.section(store, wakes, |state| {
            if leaves_place {
                state.consumers.fill_place();
            }
            state.consumers.hand_over();
            state.offer_aside_to_next();
        })
    }
}

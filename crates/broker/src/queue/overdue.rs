//! What becomes of who has had a message for too long (`x-consumer-timeout`).

use super::handed_out::Holder;
use super::returning::Lot;
use super::settle::Settling;
use super::{Queue, State};
use crate::fault::Fault;
use crate::outbox::{NO_SLOT, Outbox};
use crate::wakes::Wakes;
use courser_store::{Lsn, Store, StoreError, Sync};
use std::sync::Arc;

impl Queue {
    /// Whether it takes back what a consumer has had for too long, and cancels that.
    pub(crate) fn takes_away(&self) -> bool {
        self.is_quorum
    }

    /// Ends who is overdue: in a quorum queue the consumer, if its client hears of it, and else the channel.
    pub(super) fn end_overdue(
        self: &Arc<Self>,
        fired_ms: u64,
        now_ms: u64,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let cancels = self.takes_away();
        let mut state = self.state.lock();
        let (consumers, was_vacant) = (state.consumers.len(), state.consumers.is_vacant());
        for (timeout_ms, holder) in state.unacked.overdue(fired_ms, now_ms) {
            let Some(outbox) = holder.outbox.upgrade() else { continue };
            if cancels && self.cancel_overdue(&mut state, &outbox, &holder, wakes) {
                continue;
            }
            let channel = holder.channel;
            let fault = Fault::precondition_failed(format_args!(
                "delivery acknowledgement on channel {channel} timed out. Timeout value used: \
                 {timeout_ms} ms. This timeout value can be configured, see consumers doc guide to \
                 learn more"
            ));
            outbox.fail_channel(channel, fault);
            wakes.push(&outbox);
        }
        // What they had may have been acknowledged just now.
        let has_fewer = state.consumers.len() < consumers;
        if !state.is_returning() && !has_fewer {
            return Ok(());
        }
        let mut settling = Settling::default();
        self.put_some_back(&mut state, &mut settling, wakes);
        // The queue may have been without any for long.
        if has_fewer {
            self.note_departure(&mut state);
        }
        // One that has left its place by itself fills it.
        if !was_vacant {
            state.consumers.fill_place();
        }
        state.consumers.hand_over();
        state.offer_aside_to_next();
        self.serve(&mut state, &mut settling, store, wakes);
        drop(state);
        self.settle(settling, Sync::Later, store)
    }

    /// Cancels a consumer, unless it is gone or has settled everything by now, and has return what it has. Returns whether that
    /// may be taken back; else its channel has to go.
    fn cancel_overdue(
        self: &Arc<Self>,
        state: &mut State,
        outbox: &Arc<Outbox>,
        holder: &Holder,
        wakes: &mut Wakes,
    ) -> bool {
        if !outbox.cancel_notify || holder.slot == NO_SLOT {
            return false;
        }
        let key = {
            let mut outbox = outbox.lock();
            let Some(channel) = outbox.channel(holder.channel) else { return true };
            // A transaction may have settled it, and not committed that.
            if channel.transactional {
                return false;
            }
            match channel.begin_to_take_away(self, holder.slot) {
                Some(consumer_key) => consumer_key,
                None => return true,
            }
        };
        let (channel, slot) = (holder.channel, holder.slot);
        state.returning.push_back(Lot::Overdue { outbox: Arc::downgrade(outbox), channel, slot });
        let is_there = state.consumers.is_of(key, outbox, holder.channel)
            && state.consumers.get(key).is_some_and(|consumer| consumer.slot == holder.slot);
        if is_there && let Some(consumer) = state.consumers.remove(key) {
            consumer.cancel(self, Lsn::default(), wakes);
        }
        true
    }
}

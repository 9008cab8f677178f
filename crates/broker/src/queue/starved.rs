//! Consumers of a channel whose limit for all of them together (`basic.qos` with global=true) is used up.
//!
//! They wait in a ring of their channel. When the limit leaves room, the one that has waited longest takes
//! its turn, and makes way for the next one with each message: of thousands that wait, one is asked at a time.

use super::Queue;
use super::consumers::{ChannelKey, Consumer, Consumers, Place, address};
use crate::outbox::Outbox;
use crate::work;
use std::sync::Arc;

impl Consumers {
    /// A consumer that was blocked by a limit of its own may have more, after others of its channel.
    pub fn starve(&mut self, key: u32) {
        if self.is_at(key, Place::Blocked) {
            self.leave_ring(key, Place::Starved);
        }
    }

    /// Whether others of a consumer's channel wait for it to make way.
    #[inline]
    pub(super) fn is_followed(&self, consumer: &Consumer) -> bool {
        !self.starved.is_empty() && self.starved.contains_key(&consumer.channel_key())
    }

    /// Lets one of a channel's consumers that wait take its turns, if there are any: of those with the
    /// highest priority the one that has waited longest.
    pub fn promote(&mut self, channel: ChannelKey) {
        let first = self.starved.get(&channel).and_then(|rings| rings.last_key_value());
        if let Some(first) = first.map(|(_, first)| *first) {
            work::count(1);
            self.put_into_ring(first);
        }
    }

    /// The channels of a connection may have more, or have another limit.
    pub fn promote_outbox(&mut self, outbox: &Arc<Outbox>) {
        let (first, last) = ((address(outbox), 0), (address(outbox), u16::MAX));
        let channels: Vec<ChannelKey> =
            self.starved.range(first..=last).map(|(channel, _)| *channel).collect();
        for channel in channels {
            let shares = outbox.lock().channel(channel.1).is_some_and(|one| one.prefetch != 0);
            self.promote(channel);
            while !shares && self.starved.contains_key(&channel) {
                self.promote(channel);
            }
        }
    }

    /// No more of this channel and priority wait.
    pub(super) fn starve_none(&mut self, channel: ChannelKey, priority: i64) {
        if let Some(rings) = self.starved.get_mut(&channel) {
            rings.remove(&priority);
            if rings.is_empty() {
                self.starved.remove(&channel);
            }
        }
    }
}

impl Queue {
    /// A consumer has had its turn, and others of its channel wait for it to make way: it comes behind them,
    /// or waits for its own limit.
    #[cold]
    pub(super) fn make_way(self: &Arc<Self>, key: u32, consumers: &mut Consumers) {
        let Some(consumer) = consumers.get(key) else { return };
        let has_credit = {
            let mut outbox = consumer.outbox.lock();
            let channel = outbox.channel(consumer.channel);
            let slot = channel.and_then(|channel| channel.slot(consumer.slot));
            slot.is_some_and(|slot| !slot.is_used_up())
        };
        consumers.leave_ring(key, if has_credit { Place::Starved } else { Place::Blocked });
        self.promote_other(key, consumers);
    }

    /// Lets another consumer of the channel of this one take its turn: at once, if the limit of the channel
    /// leaves room.
    #[cold]
    pub(super) fn promote_other(self: &Arc<Self>, key: u32, consumers: &mut Consumers) {
        let Some(consumer) = consumers.get(key) else { return };
        let (channel, number) = (consumer.channel_key(), consumer.channel);
        let mut outbox = consumer.outbox.lock();
        let has_room = outbox.channel(number).is_some_and(|one| one.has_room_for(self));
        drop(outbox);
        if has_room {
            consumers.promote(channel);
        }
    }
}

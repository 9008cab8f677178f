//! Deliveries: they get their tags, and go out at once or when they are committed.

use super::held::Kind;
use super::{OutboxState, Until};
use crate::outbox::wire::{Delivery, WireBuffer};
use crate::queue::Polled;
use courser_codec::ShortString;
use courser_store::{Lsn, MessageRef};

impl OutboxState {
    /// Encodes a delivery for the consumer in `slot`, which [`OutboxState::check`] has found ready, to be sent when the
    /// store is durable up to `sent_at`. Returns false when its content header does not fit a frame of this client's, or the channel is
    /// gone.
    #[inline(always)]
    pub(crate) fn deliver(
        &mut self,
        (number, slot): (u16, u32),
        message: &MessageRef<'_>,
        redelivered: bool,
        sent_at: Lsn,
    ) -> bool {
        let frame_max = self.frame_max;
        if !WireBuffer::fits(message.header.len(), frame_max) {
            return false;
        }
        if sent_at != Lsn::default() || self.holds(number) {
            return self.deliver_behind((number, slot), message, redelivered, sent_at);
        }
        let Some(channel) = self.channels.get_mut(number) else { return false };
        let tag = channel.next_tag;
        channel.next_tag += 1;
        let consumer_tag = match channel.slot(slot) {
            Some(slot) => slot.consumer_tag.as_ref().map_or(&[][..], ShortString::as_bytes),
            None => return false,
        };
        let delivery = Delivery { tag, redelivered };
        let before = self.wire.len();
        self.wire.put_delivery(number, consumer_tag, delivery, message, frame_max);
        self.deliveries_bytes += self.wire.len() - before;
        true
    }

    /// The same where something of its channel waits for the store, or this does.
    #[cold]
    fn deliver_behind(
        &mut self,
        (number, slot): (u16, u32),
        message: &MessageRef<'_>,
        redelivered: bool,
        sent_at: Lsn,
    ) -> bool {
        self.held_mut();
        let OutboxState { held: Some(held), channels, frame_max, .. } = self else { return false };
        let Some(channel) = channels.get_mut(number) else { return false };
        let tag = channel.next_tag;
        channel.next_tag += 1;
        let Some(slot) = channel.slot(slot) else { return false };
        let consumer_tag = slot.consumer_tag.as_ref().map_or(&[][..], ShortString::as_bytes);
        let delivery = Delivery { tag, redelivered };
        let kind = if slot.no_ack { Kind::SettledDeliveries } else { Kind::Deliveries };
        held.put_message(number, Until::durable(sent_at), (kind, tag), |wire| {
            wire.put_delivery(number, consumer_tag, delivery, message, *frame_max);
        });
        true
    }

    /// Encodes the reply to a `basic.get`. That is an answer like others: a client can ask for any number.
    pub(crate) fn deliver_get(&mut self, number: u16, polled: &Polled<'_>) {
        let frame_max = self.frame_max;
        let Some(channel) = self.channel(number) else { return };
        let delivery = Delivery { tag: channel.next_tag, redelivered: polled.redelivered };
        channel.next_tag += 1;
        let left = u32::try_from(polled.left).unwrap_or(u32::MAX);
        let write = |wire: &mut WireBuffer| {
            wire.put_get_ok(number, delivery, left, &polled.message, frame_max);
        };
        if polled.sent_at == Lsn::default() && !self.holds(number) {
            write(&mut self.wire);
            self.wire.count();
            return;
        }
        let message = (Kind::Answers, delivery.tag);
        self.held_mut().put_message(number, Until::durable(polled.sent_at), message, write);
    }
}

//! Counting what a client publishes: in the batch, and for its channel, exchange and vhost at the
//! batch's end.

use super::{Batch, Session};
use crate::counts::{ExchangeCounts, PublishTally};
use crate::routing::Route;
use courser_store::MessageRef;

impl Session {
    /// Adds what the batch has published to the counts.
    pub(super) fn count_published(&mut self, batch: &mut Batch<'_>) {
        batch.tally_run();
        let channel = batch.tally.channel;
        self.count_tally(channel, &mut batch.tally);
    }

    pub(super) fn count_tally(&mut self, channel: u16, tally: &mut PublishTally) {
        let Some(published) = tally.take(&self.broker.monitor.sizes) else { return };
        let vhost_counts = self.wakes.tally(self.vhost.counts()).publishes();
        *vhost_counts += &published;
        let mut outbox = self.outbox.lock();
        if let Some(channel) = outbox.channel(channel) {
            channel.counts().publishes += &published;
        }
        for number in &self.confirms.confirming {
            let Some(channel) = self.channels.get_mut(*number) else { continue };
            let to_confirm = std::mem::take(&mut channel.to_confirm);
            vhost_counts.to_confirm += to_confirm;
            if let Some(channel) = outbox.channel(*number) {
                channel.counts().publishes.to_confirm += to_confirm;
            }
        }
    }

    /// No queue gets a message.
    pub(super) fn pass_by(
        &self,
        message: &MessageRef<'_>,
        mandatory: bool,
        tally: &mut PublishTally,
    ) {
        if mandatory {
            tally.returned += 1;
            self.return_unroutable(tally.channel, message);
        } else {
            tally.dropped += 1;
        }
    }

    fn return_unroutable(&self, channel: u16, message: &MessageRef<'_>) {
        let mut outbox = self.outbox.lock();
        let frame_max = outbox.frame_max();
        outbox.put(channel, |wire| wire.put_return(channel, 312, "NO_ROUTE", message, frame_max));
    }
}

impl Route {
    /// Counts messages that came to the exchange at its beginning, and those that queues got.
    pub(super) fn count(&self, messages: usize, routed: usize) {
        if let Some(exchange) = &self.exchange {
            exchange.counts.add(&ExchangeCounts {
                published_in: messages as u64,
                published_out: (routed * self.queues.len()) as u64,
            });
        }
    }
}

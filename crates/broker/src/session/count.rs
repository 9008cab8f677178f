//! Counting what a client publishes: in the batch, and for its channel, exchange and vhost at the
//! batch's end.

use super::{Batch, Session};
use crate::counts::{ExchangeCounts, PublishTally};
use crate::routing::Route;
use crate::work;
use courser_store::MessageRef;

impl Session {
    /// Adds what the batch has published to the counts, without what is to be confirmed of it.
    pub(super) fn count_published(&mut self, batch: &mut Batch<'_>) {
        batch.tally_run();
        self.count_tally(&mut batch.tally);
    }

    /// The same at the batch's end, with what is to be confirmed on all channels.
    pub(super) fn count_batch(&mut self, batch: &mut Batch<'_>) {
        batch.tally_run();
        self.count(&mut batch.tally, true);
    }

    pub(super) fn count_tally(&mut self, tally: &mut PublishTally) {
        self.count(tally, false);
    }

    fn count(&mut self, tally: &mut PublishTally, is_end: bool) {
        let published = tally.take(&self.broker.monitor.sizes);
        let confirming = if is_end { &self.confirms.confirming[..] } else { &[] };
        if published.is_none() && confirming.is_empty() {
            return;
        }
        let vhost_counts = self.wakes.tally(self.vhost.counts()).publishes();
        let mut outbox = self.outbox.lock();
        if let Some(published) = published {
            *vhost_counts += &published;
            if let Some(channel) = outbox.channel(tally.channel) {
                channel.counts().publishes += &published;
            }
        }
        work::count(confirming.len());
        for number in confirming {
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

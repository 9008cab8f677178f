//! What takes so long, some ten milliseconds or more, that another thread should serve the other connections of this one
//! meanwhile. What waits for the disk sees to that by itself ([`courser_store::blocking`]).

use super::{Batch, Session};
use crate::exchange::Exchange;
use crate::outbox::Slot;
use crate::queue::Queue;
use crate::vhost::{CONSUMERS, Removed, clean_name};
use courser_codec::{Method, ShortStr};
use std::sync::Arc;

/// So many messages that an exchange remembers, of any size, take that long to send to a queue. One that goes through an
/// exchange may have very many queues.
const REMEMBERED: u64 = 100;
/// So many copies of messages take that long to put into queues.
const COPIES: usize = 100_000;
/// So many deliveries take that long to settle, whatever becomes of them.
const DELIVERIES: usize = 50_000;
/// So many messages take that long to expire.
const EXPIRED: usize = 5_000;
/// So many publishes of a transaction take that long to have effect.
const PENDING: usize = 10_000;
/// So many bytes of their headers take that long to look through, a few times each.
const HEADER_BYTES: usize = 2 << 20;
/// What matching a name with the policies of a vhost may cost: as much as four of the costliest patterns.
const POLICIES_COST: usize = 1 << 20;

impl Session {
    /// Whether this request takes long, as far as that can be told beforehand.
    pub fn takes_long(&mut self, number: u16, method: &Method<'_>) -> bool {
        match method {
            Method::BasicAck(ack) => return ack.multiple && self.has_much_unacked(number),
            // Comes behind the acknowledgements of the same batch.
            _ if self.has_much_to_settle() => return true,
            _ => {}
        }
        let queue = match method {
            Method::BasicNack(nack) => return nack.multiple && self.has_much_unacked(number),
            Method::BasicRecover(_) | Method::BasicRecoverAsync(_) => {
                return self.has_much_unacked(number);
            }
            Method::TxCommit(_) | Method::TxRollback(_) => {
                let pending = self.transaction(number).map(|transaction| transaction.pending());
                let [publishes, headers, copies, settled] = pending.unwrap_or_default();
                return publishes > PENDING
                    || headers > HEADER_BYTES
                    || copies > COPIES
                    || settled > DELIVERIES;
            }
            Method::ExchangeDelete(delete) => {
                let exchange = self.vhost.exchange(clean_name(delete.exchange).as_bytes());
                return exchange.is_some_and(|exchange| self.takes_long_to_remove(exchange));
            }
            Method::ExchangeUnbind(unbind) => return self.ends_much(unbind.source),
            Method::QueueUnbind(unbind) => return self.ends_much(unbind.exchange),
            Method::QueueDeclare(declare) => {
                let is_there = self.vhost.queue(clean_name(declare.queue).as_bytes()).is_some();
                return !is_there && self.vhost.costs_more_to_match(POLICIES_COST);
            }
            Method::ExchangeDeclare(declare) => {
                let name = clean_name(declare.exchange);
                let is_there = self.vhost.exchange(name.as_bytes()).is_some();
                return !is_there && self.vhost.costs_more_to_match(POLICIES_COST);
            }
            Method::BasicGet(get) => {
                let queue = self.named_queue(number, clean_name(get.queue));
                return queue.is_ok_and(|queue| queue.has_much_in_front(EXPIRED));
            }
            Method::BasicCancel(cancel) => {
                let mut outbox = self.outbox.lock();
                let queue = outbox.channel(number).and_then(|channel| {
                    let index = channel.find_consumer(cancel.consumer_tag.as_bytes())?;
                    channel.slot(index).and_then(auto_deleted)
                });
                drop(outbox);
                return queue.is_some_and(|queue| self.takes_long_to_delete([&*queue]));
            }
            Method::QueueBind(bind) => return self.remembered(bind.exchange) > REMEMBERED,
            Method::ExchangeBind(bind) => return self.remembered(bind.source) > 0,
            Method::QueueDelete(delete) => delete.queue,
            Method::QueuePurge(purge) => purge.queue,
            _ => return false,
        };
        let Ok(name) = self.queue_name(number, clean_name(queue)) else { return false };
        let Some(queue) = self.vhost.queue(name.as_bytes()) else { return false };
        self.takes_long_to_delete([&*queue])
    }

    /// Whether it takes long to delete all of these queues.
    fn takes_long_to_delete<'q>(&self, queues: impl IntoIterator<Item = &'q Queue>) -> bool {
        Removed::default().becomes_much_with(&self.vhost, queues)
    }

    /// Whether it takes long to delete this exchange.
    fn takes_long_to_remove(&self, exchange: Arc<Exchange>) -> bool {
        let mut removed = Removed::default();
        removed.add_exchanges(&self.vhost, vec![exchange]);
        removed.is_much()
    }

    /// Whether an exchange goes with its last binding, and takes long to delete.
    fn ends_much(&self, exchange: ShortStr<'_>) -> bool {
        let exchange = self.vhost.exchange(clean_name(exchange).as_bytes());
        let exchange = exchange.filter(|exchange| exchange.settings.auto_delete);
        let exchange = exchange.filter(|exchange| exchange.binding_count() == 1);
        exchange.is_some_and(|exchange| self.takes_long_to_remove(exchange))
    }

    /// Whether the consumers on these channels take long to end, or the queues that go with the last of them.
    fn leaves_much(&self, numbers: &[u16]) -> bool {
        let mut outbox = self.outbox.lock();
        let (mut consumers, mut queues) = (0, Vec::new());
        for number in numbers {
            let Some(channel) = outbox.channel(*number) else { continue };
            consumers += channel.consumer_count();
            queues.extend(channel.consumers().filter_map(auto_deleted));
        }
        drop(outbox);
        // A queue may have many of the consumers.
        queues.sort_unstable_by_key(|queue| queue.id);
        queues.dedup_by_key(|queue| queue.id);
        consumers > CONSUMERS || self.takes_long_to_delete(queues.iter().map(|queue| &**queue))
    }

    /// Whether it takes long to close a channel: what is unacknowledged returns, and queues go with their last consumers.
    #[must_use]
    pub fn takes_long_to_close(&self, number: u16) -> bool {
        self.has_much_to_settle() || self.has_much_unacked(number) || self.leaves_much(&[number])
    }

    /// Whether the next turn of [`Session::end`] takes long.
    #[must_use]
    pub fn takes_long_to_go_on(&self) -> bool {
        let first = self.vhost.exclusive.first(self.client.connection);
        first.is_some_and(|queue| self.takes_long_to_delete([&*queue]))
    }

    /// Whether it takes long to settle all that is unacknowledged on a channel.
    fn has_much_unacked(&self, number: u16) -> bool {
        let mut outbox = self.outbox.lock();
        outbox.channel(number).is_some_and(|channel| channel.unacked.len() > DELIVERIES)
    }

    /// Whether it takes long to settle what has been acknowledged since the last time.
    #[must_use]
    pub fn has_much_to_settle(&self) -> bool {
        let settled = self.acknowledged.iter().map(|(_, settled)| settled.len());
        settled.sum::<usize>() > DELIVERIES
    }

    /// Whether it takes long to close all channels: what is unacknowledged on them returns to the queues.
    #[must_use]
    pub fn takes_long_to_end(&self) -> bool {
        self.has_much_to_settle()
            || self.outbox.lock().unacked_count() > DELIVERIES
            || self.consumers_at_most > CONSUMERS
            || self.leaves_much(&self.channels.numbers())
    }

    /// How many messages this exchange remembers, and sends to what is bound to it.
    fn remembered(&self, exchange: ShortStr<'_>) -> u64 {
        let exchange = self.vhost.exchange(clean_name(exchange).as_bytes());
        let numbers = exchange.and_then(|exchange| Some(exchange.history()?.numbers()));
        numbers.map_or(0, |numbers| numbers.end - numbers.start)
    }
}

/// The queue of a consumer, if it goes with the last one.
fn auto_deleted(slot: &Slot) -> Option<Arc<Queue>> {
    slot.queue.settings.auto_delete.then(|| Arc::clone(&slot.queue))
}

impl Batch<'_> {
    /// Whether what is collected takes long to get into its queues.
    #[must_use]
    pub fn takes_long(&self) -> bool {
        self.copies() > COPIES
    }
}

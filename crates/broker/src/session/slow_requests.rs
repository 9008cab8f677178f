//! What takes so long that whoever serves other connections on the same thread should have somebody
//! else do it meanwhile: some ten milliseconds or more.

use super::{Batch, Session};
use crate::vhost::clean_name;
use courser_codec::{Method, ShortString};

/// So many bindings take that long to remove.
const BINDINGS: usize = 5_000;
/// So many messages take that long to remove.
const MESSAGES: usize = 300_000;
/// So many messages that an exchange remembers, of any size, take that long to send.
const REMEMBERED: u64 = 100;
/// So many copies of messages take that long to put into queues.
const COPIES: usize = 100_000;

impl Session {
    /// Whether this request takes long, as far as that can be told beforehand.
    pub fn takes_long(&mut self, number: u16, method: &Method<'_>) -> bool {
        let queue = match method {
            Method::ExchangeDelete(delete) => {
                let exchange = self.vhost.exchange(clean_name(delete.exchange).as_bytes());
                return exchange.is_some_and(|exchange| exchange.binding_count() > BINDINGS);
            }
            Method::QueueBind(bind) => return self.sends_history(&clean_name(bind.exchange)),
            Method::ExchangeBind(bind) => return self.sends_history(&clean_name(bind.source)),
            Method::QueueDelete(delete) => delete.queue,
            Method::QueuePurge(purge) => purge.queue,
            _ => return false,
        };
        let Ok(name) = self.queue_name(number, clean_name(queue)) else { return false };
        let Some(queue) = self.vhost.queue(name.as_bytes()) else { return false };
        queue.status().ready > MESSAGES || self.vhost.bindings_to(&queue) > BINDINGS
    }

    /// Whether what is bound to this exchange is sent many messages at once.
    fn sends_history(&self, exchange: &ShortString) -> bool {
        let exchange = self.vhost.exchange(exchange.as_bytes());
        exchange.is_some_and(|exchange| {
            let history = exchange.history().map(|history| history.numbers());
            history.is_some_and(|numbers| numbers.end - numbers.start > REMEMBERED)
        })
    }
}

impl Batch<'_> {
    /// Whether what is collected takes long to get into its queues.
    #[must_use]
    pub fn takes_long(&self) -> bool {
        self.copies() > COPIES
    }
}

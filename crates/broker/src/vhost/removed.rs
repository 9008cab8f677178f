//! What is removed together, and whether that takes long: some ten milliseconds or more.

use super::Vhost;
use crate::exchange::{Exchange, Sources};
use crate::queue::{PURGED_WITHOUT_WAITING, Queue};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// So many bindings take that long to remove.
const BINDINGS: usize = 5_000;
/// So many queues and exchanges take that long to remove, with nothing in them.
const QUEUES: usize = 500;
/// So many messages take that long to remove.
const MESSAGES: usize = PURGED_WITHOUT_WAITING;
/// So many consumers take that long to end.
pub(crate) const CONSUMERS: usize = 5_000;

/// What goes, counted until it is much.
#[derive(Default)]
pub(crate) struct Removed {
    queues: usize,
    /// The numbers of exchanges.
    exchanges: FxHashSet<u64>,
    messages: usize,
    consumers: usize,
    bindings: usize,
}

impl Removed {
    /// Whether it becomes much with these queues.
    pub fn becomes_much_with<'q>(
        mut self,
        vhost: &Vhost,
        queues: impl IntoIterator<Item = &'q Queue>,
    ) -> bool {
        queues.into_iter().any(|queue| {
            self.add_queue(vhost, queue);
            self.is_much()
        })
    }

    pub fn is_much(&self) -> bool {
        self.queues + self.exchanges.len() > QUEUES
            || self.messages > MESSAGES
            || self.consumers > CONSUMERS
            || self.bindings > BINDINGS
    }

    fn add_queue(&mut self, vhost: &Vhost, queue: &Queue) {
        let status = queue.status();
        self.queues += 1;
        self.messages += status.messages();
        self.consumers += status.consumers;
        let going = self.add_bindings_to(vhost, queue.id, &queue.sources);
        self.add_exchanges(vhost, going);
    }

    pub fn add_exchanges(&mut self, vhost: &Vhost, mut going: Vec<Arc<Exchange>>) {
        while let Some(exchange) = going.pop()
            && !self.is_much()
        {
            // Two may be bound to each other.
            if self.exchanges.insert(exchange.id) {
                self.bindings += exchange.binding_count();
                self.messages += exchange.delay().map_or(0, |delay| delay.len());
                going.append(&mut self.add_bindings_to(vhost, exchange.id, &exchange.sources));
            }
        }
    }

    /// Adds the bindings that lead to a queue or an exchange. Returns the exchanges that go with the last of theirs.
    fn add_bindings_to(
        &mut self,
        vhost: &Vhost,
        destination: u64,
        sources: &Sources,
    ) -> Vec<Arc<Exchange>> {
        let mut going = Vec::new();
        for source in sources.some(BINDINGS + 1) {
            let Some(exchange) = vhost.exchange(source.as_bytes()) else { continue };
            let bindings = exchange.bindings_to(destination, BINDINGS);
            self.bindings += bindings;
            if self.is_much() {
                break;
            }
            if exchange.settings.auto_delete && bindings == exchange.binding_count() {
                going.push(exchange);
            }
        }
        going
    }
}

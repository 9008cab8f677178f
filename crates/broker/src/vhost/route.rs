//! From an exchange and a routing key to queues.

use super::Vhost;
use crate::exchange::{Destination, Exchange};
use crate::fault::{Fault, Resource};
use crate::queue::Queue;
use courser_codec::Table;
use courser_store::change::QUEUES_PER_RECORD_MAX;
use std::sync::Arc;

/// The queues that a message goes to.
#[derive(Debug)]
pub(crate) struct Route {
    pub queues: Vec<Arc<Queue>>,
    /// The numbers of those that survive a restart.
    pub durable: Vec<u64>,
    /// Whether every message with the same exchange and routing key takes it, until the vhost's
    /// generation changes.
    pub by_key_alone: bool,
}

impl Vhost {
    /// The route of a message that a client publishes.
    pub(crate) fn route(
        &self,
        exchange: &[u8],
        routing_key: &[u8],
        headers: Table<'_>,
    ) -> Result<Route, Fault> {
        let mut route = Route { queues: Vec::new(), durable: Vec::new(), by_key_alone: true };
        if exchange.is_empty() {
            route.queues.extend(self.queue(routing_key));
            return route.finish();
        }
        let exchange = self.exchange_or_fault(exchange)?;
        if exchange.settings.internal {
            let name = exchange.name.as_short_str();
            let exchange = Resource { kind: "exchange", name, vhost: &self.name };
            return Err(Fault::access_refused(format_args!(
                "cannot publish to internal {exchange}"
            )));
        }
        let mut pending = vec![exchange];
        let mut visited: Vec<Arc<Exchange>> = Vec::new();
        while let Some(exchange) = pending.pop() {
            route.by_key_alone &= !exchange.looks_at_headers();
            exchange.matches(routing_key, headers, &mut |destination| match destination {
                Destination::Queue(queue) => route.queues.push(Arc::clone(queue)),
                Destination::Exchange(next) => {
                    let known = |other: &Arc<Exchange>| Arc::ptr_eq(other, next);
                    if !visited.iter().chain(&pending).any(known) && !Arc::ptr_eq(next, &exchange) {
                        pending.push(Arc::clone(next));
                    }
                }
            });
            visited.push(exchange);
        }
        route.finish()
    }
}

impl Route {
    /// One copy for each queue, however many ways lead to it.
    fn finish(mut self) -> Result<Self, Fault> {
        if self.queues.len() > 1 {
            self.queues.sort_unstable_by_key(|queue| queue.id);
            self.queues.dedup_by_key(|queue| queue.id);
        }
        let durable = self.queues.iter().filter(|queue| queue.settings.survives());
        self.durable = durable.map(|queue| queue.id).collect();
        if self.durable.len() > QUEUES_PER_RECORD_MAX {
            let queues = self.durable.len();
            return Err(Fault::new(506, format_args!("a message for {queues} durable queues")));
        }
        Ok(self)
    }
}

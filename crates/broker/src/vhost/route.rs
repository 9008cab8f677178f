//! From an exchange and a message's keys and properties to queues.

use super::{Removed, Vhost};
use crate::direct_reply::is_reply_name;
use crate::exchange::delay::delay_ms;
use crate::exchange::history::is_remembered;
use crate::exchange::{Destination, Envelope, Exchange, ExchangeKind, Steps};
use crate::fault::{Fault, Resource};
use crate::queue::Queue;
use crate::routing::{Namespace, Route, Screen};
use crate::shard::Shard;
use crate::trace::WaitingCopies;
use crate::wakes::Wakes;
use crate::work;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Where a message is written: a user needs permission for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteTarget<'a> {
    /// A queue, by name.
    Queue(&'a [u8]),
    /// An exchange, by name; the default one has the empty name.
    Exchange(&'a [u8]),
    /// A topic exchange, with this routing key. Asked besides the exchange.
    Topic {
        /// The name of the exchange.
        exchange: &'a [u8],
        /// The routing key.
        key: &'a [u8],
    },
}

impl Vhost {
    /// What a user needs permission for to publish with these keys, those of CC and BCC included: the exchange, and
    /// each key if it is a topic exchange.
    pub(crate) fn publish_targets<'a>(
        &self,
        exchange: &'a [u8],
        keys: &'a [&'a [u8]],
    ) -> impl Iterator<Item = WriteTarget<'a>> + use<'a> {
        let found = self.exchange(exchange);
        let is_topic = found.is_some_and(|found| found.settings.kind == ExchangeKind::Topic);
        let checked_keys = if is_topic { keys } else { &[] };
        let topics = checked_keys.iter().map(move |key| WriteTarget::Topic { exchange, key });
        std::iter::once(WriteTarget::Exchange(exchange)).chain(topics)
    }

    /// The route of a message that a client publishes, without the exchanges of the numbers in `without`.
    pub(crate) fn route(
        &self,
        exchange: &[u8],
        envelope: &Envelope<'_>,
        without: &[u64],
    ) -> Result<Route, Fault> {
        let exchange = match exchange {
            b"" => self.exchange_or_fault(exchange)?,
            named => self.published_to(named)?,
        };
        let is_traced = self.is_traced();
        let mut route = Route { by_key_alone: true, is_traced, ..Route::default() };
        route.exchange = Some(Arc::clone(&exchange));
        self.route_from(exchange, envelope, without, &mut route).check()?;
        route.finish()
    }

    /// The exchange of this name, if clients may publish to it.
    pub(crate) fn published_to(&self, exchange: &[u8]) -> Result<Arc<Exchange>, Fault> {
        let exchange = self.exchange_or_fault(exchange)?;
        if exchange.settings.internal {
            let name = exchange.name.as_short_str();
            let exchange = Resource { kind: "exchange", name, vhost: &self.name };
            return Err(Fault::access_refused(format_args!(
                "cannot publish to internal {exchange}"
            )));
        }
        Ok(exchange)
    }

    /// The default exchange: every queue by its name.
    fn route_by_name(&self, envelope: &Envelope<'_>, steps: &mut Steps, route: &mut Route) {
        for name in envelope.keys.iter().take_while(|_| steps.step()) {
            let direct = is_reply_name(name);
            route.answers |= direct;
            route.queues.extend(if direct { self.replies.get(name) } else { self.queue(name) });
        }
    }

    /// Follows the bindings from exchange to exchange, each of which is passed through once, but for those
    /// of the numbers in `without`. What finds no destination at one of them goes on to its alternate
    /// exchange. Returns the steps left: where there were not enough, only a part of the queues was found.
    fn route_from(
        &self,
        exchange: Arc<Exchange>,
        envelope: &Envelope<'_>,
        without: &[u64],
        route: &mut Route,
    ) -> Steps {
        let mut steps = Steps::of_one_message();
        let mut seen: FxHashSet<u64> = without.iter().copied().collect();
        // By several keys a queue may be found very often.
        let mut queues_seen = (envelope.keys.len() > 1).then(FxHashSet::default);
        let mut pending = vec![exchange];
        while let Some(exchange) = pending.pop() {
            if !seen.insert(exchange.id) {
                continue;
            }
            if exchange.name.is_empty() {
                self.route_by_name(envelope, &mut steps, route);
                continue;
            }
            route.by_key_alone &= exchange.routes_by_key_alone();
            if let Some(by) = exchange.deduplication() {
                let (place, name, by) = (exchange.id, exchange.name.clone(), Arc::clone(by));
                route.screens.push(Screen { place, name, is_queue: false, by });
            }
            if exchange.delay().is_some() && steps.look(|| delay_ms(envelope.properties)).is_some()
            {
                if !steps.copy(envelope.properties) {
                    break;
                }
                route.delayed = true;
                route.keepers.push(exchange);
                continue;
            }
            if exchange.history().is_some() && steps.look(|| is_remembered(envelope.properties)) {
                if !steps.copy(envelope.properties) {
                    break;
                }
                route.keepers.push(Arc::clone(&exchange));
            }
            let mut found_any = false;
            exchange.matches(envelope, &mut steps, &mut |destination| {
                found_any = true;
                work::count(1);
                match destination {
                    Destination::Queue(queue) => {
                        if queues_seen.as_mut().is_none_or(|seen| seen.insert(queue.id)) {
                            route.queues.push(Arc::clone(queue));
                        }
                    }
                    Destination::Exchange(next) if !seen.contains(&next.id) => {
                        pending.push(Arc::clone(next));
                    }
                    Destination::Exchange(_) => {}
                }
            });
            if steps.is_over() {
                break;
            }
            if !found_any && let Some(alternate) = exchange.alternate() {
                pending.extend(self.exchange(alternate.as_bytes()));
            }
        }
        steps
    }
}

impl Namespace for Vhost {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_still(&self) -> bool {
        Vhost::is_still(self)
    }

    fn shard(&self) -> &Arc<Shard> {
        Vhost::shard(self)
    }

    fn copies(&self) -> &Arc<WaitingCopies> {
        Vhost::copies(self)
    }

    fn route_internally(
        &self,
        exchange: &[u8],
        envelope: &Envelope<'_>,
        without: &[u64],
    ) -> Option<Route> {
        let mut route = Route { by_key_alone: true, ..Route::default() };
        self.route_from(self.exchange(exchange)?, envelope, without, &mut route);
        Some(route.finish_in_part())
    }

    fn route_through(
        &self,
        exchange: &Arc<Exchange>,
        envelope: &Envelope<'_>,
        without: &[u64],
    ) -> Option<Route> {
        let mut route = Route::default();
        self.route_from(Arc::clone(exchange), envelope, without, &mut route);
        Some(route.finish_in_part())
    }

    fn takes_long_to_delete(&self, queue: &Queue) -> bool {
        Removed::default().becomes_much_with(self, [queue])
    }

    fn delete_unused_queue(&self, queue: &Arc<Queue>, wakes: &mut Wakes) {
        self.delete_unused(queue, wakes);
    }
}

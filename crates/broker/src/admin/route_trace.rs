//! Where a message would go, and why: the way of [`Vhost::route`], told step by step.

use super::{Admin, BindingView, NewMessage, bindings};
use crate::exchange::delay::delay_ms;
use crate::exchange::{Destination, Envelope, Exchange, ExchangeKind, Steps, topic_matches};
use crate::fault::Fault;
use crate::memory::table_bytes;
use crate::queue::Queue;
use crate::routing::cc;
use crate::vhost::Vhost;
use courser_codec::{ContentHeader, FieldTable, ShortString};
use rustc_hash::FxHashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bindings of one step that are shown; how many more match is said.
const SHOWN_BINDINGS_MAX: usize = 100;
/// Bytes of the arguments of all of them from which on no more are shown.
const SHOWN_BYTES_MAX: usize = 256 << 10;
/// Bindings of one step to one destination that are looked at.
const LOOKED_AT_MAX: usize = 1 << 16;
/// Words of keys that are compared with words of patterns to find the bindings to show.
const COMPARED_MAX: usize = 1 << 22;
/// Steps and queues that are shown; how many there are is said.
const SHOWN_STEPS_MAX: usize = 200;
const SHOWN_QUEUES_MAX: usize = 1000;

/// The way of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteTrace {
    /// The exchanges that it passes, in their order; the first of very many.
    pub steps: Vec<RouteStep>,
    /// How many those are.
    pub step_count: usize,
    /// The queues that it ends in; some of very many.
    pub queues: Vec<RoutedQueue>,
    /// How many those are.
    pub queue_count: usize,
    /// An exchange keeps it and sends it on later.
    pub is_delayed: bool,
}

/// What happens at an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteStep {
    /// The exchange; empty for the default one.
    pub exchange: ShortString,
    /// How it routes.
    pub kind: &'static str,
    /// It is the alternate exchange of this one, which has found nothing.
    pub alternate_of: Option<ShortString>,
    /// The bindings that let the message through, some of very many.
    pub bindings: Vec<RoutedBinding>,
    /// How many destinations it has.
    pub destinations: usize,
    /// Where messages go that find no destination here.
    pub alternate: Option<ShortString>,
    /// That exchange is not there.
    pub alternate_is_missing: bool,
    /// It keeps the message and sends it on later, after so many milliseconds.
    pub delayed_ms: Option<u64>,
}

/// A destination that a message goes to, by one of the bindings there.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutedBinding {
    /// The binding; of several that lead to the same place, all are shown.
    pub binding: BindingView,
    /// It leads back to an exchange that the message has come through to get here.
    pub is_loop: bool,
}

/// A queue that a message ends in.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutedQueue {
    /// Its name.
    pub name: ShortString,
    /// It has no room, and refuses messages.
    pub refuses: bool,
    /// Where its dead letters go: an exchange, and a routing key if not their own.
    pub dead_letters: Option<(ShortString, Option<ShortString>)>,
}

impl Admin {
    /// Where a message would go if it were published now. Nothing is published, and exchanges that
    /// choose by chance may choose otherwise next time.
    ///
    /// # Errors
    /// When there is no such exchange, or it takes no messages from clients, or none with so many keys.
    pub fn trace_route(&self, vhost: &str, message: &NewMessage) -> Result<RouteTrace, Fault> {
        let vhost = self.known_vhost(vhost)?;
        let mut header = Vec::new();
        message.properties.encode_header(message.body.len() as u64, &mut header);
        let content = ContentHeader::parse(&header).map_err(Fault::internal_error)?;
        let keys = cc::keys(message.routing_key.as_bytes(), content.properties)?;
        let envelope = Envelope { keys: &keys, properties: content.properties };
        let exchange = match message.exchange.as_bytes() {
            b"" => vhost.exchange_or_fault(b"")?,
            name => vhost.published_to(name)?,
        };
        let mut tracing = Tracing {
            vhost: &vhost,
            envelope,
            trace: RouteTrace::default(),
            queues: Vec::new(),
            shown_bytes: 0,
            steps: Steps::of_one_message(),
            compared: Steps::at_most(COMPARED_MAX),
        };
        tracing.follow(exchange);
        tracing.steps.check()?;
        let Tracing { mut trace, mut queues, .. } = tracing;
        queues.sort_unstable_by_key(|queue| queue.id);
        queues.dedup_by_key(|queue| queue.id);
        trace.queue_count = queues.len();
        trace.queues = queues.iter().take(SHOWN_QUEUES_MAX).map(RoutedQueue::of).collect();
        Ok(trace)
    }
}

impl RoutedQueue {
    fn of(queue: &Arc<Queue>) -> Self {
        let to = queue.dead_letter_to();
        RoutedQueue {
            name: queue.name.clone(),
            refuses: queue.may_refuse() && queue.is_full(0),
            dead_letters: to.map(|to| (to.exchange.clone(), to.routing_key.clone())),
        }
    }
}

/// What comes next on the way.
enum Pending {
    /// An exchange, and the one that it is the alternate of.
    Exchange(Arc<Exchange>, Option<ShortString>),
    /// All behind the exchange with this number has been followed.
    End(u64),
}

struct Tracing<'a> {
    vhost: &'a Vhost,
    envelope: Envelope<'a>,
    trace: RouteTrace,
    queues: Vec<Arc<Queue>>,
    /// Bytes of the arguments of the bindings that are shown.
    shown_bytes: usize,
    /// What is left for its way, and for the bindings to show.
    steps: Steps,
    compared: Steps,
}

impl Tracing<'_> {
    fn follow(&mut self, first: Arc<Exchange>) {
        let (mut seen, mut on_the_way) = (FxHashSet::default(), FxHashSet::default());
        let mut pending = vec![Pending::Exchange(first, None)];
        while let Some(next) = pending.pop() {
            if self.steps.is_over() {
                break;
            }
            let (exchange, alternate_of) = match next {
                Pending::Exchange(exchange, alternate_of) => (exchange, alternate_of),
                Pending::End(id) => {
                    on_the_way.remove(&id);
                    continue;
                }
            };
            if seen.insert(exchange.id) {
                on_the_way.insert(exchange.id);
                pending.push(Pending::End(exchange.id));
                let step = self.step(&exchange, alternate_of, &on_the_way, &mut pending);
                self.trace.is_delayed |= step.delayed_ms.is_some();
                self.trace.step_count += 1;
                if self.trace.steps.len() < SHOWN_STEPS_MAX {
                    self.trace.steps.push(step);
                }
            }
        }
    }

    fn step(
        &mut self,
        exchange: &Arc<Exchange>,
        alternate_of: Option<ShortString>,
        on_the_way: &FxHashSet<u64>,
        pending: &mut Vec<Pending>,
    ) -> RouteStep {
        let mut step = RouteStep {
            exchange: exchange.name.clone(),
            kind: exchange.settings.kind.name(),
            alternate_of,
            bindings: Vec::new(),
            destinations: 0,
            alternate: exchange.alternate().map(|name| ShortString::clone(&name)),
            alternate_is_missing: false,
            delayed_ms: None,
        };
        let properties = self.envelope.properties;
        if exchange.delay().is_some()
            && let Some(delay) = delay_ms(properties)
        {
            step.delayed_ms = Some(delay);
            return step;
        }
        let found = self.destinations(exchange);
        step.destinations = found.len();
        for destination in found {
            let is_loop = on_the_way.contains(&destination.id());
            self.add_bindings(exchange, &destination, is_loop, &mut step.bindings);
            match destination {
                Destination::Queue(queue) => self.queues.push(queue),
                Destination::Exchange(next) => pending.push(Pending::Exchange(next, None)),
            }
        }
        if step.destinations == 0
            && let Some(alternate) = &step.alternate
        {
            let next = self.vhost.exchange(alternate.as_bytes());
            step.alternate_is_missing = next.is_none();
            let alternate_of = Some(exchange.name.clone());
            pending.extend(next.map(|next| Pending::Exchange(next, alternate_of)));
        }
        step
    }

    /// Where an exchange sends the message, each place once.
    fn destinations(&mut self, exchange: &Exchange) -> Vec<Destination> {
        let mut found = Vec::new();
        if exchange.name.is_empty() {
            let keys = self.envelope.keys.iter().take_while(|_| self.steps.step());
            let queues = keys.filter_map(|name| self.vhost.queue(name));
            found.extend(queues.map(Destination::Queue));
        } else {
            exchange.matches(&self.envelope, &mut self.steps, &mut |one| found.push(one.clone()));
        }
        found.sort_by_key(Destination::id);
        found.dedup_by_key(|one| one.id());
        found
    }

    fn add_bindings(
        &mut self,
        exchange: &Exchange,
        destination: &Destination,
        is_loop: bool,
        shown: &mut Vec<RoutedBinding>,
    ) {
        if self.trace.steps.len() >= SHOWN_STEPS_MAX {
            return;
        }
        let vhost = self.vhost;
        if let (true, Destination::Queue(queue)) = (exchange.name.is_empty(), destination) {
            if shown.len() < SHOWN_BINDINGS_MAX {
                shown.push(RoutedBinding { binding: bindings::by_name(vhost, queue), is_loop });
            }
            return;
        }
        if shown.len() >= SHOWN_BINDINGS_MAX || self.shown_bytes >= SHOWN_BYTES_MAX {
            return;
        }
        let (keys, routes_as) = (self.envelope.keys, exchange.routes_as());
        let mut looked_at = 0;
        let mut found = Vec::new();
        // Called with the exchange's lock held: what is not shown is not copied.
        let mut each = |destination: &Destination, key: &ShortString, arguments: &FieldTable| {
            let has_room = shown.len() + found.len() < SHOWN_BINDINGS_MAX
                && self.shown_bytes < SHOWN_BYTES_MAX
                && looked_at < LOOKED_AT_MAX
                && !self.compared.is_over();
            if !has_room {
                return ControlFlow::Break(());
            }
            looked_at += 1;
            // Of those that look at more than the routing key, all that lead to where it goes.
            let may_let_through = match routes_as {
                ExchangeKind::Topic => {
                    keys.iter().any(|one| topic_matches(key.as_bytes(), one, &mut self.compared))
                }
                _ => true,
            };
            if may_let_through {
                self.shown_bytes += table_bytes(arguments);
                found.push(BindingView::of(vhost, exchange, destination, key, arguments));
            }
            ControlFlow::Continue(())
        };
        let id = destination.id();
        let _ = match routes_as {
            ExchangeKind::Direct => keys
                .iter()
                .try_for_each(|key| exchange.for_each_binding_to(id, Some(key), &mut each)),
            _ => exchange.for_each_binding_to(id, None, &mut each),
        };
        bindings::sort(&mut found);
        shown.extend(found.into_iter().map(|binding| RoutedBinding { binding, is_loop }));
    }
}

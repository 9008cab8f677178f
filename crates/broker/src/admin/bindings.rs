//! Bindings as an operator sees them.

use super::Admin;
use crate::exchange::{Destination, Exchange};
use crate::fault::Fault;
use crate::queue::Queue;
use crate::vhost::Vhost;
use courser_auth::Resource;
use courser_codec::{FieldTable, ShortString};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A binding.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingView {
    /// The vhost it is in.
    pub vhost: String,
    /// The exchange that messages come from; empty for the default exchange, which every queue is
    /// bound to by its name.
    pub source: ShortString,
    /// The queue or exchange that they go to.
    pub destination: ShortString,
    /// The destination is a queue, not an exchange.
    pub to_queue: bool,
    /// The routing key.
    pub routing_key: ShortString,
    /// The arguments.
    pub arguments: FieldTable,
}

/// Says whether a binding is wanted, and there is room for it.
pub type Admits<'a> = &'a mut dyn FnMut(&BindingView) -> bool;

/// Bindings of one routing key that are looked at with the exchange locked.
const PORTION: usize = 100;

impl Admin {
    /// Those bindings between the two that have one of these routing keys and are admitted. In a key, U+FFFD stands for
    /// bytes that are no text too, which are shown so.
    ///
    /// # Errors
    /// When one of the two is not there.
    pub fn bindings_between(
        &self,
        vhost: &str,
        source: &[u8],
        destination: Resource<'_>,
        routing_keys: &[String],
        admits: Admits<'_>,
    ) -> Result<Vec<BindingView>, Fault> {
        let (_, source) = self.known_exchange(vhost, source)?;
        let (vhost, destination) = match destination {
            Resource::Queue(name) => {
                let (vhost, queue) = self.known_queue(vhost, name)?;
                if source.name.is_empty() {
                    let mut found = vec![by_name(&vhost, &queue)];
                    found.retain(|binding| admits(binding));
                    return Ok(found);
                }
                (vhost, Destination::Queue(queue))
            }
            Resource::Exchange(name) => {
                let (vhost, exchange) = self.known_exchange(vhost, name)?;
                (vhost, Destination::Exchange(exchange))
            }
        };
        let mut found = Vec::new();
        for key in keys_of(&source, &destination, routing_keys) {
            let mut before = usize::MAX;
            while before > 0 {
                let some;
                (before, some) =
                    source.some_bindings_to(destination.id(), key.as_bytes(), before, PORTION);
                let some = some.iter();
                let some =
                    some.map(|one| BindingView::of(&vhost, &source, &destination, &key, one));
                found.extend(some.filter(|binding| admits(binding)));
            }
        }
        Ok(found)
    }
}

/// The routing keys that these texts stand for.
fn keys_of(source: &Exchange, destination: &Destination, texts: &[String]) -> Vec<ShortString> {
    let mut keys: Vec<ShortString> =
        texts.iter().filter_map(|text| ShortString::new(text.as_bytes()).ok()).collect();
    if texts.iter().any(|text| text.contains(char::REPLACEMENT_CHARACTER)) {
        let is_meant = |key: &[u8]| match String::from_utf8_lossy(key) {
            // Those are among the texts themselves.
            Cow::Borrowed(_) => false,
            Cow::Owned(shown) => texts.contains(&shown),
        };
        keys.extend(source.routing_keys_to(destination.id(), &is_meant));
    }
    keys.sort();
    keys.dedup();
    keys
}

/// The bindings that an exchange is the source of, by destination and key. The bindings to one
/// destination are taken under the exchange's lock, those to the next one later.
pub(super) fn from_exchange(
    vhost: &Vhost,
    exchange: &Exchange,
    admits: Admits<'_>,
) -> Vec<BindingView> {
    if exchange.name.is_empty() {
        let queues = vhost.ordered_queues();
        let all = queues.starting_at(0).map(|queue| by_name(vhost, queue));
        return all.filter(|binding| admits(binding)).collect();
    }
    let mut found = Vec::new();
    for destination in exchange.destinations() {
        add(vhost, exchange, destination, &mut found, admits);
    }
    sort(&mut found);
    found
}

/// The bindings that lead to a queue, the one by its name included.
pub(super) fn to_queue(vhost: &Vhost, queue: &Arc<Queue>, admits: Admits<'_>) -> Vec<BindingView> {
    let mut found = vec![by_name(vhost, queue)];
    found.retain(|binding| admits(binding));
    add_all(vhost, &Destination::Queue(Arc::clone(queue)), &mut found, admits);
    found
}

/// The bindings that lead to an exchange.
pub(super) fn to_exchange(
    vhost: &Vhost,
    exchange: &Arc<Exchange>,
    admits: Admits<'_>,
) -> Vec<BindingView> {
    let mut found = Vec::new();
    add_all(vhost, &Destination::Exchange(Arc::clone(exchange)), &mut found, admits);
    found
}

fn add_all(
    vhost: &Vhost,
    destination: &Destination,
    found: &mut Vec<BindingView>,
    admits: Admits<'_>,
) {
    for source in destination.sources().all() {
        if let Some(exchange) = vhost.exchange(source.as_bytes()) {
            add(vhost, &exchange, destination.id(), found, admits);
        }
    }
    sort(found);
}

fn add(
    vhost: &Vhost,
    source: &Exchange,
    destination: u64,
    found: &mut Vec<BindingView>,
    admits: Admits<'_>,
) {
    let mut each = |destination: &Destination, key: &ShortString, arguments: &FieldTable| {
        let binding = BindingView::of(vhost, source, destination, key, arguments);
        if admits(&binding) {
            found.push(binding);
        }
        ControlFlow::Continue(())
    };
    let _ = source.for_each_binding_to(destination, None, &mut each);
}

impl BindingView {
    pub(super) fn of(
        vhost: &Vhost,
        source: &Exchange,
        destination: &Destination,
        routing_key: &ShortString,
        arguments: &FieldTable,
    ) -> Self {
        BindingView {
            vhost: vhost.name.clone(),
            source: source.name.clone(),
            destination: destination.name().clone(),
            to_queue: matches!(destination, Destination::Queue(_)),
            routing_key: routing_key.clone(),
            arguments: arguments.clone(),
        }
    }
}

/// How the default exchange leads to a queue.
pub(super) fn by_name(vhost: &Vhost, queue: &Arc<Queue>) -> BindingView {
    BindingView {
        vhost: vhost.name.clone(),
        source: ShortString::default(),
        destination: queue.name.clone(),
        to_queue: true,
        routing_key: queue.name.clone(),
        arguments: FieldTable::new(),
    }
}

pub(super) fn sort(bindings: &mut [BindingView]) {
    bindings.sort_by(|one, other| {
        let of = |binding: &BindingView| {
            (binding.source.clone(), binding.destination.clone(), !binding.to_queue)
        };
        of(one).cmp(&of(other)).then_with(|| one.routing_key.cmp(&other.routing_key))
    });
}

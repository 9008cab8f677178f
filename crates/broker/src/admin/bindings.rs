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

/// Says whether there is room for one more binding. The first one for which there is none ends the list.
pub type Admits<'a> = &'a mut dyn FnMut(&BindingView) -> bool;

/// Bindings of one routing key that are looked at with the exchange locked.
const PORTION: usize = 100;

impl Admin {
    /// The bindings between the two, as far as they are admitted.
    ///
    /// # Errors
    /// When one of the two is not there.
    pub fn bindings_between(
        &self,
        vhost: &str,
        source: &[u8],
        destination: Resource<'_>,
        admits: Admits<'_>,
    ) -> Result<Vec<BindingView>, Fault> {
        let (vhost, source, destination) = self.known_ends(vhost, source, destination)?;
        let mut found = Vec::new();
        let _ = match &destination {
            Destination::Queue(queue) if source.name.is_empty() => {
                add(by_name(&vhost, queue), &mut found, admits)
            }
            _ => add_between(&vhost, &source, Some(destination.id()), &mut found, admits),
        };
        sort(&mut found);
        Ok(found)
    }

    /// Those bindings between the two that have one of these routing keys and are meant. In a key, U+FFFD stands for
    /// bytes that are no text too, which are shown so.
    ///
    /// # Errors
    /// When one of the two is not there.
    pub fn bindings_by_key(
        &self,
        vhost: &str,
        source: &[u8],
        destination: Resource<'_>,
        routing_keys: &[String],
        is_meant: &mut dyn FnMut(&BindingView) -> bool,
    ) -> Result<Vec<BindingView>, Fault> {
        let (vhost, source, destination) = self.known_ends(vhost, source, destination)?;
        if let (true, Destination::Queue(queue)) = (source.name.is_empty(), &destination) {
            let mut found = vec![by_name(&vhost, queue)];
            found.retain(|binding| is_meant(binding));
            return Ok(found);
        }
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
                found.extend(some.filter(|binding| is_meant(binding)));
            }
        }
        Ok(found)
    }

    fn known_ends(
        &self,
        vhost: &str,
        source: &[u8],
        destination: Resource<'_>,
    ) -> Result<(Arc<Vhost>, Arc<Exchange>, Destination), Fault> {
        let (_, source) = self.known_exchange(vhost, source)?;
        let (vhost, destination) = match destination {
            Resource::Queue(name) => {
                let (vhost, queue) = self.known_queue(vhost, name)?;
                (vhost, Destination::Queue(queue))
            }
            Resource::Exchange(name) => {
                let (vhost, exchange) = self.known_exchange(vhost, name)?;
                (vhost, Destination::Exchange(exchange))
            }
        };
        Ok((vhost, source, destination))
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
        let _ = source.for_each_binding(Some(destination.id()), &mut |_, key, _| {
            keys.extend(is_meant(key.as_bytes()).then(|| key.clone()));
            ControlFlow::Continue(())
        });
    }
    keys.sort();
    keys.dedup();
    keys
}

/// The bindings that an exchange is the source of, by destination and key.
pub(super) fn from_exchange(
    vhost: &Vhost,
    exchange: &Exchange,
    admits: Admits<'_>,
) -> Vec<BindingView> {
    if exchange.name.is_empty() {
        let queues = vhost.ordered_queues();
        let all = queues.starting_at(0).map(|queue| by_name(vhost, queue));
        return all.take_while(|binding| admits(binding)).collect();
    }
    let mut found = Vec::new();
    let _ = add_between(vhost, exchange, None, &mut found, admits);
    sort(&mut found);
    found
}

/// The bindings that lead to a queue, the one by its name included.
pub(super) fn to_queue(vhost: &Vhost, queue: &Arc<Queue>, admits: Admits<'_>) -> Vec<BindingView> {
    let mut found = Vec::new();
    if add(by_name(vhost, queue), &mut found, admits).is_continue() {
        add_all(vhost, &Destination::Queue(Arc::clone(queue)), &mut found, admits);
    }
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
        if let Some(exchange) = vhost.exchange(source.as_bytes())
            && add_between(vhost, &exchange, Some(destination.id()), found, admits).is_break()
        {
            break;
        }
    }
    sort(found);
}

/// Adds the bindings from an exchange, or those of them to one destination. Breaks off as [`add`].
fn add_between(
    vhost: &Vhost,
    source: &Exchange,
    destination: Option<u64>,
    found: &mut Vec<BindingView>,
    admits: Admits<'_>,
) -> ControlFlow<()> {
    source.for_each_binding(destination, &mut |destination, key, arguments| {
        add(BindingView::of(vhost, source, destination, key, arguments), found, admits)
    })
}

/// Breaks off where there is no room for it.
fn add(binding: BindingView, found: &mut Vec<BindingView>, admits: Admits<'_>) -> ControlFlow<()> {
    if !admits(&binding) {
        return ControlFlow::Break(());
    }
    found.push(binding);
    ControlFlow::Continue(())
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

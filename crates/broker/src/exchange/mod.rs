//! Exchanges and their bindings: to which queues a message goes.

mod bindings;
mod consistent_hash;
pub(crate) mod delay;
mod destinations;
mod direct;
mod envelope;
mod fanout;
pub(crate) mod headers;
pub(crate) mod history;
mod index;
mod kind;
mod portions;
mod removal;
mod retention;
mod sources;
mod spread;
mod steps;
mod topic;
mod variants;

pub(crate) use consistent_hash::{HASH_HEADER, HASH_PROPERTY, Hashed, weight};
pub use delay::Overdue;
pub(crate) use envelope::Envelope;
pub(crate) use kind::DELAYED_TYPE;
pub use kind::ExchangeKind;
pub(crate) use retention::{Arrival, Context, Retention};
pub(crate) use sources::Sources;
pub(crate) use steps::Steps;
pub(crate) use topic::topic_matches;

use crate::arguments::ALTERNATE_EXCHANGE;
use crate::counts::SharedExchangeCounts;
use crate::keyed::KeyedMap;
use crate::log_end::LogEnd;
use crate::memory::{Charge, Use, exchange_bytes};
use crate::policy::{CompiledPolicy, Counting, ExchangePolicy, Takes};
use crate::queue::Queue;
use crate::routing::deduplication::Deduplication;
use crate::shrink::{shrink, shrink_list, shrink_set};
use arc_swap::ArcSwapOption;
use courser_codec::FieldTable;
use courser_codec::ShortString;
use delay::Delay;
use history::History;
use index::Index;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use variants::Variants;

/// What an exchange was declared with.
#[derive(Clone, Debug)]
pub struct ExchangeSettings {
    /// How it routes.
    pub kind: ExchangeKind,
    /// Survives a restart of the broker.
    pub durable: bool,
    /// Goes with its last binding.
    pub auto_delete: bool,
    /// Takes messages from other exchanges only.
    pub internal: bool,
    /// The arguments as declared, known and unknown.
    pub arguments: FieldTable,
}

/// An exchange of a vhost.
pub struct Exchange {
    /// Unique among all queues and exchanges of the broker.
    pub(crate) id: u64,
    /// Its name in its vhost; empty for the default exchange.
    pub name: ShortString,
    /// What it was declared with.
    pub settings: ExchangeSettings,
    policy: ArcSwapOption<CompiledPolicy>,
    /// What it takes to match it with policies.
    pub(crate) matched: Counting,
    alternate: ArcSwapOption<ShortString>,
    retention: Retention,
    deduplication: Option<Arc<Deduplication>>,
    /// The exchanges that it is bound to.
    pub(crate) sources: Sources,
    /// Where the log ends with its definition, if it was made since the start: it survives once that is durable.
    pub(crate) defined: LogEnd,
    bindings: RwLock<Bindings>,
    pub(crate) counts: SharedExchangeCounts,
    /// What it uses without its bindings.
    _charge: Charge,
}

/// Where a binding leads.
#[derive(Clone)]
pub(crate) enum Destination {
    Queue(Arc<Queue>),
    Exchange(Arc<Exchange>),
}

/// What to match besides the routing key: the two together and the destination are a binding.
#[derive(Clone, Debug)]
pub(crate) struct BindingKey {
    pub routing_key: ShortString,
    pub arguments: FieldTable,
}

/// Everything bound to an exchange.
struct Bindings {
    by_destination: FxHashMap<u64, Bound>,
    index: Index,
    /// A destination that no message goes to any more, though the index may still have it.
    leaving: Option<u64>,
    /// How many there are, those to it included.
    count: usize,
}

/// All bindings that lead to one destination, by routing key.
struct Bound {
    destination: Destination,
    keys: KeyedMap<ShortString, Variants>,
}

/// What the removal of bindings came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Removed {
    /// Bindings removed.
    pub count: usize,
    /// The exchange has lost its last binding by it.
    pub none_left: bool,
}

impl Destination {
    /// Whether it is there again after a restart.
    pub fn survives(&self) -> bool {
        match self {
            Destination::Queue(queue) => queue.settings.survives(),
            Destination::Exchange(exchange) => exchange.settings.durable,
        }
    }

    pub fn name(&self) -> &ShortString {
        match self {
            Destination::Queue(queue) => &queue.name,
            Destination::Exchange(exchange) => &exchange.name,
        }
    }

    pub fn id(&self) -> u64 {
        match self {
            Destination::Queue(queue) => queue.id,
            Destination::Exchange(exchange) => exchange.id,
        }
    }

    pub fn sources(&self) -> &Sources {
        match self {
            Destination::Queue(queue) => &queue.sources,
            Destination::Exchange(exchange) => &exchange.sources,
        }
    }
}

impl Bindings {
    /// Those of a new exchange.
    fn none(settings: &ExchangeSettings) -> Self {
        let index = Index::new(settings.kind, &settings.arguments);
        Bindings { by_destination: FxHashMap::default(), index, leaving: None, count: 0 }
    }
}

impl Exchange {
    /// An exchange without bindings; one that keeps messages keeps them at `home`.
    pub(crate) fn new(
        id: u64,
        name: ShortString,
        settings: ExchangeSettings,
        policy: ExchangePolicy,
        context: Context,
    ) -> Arc<Self> {
        let bytes = exchange_bytes(&name, &settings.arguments);
        let charge = context.memory.charge(Use::Definitions, bytes);
        let bindings = Bindings::none(&settings);
        let remembered = context.memory.charge(Use::Deduplication, 0);
        let deduplication = match settings.kind {
            ExchangeKind::Deduplicating => {
                Some(Deduplication::with(&settings.arguments, remembered))
            }
            _ => Deduplication::of(&settings.arguments, remembered),
        };
        let exchange = Arc::new_cyclic(|me| Exchange {
            id,
            name,
            retention: match settings.kind {
                ExchangeKind::Delayed => {
                    Retention::Delay(Delay::new(id, settings.durable, Weak::clone(me), context))
                }
                ExchangeKind::RecentHistory => {
                    let ExchangeSettings { durable, arguments, .. } = &settings;
                    Retention::History(History::new(id, *durable, arguments, context))
                }
                _ => Retention::Nothing,
            },
            settings,
            policy: ArcSwapOption::empty(),
            matched: Counting::begin(Takes::default()),
            alternate: ArcSwapOption::empty(),
            deduplication,
            sources: Sources::default(),
            defined: LogEnd::default(),
            bindings: RwLock::new(bindings),
            counts: SharedExchangeCounts::default(),
            _charge: charge,
        });
        exchange.follow(policy);
        exchange
    }

    /// Follows a policy from now on: has the alternate exchange that its arguments name, or else the one that the policy
    /// gives it.
    pub(crate) fn follow(&self, found: ExchangePolicy) {
        let ExchangePolicy { policy, took } = found;
        let given = policy.as_ref().and_then(|policy| policy.alternate_exchange());
        let declared = self.settings.arguments.get(ALTERNATE_EXCHANGE).and_then(|name| {
            // What is no name was refused at the declaration.
            ShortString::new(name.as_long_str()?).ok()
        });
        self.alternate.store(declared.or(given).map(Arc::new));
        self.policy.store(policy);
        self.matched.follow(took);
    }

    /// The policy that counts for it.
    pub(crate) fn policy(&self) -> Option<Arc<CompiledPolicy>> {
        self.policy.load_full()
    }

    /// The exchange that gets what finds no destination here.
    pub(crate) fn alternate(&self) -> Option<Arc<ShortString>> {
        self.alternate.load_full()
    }

    /// There if it drops what has been there before.
    pub(crate) fn deduplication(&self) -> Option<&Arc<Deduplication>> {
        self.deduplication.as_ref()
    }

    /// How it routes what it does not delay.
    pub(crate) fn routes_as(&self) -> ExchangeKind {
        match self.settings.kind {
            ExchangeKind::Delayed => ExchangeKind::delayed(&self.settings.arguments),
            kind => Some(kind),
        }
        .unwrap_or(ExchangeKind::Fanout)
    }

    /// Whether messages with the same routing key go the same way, until a binding changes, so that
    /// the way can be remembered.
    pub(crate) fn routes_by_key_alone(&self) -> bool {
        matches!(self.retention, Retention::Nothing) && self.bindings.read().index.by_key_alone()
    }

    /// Calls `found` for every destination that a message goes to, perhaps more than once, as far as there are `steps`.
    pub(crate) fn matches(
        &self,
        envelope: &Envelope<'_>,
        steps: &mut Steps,
        found: &mut dyn FnMut(&Destination),
    ) {
        let Bindings { index, leaving, .. } = &*self.bindings.read();
        match *leaving {
            None => index.matches(envelope, steps, found),
            Some(leaving) => index.matches(envelope, steps, &mut |destination| {
                if destination.id() != leaving {
                    found(destination);
                }
            }),
        }
    }

    /// Adds a binding unless the same exists. Returns whether it is new.
    pub(crate) fn bind(&self, destination: &Destination, key: BindingKey) -> bool {
        let mut bindings = self.bindings.write();
        let Bindings { by_destination, index, count, .. } = &mut *bindings;
        let bound = by_destination.entry(destination.id()).or_insert_with(|| Bound {
            destination: destination.clone(),
            keys: KeyedMap::default(),
        });
        let arguments = bound.keys.entry(key.routing_key.clone()).or_default();
        if arguments.contains(&key.arguments) {
            return false;
        }
        index.add(destination, &key, arguments.is_empty());
        arguments.push(key.arguments);
        *count += 1;
        destination.sources().add(&self.name);
        true
    }

    /// Whether there is such a binding.
    pub(crate) fn is_bound(&self, destination: &Destination, key: &BindingKey) -> bool {
        let bindings = self.bindings.read();
        let bound = bindings.by_destination.get(&destination.id());
        let arguments = bound.and_then(|bound| bound.keys.get(&key.routing_key));
        arguments.is_some_and(|known| known.contains(&key.arguments))
    }

    /// Removes a binding, and calls `each` for it, with its arguments as they were bound.
    pub(crate) fn unbind(
        &self,
        destination: &Destination,
        key: &BindingKey,
        each: &mut dyn FnMut(&BindingKey),
    ) -> Removed {
        let mut bindings = self.bindings.write();
        let Bindings { by_destination, index, count, .. } = &mut *bindings;
        let nothing = Removed::default();
        let Some(bound) = by_destination.get_mut(&destination.id()) else { return nothing };
        let Some(arguments) = bound.keys.get_mut(&key.routing_key) else { return nothing };
        let Some(known) = arguments.remove(&key.arguments) else { return nothing };
        let last = arguments.is_empty();
        let routing_key = key.routing_key.clone();
        let removed = BindingKey { routing_key, arguments: known };
        index.remove(destination.id(), &removed, last);
        each(&removed);
        *count -= 1;
        if last {
            bound.keys.remove(&key.routing_key);
            shrink(&mut bound.keys);
        }
        if bound.keys.is_empty() {
            by_destination.remove(&destination.id());
            shrink(by_destination);
            destination.sources().remove(&self.name);
        }
        Removed { count: 1, none_left: by_destination.is_empty() }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("name", &self.name).finish_non_exhaustive()
    }
}

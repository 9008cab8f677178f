//! The bindings of an exchange, laid out so that its type finds the matching ones quickly.

use super::consistent_hash::{ConsistentHashIndex, Hashed, Weighted};
use super::direct::DirectIndex;
use super::fanout::FanoutIndex;
use super::headers::HeadersIndex;
use super::spread::{ModulusIndex, RandomIndex};
use super::topic::TopicIndex;
use super::{BindingKey, Destination, Envelope, ExchangeKind, Steps};
use courser_codec::FieldTable;

pub(super) enum Index {
    Direct(DirectIndex),
    Fanout(FanoutIndex),
    Topic(TopicIndex),
    Headers(HeadersIndex),
    ConsistentHash(ConsistentHashIndex),
    Random(RandomIndex),
    Modulus(ModulusIndex),
}

impl Index {
    /// The index of an exchange of this kind, declared with these arguments.
    pub fn new(kind: ExchangeKind, arguments: &FieldTable) -> Self {
        match kind {
            ExchangeKind::Direct => Index::Direct(Default::default()),
            ExchangeKind::Fanout | ExchangeKind::RecentHistory | ExchangeKind::Deduplicating => {
                Index::Fanout(Default::default())
            }
            ExchangeKind::Topic => Index::Topic(Default::default()),
            ExchangeKind::Headers => Index::Headers(Default::default()),
            ExchangeKind::ConsistentHash => {
                // What does not say what to hash was refused at the declaration.
                let hashed = Hashed::parse(arguments).unwrap_or_default();
                Index::ConsistentHash(ConsistentHashIndex::new(hashed))
            }
            ExchangeKind::Random | ExchangeKind::LocalRandom => Index::Random(Default::default()),
            ExchangeKind::ModulusHash => Index::Modulus(Default::default()),
            ExchangeKind::Delayed => {
                let kind = ExchangeKind::delayed(arguments).unwrap_or(ExchangeKind::Fanout);
                Index::new(kind, arguments)
            }
        }
    }

    /// Whether messages with the same routing key go the same way, until a binding changes.
    pub fn by_key_alone(&self) -> bool {
        match self {
            Index::Direct(_) | Index::Fanout(_) | Index::Topic(_) | Index::Modulus(_) => true,
            Index::Headers(_) | Index::Random(_) => false,
            Index::ConsistentHash(index) => index.by_key_alone(),
        }
    }

    /// Calls `found` for every destination that a message goes to, perhaps more than once, as far as there are `steps`.
    pub fn matches(
        &self,
        envelope: &Envelope<'_>,
        steps: &mut Steps,
        found: &mut dyn FnMut(&Destination),
    ) {
        match self {
            Index::Direct(index) => {
                let keys = envelope.keys.iter().take_while(|_| steps.step());
                keys.for_each(|key| index.matches(key, found));
            }
            Index::Topic(index) => index.matches(envelope.keys, steps, found),
            Index::Fanout(index) => index.matches(found),
            Index::Headers(index) => index.matches(envelope.headers(), steps, found),
            Index::ConsistentHash(index) => index.matches(envelope, steps, found),
            Index::Random(index) => index.matches(found),
            Index::Modulus(index) => index.matches(envelope.routing_key(), found),
        }
    }

    /// `first`: no binding with this destination and routing key existed.
    pub fn add(&mut self, destination: &Destination, key: &BindingKey, first: bool) {
        match self {
            Index::Headers(index) => index.add(destination, key),
            _ if !first => {}
            Index::Direct(index) => index.add(destination, &key.routing_key),
            Index::Fanout(index) => index.add(destination),
            Index::Topic(index) => index.add(destination, key.routing_key.as_bytes()),
            Index::ConsistentHash(index) => index.add(destination, &key.routing_key),
            Index::Random(index) => index.add(destination),
            Index::Modulus(index) => index.add(destination),
        }
    }

    /// `last`: no binding with this destination and routing key is left.
    pub fn remove(&mut self, destination: u64, key: &BindingKey, last: bool) {
        match self {
            Index::Headers(index) => index.remove(destination, key),
            _ if !last => {}
            Index::Direct(index) => index.remove(destination, &key.routing_key),
            Index::Fanout(index) => index.remove(destination),
            Index::Topic(index) => index.remove(destination, key.routing_key.as_bytes()),
            Index::ConsistentHash(index) => index.remove(destination, &key.routing_key),
            Index::Random(index) => index.remove(destination),
            Index::Modulus(index) => index.remove(destination),
        }
    }

    /// Removes a destination from where one is chosen out of all of them, whatever the routing keys by which it is bound:
    /// [`Index::remove`] finds nothing of it there then. Returns what is left of it, which takes long to drop if these
    /// are many.
    pub fn remove_destination(&mut self, destination: u64) -> Option<Weighted> {
        match self {
            Index::Direct(_) | Index::Fanout(_) | Index::Topic(_) | Index::Headers(_) => None,
            Index::ConsistentHash(index) => index.remove_destination(destination),
            Index::Random(index) => {
                index.remove_destination(destination);
                None
            }
            Index::Modulus(index) => {
                index.remove_destination(destination);
                None
            }
        }
    }
}

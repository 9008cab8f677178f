//! `x-consistent-hash` exchanges: a message goes to one destination, always to the same for the same
//! key; a binding's key is the weight of its destination.
//!
//! The destination is found by weighted rendezvous hashing: each has a lot drawn from its name and
//! the message's key, and the best one wins. A new destination therefore takes its share evenly from
//! all the others, one that goes leaves its share evenly to them, and nothing else moves. Since only
//! names count, a restart changes nothing.

use super::{Destination, Envelope, Steps, shrink, shrink_list};
use crate::{headers, work};
use courser_codec::{FieldTable, FieldValue, ShortString, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The argument of the exchange that names the header to hash.
pub(crate) const HASH_HEADER: &str = "hash-header";
/// The argument of the exchange that names the property to hash.
pub(crate) const HASH_PROPERTY: &str = "hash-property";

/// What of a message is hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hashed {
    #[default]
    RoutingKey,
    Header(Vec<u8>),
    MessageId,
    CorrelationId,
    Timestamp,
}

impl Hashed {
    /// What these arguments of `exchange.declare` ask for, or what is wrong with them.
    pub fn parse(arguments: &FieldTable) -> Result<Self, String> {
        match (arguments.get(HASH_HEADER), arguments.get(HASH_PROPERTY)) {
            (None, None) => Ok(Hashed::RoutingKey),
            (Some(_), Some(_)) => {
                Err(format!("{HASH_HEADER} and {HASH_PROPERTY} are mutually exclusive"))
            }
            (Some(FieldValue::LongStr(header)), None) => Ok(Hashed::Header(header.clone())),
            (Some(other), None) | (None, Some(other)) if other.as_long_str().is_none() => {
                let name =
                    if arguments.get(HASH_HEADER).is_some() { HASH_HEADER } else { HASH_PROPERTY };
                Err(format!("invalid type '{}' for arg '{name}'", other.type_name()))
            }
            (_, property) => match property.and_then(FieldValue::as_long_str).unwrap_or_default() {
                b"message_id" => Ok(Hashed::MessageId),
                b"correlation_id" => Ok(Hashed::CorrelationId),
                b"timestamp" => Ok(Hashed::Timestamp),
                other => Err(format!("Unsupported property: {}", String::from_utf8_lossy(other))),
            },
        }
    }

    /// The hash of a message. What it does not have counts as empty.
    fn hash(&self, envelope: &Envelope<'_>) -> u64 {
        let properties = envelope.properties;
        let text = match self {
            Hashed::RoutingKey => Some(envelope.routing_key()),
            Hashed::Header(name) => match header(envelope, name) {
                Some(Value::LongStr(text)) => Some(text),
                Some(other) => {
                    let mut encoded = Vec::new();
                    match other.as_integer() {
                        // Clients choose the width of a number, not their users.
                        Some(number) => encoded.extend_from_slice(&number.to_be_bytes()),
                        None => other.encode(&mut encoded),
                    }
                    return hash(&encoded);
                }
                None => None,
            },
            Hashed::MessageId => properties.message_id().ok().flatten().map(|id| id.as_bytes()),
            Hashed::CorrelationId => {
                properties.correlation_id().ok().flatten().map(|id| id.as_bytes())
            }
            Hashed::Timestamp => {
                let seconds = properties.timestamp().ok().flatten().unwrap_or_default();
                return hash(&seconds.to_be_bytes());
            }
        };
        hash(text.unwrap_or_default())
    }
}

/// The value of a header.
fn header<'m>(envelope: &Envelope<'m>, name: &[u8]) -> Option<Value<'m>> {
    headers::find(envelope.headers(), |other| other == name).ok().flatten()
}

/// The weight that a binding key stands for, or what is wrong with it.
pub(crate) fn weight(routing_key: &[u8]) -> Result<u64, String> {
    let text = std::str::from_utf8(routing_key).ok();
    let number = text.and_then(|text| text.parse::<i64>().ok()).ok_or_else(|| {
        let text = String::from_utf8_lossy(routing_key);
        match text.is_empty() {
            true => "The binding key must be an integer: <<>>".to_owned(),
            false => format!("The binding key must be an integer: <<\"{text}\">>"),
        }
    })?;
    match u64::try_from(number) {
        Ok(weight) if weight > 0 => Ok(weight),
        _ => Err("The binding key must be greater than 0".to_owned()),
    }
}

pub(super) struct ConsistentHashIndex {
    hashed: Hashed,
    weighted: Vec<Weighted>,
    /// Where each destination is.
    places: FxHashMap<u64, usize>,
}

/// A destination with its weights and the binding keys that say them. The greatest one counts: a restart
/// does not bring bindings back in the order in which they were made.
pub(super) struct Weighted {
    destination: Destination,
    weights: BTreeSet<(u64, ShortString)>,
    seed: u64,
    weight: f64,
}

impl ConsistentHashIndex {
    pub fn new(hashed: Hashed) -> Self {
        ConsistentHashIndex { hashed, weighted: Vec::new(), places: FxHashMap::default() }
    }

    pub fn by_key_alone(&self) -> bool {
        self.hashed == Hashed::RoutingKey
    }

    pub fn matches(
        &self,
        envelope: &Envelope<'_>,
        steps: &mut Steps,
        found: &mut dyn FnMut(&Destination),
    ) {
        let hash = steps.look(|| self.hashed.hash(envelope));
        work::count(self.weighted.len());
        let best = self.weighted.iter().max_by(|a, b| a.lot(hash).total_cmp(&b.lot(hash)));
        best.into_iter().for_each(|best| found(&best.destination));
    }

    pub fn add(&mut self, destination: &Destination, key: &ShortString) {
        let id = destination.id();
        let known = self.places.get(&id).and_then(|at| self.weighted.get_mut(*at));
        if let Some(known) = known {
            known.weights.insert(weighing(key));
            known.weigh();
            return;
        }
        let kind = if matches!(destination, Destination::Queue(_)) { 1 } else { 2 };
        let mut weighted = Weighted {
            destination: destination.clone(),
            weights: BTreeSet::from([weighing(key)]),
            seed: mix(hash(destination.name().as_bytes()) ^ kind),
            weight: 0.0,
        };
        weighted.weigh();
        self.places.insert(id, self.weighted.len());
        self.weighted.push(weighted);
    }

    pub fn remove(&mut self, destination: u64, key: &ShortString) {
        let Some(at) = self.places.get(&destination).copied() else { return };
        let known = &mut self.weighted[at];
        known.weights.remove(&weighing(key));
        known.weigh();
        if known.weights.is_empty() {
            self.remove_destination(destination);
        }
    }

    pub fn remove_destination(&mut self, destination: u64) -> Option<Weighted> {
        let at = self.places.remove(&destination)?;
        let removed = self.weighted.swap_remove(at);
        if let Some(moved) = self.weighted.get(at) {
            self.places.insert(moved.destination.id(), at);
        }
        shrink_list(&mut self.weighted);
        shrink(&mut self.places);
        Some(removed)
    }
}

impl Weighted {
    fn weigh(&mut self) {
        self.weight = self.weights.last().map_or(0.0, |(weight, _)| *weight as f64);
    }

    /// The lot of this destination for a message; the greatest one wins, in proportion to the
    /// weights.
    fn lot(&self, hash: u64) -> f64 {
        // 53 bits, which a float holds exactly; half a step up keeps it off 0.
        let uniform = ((mix(self.seed ^ hash) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        uniform.ln() / self.weight
    }
}

/// Keys that are no weights were refused when they were bound.
fn weighing(key: &ShortString) -> (u64, ShortString) {
    (weight(key.as_bytes()).unwrap_or(1), key.clone())
}

/// A hash that no version and no restart changes (FNV-1a, mixed up).
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// Spreads every bit of `number` over all bits (the last step of SplitMix64).
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

//! Headers exchanges: the binding's arguments against the message's headers (AMQP 0-9-1, 3.1.3.4).
//!
//! A binding lies where a header that it needs would be looked for: by name and value, so that a
//! message meets only those bindings that have something in common with it.

use super::{BindingKey, Destination, Steps, shrink, shrink_set};
use crate::arguments::{digest, same_table};
use crate::keyed::{self, KeyedMap};
use crate::work;
use courser_codec::{FieldTable, FieldValue, ShortString, Table};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

/// The argument of a binding that says how its other arguments are compared.
pub(crate) const X_MATCH: &str = "x-match";

#[derive(Default)]
pub(super) struct HeadersIndex {
    bindings: FxHashMap<u64, HeadersBinding>,
    next_number: u64,
    /// Which bindings may match a message with such a header.
    by_header: KeyedMap<Landmark, FxHashSet<u64>>,
    /// Where every message goes, and by how many bindings each.
    always: FxHashMap<u64, (Destination, usize)>,
    /// The numbers of those to a destination whose routing key and arguments have this digest.
    numbers: FxHashMap<(u64, u64), Vec<u64>>,
}

struct HeadersBinding {
    destination: Destination,
    key: BindingKey,
    any: bool,
    wanted: Vec<(ShortString, FieldValue)>,
    /// Which of `wanted` it is found by, if that is not each of them.
    found_by: Option<usize>,
}

/// A header that a binding is found by: its name, and its value if that can be compared byte by
/// byte.
type Landmark = (ShortString, Option<Exact>);

#[derive(PartialEq, Eq, Hash)]
enum Exact {
    Text(Vec<u8>),
    Integer(i64),
    Bool(bool),
}

impl Exact {
    /// Equal for values that [`same`] finds the same; none if only that can tell.
    fn of(value: &FieldValue) -> Option<Self> {
        match (value, value.as_integer()) {
            (_, Some(number)) => Some(Exact::Integer(number)),
            (FieldValue::LongStr(text), _) => Some(Exact::Text(text.clone())),
            (FieldValue::Bool(flag), _) => Some(Exact::Bool(*flag)),
            _ => None,
        }
    }
}

/// The headers of a message, of which bindings ask for some: the first of each name.
enum Headers<'t> {
    Few(&'t FieldTable),
    Many(KeyedMap<&'t [u8], &'t FieldValue>),
}

/// So many headers are looked through one by one.
const FEW: usize = 16;

impl<'t> Headers<'t> {
    fn of(table: &'t FieldTable) -> Self {
        if table.len() <= FEW {
            return Headers::Few(table);
        }
        let mut by_name = KeyedMap::default();
        for (name, value) in table.iter() {
            by_name.entry(name.as_bytes()).or_insert(value);
        }
        Headers::Many(by_name)
    }

    fn get(&self, name: &ShortString) -> Option<&'t FieldValue> {
        match self {
            Headers::Few(table) => table.get(name.as_bytes()),
            Headers::Many(by_name) => by_name.get(name.as_bytes()).copied(),
        }
    }
}

impl HeadersIndex {
    /// Calls `found` for every destination that a message with these headers goes to, perhaps more than once, as far as there
    /// are steps: one for each header and each value in it, and for each 64 bytes of a text, for each binding that asks for one and may
    /// match, and for each header that this asks for.
    pub fn matches(
        &self,
        headers: Table<'_>,
        steps: &mut Steps,
        found: &mut dyn FnMut(&Destination),
    ) {
        self.always.values().for_each(|(destination, _)| found(destination));
        if self.by_header.is_empty() {
            return;
        }
        // Headers that can't be decoded match nothing that asks for a header.
        let table = headers.to_owned().unwrap_or_default();
        steps.look(|| work::count_values(&table));
        let headers = Headers::of(&table);
        for (name, value) in table.iter() {
            if steps.is_over() {
                return;
            }
            let exact = Exact::of(value);
            let by_value = exact.and_then(|exact| self.by_header.get(&(name.clone(), Some(exact))));
            let by_name = self.by_header.get(&(name.clone(), None));
            let candidates = by_value.into_iter().chain(by_name).flatten();
            for binding in candidates.filter_map(|number| self.bindings.get(number)) {
                if !steps.step() {
                    return;
                }
                if binding.matches(&headers, steps) {
                    found(&binding.destination);
                }
            }
        }
    }

    pub fn add(&mut self, destination: &Destination, key: &BindingKey) {
        let mut binding = HeadersBinding::new(destination, key);
        let number = self.next_number;
        self.next_number += 1;
        if !binding.any {
            // Where the fewest others are.
            let crowd = |at: &usize| {
                self.by_header.get(&landmark(&binding.wanted[*at])).map(FxHashSet::len)
            };
            binding.found_by = (0..binding.wanted.len()).min_by_key(crowd);
        }
        if binding.matches_all() {
            let entry = self.always.entry(destination.id());
            entry.or_insert_with(|| (destination.clone(), 0)).1 += 1;
        }
        for landmark in binding.landmarks() {
            self.by_header.entry(landmark).or_default().insert(number);
        }
        self.numbers.entry(place(destination.id(), key)).or_default().push(number);
        self.bindings.insert(number, binding);
    }

    pub fn remove(&mut self, destination: u64, key: &BindingKey) {
        let is_it = |number: &u64| {
            work::count(1);
            self.bindings.get(number).is_some_and(|binding| {
                binding.key.routing_key == key.routing_key
                    && same_table(&binding.key.arguments, &key.arguments)
            })
        };
        let Entry::Occupied(mut alike) = self.numbers.entry(place(destination, key)) else {
            return;
        };
        let Some(at) = alike.get().iter().position(is_it) else { return };
        let number = alike.get_mut().swap_remove(at);
        if alike.get().is_empty() {
            alike.remove();
        }
        let Some(binding) = self.bindings.remove(&number) else { return };
        if binding.matches_all()
            && let Entry::Occupied(mut always) = self.always.entry(destination)
        {
            always.get_mut().1 -= 1;
            if always.get().1 == 0 {
                always.remove();
                shrink(&mut self.always);
            }
        }
        for landmark in binding.landmarks() {
            if let Some(numbers) = self.by_header.get_mut(&landmark) {
                numbers.remove(&number);
                match numbers.is_empty() {
                    true => drop(self.by_header.remove(&landmark)),
                    false => shrink_set(numbers),
                }
            }
        }
        shrink(&mut self.bindings);
        shrink(&mut self.by_header);
        shrink(&mut self.numbers);
    }
}

impl HeadersBinding {
    fn new(destination: &Destination, key: &BindingKey) -> Self {
        HeadersBinding {
            destination: destination.clone(),
            key: key.clone(),
            any: matches!(match_mode(&key.arguments), Some(b"any" | b"any-with-x")),
            wanted: wanted(&key.arguments),
            found_by: None,
        }
    }

    /// Whether every message is wanted.
    fn matches_all(&self) -> bool {
        self.wanted.is_empty() && !self.any
    }

    /// Whether a message with these headers is wanted; not if there are not enough steps to find out.
    fn matches(&self, headers: &Headers<'_>, steps: &mut Steps) -> bool {
        let agrees = |(name, wanted): &(ShortString, FieldValue)| {
            steps.step()
                && headers.get(name).is_some_and(|value| {
                    // A wanted header without a value asks only that it is there.
                    matches!(wanted, FieldValue::Void) || same(wanted, value)
                })
        };
        let matches =
            if self.any { self.wanted.iter().any(agrees) } else { self.wanted.iter().all(agrees) };
        matches && !steps.is_over()
    }

    /// The headers that it is found by: each of them if any is enough, otherwise one.
    fn landmarks(&self) -> Vec<Landmark> {
        match self.found_by {
            Some(at) => vec![landmark(&self.wanted[at])],
            None => self.wanted.iter().map(landmark).collect(),
        }
    }
}

/// What bindings to a destination are told apart by, but for few that have this in common.
fn place(destination: u64, key: &BindingKey) -> (u64, u64) {
    let mut hasher = keyed::hasher();
    (key.routing_key.as_bytes(), digest(&key.arguments)).hash(&mut hasher);
    (destination, hasher.finish())
}

fn landmark((name, value): &(ShortString, FieldValue)) -> Landmark {
    (name.clone(), Exact::of(value))
}

/// The headers that the arguments of a binding ask for.
fn wanted(arguments: &FieldTable) -> Vec<(ShortString, FieldValue)> {
    let with_x = matches!(match_mode(arguments), Some(b"all-with-x" | b"any-with-x"));
    let counts = |name: &ShortString| {
        name.as_bytes() != X_MATCH.as_bytes() && (with_x || !name.as_bytes().starts_with(b"x-"))
    };
    let wanted = arguments.iter().filter(|(name, _)| counts(name));
    wanted.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Numbers are compared by value, whatever their width: clients choose it, not their users.
fn same(wanted: &FieldValue, value: &FieldValue) -> bool {
    match (wanted.as_integer(), value.as_integer()) {
        (Some(wanted), Some(value)) => wanted == value,
        _ => match (wanted, value) {
            (FieldValue::F32(narrow), FieldValue::F64(wide))
            | (FieldValue::F64(wide), FieldValue::F32(narrow)) => f64::from(*narrow) == *wide,
            _ => wanted == value,
        },
    }
}

/// What `x-match` says, if it is text.
pub(crate) fn match_mode(arguments: &FieldTable) -> Option<&[u8]> {
    match arguments.get(X_MATCH.as_bytes()) {
        Some(FieldValue::LongStr(mode)) => Some(mode),
        _ => None,
    }
}

//! The items of a list in the order that is asked for, made as they are read.
//!
//! A list in its own order looks at the items that are read only. For any other order, or for some items
//! only, it looks at all of them once, and keeps where each is found, with what it is sorted by if its reader has to
//! know. An item is made when its turn comes, so that none waits for the reader.

use super::only::Only;
use super::order::{Key, Order};
use super::page::PageOf;
use super::{Source, object};
use crate::call::Call;
use crate::fetches::Fetch;
use crate::json::{Columns, Fields};
use std::vec::IntoIter;

/// Items of a list that are still to be read.
pub(super) struct Ordered<S: Source> {
    source: S,
    /// How many are wanted, whatever page they are on.
    pub filtered: usize,
    rest: Rest,
}

enum Rest {
    /// In the list's own order: from this rank on, so many more.
    Natural { next: usize, left: usize },
    /// By their ranks in that order.
    Ranks(IntoIter<usize>),
    /// The same, with what they are sorted by.
    Keyed(IntoIter<(Key, usize)>),
}

impl<S: Source> Ordered<S> {
    /// All that is wanted.
    pub fn new(
        call: &Call,
        source: S,
        render: &impl Fn(&S::Item, &mut Fields),
        page: Option<&PageOf>,
    ) -> Self {
        let order = Order::asked(call);
        let only = page.map(|_| Only::asked(call)).unwrap_or_default();
        let filter = page.and_then(|page| page.filter.clone());
        let named = filter.as_ref().map(|filter| |name: &str| filter.lets_through(name));
        let named = named.as_ref().map(|named| named as &dyn Fn(&str) -> bool);
        let most = page.map_or(usize::MAX, |of| of.page.end());
        let (filtered, rest) = if order.is_some() || !only.is_everything() {
            let quick = source.ranks_in(named, most, order.as_ref(), &only, &call.api);
            let (filtered, ranks) = quick.unwrap_or_else(|| {
                let mut ranks = ranks(&source, render, named, order.as_ref(), &only);
                let filtered = ranks.len();
                ranks.truncate(most);
                (filtered, ranks)
            });
            (filtered, Rest::sorted(ranks, call.wants_rows()))
        } else if let Some(named) = named {
            let (filtered, ranks) = source.ranks_named(named, most);
            (filtered, Rest::Ranks(ranks.into_iter()))
        } else {
            (source.len(), Rest::Natural { next: 0, left: source.len() })
        };
        Ordered { source, filtered, rest }
    }

    /// Has it begin behind `skip` of them, and end after `most`.
    pub fn narrow(&mut self, skip: usize, most: usize) {
        match &mut self.rest {
            Rest::Natural { next, left } => {
                *next += skip;
                *left = left.saturating_sub(skip).min(most);
            }
            Rest::Ranks(ranks) => *ranks = narrowed(ranks, skip, most),
            Rest::Keyed(ranks) => *ranks = narrowed(ranks, skip, most),
        }
    }

    /// How many are left.
    pub fn len(&self) -> usize {
        match &self.rest {
            Rest::Natural { left, .. } => *left,
            Rest::Ranks(ranks) => ranks.len(),
            Rest::Keyed(ranks) => ranks.len(),
        }
    }

    /// Bytes of memory that they take until they are read.
    pub fn bytes(&self) -> usize {
        let ranks = match &self.rest {
            Rest::Natural { .. } => 0,
            Rest::Ranks(ranks) => size_of_val(ranks.as_slice()),
            Rest::Keyed(ranks) => {
                let texts: usize = ranks.as_slice().iter().map(|(key, _)| key.text_bytes()).sum();
                size_of_val(ranks.as_slice()) + texts
            }
        };
        self.source.bytes() + ranks
    }

    /// The share of memory that they have.
    pub fn take_room(&mut self) -> Option<Fetch> {
        self.source.take_room()
    }

    /// Where an item stands among those of other brokers.
    pub fn place(&self, item: &S::Item) -> super::Place {
        self.source.place(item)
    }

    /// The next item, with what it is sorted by if that is known.
    pub fn next(&mut self) -> Option<(Key, S::Item)> {
        let source = &self.source;
        match &mut self.rest {
            Rest::Natural { next, left } => {
                *left = left.checked_sub(1)?;
                *next += 1;
                source.nth(*next - 1).map(|item| (Key::MISSING, item))
            }
            Rest::Ranks(ranks) => {
                ranks.find_map(|rank| source.nth(rank)).map(|item| (Key::MISSING, item))
            }
            Rest::Keyed(ranks) => ranks.find_map(|(key, rank)| Some((key, source.nth(rank)?))),
        }
    }
}

impl Rest {
    fn sorted(mut ranks: Vec<(Key, usize)>, is_keyed: bool) -> Self {
        if is_keyed {
            ranks.shrink_to_fit();
            return Rest::Keyed(ranks.into_iter());
        }
        // Not in place: the room of the keys would stay.
        let mut only = Vec::with_capacity(ranks.len());
        only.extend(ranks.into_iter().map(|(_, rank)| rank));
        Rest::Ranks(only.into_iter())
    }
}

fn narrowed<T>(ranks: &mut IntoIter<T>, skip: usize, most: usize) -> IntoIter<T> {
    ranks.skip(skip).take(most).collect::<Vec<_>>().into_iter()
}

/// The wanted items in order, by their ranks in the list's own. Those that are equal stay as they are.
fn ranks<S: Source>(
    source: &S,
    render: &impl Fn(&S::Item, &mut Fields),
    named: Option<&dyn Fn(&str) -> bool>,
    order: Option<&Order>,
    only: &Only,
) -> Vec<(Key, usize)> {
    let only_columns = only.columns();
    let key_columns = order.map(|order| Columns::parse(&order.column));
    let wanted = source
        .items()
        .enumerate()
        .filter(|(_, item)| named.is_none_or(|named| named(&S::name(item))))
        .filter(|(_, item)| only.is_everything() || only.lets_through(item, &only_columns, render));
    let keyed = wanted.map(|(rank, item)| match (order, &key_columns) {
        (Some(order), Some(columns)) => {
            (Key::of(&object(&item, columns, render), &order.column), rank)
        }
        _ => (Key::MISSING, rank),
    });
    let mut keyed: Vec<(Key, usize)> = keyed.collect();
    if let Some(order) = order {
        keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
        if order.is_reversed {
            keyed.reverse();
        }
    }
    keyed
}

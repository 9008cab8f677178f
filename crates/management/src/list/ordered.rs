//! The items of a list in the order that is asked for, made as they are read.
//!
//! A list in its own order looks at the items that are read only. For any other order, or for some items
//! only, it looks at all of them once, and keeps what each is sorted by and where it is found.

use super::only::Only;
use super::order::{Key, Order};
use super::page::{NameFilter, PageOf};
use super::{Source, object};
use crate::call::Call;
use crate::json::{Columns, Fields};
use courser_broker::admin::{PAGE_MAX, PageRequest, Start};
use std::collections::VecDeque;
use std::sync::Arc;

/// Items of a list that are still to be read.
pub(super) struct Ordered<S: Source> {
    source: S,
    /// How many are wanted, whatever page they are on.
    pub filtered: usize,
    rest: Rest,
    /// Those that have been looked up.
    found: VecDeque<(Key, S::Item)>,
}

enum Rest {
    /// In the list's own order: from this rank on, so many more at most.
    Natural { next: usize, left: usize, filter: Option<Arc<NameFilter>> },
    /// By their ranks in that order.
    Ranks(std::vec::IntoIter<(Key, usize)>),
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
        let (filtered, rest) = if order.is_none() && only.is_everything() {
            let (start, limit) = (Start::Rank(0), 0);
            let filtered = match named {
                None => source.len(),
                filter => source.page(&PageRequest { start, limit, filter }).filtered,
            };
            (filtered, Rest::Natural { next: 0, left: filtered, filter })
        } else {
            let most = page.map_or(usize::MAX, PageOf::end);
            let quick = source.ranks_in(named, most, order.as_ref(), &only, &call.api);
            let (filtered, ranks) = quick.unwrap_or_else(|| {
                let mut ranks = ranks(&source, render, named, order.as_ref(), &only);
                let filtered = ranks.len();
                ranks.truncate(most);
                ranks.shrink_to_fit();
                (filtered, ranks)
            });
            (filtered, Rest::Ranks(ranks.into_iter()))
        };
        Ordered { source, filtered, rest, found: VecDeque::new() }
    }

    /// Has it begin behind `skip` of them, and end after `most`.
    pub fn narrow(&mut self, skip: usize, most: usize) {
        match &mut self.rest {
            Rest::Natural { next, left, .. } => {
                *next += skip;
                *left = left.saturating_sub(skip).min(most);
            }
            Rest::Ranks(ranks) => {
                let some: Vec<_> = ranks.skip(skip).take(most).collect();
                *ranks = some.into_iter();
            }
        }
    }

    /// How many are left.
    pub fn len(&self) -> usize {
        let rest = match &self.rest {
            Rest::Natural { left, .. } => *left,
            Rest::Ranks(ranks) => ranks.len(),
        };
        self.found.len() + rest
    }

    /// Where an item stands among those of other brokers.
    pub fn place(&self, item: &S::Item) -> super::Place {
        self.source.place(item)
    }

    /// The next item, with what it is sorted by.
    pub fn next(&mut self) -> Option<(Key, S::Item)> {
        if self.found.is_empty() {
            self.find();
        }
        self.found.pop_front()
    }

    /// Looks up the next ones.
    fn find(&mut self) {
        let source = &self.source;
        match &mut self.rest {
            Rest::Natural { next, left, filter } => {
                let some = match filter {
                    _ if *left == 0 => Vec::new(),
                    None => source.some(*next),
                    // To filter is to go through all of it.
                    Some(filter) => {
                        let (start, limit) = (Start::Rank(*next), PAGE_MAX.min(*left));
                        let filter: &dyn Fn(&str) -> bool = &|name| filter.lets_through(name);
                        source.page(&PageRequest { start, limit, filter: Some(filter) }).items
                    }
                };
                let some = some.into_iter().take(*left).map(|item| (Key::MISSING, item));
                self.found.extend(some);
                *next += self.found.len();
                *left -= self.found.len();
            }
            Rest::Ranks(ranks) => {
                let found = ranks.by_ref().find_map(|(key, rank)| Some((key, source.nth(rank)?)));
                self.found.extend(found);
            }
        }
    }
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

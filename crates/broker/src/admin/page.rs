//! Lists that are paged through while what they list changes.

use crate::monitor::{Named, Snapshot};
use std::fmt;
use std::sync::Arc;

/// Items on a page at most.
pub const PAGE_MAX: usize = 500;

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Behind this many items. Cheap for any number, but what comes and goes between two pages
    /// moves the others.
    Rank(usize),
    /// Behind the item of this vhost and name, whether or not it is still there. A caller that goes on
    /// like this sees everything that was there all the time exactly once.
    After {
        /// The vhost of the item; empty for what belongs to none.
        vhost: String,
        /// The name of the item.
        name: Vec<u8>,
    },
}

/// Items by their ranks, each with what they are ordered by.
type Keyed<K> = Vec<(K, usize)>;

/// Which part of a list is wanted.
pub struct PageRequest<'a> {
    /// Where it begins. With a filter, ranks are those of the items that it lets through.
    pub start: Start,
    /// How many items, [`PAGE_MAX`] at most.
    pub limit: usize,
    /// Which names are wanted; all if there is none. Asked of every name in the list.
    pub filter: Option<&'a dyn Fn(&str) -> bool>,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<V> {
    /// The items, by vhost and name.
    pub items: Vec<V>,
    /// How many the list has.
    pub total: usize,
    /// How many of them the filter lets through.
    pub filtered: usize,
    /// Where the next page begins; none behind the last item.
    pub next: Option<Start>,
}

/// What is shown of an item. Made when it is asked for, from what the item is then.
pub trait View: Sized {
    /// What it is made from.
    type Item;
    /// What the items of a group have in common.
    type Group;

    /// The item as it is now.
    fn view(group: &Self::Group, item: &Arc<Self::Item>) -> Self;
}

/// What there was at one moment, by vhost and name. Making it holds a lock for as long as it takes to
/// count a reference for each few hundred items; using it holds none.
pub struct Listing<V: View> {
    groups: Vec<Group<V>>,
}

struct Group<V: View> {
    name: String,
    group: V::Group,
    items: Snapshot<V::Item>,
    /// How many items there are up to its end.
    end: usize,
}

impl<V: View<Item: Named>> Group<V> {
    /// How many items are in front of it.
    fn begin(&self) -> usize {
        self.end - self.items.len()
    }
}

impl PageRequest<'_> {
    /// Everything from the first item on, up to `limit`.
    pub fn first(limit: usize) -> Self {
        PageRequest { start: Start::Rank(0), limit, filter: None }
    }
}

#[allow(private_bounds, reason = "nothing outside this crate makes a listing")]
impl<V: View<Item: Named>> Listing<V> {
    pub(super) fn new(
        groups: impl IntoIterator<Item = (String, V::Group, Snapshot<V::Item>)>,
    ) -> Self {
        let groups = groups.into_iter();
        let groups = groups.map(|(name, group, items)| Group { name, group, items, end: 0 });
        Listing { groups: groups.collect() }.counted()
    }

    /// The same with the ends of its groups.
    fn counted(mut self) -> Self {
        let mut end = 0;
        for group in &mut self.groups {
            end += group.items.len();
            group.end = end;
        }
        self
    }

    /// What is left of it with the vhosts that are wanted.
    #[must_use]
    pub fn within(mut self, mut is_wanted: impl FnMut(&str) -> bool) -> Self {
        self.groups.retain(|group| is_wanted(&group.name));
        self.counted()
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.groups.last().map_or(0, |group| group.end)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All items, each made when its turn comes, so that a long list can be written as it is read.
    pub fn iter(&self) -> impl Iterator<Item = V> {
        self.starting_at(0).map(|(group, item)| V::view(&group.group, item))
    }

    /// A part of the list.
    pub fn page(&self, request: &PageRequest<'_>) -> Page<V> {
        match request.filter {
            None => self.page_of_all(request),
            Some(filter) => self.page_of_some(request, filter),
        }
    }

    fn page_of_all(&self, request: &PageRequest<'_>) -> Page<V> {
        let first = self.rank(&request.start);
        let taken: Vec<_> = self.starting_at(first).take(request.limit.min(PAGE_MAX)).collect();
        let is_last = first + taken.len() >= self.len();
        let next = taken.last().filter(|_| !is_last).map(|(group, item)| behind(group, item));
        let items = taken.iter().map(|(group, item)| V::view(&group.group, item)).collect();
        Page { items, total: self.len(), filtered: self.len(), next }
    }

    fn page_of_some(&self, request: &PageRequest<'_>, filter: &dyn Fn(&str) -> bool) -> Page<V> {
        let wanted = |item: &V::Item| filter(&String::from_utf8_lossy(item.name()));
        let (behind_rank, mut to_skip) = match &request.start {
            Start::Rank(rank) => (0, *rank),
            after @ Start::After { .. } => (self.rank(after), 0),
        };
        let limit = request.limit.min(PAGE_MAX);
        let (mut taken, mut filtered, mut more) = (Vec::new(), 0, false);
        for (rank, (group, item)) in self.starting_at(0).enumerate() {
            if !wanted(item) {
                continue;
            }
            filtered += 1;
            if rank < behind_rank {
                continue;
            }
            if to_skip > 0 {
                to_skip -= 1;
            } else if taken.len() < limit {
                taken.push((group, item));
            } else {
                more = true;
            }
        }
        let next = taken.last().filter(|_| more).map(|(group, item)| behind(group, item));
        let items = taken.iter().map(|(group, item)| V::view(&group.group, item)).collect();
        Page { items, total: self.len(), filtered, next }
    }

    /// A part of the list in another order than its own: that of a key, which is made of every item that
    /// the filter lets through, and should be cheap; items without one are left out. Items with the same
    /// key stay as they are. Begins at the rank in this order.
    pub(super) fn page_by_key<K: Ord>(
        &self,
        request: &PageRequest<'_>,
        is_reversed: bool,
        key: impl FnMut(&V::Group, &V::Item) -> Option<K>,
    ) -> Page<V> {
        let first = match request.start {
            Start::Rank(rank) => rank,
            Start::After { .. } => 0,
        };
        let end = first.saturating_add(request.limit.min(PAGE_MAX));
        let (filtered, keys) = self.ranks_by_key(request.filter, end, is_reversed, key);
        let items = keys.iter().skip(first).filter_map(|(_, rank)| self.nth(*rank)).collect();
        let next = (end < filtered).then_some(Start::Rank(end));
        Page { items, total: self.len(), filtered, next }
    }

    /// The first `most` items in such an order, as the key and the rank of each, and how many have a key at all.
    pub(super) fn ranks_by_key<K: Ord>(
        &self,
        filter: Option<&dyn Fn(&str) -> bool>,
        most: usize,
        is_reversed: bool,
        mut key: impl FnMut(&V::Group, &V::Item) -> Option<K>,
    ) -> (usize, Keyed<K>) {
        let mut keys: Keyed<K> = Vec::with_capacity(self.len());
        for (rank, (group, item)) in self.starting_at(0).enumerate() {
            let is_wanted =
                |filter: &dyn Fn(&str) -> bool| filter(&String::from_utf8_lossy(item.name()));
            if filter.is_none_or(is_wanted)
                && let Some(key) = key(&group.group, item)
            {
                keys.push((key, rank));
            }
        }
        let filtered = keys.len();
        let order = |one: &(K, usize), other: &(K, usize)| match is_reversed {
            true => other.cmp(one),
            false => one.cmp(other),
        };
        // What is behind them need not be sorted.
        if most < filtered {
            keys.select_nth_unstable_by(most, order);
            keys.truncate(most);
        }
        keys.sort_unstable_by(order);
        (filtered, keys)
    }

    /// The first `most` items whose names the filter lets through, as their ranks ([`Listing::nth`]), and how many it lets
    /// through. Makes none of them.
    pub fn ranks_named(&self, filter: &dyn Fn(&str) -> bool, most: usize) -> (usize, Vec<usize>) {
        let (filtered, ranks) = self.ranks_by_key(Some(filter), most, false, |_, _| Some(()));
        (filtered, ranks.into_iter().map(|(_, rank)| rank).collect())
    }

    /// The item behind so many others.
    pub fn nth(&self, rank: usize) -> Option<V> {
        self.starting_at(rank).next().map(|(group, item)| V::view(&group.group, item))
    }

    /// How many items are in front of what is wanted.
    fn rank(&self, start: &Start) -> usize {
        let (vhost, name) = match start {
            Start::Rank(rank) => return *rank,
            Start::After { vhost, name } => (vhost, name),
        };
        let at = self.groups.partition_point(|group| group.name < *vhost);
        let Some(group) = self.groups.get(at) else { return self.len() };
        let is_within = group.name == *vhost;
        group.begin() + if is_within { group.items.rank_after(name) } else { 0 }
    }

    fn starting_at(&self, rank: usize) -> impl Iterator<Item = (&Group<V>, &Arc<V::Item>)> {
        // Rows are looked up one by one: not from the first vhost on for each.
        let at = self.groups.partition_point(|group| group.end <= rank);
        self.groups[at..].iter().flat_map(move |group| {
            let first = rank.saturating_sub(group.begin());
            group.items.starting_at(first).map(move |item| (group, item))
        })
    }
}

#[allow(private_bounds, reason = "nothing outside this crate makes a listing")]
fn behind<V: View<Item: Named>>(group: &Group<V>, item: &Arc<V::Item>) -> Start {
    Start::After { vhost: group.name.clone(), name: item.name().to_vec() }
}

impl<V: View> fmt::Debug for Listing<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

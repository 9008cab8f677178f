//! Lists: pages, filters, order and columns, the same for everything that is listed.
//!
//! A whole list is written item by item. A page in the order of vhost and name looks at its own items
//! only; any other order needs all of them once.

mod only;
mod order;
mod page;
mod queues;
mod rows;
mod sweeps;

use crate::Api;
use crate::call::{Call, Outcome};
use crate::json::{Columns, Fields};
use crate::refusal::Refusal;
use crate::reply::{Reply, Rows};
use courser_broker::admin::{
    ConnectionView, ExchangeView, Listing, Page, PageRequest, QueueView, Start,
};
use only::Only;
use serde_json::Value;
use std::io;

pub(crate) use order::{Key, Order};
pub(crate) use page::{PageOf, page_text};
pub(crate) use queues::state_name;
pub(crate) use rows::{Head, Place, Row};
pub(crate) use sweeps::Sweeps;

/// Items that are looked at before somebody else has a turn.
const ROWS_AT_ONCE: usize = 100;

/// What can be listed.
pub(crate) trait Source: Send + 'static {
    /// An item.
    type Item;

    fn len(&self) -> usize;

    fn page(&self, request: &PageRequest<'_>) -> Page<Self::Item>;

    /// Some items behind `first` others, in their own order; none if there is none.
    fn some(&self, first: usize) -> Vec<Self::Item> {
        let start = Start::Rank(first);
        self.page(&PageRequest { start, limit: ROWS_AT_ONCE, filter: None }).items
    }

    /// All items in their own order.
    fn items(&self) -> Box<dyn Iterator<Item = Self::Item> + '_>;

    /// The item behind so many others.
    fn nth(&self, rank: usize) -> Option<Self::Item>;

    /// The name that a filter looks at.
    fn name(item: &Self::Item) -> String;

    /// Where an item stands among those of other brokers, in the order that one broker with all of them has.
    fn place(&self, item: &Self::Item) -> Place;

    /// The first `most` items in an order, or of some only, as the key and the rank of each, and how many there are; if that can be had
    /// without a look at all of every item.
    fn ranks_in(
        &self,
        _filter: Option<&dyn Fn(&str) -> bool>,
        _most: usize,
        _order: Option<&Order>,
        _only: &Only,
        _api: &Api,
    ) -> Option<(usize, Vec<(Key, usize)>)> {
        None
    }

    /// A page in another order than its own, or of some items only, if that can be had without a look at
    /// all of every item.
    fn page_in(
        &self,
        _request: &PageRequest<'_>,
        _order: Option<&Order>,
        _only: &Only,
        _api: &Api,
    ) -> Option<Page<Self::Item>> {
        None
    }
}

type PageIn<V> = fn(&Listing<V>, &PageRequest<'_>, Option<&Order>, &Only, &Api) -> Option<Page<V>>;

type RanksIn<V> = fn(
    &Listing<V>,
    Option<&dyn Fn(&str) -> bool>,
    usize,
    Option<&Order>,
    &Only,
    &Api,
) -> Option<(usize, Vec<(Key, usize)>)>;

macro_rules! source {
    ($($view:ty: $name:expr, $place:expr, $page_in:expr, $ranks_in:expr;)*) => {
        $(impl Source for Listing<$view> {
            type Item = $view;

            fn len(&self) -> usize {
                Listing::len(self)
            }

            fn page(&self, request: &PageRequest<'_>) -> Page<$view> {
                Listing::page(self, request)
            }

            fn items(&self) -> Box<dyn Iterator<Item = $view> + '_> {
                Box::new(self.iter())
            }

            fn nth(&self, rank: usize) -> Option<$view> {
                Listing::nth(self, rank)
            }

            fn name(item: &$view) -> String {
                let name: fn(&$view) -> String = $name;
                name(item)
            }

            fn place(&self, item: &$view) -> Place {
                let place: fn(&$view) -> &str = $place;
                Place::of(place(item))
            }

            fn ranks_in(
                &self,
                filter: Option<&dyn Fn(&str) -> bool>,
                most: usize,
                order: Option<&Order>,
                only: &Only,
                api: &Api,
            ) -> Option<(usize, Vec<(Key, usize)>)> {
                let ranks_in: RanksIn<$view> = $ranks_in;
                ranks_in(self, filter, most, order, only, api)
            }

            fn page_in(
                &self,
                request: &PageRequest<'_>,
                order: Option<&Order>,
                only: &Only,
                api: &Api,
            ) -> Option<Page<$view>> {
                let page_in: PageIn<$view> = $page_in;
                page_in(self, request, order, only, api)
            }
        })*
    };
}

source! {
    QueueView: |queue| crate::json::name(&queue.name), |queue| &queue.vhost, queues::page_in,
        queues::ranks_in;
    ExchangeView: |exchange| crate::json::name(&exchange.name), |exchange| &exchange.vhost,
        |_, _, _, _, _| None, |_, _, _, _, _, _| None;
    ConnectionView: |connection| connection.name.clone(), |connection| &connection.name,
        |_, _, _, _, _| None, |_, _, _, _, _, _| None;
}

/// Items that are all there.
pub(crate) struct Items<T> {
    items: Vec<T>,
    name: fn(&T) -> String,
    place: fn(&T) -> Place,
}

impl<T> Items<T> {
    pub fn new(items: Vec<T>, name: fn(&T) -> String) -> Self {
        Items { items, name, place: |_| Place::default() }
    }

    /// Items whose names nobody asks for.
    pub fn unnamed(items: Vec<T>) -> Self {
        Items { items, name: |_| String::new(), place: |_| Place::default() }
    }

    /// Says where each stands among those of other brokers, by which they are sorted already.
    pub fn placed(self, place: fn(&T) -> Place) -> Self {
        Items { place, ..self }
    }
}

impl<T: Clone + Send + 'static> Source for Items<T> {
    type Item = (String, T);

    fn len(&self) -> usize {
        self.items.len()
    }

    fn page(&self, request: &PageRequest<'_>) -> Page<Self::Item> {
        let skipped = match request.start {
            Start::Rank(rank) => rank,
            Start::After { .. } => 0,
        };
        let (mut items, mut filtered) = (Vec::new(), 0);
        for item in &self.items {
            let name = (self.name)(item);
            if request.filter.is_none_or(|filter| filter(&name)) {
                if filtered >= skipped && items.len() < request.limit {
                    items.push((name, item.clone()));
                }
                filtered += 1;
            }
        }
        Page { items, total: self.items.len(), filtered, next: None }
    }

    fn nth(&self, rank: usize) -> Option<Self::Item> {
        self.items.get(rank).map(|item| ((self.name)(item), item.clone()))
    }

    fn some(&self, first: usize) -> Vec<Self::Item> {
        let some = self.items.iter().skip(first).take(ROWS_AT_ONCE);
        some.map(|item| ((self.name)(item), item.clone())).collect()
    }

    fn items(&self) -> Box<dyn Iterator<Item = Self::Item> + '_> {
        Box::new(self.items.iter().map(|item| ((self.name)(item), item.clone())))
    }

    fn name(item: &Self::Item) -> String {
        item.0.clone()
    }

    fn place(&self, (_, item): &Self::Item) -> Place {
        (self.place)(item)
    }
}

/// Answers with a list that may be asked for page by page.
pub(crate) fn paged<S: Source>(
    call: &Call,
    source: S,
    render: impl Fn(&S::Item, &mut Fields) + Send + 'static,
) -> Outcome
where
    S::Item: Send,
{
    let page = PageOf::asked(call)?;
    if call.wants_rows() {
        return rows::of(call, source, render, page);
    }
    match page {
        None => whole(call, source, render),
        Some(page) => {
            let chosen = chosen(call, &page, &source, &render)?;
            let columns = call.columns();
            let items: Vec<String> = chosen
                .items
                .iter()
                .map(|item| object(item, &columns, &render).to_string())
                .collect();
            Ok(Reply::written(page_text(&page, &items, chosen.filtered, chosen.total)))
        }
    }
}

/// The items of a page.
fn chosen<S: Source>(
    call: &Call,
    page: &PageOf,
    source: &S,
    render: &impl Fn(&S::Item, &mut Fields),
) -> Result<Page<S::Item>, Refusal> {
    let (order, only) = (Order::asked(call), Only::asked(call)?);
    if order.is_none() && only.is_everything() {
        return page.of(source);
    }
    if let Some(quick) = page.in_order(source, order.as_ref(), &only, &call.api)? {
        return Ok(quick);
    }
    let (filter, columns) = (page.filter(), only.columns());
    let all = source.items();
    let named = all.filter(|item| filter.as_ref().is_none_or(|filter| filter(&S::name(item))));
    let wanted = named
        .filter(|item| only.is_everything() || only.lets_through(item, &columns, render))
        .collect();
    let sorted = match &order {
        Some(order) => sorted(wanted, order, render),
        None => wanted,
    };
    page.of_sorted(sorted, source.len())
}

/// Answers with all of a list.
pub(crate) fn whole<S: Source>(
    call: &Call,
    source: S,
    render: impl Fn(&S::Item, &mut Fields) + Send + 'static,
) -> Outcome
where
    S::Item: Send,
{
    if call.wants_rows() {
        return rows::of(call, source, render, None);
    }
    let columns = call.columns();
    match Order::asked(call) {
        None => {
            let mut next = 0;
            let more = move || {
                let some = source.some(next);
                next += some.len();
                some
            };
            Ok(Reply::rows(List { more, columns, render, is_begun: false }))
        }
        Some(order) => {
            let mut items = sorted(source.items().collect(), &order, &render).into_iter();
            let more = move || items.by_ref().take(ROWS_AT_ONCE).collect();
            Ok(Reply::rows(List { more, columns, render, is_begun: false }))
        }
    }
}

/// A list that is written as it is read.
struct List<M, R> {
    /// Gives the next items; none at the end.
    more: M,
    columns: Columns,
    render: R,
    is_begun: bool,
}

impl<T, M, R> Rows for List<M, R>
where
    M: FnMut() -> Vec<T> + Send,
    R: Fn(&T, &mut Fields) + Send,
{
    fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let items = (self.more)();
        for item in &items {
            out.push(if self.is_begun { b',' } else { b'[' });
            self.is_begun = true;
            serde_json::to_writer(&mut *out, &object(item, &self.columns, &self.render))?;
        }
        if !items.is_empty() {
            return Ok(true);
        }
        out.extend_from_slice(if self.is_begun { b"]" } else { b"[]" });
        Ok(false)
    }
}

/// Items in another order than their own; those that are equal in it stay as they are.
fn sorted<T>(items: Vec<T>, order: &Order, render: &impl Fn(&T, &mut Fields)) -> Vec<T> {
    with_keys(items, order, render).into_iter().map(|(_, item)| item).collect()
}

/// The same, each with what it is sorted by.
fn with_keys<T>(items: Vec<T>, order: &Order, render: &impl Fn(&T, &mut Fields)) -> Vec<(Key, T)> {
    let columns = Columns::parse(&order.column);
    let with_keys = items
        .into_iter()
        .map(|item| (Key::of(&object(&item, &columns, render), &order.column), item));
    let mut with_keys: Vec<(Key, T)> = with_keys.collect();
    with_keys.sort_by(|(one, _), (other, _)| one.cmp(other));
    if order.is_reversed {
        with_keys.reverse();
    }
    with_keys
}

fn object<T>(item: &T, columns: &Columns, render: &impl Fn(&T, &mut Fields)) -> Value {
    let mut fields = Fields::new(columns);
    render(item, &mut fields);
    fields.finish()
}

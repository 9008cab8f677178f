//! Lists: pages, filters, order and columns, the same for everything that is listed.
//!
//! A whole list is written item by item. A page in the order of vhost and name looks at its own items
//! only; any other order needs all of them once.

mod only;
mod order;
mod page;
mod queues;
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
use order::{Key, Order};
use page::PageOf;
use serde_json::{Value, json};
use std::io;

pub(crate) use queues::state_name;
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

    /// The name that a filter looks at.
    fn name(item: &Self::Item) -> String;

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

macro_rules! source {
    ($($view:ty: $name:expr, $page_in:expr;)*) => {
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

            fn name(item: &$view) -> String {
                let name: fn(&$view) -> String = $name;
                name(item)
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
    QueueView: |queue| crate::json::name(&queue.name), queues::page_in;
    ExchangeView: |exchange| crate::json::name(&exchange.name), |_, _, _, _, _| None;
    ConnectionView: |connection| connection.name.clone(), |_, _, _, _, _| None;
}

/// Items that are all there.
pub(crate) struct Items<T> {
    items: Vec<T>,
    name: fn(&T) -> String,
}

impl<T> Items<T> {
    pub fn new(items: Vec<T>, name: fn(&T) -> String) -> Self {
        Items { items, name }
    }

    /// Items whose names nobody asks for.
    pub fn unnamed(items: Vec<T>) -> Self {
        Items { items, name: |_| String::new() }
    }
}

impl<T: Clone + Send + 'static> Source for Items<T> {
    type Item = (String, T);

    fn len(&self) -> usize {
        self.items.len()
    }

    fn page(&self, request: &PageRequest<'_>) -> Page<Self::Item> {
        let named = self.items.iter().map(|item| ((self.name)(item), item.clone()));
        let wanted = named.filter(|(name, _)| request.filter.is_none_or(|filter| filter(name)));
        let wanted: Vec<Self::Item> = wanted.collect();
        let filtered = wanted.len();
        let skipped = match request.start {
            Start::Rank(rank) => rank,
            Start::After { .. } => 0,
        };
        let items = wanted.into_iter().skip(skipped).take(request.limit).collect();
        Page { items, total: self.items.len(), filtered, next: None }
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
    match PageOf::asked(call)? {
        None => whole(call, source, render),
        Some(page) => {
            let chosen = chosen(call, &page, &source, &render)?;
            let columns = call.columns();
            let items: Vec<Value> =
                chosen.items.iter().map(|item| object(item, &columns, &render)).collect();
            Ok(Reply::json(&json!({
                "filtered_count": chosen.filtered,
                "item_count": items.len(),
                "items": items,
                "page": page.number,
                "page_count": chosen.filtered.div_ceil(page.size),
                "page_size": page.size,
                "total_count": chosen.total,
            })))
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
    let columns = Columns::parse(&order.column);
    let with_keys = items
        .into_iter()
        .map(|item| (Key::of(&object(&item, &columns, render), &order.column), item));
    let mut with_keys: Vec<(Key, T)> = with_keys.collect();
    with_keys.sort_by(|(one, _), (other, _)| one.cmp(other));
    if order.is_reversed {
        with_keys.reverse();
    }
    with_keys.into_iter().map(|(_, item)| item).collect()
}

fn object<T>(item: &T, columns: &Columns, render: &impl Fn(&T, &mut Fields)) -> Value {
    let mut fields = Fields::new(columns);
    render(item, &mut fields);
    fields.finish()
}

//! Lists: pages, filters, order and columns, the same for everything that is listed.
//!
//! Every list is one stream of items in the order that is asked for ([`ordered`]), of which a page is a
//! part, with two writers: an array in JSON for clients, and lines for the node that merges lists ([`rows`]).
//! Both write item by item, while their reader takes it.

mod gathering;
mod only;
mod order;
mod ordered;
mod owned;
mod page;
mod queues;
mod rows;
mod sweeps;

use crate::Api;
use crate::call::{Call, Outcome};
use crate::fetches::Fetch;
use crate::json::{Columns, Fields};
use crate::rates::Range;
use crate::refusal::Refusal;
use crate::reply::{Reply, Rows};
use courser_broker::admin::{ConnectionView, ExchangeView, Listing, QueueView};
use only::Only;
use ordered::Ordered;
use rows::Lines;
use serde_json::Value;
use std::io;

pub(crate) use gathering::Gathering;
pub(crate) use order::{Key, Order};
pub(crate) use owned::Owned;
use page::PageOf;
pub(crate) use page::{Frame, Page};
pub(crate) use queues::state_name;
pub(crate) use rows::{Head, Place, Row};
pub(crate) use sweeps::Sweeps;

/// Bytes and rows that are written before others have their turn.
const SOME_BYTES: usize = 16 << 10;
const SOME_ROWS: usize = 25;

/// What can be listed.
pub(crate) trait Source: Send + 'static {
    /// An item.
    type Item;

    fn len(&self) -> usize;

    /// Bytes of memory that it has for itself.
    fn bytes(&self) -> usize {
        0
    }

    /// The share of memory that its items have, if they were gathered with one.
    fn take_room(&mut self) -> Option<Fetch> {
        None
    }

    /// The first `most` items whose names the filter lets through, as their ranks, and how many it lets through.
    fn ranks_named(&self, filter: &dyn Fn(&str) -> bool, most: usize) -> (usize, Vec<usize>);

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
}

type RanksIn<V> = fn(
    &Listing<V>,
    Option<&dyn Fn(&str) -> bool>,
    usize,
    Option<&Order>,
    &Only,
    &Api,
) -> Option<(usize, Vec<(Key, usize)>)>;

macro_rules! source {
    ($($view:ty: $name:expr, $place:expr, $ranks_in:expr;)*) => {
        $(impl Source for Listing<$view> {
            type Item = $view;

            fn len(&self) -> usize {
                Listing::len(self)
            }

            fn ranks_named(
                &self,
                filter: &dyn Fn(&str) -> bool,
                most: usize,
            ) -> (usize, Vec<usize>) {
                Listing::ranks_named(self, filter, most)
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
        })*
    };
}

source! {
    QueueView: |queue| crate::json::name(&queue.name), |queue| &queue.vhost, queues::ranks_in;
    ExchangeView: |exchange| crate::json::name(&exchange.name), |exchange| &exchange.vhost,
        |_, _, _, _, _, _| None;
    ConnectionView: |connection| connection.name.clone(), |connection| &connection.name,
        |_, _, _, _, _, _| None;
}

/// Items that are all there.
pub(crate) struct Items<T> {
    items: Vec<T>,
    name: fn(&T) -> String,
    place: fn(&T) -> Place,
    /// Their share of memory, if they were gathered with one.
    room: Option<Fetch>,
}

impl<T> Items<T> {
    pub fn new(items: Vec<T>, name: fn(&T) -> String) -> Self {
        Items { items, name, place: |_| Place::default(), room: None }
    }

    /// Items that have their share of memory as they come.
    ///
    /// # Errors
    /// When there is no room for all of them.
    pub fn gathered(
        call: &Call,
        items: impl Iterator<Item = T>,
        name: fn(&T) -> String,
    ) -> Result<Self, Refusal>
    where
        T: Owned,
    {
        let mut gathering = Gathering::new(call)?;
        let items = items.take_while(|item| gathering.admits(item)).collect();
        Ok(Items::new(items, name).in_room(gathering.finish()?))
    }

    /// Items without names.
    pub fn unnamed(items: Vec<T>) -> Self {
        Items::new(items, |_| String::new())
    }

    /// Says which share of memory they have.
    pub fn in_room(self, room: Fetch) -> Self {
        Items { room: Some(room), ..self }
    }

    /// Says where each stands among those of other brokers, by which they are sorted already.
    pub fn placed(self, place: fn(&T) -> Place) -> Self {
        Items { place, ..self }
    }
}

impl<T: Clone + Owned + Send + 'static> Source for Items<T> {
    type Item = (String, T);

    fn len(&self) -> usize {
        self.items.len()
    }

    fn bytes(&self) -> usize {
        let owned: usize = self.items.iter().map(Owned::owned_bytes).sum();
        self.items.capacity() * size_of::<T>() + owned
    }

    fn take_room(&mut self) -> Option<Fetch> {
        self.room.take()
    }

    fn ranks_named(&self, filter: &dyn Fn(&str) -> bool, most: usize) -> (usize, Vec<usize>) {
        let named = self.items.iter().enumerate().filter(|(_, item)| filter(&(self.name)(item)));
        let mut ranks: Vec<usize> = named.map(|(rank, _)| rank).collect();
        let filtered = ranks.len();
        ranks.truncate(most);
        (filtered, ranks)
    }

    fn nth(&self, rank: usize) -> Option<Self::Item> {
        self.items.get(rank).map(|item| ((self.name)(item), item.clone()))
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
    listed(call, source, render, page)
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
    listed(call, source, render, None)
}

fn listed<S: Source>(
    call: &Call,
    source: S,
    render: impl Fn(&S::Item, &mut Fields) + Send + 'static,
    page: Option<PageOf>,
) -> Outcome
where
    S::Item: Send,
{
    let total = source.len();
    Range::check_rows(call, page.as_ref().map_or(total, |of| of.page.size.min(total)))?;
    let mut items = Ordered::new(call, source, &render, page.as_ref());
    page.as_ref().map_or(Ok(()), PageOf::check_search)?;
    let filtered = items.filtered;
    if call.wants_rows() {
        if let Some(PageOf { page, .. }) = &page {
            items.narrow(0, page.end());
        }
        let head = Head { is_page: page.is_some(), total, filtered };
        return Ok(Reply::rows(Lines::new(head, items, call.columns(), render)));
    }
    let frame = match page {
        None => Frame::of_list(),
        Some(PageOf { page, .. }) => {
            page.check_range(filtered)?;
            items.narrow(page.first(), page.size);
            Frame::of_page(&page, items.len(), filtered, total)
        }
    };
    let (columns, is_first) = (call.columns(), true);
    Ok(Reply::rows(Array { frame: Some(frame), is_first, items, columns, render }))
}

/// A list in JSON that is written as it is read.
struct Array<S: Source, R> {
    /// What stands around it; none once it is closed.
    frame: Option<Frame>,
    is_first: bool,
    items: Ordered<S>,
    columns: Columns,
    render: R,
}

impl<S, R> Rows for Array<S, R>
where
    S: Source,
    S::Item: Send,
    R: Fn(&S::Item, &mut Fields) + Send,
{
    fn bytes(&self) -> usize {
        self.items.bytes()
    }

    fn take_room(&mut self) -> Option<Fetch> {
        self.items.take_room()
    }

    fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Some(frame) = &mut self.frame else { return Ok(false) };
        out.append(&mut frame.before);
        for _ in 0..SOME_ROWS {
            if out.len() >= SOME_BYTES {
                break;
            }
            let Some((_, item)) = self.items.next() else {
                out.append(&mut frame.behind);
                self.frame = None;
                return Ok(false);
            };
            if !std::mem::replace(&mut self.is_first, false) {
                out.push(b',');
            }
            serde_json::to_writer(&mut *out, &object(&item, &self.columns, &self.render))?;
        }
        Ok(true)
    }
}

fn object<T>(item: &T, columns: &Columns, render: &impl Fn(&T, &mut Fields)) -> Value {
    let mut fields = Fields::new(columns);
    render(item, &mut fields);
    fields.finish()
}

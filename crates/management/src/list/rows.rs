//! Rows of a list for the node that merges it with those of other brokers: each in a line, with what it is sorted by.
//!
//! The first line says how much there is. As many rows follow as the page that is asked for could need, if these were all: the
//! first `page` times `page_size`, in the order that is asked for. They are made as they are read.

use super::only::Only;
use super::order::{Key, Order};
use super::page::PageOf;
use super::{ROWS_AT_ONCE, Source, object, with_keys};
use crate::call::{Call, Outcome};
use crate::json::{Columns, Fields};
use crate::refusal::Refusal;
use crate::reply::{Reply, Rows};
use courser_broker::admin::{PAGE_MAX, PageRequest, Start};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, Write as _};

/// Where an item stands among those of other brokers: by a number first, and by a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub i64, pub String);

impl Place {
    pub fn of(name: &str) -> Self {
        Place(0, name.to_owned())
    }
}

/// The first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Rows behind it are for a page.
    pub is_page: bool,
    pub total: usize,
    /// How many of them are wanted.
    pub filtered: usize,
}

/// A row, as its line has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub key: Key,
    pub place: Place,
    /// A JSON text.
    pub object: String,
}

impl Row {
    /// Reads a line. `None` if it is none.
    pub fn read(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, '\t');
        let (key, rank, name) = (parts.next()?, parts.next()?, parts.next()?);
        let place = Place(rank.parse().ok()?, serde_json::from_str(name).ok()?);
        Some(Row { key: read_key(key)?, place, object: parts.next()?.to_owned() })
    }
}

/// Adds a line. A JSON text has neither tabs nor line breaks in it.
fn write_row(
    out: &mut Vec<u8>,
    key: &Key,
    Place(rank, name): &Place,
    object: &serde_json::Value,
) -> io::Result<()> {
    write_key(out, key)?;
    write!(out, "\t{rank}\t")?;
    serde_json::to_writer(&mut *out, name)?;
    out.push(b'\t');
    serde_json::to_writer(&mut *out, object)?;
    out.push(b'\n');
    Ok(())
}

/// A number goes as its bits: it has to be what it was.
fn write_key(out: &mut Vec<u8>, key: &Key) -> io::Result<()> {
    match key {
        Key::Number(number) => write!(out, "n{:x}", number.to_bits()),
        Key::Flag(flag) => write!(out, "f{}", u8::from(*flag)),
        Key::List(len) => write!(out, "l{len}"),
        Key::Text(text) => {
            out.push(b't');
            Ok(serde_json::to_writer(out, text)?)
        }
    }
}

fn read_key(text: &str) -> Option<Key> {
    let (kind, rest) = text.split_at_checked(1)?;
    Some(match kind {
        "n" => Key::Number(f64::from_bits(u64::from_str_radix(rest, 16).ok()?)),
        "f" => Key::Flag(rest == "1"),
        "l" => Key::List(rest.parse().ok()?),
        "t" => Key::Text(serde_json::from_str(rest).ok()?),
        _ => return None,
    })
}

/// Answers with the rows of a list.
pub(super) fn of<S: Source>(
    call: &Call,
    source: S,
    render: impl Fn(&S::Item, &mut Fields) + Send + 'static,
    page: Option<PageOf>,
) -> Outcome
where
    S::Item: Send,
{
    let total = source.len();
    let is_page = page.is_some();
    let (filtered, items) = match ordered(call, &source, &render, page.as_ref())? {
        Some((filtered, ordered)) => (filtered, ordered),
        None => natural(&source, page),
    };
    let head = Head { is_page, total, filtered };
    Ok(Reply::rows(Lines { head: Some(head), source, items, columns: call.columns(), render }))
}

/// The rows that are to come.
enum Coming<T> {
    /// In the list's own order: from this rank on, so many more at most.
    Natural { next: usize, left: usize, page: Option<PageOf> },
    /// By their ranks in that order.
    Ranks(VecDeque<(Key, usize)>),
    /// As they are.
    Items(VecDeque<(Key, T)>),
}

/// How many there are in all, and they.
type Counted<T> = (usize, Coming<T>);

fn natural<S: Source>(source: &S, page: Option<PageOf>) -> Counted<S::Item> {
    let filtered = {
        let filter = page.as_ref().and_then(PageOf::filter);
        match &filter {
            None => source.len(),
            Some(filter) => {
                let (start, filter) = (Start::Rank(0), Some(filter as &dyn Fn(&str) -> bool));
                source.page(&PageRequest { start, limit: 0, filter }).filtered
            }
        }
    };
    let left = page.as_ref().map_or(usize::MAX, PageOf::end);
    (filtered, Coming::Natural { next: 0, left, page })
}

/// The rows in another order than the list's own, or some of them only; `None` if neither is asked for.
fn ordered<S: Source>(
    call: &Call,
    source: &S,
    render: &impl Fn(&S::Item, &mut Fields),
    page: Option<&PageOf>,
) -> Result<Option<Counted<S::Item>>, Refusal> {
    let order = Order::asked(call);
    let only = page.map_or_else(|| Ok(Only::default()), |_| Only::asked(call))?;
    if order.is_none() && only.is_everything() {
        return Ok(None);
    }
    let most = page.map_or(usize::MAX, PageOf::end);
    let filter = page.and_then(PageOf::filter);
    let named = filter.as_ref().map(|filter| filter as &dyn Fn(&str) -> bool);
    if page.is_some()
        && let Some((filtered, ranks)) =
            source.ranks_in(named, most, order.as_ref(), &only, &call.api)
    {
        return Ok(Some((filtered, Coming::Ranks(ranks.into()))));
    }
    let columns = only.columns();
    let wanted = source
        .items()
        .filter(|item| named.is_none_or(|filter| filter(&S::name(item))))
        .filter(|item| only.is_everything() || only.lets_through(item, &columns, render))
        .collect();
    let mut items = match &order {
        Some(order) => with_keys(wanted, order, render),
        None => wanted.into_iter().map(|item| (Key::MISSING, item)).collect(),
    };
    let filtered = items.len();
    items.truncate(most);
    Ok(Some((filtered, Coming::Items(items.into()))))
}

/// Writes them.
struct Lines<S: Source, R> {
    /// Until it is written.
    head: Option<Head>,
    source: S,
    items: Coming<S::Item>,
    columns: Columns,
    render: R,
}

impl<S, R> Lines<S, R>
where
    S: Source,
{
    /// The next rows; none at the end.
    fn more(&mut self) -> Vec<(Key, S::Item)> {
        let source = &self.source;
        match &mut self.items {
            Coming::Natural { next, left, page } => {
                let filter = page.as_ref().and_then(PageOf::filter);
                let filter = filter.as_ref().map(|filter| filter as &dyn Fn(&str) -> bool);
                // To filter is to go through all of it.
                let most = if filter.is_some() { PAGE_MAX } else { ROWS_AT_ONCE };
                let (start, limit) = (Start::Rank(*next), most.min(*left));
                let some = match filter {
                    _ if limit == 0 => Vec::new(),
                    None => source.some(*next).into_iter().take(limit).collect(),
                    filter => source.page(&PageRequest { start, limit, filter }).items,
                };
                *next += some.len();
                *left -= some.len();
                some.into_iter().map(|item| (Key::MISSING, item)).collect()
            }
            Coming::Ranks(ranks) => {
                let some = ranks.drain(..ranks.len().min(ROWS_AT_ONCE));
                some.filter_map(|(key, rank)| Some((key, source.nth(rank)?))).collect()
            }
            Coming::Items(items) => items.drain(..items.len().min(ROWS_AT_ONCE)).collect(),
        }
    }
}

impl<S, R> Rows for Lines<S, R>
where
    S: Source,
    S::Item: Send,
    R: Fn(&S::Item, &mut Fields) + Send,
{
    fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(head) = self.head.take() {
            serde_json::to_writer(&mut *out, &head)?;
            out.push(b'\n');
            return Ok(true);
        }
        let some = self.more();
        for (key, item) in &some {
            let place = self.source.place(item);
            write_row(out, key, &place, &object(item, &self.columns, &self.render))?;
        }
        Ok(!some.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let object = json!({ "name": "a\tb\nc", "messages": 1.5 });
        let keys = [
            Key::Number(0.1 + 0.2),
            Key::Number(-0.0),
            Key::Flag(true),
            Key::List(7),
            Key::Text("t\t\"\n\u{e9}".into()),
        ];
        for key in keys {
            let place = Place(-3, "v\th\n\"".into());
            let mut line = Vec::new();
            write_row(&mut line, &key, &place, &object).expect("a line");
            let line = String::from_utf8(line).expect("text");
            let row = Row::read(line.strip_suffix('\n').expect("a line")).expect("a row");
            assert_eq!(row, Row { key, place, object: object.to_string() });
        }
    }

    #[test]
    fn what_is_no_row_is_not_read() {
        for line in ["", "n0", "x0\t0\t\"\"\t{}", "n0\t0\tv\t{}", "n0\t0\t\"v\""] {
            assert_eq!(Row::read(line), None, "{line}");
        }
    }
}

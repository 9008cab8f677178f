//! Pages (`page`, `page_size`) of what a filter lets through (`name`, `use_regex`).

use super::Source;
use super::only::Only;
use super::order::Order;
use crate::Api;
use crate::call::Call;
use crate::refusal::Refusal;
use courser_auth::Pattern;
use courser_broker::admin::{PAGE_MAX, Page, PageRequest, Start};
use hyper::StatusCode;

/// Items on a page where nothing is said.
const PAGE_DEFAULT: usize = 100;
/// Characters of a regular expression.
const PATTERN_CHARS_MAX: usize = 1024;

/// A page that is asked for.
pub(crate) struct PageOf {
    /// From 1 on.
    pub number: usize,
    pub size: usize,
    filter: Option<NameFilter>,
}

enum NameFilter {
    /// In lower case.
    Part(String),
    /// `None` if it is no expression: nothing matches that.
    Pattern(Option<Pattern>),
}

impl NameFilter {
    fn asked(call: &Call) -> Option<Self> {
        let name = call.query("name").filter(|name| !name.is_empty())?;
        if !call.is_set("use_regex") {
            return Some(NameFilter::Part(name.to_lowercase()));
        }
        if name.chars().count() > PATTERN_CHARS_MAX {
            return Some(NameFilter::Pattern(None));
        }
        Some(NameFilter::Pattern(Pattern::new(&format!("(?i){name}")).ok()))
    }

    fn lets_through(&self, name: &str) -> bool {
        match self {
            NameFilter::Part(part) => name.to_lowercase().contains(part),
            NameFilter::Pattern(pattern) => {
                pattern.as_ref().is_some_and(|pattern| pattern.matches(name.as_bytes()))
            }
        }
    }
}

impl PageOf {
    /// The page that is asked for, if any.
    pub fn asked(call: &Call) -> Result<Option<Self>, Refusal> {
        let Some(number) = call.query("page") else { return Ok(None) };
        let read = |text: &str| {
            let wrong = || Refusal::bad_request("Pagination parameters are invalid");
            text.parse::<i64>().map_err(|_| wrong())
        };
        let number = read(number)?;
        let size = call.query("page_size").map_or(Ok(PAGE_DEFAULT as i64), read)?;
        if number < 1 || !(1..=PAGE_MAX as i64).contains(&size) {
            let reason =
                format!("Invalid pagination parameters: page number {number}, page size {size}");
            let error = "invalid_pagination_parameters";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, error, reason));
        }
        let (number, size) = (number as usize, size as usize);
        Ok(Some(PageOf { number, size, filter: NameFilter::asked(call) }))
    }

    /// Which names are wanted; all if there is none.
    pub fn filter(&self) -> Option<impl Fn(&str) -> bool + '_> {
        self.filter.as_ref().map(|filter| |name: &str| filter.lets_through(name))
    }

    /// How many items are in front of it.
    pub fn first(&self) -> usize {
        (self.number - 1).saturating_mul(self.size)
    }

    /// How many there are up to its end.
    pub fn end(&self) -> usize {
        self.number.saturating_mul(self.size)
    }

    /// The page of a list in its own order.
    pub(super) fn of<S: Source>(&self, source: &S) -> Result<Page<S::Item>, Refusal> {
        let filter = self.filter();
        let filter = filter.as_ref().map(|filter| filter as &dyn Fn(&str) -> bool);
        let start = Start::Rank(self.first());
        let page = source.page(&PageRequest { start, limit: self.size, filter });
        self.check_range(page.filtered)?;
        Ok(page)
    }

    /// The page of a list in another order or of some items only, if that can be had quickly.
    pub(super) fn in_order<S: Source>(
        &self,
        source: &S,
        order: Option<&Order>,
        only: &Only,
        api: &Api,
    ) -> Result<Option<Page<S::Item>>, Refusal> {
        let filter = self.filter();
        let filter = filter.as_ref().map(|filter| filter as &dyn Fn(&str) -> bool);
        let request = PageRequest { start: Start::Rank(self.first()), limit: self.size, filter };
        let page = source.page_in(&request, order, only, api);
        page.map(|page| self.check_range(page.filtered).map(|()| page)).transpose()
    }

    /// The page of a list that has been filtered and sorted.
    pub fn of_sorted<T>(&self, items: Vec<T>, total: usize) -> Result<Page<T>, Refusal> {
        let filtered = items.len();
        self.check_range(filtered)?;
        let items = items.into_iter().skip(self.first()).take(self.size).collect();
        Ok(Page { items, total, filtered, next: None })
    }

    /// Refuses a page behind the last one.
    pub fn check_range(&self, filtered: usize) -> Result<(), Refusal> {
        if self.number == 1 || self.first() < filtered {
            return Ok(());
        }
        let PageOf { number, size, .. } = self;
        let reason =
            format!("Page out of range, page: {number} page size: {size}, len: {filtered}");
        Err(Refusal::new(StatusCode::BAD_REQUEST, "page_out_of_range", reason))
    }
}

/// The text of a page: its items are JSON texts already.
pub(crate) fn page_text(page: &PageOf, items: &[String], filtered: usize, total: usize) -> String {
    let PageOf { number, size, .. } = page;
    let (count, pages) = (items.len(), filtered.div_ceil(*size));
    let items = items.join(",");
    format!(
        "{{\"filtered_count\":{filtered},\"item_count\":{count},\"items\":[{items}],\"page\":{number},\
         \"page_count\":{pages},\"page_size\":{size},\"total_count\":{total}}}"
    )
}

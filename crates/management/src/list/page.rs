//! Pages (`page`, `page_size`) of what a filter lets through (`name`, `use_regex`).

use crate::call::Call;
use crate::name_search::{NameSearch, TOO_LONG};
use crate::refusal::Refusal;
use courser_broker::admin::PAGE_MAX;
use hyper::StatusCode;
use std::sync::Arc;

/// Items on a page where nothing is said.
const PAGE_DEFAULT: usize = 100;
/// Characters of a regular expression.
const PATTERN_CHARS_MAX: usize = 1024;

/// A page that is asked for.
pub(crate) struct Page {
    /// From 1 on.
    pub number: usize,
    pub size: usize,
}

/// A page of what a filter lets through.
pub(super) struct PageOf {
    pub page: Page,
    pub filter: Option<Arc<NameFilter>>,
}

/// Which names are wanted.
pub(super) enum NameFilter {
    /// In lower case.
    Part(String),
    /// `None` if it is no expression: nothing matches that.
    Pattern(Option<NameSearch>),
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
        Some(NameFilter::Pattern(NameSearch::new(&format!("(?i){name}")).ok()))
    }

    pub fn lets_through(&self, name: &str) -> bool {
        match self {
            NameFilter::Part(part) => name.to_lowercase().contains(part),
            NameFilter::Pattern(pattern) => {
                pattern.as_ref().is_some_and(|pattern| pattern.matches(name.as_bytes()))
            }
        }
    }
}

impl PageOf {
    /// The page that is asked for, if any. Compiles the expression of its filter, which may take long.
    pub fn asked(call: &Call) -> Result<Option<Self>, Refusal> {
        let page = Page::asked(call)?;
        Ok(page.map(|page| PageOf { page, filter: NameFilter::asked(call).map(Arc::new) }))
    }

    /// Refuses a list for which not all names could be looked at.
    pub fn check_search(&self) -> Result<(), Refusal> {
        match self.filter.as_deref() {
            Some(NameFilter::Pattern(Some(search))) if search.has_given_up() => {
                Err(Refusal::bad_request(TOO_LONG))
            }
            _ => Ok(()),
        }
    }
}

impl Page {
    /// The page that is asked for, if any. What of a list is on it is for others to find out.
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
        Ok(Some(Page { number, size }))
    }

    /// How many items are in front of it.
    pub fn first(&self) -> usize {
        (self.number - 1).saturating_mul(self.size)
    }

    /// How many there are up to its end.
    pub fn end(&self) -> usize {
        self.number.saturating_mul(self.size)
    }

    /// Refuses a page behind the last one.
    pub fn check_range(&self, filtered: usize) -> Result<(), Refusal> {
        if self.number == 1 || self.first() < filtered {
            return Ok(());
        }
        let Page { number, size } = self;
        let reason =
            format!("Page out of range, page: {number} page size: {size}, len: {filtered}");
        Err(Refusal::new(StatusCode::BAD_REQUEST, "page_out_of_range", reason))
    }
}

/// What stands around the items of a list.
pub(crate) struct Frame {
    pub before: Vec<u8>,
    pub behind: Vec<u8>,
}

impl Frame {
    pub fn of_list() -> Self {
        Frame { before: vec![b'['], behind: vec![b']'] }
    }

    /// Of a page with `count` items.
    pub fn of_page(page: &Page, count: usize, filtered: usize, total: usize) -> Self {
        let Page { number, size } = page;
        let pages = filtered.div_ceil(*size);
        let before = format!("{{\"filtered_count\":{filtered},\"item_count\":{count},\"items\":[");
        let behind = format!(
            "],\"page\":{number},\"page_count\":{pages},\"page_size\":{size},\"total_count\":{total}}}"
        );
        Frame { before: before.into_bytes(), behind: behind.into_bytes() }
    }
}

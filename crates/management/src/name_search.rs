//! A regular expression that one request looks for in many names.
//!
//! A match in one name has a bound ([`Pattern::of_list`]), which is large for an expression with many states. There may be
//! many names, so there is a bound to what one request spends on all of them.

use courser_auth::{Pattern, PatternError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long one request may look for an expression, in all names together. A usual one takes a fraction of a microsecond
/// for a name.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(2);

/// What is told when that is not enough.
pub(crate) const TOO_LONG: &str =
    "the regular expression takes too long to be looked for in all names";

/// An expression, and the time that its request has spent on it.
#[derive(Debug)]
pub(crate) struct NameSearch {
    pattern: Pattern,
    spent_ns: AtomicU64,
}

impl NameSearch {
    /// # Errors
    /// If it is no expression, or one that is too large.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        Ok(NameSearch { pattern: Pattern::of_list(text)?, spent_ns: AtomicU64::new(0) })
    }

    /// Whether it is found in `name`; in none any more once too much is spent.
    pub fn matches(&self, name: &[u8]) -> bool {
        if self.has_given_up() {
            return false;
        }
        let began = Instant::now();
        let is_found = self.pattern.matches(name);
        let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.spent_ns.fetch_add(took_ns, Ordering::Relaxed);
        is_found
    }

    /// Whether there are names that were not looked at: what was found is not all.
    pub fn has_given_up(&self) -> bool {
        Duration::from_nanos(self.spent_ns.load(Ordering::Relaxed)) >= SEARCH_TIME_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_looked_for_until_its_time_is_spent() {
        let search = NameSearch::new("a.*z").expect("an expression");
        assert!(search.matches(b"abz") && !search.has_given_up());
        search.spent_ns.store(SEARCH_TIME_MAX.as_nanos() as u64 - 1, Ordering::Relaxed);
        assert!(search.matches(b"abz"), "the last one");
        assert!(search.has_given_up() && !search.matches(b"abz"));
    }
}

//! What is wanted of a page: `family`, `vhost` and `queue` in the query.

use crate::call::PARAMETERS_MAX;
use crate::name_search::NameSearch;
use crate::path;
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes of an expression for names of queues.
const QUEUE_BYTES_MAX: usize = 2000;

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// All, if there is no list.
    families: Option<Vec<String>>,
    /// All, if there is none. Asked for each row.
    vhosts: HashSet<String>,
    queue: Option<Arc<NameSearch>>,
}

impl Query {
    pub fn everything() -> Self {
        Query::default()
    }

    /// Reads a query.
    ///
    /// # Errors
    /// What is wrong with it, as it is told.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pairs = path::query(text).ok_or("The query string can't be read")?;
        if pairs.len() > PARAMETERS_MAX {
            return Err(format!("The query has more than {PARAMETERS_MAX} parameters"));
        }
        let mut query = Query { families: Some(Vec::new()), ..Query::default() };
        let mut queue = None;
        for (name, value) in pairs {
            match name.as_str() {
                "family" => query.families.get_or_insert_default().push(value),
                "vhost" => drop(query.vhosts.insert(value)),
                "queue" if value.len() > QUEUE_BYTES_MAX => {
                    return Err(format!("'queue' regex is longer than {QUEUE_BYTES_MAX} bytes"));
                }
                "queue" => queue = Some(value),
                _ => {}
            }
        }
        // The last one counts, and no other is worth the time that compiling may take.
        if let Some(text) = queue {
            let wrong = |error| format!("Invalid 'queue' regex at position 1: {error}");
            query.queue = Some(Arc::new(NameSearch::new(&text).map_err(wrong)?));
        }
        Ok(query)
    }

    pub fn wants(&self, family: &str) -> bool {
        self.families.as_ref().is_none_or(|all| all.iter().any(|wanted| wanted == family))
    }

    pub fn has_vhost(&self, name: &str) -> bool {
        self.vhosts.is_empty() || self.vhosts.contains(name)
    }

    pub fn has_queue(&self, name: &[u8]) -> bool {
        self.queue.as_ref().is_none_or(|search| search.matches(name))
    }

    /// Whether there are queues whose names were not looked at.
    pub fn has_given_up(&self) -> bool {
        self.queue.as_ref().is_some_and(|search| search.has_given_up())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_wanted() {
        let query = Query::parse("family=a&family=b&vhost=%2F&queue=%5Ex").expect("a query");
        assert!(query.wants("a") && query.wants("b") && !query.wants("c"));
        assert!(query.has_vhost("/") && !query.has_vhost("other"));
        assert!(query.has_queue(b"xy") && !query.has_queue(b"yx"));
    }

    #[test]
    fn without_a_word_no_family_is_wanted_and_nothing_is_left_out_of_one() {
        let query = Query::parse("").expect("a query");
        assert!(!query.wants("a"));
        assert!(query.has_vhost("any") && query.has_queue(b"any"));
        assert!(Query::everything().wants("a"));
    }

    #[test]
    fn a_query_of_more_parameters_than_any_other_request_has_is_refused() {
        let query = |vhosts: usize| Query::parse(&"vhost=a&".repeat(vhosts)).map(drop);
        assert_eq!(query(64), Ok(()));
        assert_eq!(query(65), Err("The query has more than 64 parameters".to_owned()));
    }

    #[test]
    fn of_several_expressions_only_the_last_is_compiled() {
        let query = Query::parse(&format!("{}queue=%5Ex", "queue=%28&".repeat(63)));
        let query = query.expect("a query");
        assert!(query.has_queue(b"xy") && !query.has_queue(b"yx"));
    }

    #[test]
    fn an_expression_is_given_up_as_soon_as_in_lists() {
        let query = Query::parse(r"queue=^(\w*)\w*-\1$").expect("a query");
        assert!(query.has_queue(b"aa-a"));
        assert!(!query.has_queue(format!("{}-a", "a".repeat(80)).as_bytes()));
    }

    #[test]
    fn expressions_that_are_none_are_refused() {
        let error = Query::parse("queue=%28").expect_err("no expression");
        assert!(error.starts_with("Invalid 'queue' regex at position 1: "), "{error}");
        assert!(Query::parse(&format!("queue={}", "a".repeat(2001))).is_err());
        assert!(Query::parse("family=%zz").is_err());
    }
}

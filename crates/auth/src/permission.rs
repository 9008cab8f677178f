//! What a user may do in a vhost: patterns of names, kept as they were written.

use crate::error::AccountError;
use crate::pattern::{self, Pattern, Variables};

/// Patterns of the names of queues and exchanges that a user may make and remove, write to, and read
/// from. An empty pattern stands for nothing at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// What it may declare and delete.
    pub configure: String,
    /// What it may publish to, and bind to something.
    pub write: String,
    /// What it may consume from, get from, purge, and bind something to.
    pub read: String,
}

impl Permission {
    /// Everything.
    pub fn all() -> Self {
        let any = || ".*".to_owned();
        Permission { configure: any(), write: any(), read: any() }
    }

    /// Checks whether it can be given to a user.
    ///
    /// # Errors
    /// If one of the patterns can't be used.
    pub fn check(&self) -> Result<(), AccountError> {
        check("configure", &self.configure)?;
        check("write", &self.write)?;
        check("read", &self.read)
    }

    /// Whether it is refused only for patterns that an earlier version may have taken.
    pub fn is_outdated(&self) -> bool {
        are_outdated(&self.texts())
    }

    /// Whether each of its patterns can match something; nothing is compiled to find that out.
    pub(crate) fn is_readable(&self) -> bool {
        self.texts().into_iter().all(Pattern::is_readable)
    }

    fn texts(&self) -> [&str; 3] {
        [&self.configure, &self.write, &self.read]
    }
}

/// Patterns of the routing keys with which a user may publish to a topic exchange, and bind to it.
/// `{username}`, `{vhost}` and `{client_id}` stand for what they name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPermission {
    /// What it may publish with.
    pub write: String,
    /// What it may bind with.
    pub read: String,
}

impl TopicPermission {
    /// Checks whether it can be given to a user.
    ///
    /// # Errors
    /// If one of the patterns can't be used.
    pub fn check(&self) -> Result<(), AccountError> {
        let [write, read] = self.texts();
        check("write", &write)?;
        check("read", &read)
    }

    /// As [`Permission::is_outdated`].
    pub fn is_outdated(&self) -> bool {
        are_outdated(&self.texts().each_ref().map(String::as_str))
    }

    /// As [`Permission::is_readable`].
    pub(crate) fn is_readable(&self) -> bool {
        self.texts().iter().all(|text| Pattern::is_readable(text))
    }

    fn texts(&self) -> [String; 2] {
        // What a variable stands for is put in escaped, and can't make a pattern wrong.
        let variables = Variables { username: "user", vhost: "vhost", client_id: None };
        [&self.write, &self.read].map(|text| pattern::expand(text, &variables))
    }
}

fn are_outdated(texts: &[&str]) -> bool {
    let mut is_refused = false;
    let are_all = texts.iter().all(|text| {
        let is_outdated = Pattern::is_outdated(text);
        is_refused |= is_outdated;
        is_outdated || Pattern::new(text).is_ok()
    });
    are_all && is_refused
}

fn check(right: &'static str, text: &str) -> Result<(), AccountError> {
    match Pattern::new(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(AccountError::Pattern { right, error }),
    }
}

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

    /// Looks whether it can be given to anybody.
    ///
    /// # Errors
    /// If one of the patterns can't be used.
    pub fn check(&self) -> Result<(), AccountError> {
        check("configure", &self.configure)?;
        check("write", &self.write)?;
        check("read", &self.read)
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
    /// Looks whether it can be given to anybody.
    ///
    /// # Errors
    /// If one of the patterns can't be used.
    pub fn check(&self) -> Result<(), AccountError> {
        // What a variable stands for is put in escaped, and can't make a pattern wrong.
        let variables = Variables { username: "user", vhost: "vhost", client_id: None };
        check("write", &pattern::expand(&self.write, &variables))?;
        check("read", &pattern::expand(&self.read, &variables))
    }
}

fn check(right: &'static str, text: &str) -> Result<(), AccountError> {
    match Pattern::new(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(AccountError::Pattern { right, error }),
    }
}

//! Why definitions are not all made.

use courser_auth::AccountError;
use courser_broker::admin::{AccountsError, Fault, PolicyError};
use courser_codec::reply_code::{INTERNAL_ERROR, RESOURCE_ERROR};
use std::fmt;

/// Why definitions are not all made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    text: String,
    /// A row may be in order, and what there is refuses it.
    is_of_state: bool,
}

impl ImportError {
    pub(super) fn new(why: impl Into<String>) -> Self {
        ImportError { text: why.into(), is_of_state: false }
    }

    /// It is no JSON object.
    pub(crate) fn no_json() -> Self {
        ImportError::new("failed_to_parse_json")
    }

    /// Another broker, or this one later, might take the same row.
    pub(super) fn of_state(self) -> Self {
        ImportError { is_of_state: true, ..self }
    }

    /// Whether what there is refuses the row, as long as the row is in order.
    pub(super) fn is_of_state(&self) -> bool {
        self.is_of_state
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ImportError {}

/// A row that can't be meant.
pub(super) fn refused(what: &str, name: &str, why: impl fmt::Display) -> ImportError {
    ImportError::new(format!("{what} '{name}': {why}"))
}

/// A row of which the broker has made nothing.
pub(super) fn not_made(what: &str, name: &str, why: &impl Why) -> ImportError {
    let error = refused(what, name, why.text());
    if why.is_failure() { error } else { error.of_state() }
}

/// Why a broker makes nothing of a row.
pub(super) trait Why {
    fn text(&self) -> String;

    /// Nothing can be kept now, or not on behalf of who asks: that says nothing of the row.
    fn is_failure(&self) -> bool;
}

impl Why for Fault {
    fn text(&self) -> String {
        self.explanation.clone()
    }

    fn is_failure(&self) -> bool {
        // Of what an import asks for, only the store says the first two: it is full, or has failed.
        matches!(self.code, RESOURCE_ERROR | INTERNAL_ERROR) || self.is_of_a_going_broker()
    }
}

impl Why for AccountError {
    fn text(&self) -> String {
        self.to_string()
    }

    fn is_failure(&self) -> bool {
        matches!(self, AccountError::Random)
    }
}

impl Why for AccountsError {
    fn text(&self) -> String {
        self.to_string()
    }

    fn is_failure(&self) -> bool {
        match self {
            AccountsError::Refused(error) => error.is_failure(),
            AccountsError::NotHome(fault) => fault.is_failure(),
            AccountsError::NoVhost(_) => false,
            AccountsError::NotPermitted | AccountsError::Store(_) => true,
        }
    }
}

impl Why for PolicyError {
    fn text(&self) -> String {
        self.to_string()
    }

    fn is_failure(&self) -> bool {
        match self {
            PolicyError::Store(_) => true,
            PolicyError::NotServed(fault) | PolicyError::NotNow(fault) => fault.is_failure(),
            PolicyError::NoVhost(_)
            | PolicyError::TooMany(_)
            | PolicyError::TooLarge(_)
            | PolicyError::TooSlow(_)
            | PolicyError::Invalid { .. } => false,
        }
    }
}

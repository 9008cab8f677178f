//! Tags: what a user may do as an operator. Unknown ones are kept and mean nothing.

use crate::bounds::{NAME_BYTES_MAX, TAGS_MAX};
use crate::error::AccountError;

/// A tag that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// May see and change its own things in the vhosts that it may enter.
    Management,
    /// As management, and policies and parameters besides.
    Policymaker,
    /// As management, and everybody's connections and the nodes besides.
    Monitoring,
    /// May change everything over HTTP; over AMQP its permissions count.
    Administrator,
    /// May publish with another user's `user-id`.
    Impersonator,
    /// It, its limits and its permissions can't be changed or deleted over HTTP.
    Protected,
}

impl Tag {
    /// The tag as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Tag::Management => "management",
            Tag::Policymaker => "policymaker",
            Tag::Monitoring => "monitoring",
            Tag::Administrator => "administrator",
            Tag::Impersonator => "impersonator",
            Tag::Protected => "protected",
        }
    }
}

/// The tags of a user, each once, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<String>);

impl Tags {
    /// The tags of a list; spaces around one and empty ones are left out.
    ///
    /// # Errors
    /// If there are too many, or one is too long or has a comma in it.
    pub fn new<T: AsRef<str>>(tags: impl IntoIterator<Item = T>) -> Result<Self, AccountError> {
        let mut kept: Vec<String> = Vec::new();
        for tag in tags {
            let tag = tag.as_ref().trim();
            if tag.is_empty() || kept.iter().any(|known| known == tag) {
                continue;
            }
            if kept.len() == TAGS_MAX || tag.len() > NAME_BYTES_MAX || tag.contains(',') {
                return Err(AccountError::Tags);
            }
            kept.push(tag.to_owned());
        }
        Ok(Tags(kept))
    }

    /// The tags of a text in which commas separate them, as older tools write it.
    ///
    /// # Errors
    /// As [`Tags::new`].
    pub fn parse(text: &str) -> Result<Self, AccountError> {
        Tags::new(text.split(','))
    }

    /// The tag of an administrator.
    pub fn administrator() -> Self {
        Tags(vec![Tag::Administrator.name().to_owned()])
    }

    /// Whether this tag is among them.
    pub fn has(&self, tag: Tag) -> bool {
        self.iter().any(|known| known == tag.name())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

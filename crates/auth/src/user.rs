//! A user.

use crate::error::AccountError;
use crate::password::PasswordHash;
use crate::tags::{Tag, Tags};
use std::fmt;

/// Where a user comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Made while the broker ran, or at its first start; kept in the journal.
    Runtime,
    /// Named by the configuration file or the environment; kept nowhere else, and may do everything
    /// in every vhost.
    ConfigurationFile,
    /// Known to another authority, which says what it may do; kept nowhere here.
    Elsewhere,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// What its password is checked against.
    pub password: PasswordHash,
    /// What it may do as an operator.
    pub tags: Tags,
    /// How many connections and channels it may have.
    pub limits: UserLimits,
    /// Where it comes from.
    pub origin: Origin,
    /// Let it in from this machine only.
    pub loopback_only: bool,
    /// Where in the log it was made, which tells it from others of its name: it stays the same while the user changes. 0 where
    /// that is not known.
    pub made: u64,
}

impl User {
    /// A user without tags and limits.
    pub fn new(name: impl Into<String>, password: PasswordHash) -> Self {
        User {
            name: name.into(),
            password,
            tags: Tags::default(),
            limits: UserLimits::default(),
            origin: Origin::Runtime,
            loopback_only: false,
            made: 0,
        }
    }

    /// Refuses to change a user with the tag `protected`.
    ///
    /// # Errors
    /// [`AccountError::Protected`].
    pub fn refuse_protected(&self) -> Result<(), AccountError> {
        match self.tags.has(Tag::Protected) {
            true => Err(AccountError::Protected(self.name.clone())),
            false => Ok(()),
        }
    }

    /// Whether it is kept in the journal.
    pub fn is_kept(&self) -> bool {
        self.origin == Origin::Runtime
    }
}

/// How many connections and channels a user may have, over all vhosts. `None` is no limit, 0 forbids
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// Connections at the same time.
    pub max_connections: Option<u32>,
    /// Channels at the same time, on all its connections.
    pub max_channels: Option<u32>,
}

impl UserLimits {
    /// Sets the limit of this name; a negative value lifts it.
    ///
    /// # Errors
    /// If there is no such limit.
    pub fn set(&mut self, name: &str, value: i64) -> Result<(), AccountError> {
        // More than can be counted is as good as no limit.
        let limit = u32::try_from(value).ok();
        *self.named(name)? = limit;
        Ok(())
    }

    /// Lifts the limit of this name.
    ///
    /// # Errors
    /// If there is no such limit.
    pub fn clear(&mut self, name: &str) -> Result<(), AccountError> {
        *self.named(name)? = None;
        Ok(())
    }

    fn named(&mut self, name: &str) -> Result<&mut Option<u32>, AccountError> {
        match name {
            "max-connections" => Ok(&mut self.max_connections),
            "max-channels" => Ok(&mut self.max_channels),
            _ => Err(AccountError::Limit(name.to_owned())),
        }
    }

    /// The limits that are set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let connections = self.max_connections.map(|limit| ("max-connections", limit));
        connections.into_iter().chain(self.max_channels.map(|limit| ("max-channels", limit)))
    }

    /// What a client hears whose connection would be one more than `limit`.
    pub fn connections_reached(user: &str, limit: u32) -> impl fmt::Display {
        format!("connection refused for user '{user}': user connection limit ({limit}) is reached")
    }

    /// What a client hears whose channel would be one more than `limit`.
    pub fn channels_reached(user: &str, limit: u32) -> impl fmt::Display {
        format!(
            "number of channels opened for user '{user}' has reached the maximum allowed user limit \
             of {limit}"
        )
    }
}

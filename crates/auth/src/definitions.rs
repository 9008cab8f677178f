//! Users and permissions as RabbitMQ's definitions carry them, which is also how they are kept.

use crate::error::AccountError;
use crate::password::PasswordHash;
use crate::permission::{Permission, TopicPermission};
use crate::tags::Tags;
use crate::user::{User, UserLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRow {
    /// Its name.
    pub name: String,
    /// Its password hash in base64; empty for a user without a password.
    #[serde(default)]
    pub password_hash: String,
    /// The algorithm of the hash. `None` stands for salted SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hashing_algorithm: Option<String>,
    /// A list, or, as older versions write it, a text with commas.
    #[serde(default)]
    pub tags: Value,
    /// Limits by name; nothing may also be written as an empty list.
    #[serde(default)]
    pub limits: Value,
    /// Let it in from this machine only; RabbitMQ does not write it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loopback_only: bool,
}

impl From<&User> for UserRow {
    fn from(user: &User) -> Self {
        let limits: Map<String, Value> =
            user.limits.iter().map(|(name, limit)| (name.to_owned(), limit.into())).collect();
        UserRow {
            name: user.name.clone(),
            password_hash: user.password.encode(),
            hashing_algorithm: user.password.algorithm().map(str::to_owned),
            tags: user.tags.iter().collect::<Vec<_>>().into(),
            limits: Value::Object(limits),
            loopback_only: user.loopback_only,
        }
    }
}

impl TryFrom<&UserRow> for User {
    type Error = AccountError;

    fn try_from(row: &UserRow) -> Result<Self, AccountError> {
        let password = PasswordHash::decode(&row.password_hash, row.hashing_algorithm.as_deref())?;
        let mut user = User::new(row.name.clone(), password);
        user.tags = tags(&row.tags)?;
        user.limits = limits(&row.limits)?;
        user.loopback_only = row.loopback_only;
        Ok(user)
    }
}

fn tags(value: &Value) -> Result<Tags, AccountError> {
    match value {
        Value::Null => Ok(Tags::default()),
        Value::String(text) => Tags::parse(text),
        Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            Tags::new(texts.ok_or(AccountError::Tags)?)
        }
        _ => Err(AccountError::Tags),
    }
}

fn limits(value: &Value) -> Result<UserLimits, AccountError> {
    let mut limits = UserLimits::default();
    match value {
        Value::Null => {}
        Value::Array(list) if list.is_empty() => {}
        Value::Object(named) => {
            for (name, limit) in named {
                let limit = limit.as_i64().ok_or_else(|| AccountError::Limit(name.clone()))?;
                limits.set(name, limit)?;
            }
        }
        other => return Err(AccountError::Limit(other.to_string())),
    }
    Ok(limits)
}

/// What a user may do in a vhost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionRow {
    /// Whose it is.
    pub user: String,
    /// Where it holds.
    #[serde(default)]
    pub vhost: String,
    /// Pattern of what it may declare and delete.
    pub configure: String,
    /// Pattern of what it may publish to.
    pub write: String,
    /// Pattern of what it may consume from.
    pub read: String,
}

impl PermissionRow {
    /// The patterns.
    pub fn permission(&self) -> Permission {
        Permission {
            configure: self.configure.clone(),
            write: self.write.clone(),
            read: self.read.clone(),
        }
    }
}

/// With which routing keys a user may publish to a topic exchange, and bind to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPermissionRow {
    /// Whose it is.
    pub user: String,
    /// Where it holds.
    #[serde(default)]
    pub vhost: String,
    /// Of which exchange.
    pub exchange: String,
    /// Pattern of the keys to publish with.
    pub write: String,
    /// Pattern of the keys to bind with.
    pub read: String,
}

impl TopicPermissionRow {
    /// The patterns.
    pub fn permission(&self) -> TopicPermission {
        TopicPermission { write: self.write.clone(), read: self.read.clone() }
    }
}

//! Users as definitions carry them: with a hash, or, as people write them, with a password in clear.
//!
//! The password is taken out of the row before anything else looks at it, so that no error shows it, and
//! nothing keeps it.

use super::compare::text_of;
use super::error::{ImportError, not_made, refused};
use super::import::typed;
use courser_auth::{AccountError, PasswordHash, Tag, User, UserRow};
use serde_json::Value;
use std::collections::HashSet;

/// What a row says of a user.
pub(super) struct Said {
    pub name: String,
    user: User,
    says_limits: bool,
    says_loopback_only: bool,
}

impl Said {
    /// Changes a user to what the row says. What it does not name of limits and of where the user may
    /// come from stays.
    pub fn apply(&self, user: &mut User) {
        let User { password, tags, limits, loopback_only, .. } = self.user.clone();
        (user.password, user.tags) = (password, tags);
        if self.says_limits {
            user.limits = limits;
        }
        if self.says_loopback_only {
            user.loopback_only = loopback_only;
        }
    }
}

/// What a row says of a user; `hash` makes the hash of a password that stands there in clear.
pub(super) fn user(
    row: &Value,
    hash: impl FnOnce(&[u8]) -> Result<PasswordHash, AccountError>,
) -> Result<Said, ImportError> {
    let mut row = row.clone();
    let password = row.as_object_mut().and_then(|members| members.remove("password"));
    let has_hash = row.get("password_hash").is_some_and(|hash| !hash.is_null());
    let says = |member: &str| row.get(member).is_some_and(|value| !value.is_null());
    let (says_limits, says_loopback_only) = (says("limits"), says("loopback_only"));
    let row: UserRow = typed("users", &row)?;
    let refused = |why: &dyn std::fmt::Display| refused("user", &row.name, why);
    let mut user = User::try_from(&row).map_err(|error| refused(&error))?;
    match password {
        None | Some(Value::Null) => {}
        Some(_) if has_hash => {
            return Err(refused(&"both_password_and_password_hash_are_provided"));
        }
        Some(Value::String(password)) => {
            let hash = hash(password.as_bytes());
            user.password = hash.map_err(|error| not_made("user", &row.name, &error))?;
        }
        Some(_) => return Err(refused(&"its password is no text")),
    }
    Ok(Said { name: row.name, user, says_limits, says_loopback_only })
}

/// The users among these definitions that no import over HTTP changes.
pub(super) fn protected(now: &Value) -> HashSet<&str> {
    let users = now.get("users").and_then(Value::as_array).into_iter().flatten();
    let has_tag = |user: &&Value| {
        let tags = user.get("tags").and_then(Value::as_array);
        tags.is_some_and(|tags| tags.iter().any(|tag| tag == Tag::Protected.name()))
    };
    users.filter(has_tag).filter_map(|user| text_of(user, "name")).collect()
}

/// The user whose account a row of this list is of.
pub(super) fn user_of<'r>(list: &str, row: &'r Value) -> Option<&'r str> {
    match list {
        "users" => text_of(row, "name"),
        "permissions" | "topic_permissions" => text_of(row, "user"),
        _ => None,
    }
}

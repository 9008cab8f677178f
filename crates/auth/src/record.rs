//! One change to the accounts, and its form in a log: a key, and the new value or none.
//!
//! ```text
//! key    'u' user: name
//!        'r' permission: user, vhost
//!        't' topic permission: user, vhost, exchange
//!        (each with its u16 length before it, little-endian)
//! value  the row of RabbitMQ's definitions, in JSON; a user's also has `made`, if that is known
//! ```

use crate::definitions::{PermissionRow, TopicPermissionRow, UserRow};
use crate::permission::{Permission, TopicPermission};
use crate::user::User;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::sync::Arc;

/// The first byte of a user's key.
pub const USER: u8 = b'u';
/// The first byte of a permission's key.
pub const PERMISSION: u8 = b'r';
/// The first byte of a topic permission's key.
pub const TOPIC_PERMISSION: u8 = b't';

/// One change to the accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A user is made or changed.
    User(Arc<User>),
    /// A user is deleted, with its permissions.
    UserDeleted(String),
    /// What a user may do in a vhost is set.
    Permission {
        /// Whose.
        user: String,
        /// Where.
        vhost: String,
        /// What; `None` takes it away.
        permission: Option<Permission>,
    },
    /// With which routing keys a user may publish and bind to a topic exchange is set.
    TopicPermission {
        /// Whose.
        user: String,
        /// Where.
        vhost: String,
        /// Of which exchange.
        exchange: String,
        /// What; `None` takes it away.
        permission: Option<TopicPermission>,
    },
}

/// A user as it is kept.
#[derive(Serialize, Deserialize)]
struct KeptUser {
    #[serde(flatten)]
    row: UserRow,
    /// Where in the log it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<NonZeroU64>,
}

/// Why a record can't be read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a user or permission in the log can't be read: {0}")]
pub struct RecordError(String);

impl Record {
    /// The key under which the change is kept.
    pub fn key(&self) -> Vec<u8> {
        match self {
            Record::User(user) => user_key(&user.name),
            Record::UserDeleted(name) => user_key(name),
            Record::Permission { user, vhost, .. } => key(PERMISSION, &[user, vhost]),
            Record::TopicPermission { user, vhost, exchange, .. } => {
                key(TOPIC_PERMISSION, &[user, vhost, exchange])
            }
        }
    }

    /// What is kept under the key; `None` if the key is to be removed.
    pub fn value(&self) -> Option<Vec<u8>> {
        let json = match self {
            Record::User(user) => {
                let (row, made) = (UserRow::from(&**user), NonZeroU64::new(user.made));
                serde_json::to_vec(&KeptUser { row, made })
            }
            Record::UserDeleted(_) => return None,
            Record::Permission { user, vhost, permission } => {
                let permission = permission.as_ref()?;
                serde_json::to_vec(&permission_row(user, vhost, permission))
            }
            Record::TopicPermission { user, vhost, exchange, permission } => {
                let permission = permission.as_ref()?;
                serde_json::to_vec(&topic_row(user, vhost, exchange, permission))
            }
        };
        // Rows of texts and numbers can always be written.
        json.ok()
    }

    /// Whether a key is of this kind.
    pub fn owns(key: &[u8]) -> bool {
        matches!(key.first(), Some(&(USER | PERMISSION | TOPIC_PERMISSION)))
    }

    /// Reads a kept change back.
    ///
    /// # Errors
    /// If key or value are not what [`Record::key`] and [`Record::value`] make.
    pub fn decode(kept_key: &[u8], value: &[u8]) -> Result<Self, RecordError> {
        let wrong = |error: serde_json::Error| RecordError(error.to_string());
        let record = match kept_key.first() {
            Some(&USER) => {
                let KeptUser { row, made } = serde_json::from_slice(value).map_err(wrong)?;
                let user = User::try_from(&row).map_err(|error| RecordError(error.to_string()))?;
                let user = User { made: made.map_or(0, NonZeroU64::get), ..user };
                Record::User(Arc::new(user))
            }
            Some(&PERMISSION) => {
                let row: PermissionRow = serde_json::from_slice(value).map_err(wrong)?;
                let permission = Some(row.permission());
                Record::Permission { user: row.user, vhost: row.vhost, permission }
            }
            Some(&TOPIC_PERMISSION) => {
                let row: TopicPermissionRow = serde_json::from_slice(value).map_err(wrong)?;
                let permission = Some(row.permission());
                let TopicPermissionRow { user, vhost, exchange, .. } = row;
                Record::TopicPermission { user, vhost, exchange, permission }
            }
            _ => return Err(RecordError("unknown kind of key".into())),
        };
        if record.key() == kept_key {
            Ok(record)
        } else {
            Err(RecordError("key and value name different things".into()))
        }
    }
}

pub(crate) fn permission_row(user: &str, vhost: &str, permission: &Permission) -> PermissionRow {
    PermissionRow {
        user: user.to_owned(),
        vhost: vhost.to_owned(),
        configure: permission.configure.clone(),
        write: permission.write.clone(),
        read: permission.read.clone(),
    }
}

pub(crate) fn topic_row(
    user: &str,
    vhost: &str,
    exchange: &str,
    permission: &TopicPermission,
) -> TopicPermissionRow {
    TopicPermissionRow {
        user: user.to_owned(),
        vhost: vhost.to_owned(),
        exchange: exchange.to_owned(),
        write: permission.write.clone(),
        read: permission.read.clone(),
    }
}

/// The key under which a user is kept.
pub fn user_key(name: &str) -> Vec<u8> {
    key(USER, &[name])
}

fn key(kind: u8, parts: &[&str]) -> Vec<u8> {
    let mut key = vec![kind];
    for part in parts {
        // Names have at most 255 bytes.
        key.extend_from_slice(&(part.len() as u16).to_le_bytes());
        key.extend_from_slice(part.as_bytes());
    }
    key
}

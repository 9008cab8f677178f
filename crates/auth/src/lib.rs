//! Who may do what: users with their password hashes, tags and limits, their permissions in each
//! vhost, and the answer to every question that a session asks.
//!
//! It knows no broker, no socket, no journal and no clock: the time comes in as an argument, and
//! what has to be kept goes out as [`Record`]s, which the owner of the log writes before they are
//! applied. [`Accounts`] is shared by all connections; each has an [`Access`], which is what it may
//! do now, compiled. [`Accounts::login`] begins a login, whose slow part ([`Attempt::verify`]) is
//! for a thread that may be blocked.
#![forbid(unsafe_code)]

mod access;
mod accounts;
mod authority;
mod backoff;
mod bounds;
mod definitions;
mod directory;
mod error;
mod login;
mod operator;
mod password;
mod pattern;
mod permission;
pub mod record;
mod rehashed;
mod scopes;
mod tags;
mod user;
mod verified;
mod view;
mod views;

pub use access::{Access, Refusal, Resource, Right};
pub use accounts::{Accounts, Settings};
pub use authority::{Again, Authority, Grant};
pub use backoff::{Backoff, Tried, network};
pub use bounds::{
    NAME_BYTES_MAX, PASSWORD_BYTES_MAX, PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX,
    PERMISSIONS_MAX, TAGS_MAX, USERS_MAX,
};
pub use definitions::{PermissionRow, TopicPermissionRow, UserRow};
pub use directory::Directory;
pub use error::AccountError;
pub use login::{Attempt, Login, LoginRefused, Step, Verified};
pub use password::{Hashing, NoHashing, PasswordHash};
pub use pattern::{Pattern, PatternError, compiled};
pub use permission::{Permission, TopicPermission};
pub use record::{Record, RecordError};
pub use scopes::{SCOPES_MAX, Scopes, TooManyScopes};
pub use tags::{Tag, Tags};
pub use user::{Origin, User, UserLimits};

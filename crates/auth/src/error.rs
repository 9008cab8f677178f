//! Why a change to the accounts is refused.

use crate::bounds::{NAME_BYTES_MAX, PASSWORD_BYTES_MAX, PERMISSIONS_MAX, TAGS_MAX, USERS_MAX};
use crate::pattern::PatternError;

/// Why a change to the accounts is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// The name of a user, vhost or exchange is too long, or empty.
    #[error("the {0} name must have 1 to {NAME_BYTES_MAX} bytes")]
    Name(&'static str),
    /// There is no such user.
    #[error("user '{0}' does not exist")]
    NoUser(String),
    /// There is such a user already.
    #[error("user '{0}' exists already")]
    UserExists(String),
    /// The user has the tag `protected`, and is changed another way.
    #[error("Protected users cannot be modified via the HTTP API")]
    Protected(String),
    /// The user is in the configuration file.
    #[error("user '{0}' comes from the configuration file (auth.user); change it there")]
    InFile(String),
    /// A password is too long.
    #[error("the password must have at most {PASSWORD_BYTES_MAX} bytes")]
    PasswordLength,
    /// A password hash is not what its algorithm makes.
    #[error("the password hash can't be used: {0}")]
    Hash(String),
    /// The system gives no random numbers for a salt.
    #[error("the system gives no random numbers")]
    Random,
    /// A pattern can't be used.
    #[error("the {right} pattern can't be used: {error}")]
    Pattern {
        /// Which of the patterns: `configure`, `write` or `read`.
        right: &'static str,
        /// What is wrong with it.
        error: PatternError,
    },
    /// Too many tags, or one that is too long.
    #[error("a user has at most {TAGS_MAX} tags of 1 to {NAME_BYTES_MAX} bytes without commas")]
    Tags,
    /// There is no such limit, or it is not a whole number.
    #[error(
        "'{0}' is not a limit of a user; there are max-connections and max-channels, both whole numbers"
    )]
    Limit(String),
    /// There are as many users as there may be.
    #[error("user limit ({USERS_MAX}) reached")]
    TooManyUsers,
    /// There are as many permissions as there may be.
    #[error("permission limit ({PERMISSIONS_MAX}) reached")]
    TooManyPermissions,
}

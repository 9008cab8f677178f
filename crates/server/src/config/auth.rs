//! Settings of users.

use super::ConfigError;
use courser_auth::Hashing;
use serde::{Deserialize, Serialize};

/// Who may log in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Name of the user.
    pub user: String,
    /// Their password.
    pub password: String,
    /// Let them in from this machine only.
    pub loopback_only: bool,
    /// Users made at run time who may come from this machine only.
    pub loopback_users: Vec<String>,
    /// How passwords are kept: `argon2id` or `rabbitmq_sha256`.
    pub password_hashing: String,
    /// The user that clients without credentials are; without one they are refused.
    pub anonymous_user: String,
}

impl Default for Auth {
    fn default() -> Self {
        Auth {
            user: "guest".into(),
            password: "guest".into(),
            loopback_only: true,
            loopback_users: vec!["guest".into()],
            password_hashing: "argon2id".into(),
            anonymous_user: String::new(),
        }
    }
}

impl Auth {
    /// Whether a user is named here. The default names none: users are kept in the journal
    /// then.
    pub(crate) fn names_a_user(&self) -> bool {
        let default = Auth::default();
        (&self.user, &self.password) != (&default.user, &default.password)
    }

    /// How passwords are kept.
    pub(crate) fn hashing(&self) -> Hashing {
        if self.password_hashing == "rabbitmq_sha256" {
            Hashing::RabbitSha256
        } else {
            Hashing::Argon2id
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |key, why: &str| Err(ConfigError::invalid(key, why));
        if self.user.is_empty() || self.user.len() > 255 {
            return wrong("auth.user", "must have 1 to 255 bytes");
        }
        if self.anonymous_user.len() > 255 {
            return wrong("auth.anonymous_user", "must have at most 255 bytes");
        }
        if self.password.len() > courser_auth::PASSWORD_BYTES_MAX {
            return wrong("auth.password", "must have at most 1024 bytes");
        }
        if !["argon2id", "rabbitmq_sha256"].contains(&&*self.password_hashing) {
            return wrong("auth.password_hashing", "must be argon2id or rabbitmq_sha256");
        }
        Ok(())
    }
}

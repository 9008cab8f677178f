//! Settings of the program that knows users whom the broker does not.

use super::ConfigError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A program that is asked over HTTP for users whom the broker does not know, as RabbitMQ's plugin asks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthHttp {
    /// Where to ask whether a password is a user's; no program is asked unless this is set.
    pub user_path: String,
    /// Where it is asked whether a user may enter a vhost.
    pub vhost_path: String,
    /// Where it is asked what a user may do with a queue or an exchange.
    pub resource_path: String,
    /// Where it is asked which routing keys of a topic exchange a user may use.
    pub topic_path: String,
    /// How it is asked.
    pub method: AuthHttpMethod,
    /// Milliseconds that an answer may take; without one the answer is no.
    pub timeout_ms: u64,
    /// Seconds for which an answer is remembered; 0 asks each time.
    pub cache_seconds: u64,
    /// Authorities of its certificate, in PEM form, if not those of this machine.
    pub ca: PathBuf,
}

/// How the program is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthHttpMethod {
    /// Parameters, passwords too, are in the address.
    Get,
    /// Parameters are in a form.
    Post,
}

/// No login waits longer than that for an answer.
const TIMEOUT_MS_MAX: u64 = 30_000;
/// An answer that is older means little.
const CACHE_SECONDS_MAX: u64 = 3600;

impl Default for AuthHttp {
    fn default() -> Self {
        AuthHttp {
            user_path: String::new(),
            vhost_path: String::new(),
            resource_path: String::new(),
            topic_path: String::new(),
            method: AuthHttpMethod::Post,
            timeout_ms: 5000,
            cache_seconds: 15,
            ca: PathBuf::new(),
        }
    }
}

impl AuthHttp {
    /// Whether there is such a program.
    pub(crate) fn is_used(&self) -> bool {
        !self.user_path.is_empty()
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let paths = [
            ("user_path", &self.user_path),
            ("vhost_path", &self.vhost_path),
            ("resource_path", &self.resource_path),
            ("topic_path", &self.topic_path),
        ];
        let is_used = paths.iter().any(|(_, path)| !path.is_empty());
        for (name, path) in paths {
            let is_url = path.starts_with("http://") || path.starts_with("https://");
            let is_plain = !path.contains(['?', '#']) && path.parse::<hyper::Uri>().is_ok();
            if is_used && !(is_url && is_plain) {
                let why = "must be an address such as http://127.0.0.1:8000/auth, without '?': \
                           all four are needed";
                return Err(ConfigError::invalid(&format!("auth_http.{name}"), why));
            }
        }
        if !(1..=TIMEOUT_MS_MAX).contains(&self.timeout_ms) {
            return Err(ConfigError::invalid("auth_http.timeout_ms", "must be from 1 to 30000"));
        }
        if self.cache_seconds > CACHE_SECONDS_MAX {
            return Err(ConfigError::invalid("auth_http.cache_seconds", "must be at most 3600"));
        }
        Ok(())
    }
}

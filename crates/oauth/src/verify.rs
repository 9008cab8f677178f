//! Whether a token is good, and what follows from it.

use crate::authority::TokenAuthority;
use crate::claims::Claims;
use crate::keys::KeySet;
use crate::rules::Rules;
use crate::token::{TOKEN_BYTES_MAX, Token};
use courser_auth::{Origin, PasswordHash, Scopes, TooManyScopes, User};
use jsonwebtoken::{Algorithm, Validation, decode};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Why a token is not good: for the log, not for who brings it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefused {
    /// It is longer than a token may be.
    #[error("the token has more than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// It is not signed as tokens have to be.
    #[error("the token is signed with {0:?}, which is not among the algorithms that are accepted")]
    Algorithm(String),
    /// It has something that has to be understood, and is not.
    #[error("the token has critical parts ('crit'), of which none is known")]
    Critical,
    /// It does not say which key it is signed with.
    #[error("the token names no key ('kid'), and there is no default key")]
    NoKey,
    /// There is no such key.
    #[error("no key {0:?} is known for the token's algorithm")]
    UnknownKey(String),
    /// It was not signed with that key, or was changed.
    #[error("the token's signature is not good")]
    Signature,
    /// It is for another resource server.
    #[error("the token is not for the resource server '{0}' ('aud')")]
    Audience(String),
    /// It is from another issuer.
    #[error("the token is not issued by {0} ('iss')")]
    Issuer(String),
    /// A claim that is a moment is no number.
    #[error("the token's claim '{0}' is not a number")]
    NoNumber(&'static str),
    /// It has no end.
    #[error("the token never expires ('exp' is missing)")]
    NoExpiry,
    /// It is over.
    #[error("the token expired at {at} (seconds since 1970; now it is {now})")]
    Expired {
        /// When.
        at: u64,
        /// What time it is.
        now: u64,
    },
    /// It is for later.
    #[error("the token is good from {from} on (seconds since 1970; now it is {now})")]
    NotYet {
        /// When that is.
        from: u64,
        /// What time it is.
        now: u64,
    },
    /// It does not say who it is of.
    #[error("the token names no user, or with more than 255 bytes")]
    NoName,
    /// It has too many scopes.
    #[error(transparent)]
    Scopes(#[from] TooManyScopes),
}

impl TokenRefused {
    /// Whether it may be made up. What is signed with a key of the issuer is not, be it expired or for others.
    pub fn is_unsigned(&self) -> bool {
        use TokenRefused as R;
        match self {
            R::TooLong
            | R::Algorithm(_)
            | R::Critical
            | R::NoKey
            | R::UnknownKey(_)
            | R::Signature => true,
            R::Audience(_) | R::Issuer(_) | R::NoNumber(_) | R::NoExpiry => false,
            R::Expired { .. } | R::NotYet { .. } | R::NoName | R::Scopes(_) => false,
        }
    }
}

/// Finds out whether a token is good now, with the first of `sets` that has its key.
///
/// # Errors
/// Why it is not.
pub fn verify(
    token: &Token<'_>,
    sets: &[&KeySet],
    rules: &Rules,
    now_s: u64,
) -> Result<TokenAuthority, TokenRefused> {
    if token.text.len() > TOKEN_BYTES_MAX {
        return Err(TokenRefused::TooLong);
    }
    let algorithm = token.algorithm.parse::<Algorithm>().ok();
    let Some(algorithm) = algorithm.filter(|one| rules.algorithms.contains(one)) else {
        return Err(TokenRefused::Algorithm(shown(&token.algorithm)));
    };
    if token.is_critical {
        return Err(TokenRefused::Critical);
    }
    let name = token.key.as_ref().or(rules.default_key.as_ref()).ok_or(TokenRefused::NoKey)?;
    let key = sets.iter().find_map(|set| set.find(name, algorithm));
    let key = key.ok_or_else(|| TokenRefused::UnknownKey(shown(name)))?;
    let mut validation = Validation::new(algorithm);
    // Claims are looked at here, by this clock.
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_nbf) = (false, false);
    validation.validate_aud = false;
    let decoded = decode::<Map<String, Value>>(token.text, &key.decoding, &validation);
    let claims = Claims(decoded.map_err(|_| TokenRefused::Signature)?.claims);
    let expires_ms = claims.check(rules, now_s)?;
    let scopes = claims.scopes(rules);
    let scopes =
        Scopes::new(scopes.iter().map(String::as_str), &rules.scope_prefix, &claims.texts())?;
    let mut user = User::new(claims.name(rules)?, PasswordHash::none());
    user.origin = Origin::Elsewhere;
    user.tags = scopes.tags().clone();
    Ok(TokenAuthority { user: Arc::new(user), scopes, expires_ms })
}

/// As much of what a client has sent as a log needs.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

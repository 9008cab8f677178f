//! Users who log in with tokens of OAuth 2.
//!
//! - [`issuer`]: how the keys of the issuer of tokens are asked for.
//! - [`jwks`]: those keys, as they are known now.
//! - [`provider`]: where people log in for tokens.

mod issuer;
mod jwks;
mod provider;

pub(crate) use provider::client;

use crate::config::OAuth;
use crate::https::HttpsError;
use courser_auth::Authority;
use courser_oauth::{KeySet, KeysError, Rules, Token, TokenAuthority, TokenRefused, verify};
use jwks::Jwks;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a file with a key.
const KEY_FILE_BYTES_MAX: u64 = 64 * 1024;

/// Why no client could log in with tokens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokensError {
    #[error(transparent)]
    Https(#[from] HttpsError),
    #[error("the key in {} can't be read: {error}", .path.display())]
    File { path: PathBuf, error: std::io::Error },
    #[error("the key in {} can't be used: {error}", .path.display())]
    Key { path: PathBuf, error: KeysError },
}

/// Why a client may not come in with a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(transparent)]
    Refused(#[from] TokenRefused),
    /// That may be no fault of the client.
    #[error("the token can't be checked: {0}")]
    NoKeys(String),
}

/// Lets users in with tokens.
pub(crate) struct Tokens {
    rules: Rules,
    /// Keys from files.
    fixed: KeySet,
    /// Those of the issuer.
    issued: Option<Arc<Jwks>>,
}

impl Tokens {
    /// # Errors
    /// If a file with a key or with authorities can't be read.
    pub fn new(settings: &OAuth) -> Result<Arc<Self>, TokensError> {
        let mut fixed = KeySet::default();
        for key in &settings.signing_keys {
            let path = &key.file;
            let content =
                read(path).map_err(|error| TokensError::File { path: path.clone(), error })?;
            let added = match key.algorithm.parse() {
                Ok(algorithm) => fixed.add_secret(&key.id, content.trim_ascii_end(), algorithm),
                Err(_) => fixed.add_pem(&key.id, &content),
            };
            added.map_err(|error| TokensError::Key { path: path.clone(), error })?;
        }
        let issued = Jwks::new(settings)?;
        if let Some(issued) = &issued {
            issued.keep_fresh();
        }
        Ok(Arc::new(Tokens { rules: settings.rules(), fixed, issued }))
    }

    /// Whose token this is and what it permits, if it is good now; asks for keys if it is signed with one that is not
    /// known.
    ///
    /// # Errors
    /// Why it is not good, or can't be looked at.
    pub async fn check(
        &self,
        token: &Token<'_>,
        now_ms: u64,
    ) -> Result<Arc<dyn Authority>, TokenError> {
        let Some(issued) = &self.issued else {
            return Ok(Arc::new(self.verify(token, &KeySet::default(), now_ms)?));
        };
        let known = issued.current();
        let decided = self.verify(token, &known.keys, now_ms);
        let is_missing = matches!(decided, Err(TokenRefused::UnknownKey(_)))
            && self.key_of(token).is_some_and(|key| !self.fixed.has(key) && !known.keys.has(key));
        if !is_missing {
            return Ok(Arc::new(decided?));
        }
        let asked = issued.newer_than(&known).await;
        let decided = self.verify(token, &issued.current().keys, now_ms);
        match (decided, asked) {
            (Err(TokenRefused::UnknownKey(_)), Err(why)) => Err(TokenError::NoKeys(why)),
            (decided, _) => Ok(Arc::new(decided?)),
        }
    }

    fn verify(
        &self,
        token: &Token<'_>,
        issued: &KeySet,
        now_ms: u64,
    ) -> Result<TokenAuthority, TokenRefused> {
        verify(token, &[&self.fixed, issued], &self.rules, now_ms / 1000)
    }

    fn key_of<'a>(&'a self, token: &'a Token<'_>) -> Option<&'a str> {
        token.key().or(self.rules.default_key.as_deref())
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    fs::File::open(path)?.take(KEY_FILE_BYTES_MAX).read_to_end(&mut content)?;
    Ok(content)
}

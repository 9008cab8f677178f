//! What looks like a token, before it is known whether it is good.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// Bytes of a token.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a token's encoded header.
const HEADER_BYTES_MAX: usize = 4096;

/// What has the form of a signed token (JWS, compact). Nothing in it can be relied on.
#[derive(Clone, PartialEq, Eq)]
pub struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) algorithm: String,
    pub(crate) key: Option<String>,
    /// Its header says that there is something without which it must not be understood.
    pub(crate) is_critical: bool,
}

impl<'a> Token<'a> {
    /// Tells a token from a password: three parts of URL-safe Base64 with dots between them, the first of which is an
    /// object with the member `alg`. The last may be empty, as where a token is not signed.
    pub fn recognize(password: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(password).ok()?;
        let mut parts = text.split('.');
        let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
        let is_encoded = |part: &str| {
            part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let is_token = parts.next().is_none()
            && header.len() <= HEADER_BYTES_MAX
            && [header, claims, signature].into_iter().all(is_encoded);
        if !is_token {
            return None;
        }
        let header = URL_SAFE_NO_PAD.decode(header).ok()?;
        let header: Value = serde_json::from_slice(&header).ok()?;
        let member = |name: &str| header.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Token {
            text,
            algorithm: member("alg")?,
            key: member("kid"),
            is_critical: header.get("crit").is_some(),
        })
    }

    /// The name of the key that it says it is signed with.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

impl std::fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Token { algorithm, key, .. } = self;
        f.debug_struct("Token")
            .field("algorithm", algorithm)
            .field("key", key)
            .finish_non_exhaustive()
    }
}

//! Tokens of OAuth 2 as logins: a JWT in the place of a password, whose scopes say what it permits.
//!
//! It knows no socket, no file and no clock: the caller brings keys ([`KeySet`]) and the time. What a token must be like
//! is in [`Rules`]; [`Token::recognize`] tells a token from a password, and [`verify`] makes a [`TokenAuthority`] of a good one.
#![forbid(unsafe_code)]

mod authority;
mod claims;
mod keys;
mod rules;
mod token;
mod verify;

pub use authority::TokenAuthority;
pub use jsonwebtoken::Algorithm;
pub use keys::{KEYS_MAX, KeySet, KeysError};
pub use rules::Rules;
pub use token::{TOKEN_BYTES_MAX, Token};
pub use verify::{TokenRefused, verify};

//! Tokens: which are good, what they permit, and what is none.

mod anything;
mod keys;
mod scopes;
mod support;
mod verifying;

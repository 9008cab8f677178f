//! Users, password hashes, permissions and logins.

mod accounts;
mod authority;
mod backoff;
mod definitions;
mod login;
mod matrix;
mod passwords;
mod patterns;
mod scopes;
mod views;

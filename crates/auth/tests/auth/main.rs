//! Users, password hashes, permissions and logins.

mod accounts;
mod allocated;
mod authority;
mod backoff;
mod definitions;
mod login;
mod matrix;
mod outdated;
mod passwords;
mod pattern_costs;
mod pattern_memory;
mod patterns;
mod scopes;
mod views;

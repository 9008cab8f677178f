//! Passwords that stayed what they were when a login replaced their hashes by stronger ones.

use crate::directory::Directory;
use crate::login::Login;
use crate::password::PasswordHash;
use std::collections::HashMap;

/// The hash that a user's password had before, and that it has instead.
struct Replaced {
    before: PasswordHash,
    now: PasswordHash,
}

/// Hashes that were replaced since this process was started, by user.
#[derive(Default)]
pub(crate) struct Rehashed(HashMap<String, Replaced>);

impl Rehashed {
    /// Takes note of a login that replaces the hash. What is noted of users who have another password by now goes.
    pub fn note(&mut self, directory: &Directory, login: &Login, now: PasswordHash) {
        self.0.retain(|name, replaced| {
            directory.user(name).is_some_and(|user| user.password == replaced.now)
        });
        let before = login.user.password.clone();
        self.0.insert(login.user.name.clone(), Replaced { before, now });
    }

    /// Whether the hash that a user has now came in the place of this one.
    pub fn is_same(&self, name: &str, before: &PasswordHash, now: &PasswordHash) -> bool {
        self.0.get(name).is_some_and(|replaced| replaced.before == *before && replaced.now == *now)
    }
}

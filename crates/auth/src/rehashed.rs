//! Passwords that stayed what they were when a login replaced their hashes by stronger ones.

use crate::login::Login;
use crate::password::PasswordHash;
use std::collections::HashMap;

/// The hash that a user's password had before, and that it has instead.
struct Replaced {
    before: PasswordHash,
    now: PasswordHash,
}

/// While fewer users are noted, those who have another password by now stay noted.
const SWEPT_FROM: usize = 64;

/// Hashes that were replaced since this process was started, by user.
#[derive(Default)]
pub(crate) struct Rehashed {
    by_user: HashMap<String, Replaced>,
    /// How many users are noted when all are looked at again.
    sweep_at: usize,
}

impl Rehashed {
    /// Takes note of a login that replaces the hash. What is noted of users who have another password by now, as `has` says, goes:
    /// all are looked at where they have become twice as many, so that a login costs the same however many there were.
    pub fn note(
        &mut self,
        login: &Login,
        now: PasswordHash,
        has: impl Fn(&str, &PasswordHash) -> bool,
    ) {
        if self.by_user.len() >= self.sweep_at.max(SWEPT_FROM) {
            self.by_user.retain(|name, replaced| has(name, &replaced.now));
            self.sweep_at = 2 * self.by_user.len();
        }
        let before = login.user.password.clone();
        self.by_user.insert(login.user.name.clone(), Replaced { before, now });
    }

    /// Whether the hash that a user has now came in the place of this one.
    pub fn is_same(&self, name: &str, before: &PasswordHash, now: &PasswordHash) -> bool {
        self.by_user
            .get(name)
            .is_some_and(|replaced| replaced.before == *before && replaced.now == *now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User;
    use std::cell::Cell;
    use std::sync::Arc;

    fn login(name: &str) -> Login {
        let user = Arc::new(User::new(name, PasswordHash::none()));
        Login { user, account: None, rehashed: None, grant: None }
    }

    #[test]
    fn a_login_looks_at_few_of_those_before() {
        const USERS: usize = 10_000;
        let (mut rehashed, looked_at) = (Rehashed::default(), Cell::new(0));
        let has = |_: &str, _: &PasswordHash| {
            looked_at.set(looked_at.get() + 1);
            true
        };
        for number in 0..USERS {
            rehashed.note(&login(&number.to_string()), PasswordHash::none(), has);
        }
        assert!(looked_at.get() <= 2 * USERS, "{} looks", looked_at.get());
        assert_eq!(rehashed.by_user.len(), USERS, "all have their passwords still");
    }

    #[test]
    fn users_who_have_other_passwords_by_now_are_forgotten() {
        let mut rehashed = Rehashed::default();
        for number in 0..10 * SWEPT_FROM {
            rehashed.note(&login(&number.to_string()), PasswordHash::none(), |_, _| false);
        }
        assert!(rehashed.by_user.len() <= SWEPT_FROM);
    }
}

//! Permissions that permit nothing, as an earlier version has taken patterns that can't be used any more.

use super::Directory;

impl Directory {
    /// Calls `each` with user and vhost, and for a topic permission the exchange, of each one that has such a pattern.
    pub fn for_each_refused(&self, each: &mut dyn FnMut(&str, &str, Option<&str>)) {
        for (user, account) in &self.users {
            for (vhost, permission) in &account.permissions {
                if !permission.is_readable() {
                    each(user, vhost, None);
                }
            }
            for ((vhost, exchange), permission) in &account.topics {
                if !permission.is_readable() {
                    each(user, vhost, Some(exchange));
                }
            }
        }
    }
}

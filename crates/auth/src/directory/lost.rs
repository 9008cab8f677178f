//! What a user has lost from one directory to a later one.

use super::Directory;
use crate::user::Origin;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;

impl Directory {
    /// The vhosts that a user had permissions for and has none for any more. What both directories have in common is not
    /// looked at: that takes no longer for a user of many vhosts.
    pub fn vhosts_lost<'b>(&self, before: &'b Directory, user: &str) -> Vec<&'b str> {
        let Some(had) = before.users.get(user) else { return Vec::new() };
        let (has, none) = (self.users.get(user), OrdMap::new());
        if has.is_some_and(|account| account.user.origin == Origin::ConfigurationFile) {
            return Vec::new();
        }
        let changes = had.permissions.diff(has.map_or(&none, |account| &account.permissions));
        let lost = changes.filter_map(|change| match change {
            DiffItem::Remove(vhost, _) => Some(vhost.as_str()),
            DiffItem::Add(..) | DiffItem::Update { .. } => None,
        });
        lost.collect()
    }
}

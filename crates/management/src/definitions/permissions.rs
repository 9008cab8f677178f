//! Permissions in definitions.

use super::import::{Import, ImportError, refused, typed};
use courser_auth::{PermissionRow, TopicPermissionRow};
use serde_json::Value;

impl Import<'_> {
    pub(super) fn permission(&mut self, row: &Value) -> Result<(), ImportError> {
        let row: PermissionRow = typed("permissions", row)?;
        self.known_vhost(&row.vhost)?;
        match self.admin.set_permission(&row.user, &row.vhost, row.permission()) {
            Ok(_) => Ok(()),
            Err(_) if row.permission().is_outdated() => {
                self.skipped.outdated.push(named_permission(&row.user, &row.vhost, None));
                Ok(())
            }
            Err(error) => Err(refused("permission of user", &row.user, error)),
        }
    }

    pub(super) fn topic_permission(&mut self, row: &Value) -> Result<(), ImportError> {
        let row: TopicPermissionRow = typed("topic_permissions", row)?;
        self.known_vhost(&row.vhost)?;
        let (user, vhost, exchange) = (&row.user, &row.vhost, &row.exchange);
        let set = match self.admin.set_topic_permission(user, vhost, exchange, row.permission()) {
            Err(_) if row.permission().is_outdated() => {
                self.skipped.outdated.push(named_permission(user, vhost, Some(exchange)));
                self.admin.keep_topic_permission(user, vhost, exchange, row.permission())
            }
            set => set.map(drop),
        };
        set.map_err(|error| refused("topic permission of user", user, error))
    }
}

/// A permission, or a topic permission, in a line that names several.
pub(crate) fn named_permission(user: &str, vhost: &str, exchange: Option<&str>) -> String {
    match exchange {
        None => format!("permission of user '{user}' in vhost '{vhost}'"),
        Some(exchange) => {
            format!(
                "topic permission of user '{user}' for exchange '{exchange}' in vhost '{vhost}'"
            )
        }
    }
}

//! Permissions in definitions.

use super::error::{ImportError, not_made, refused};
use super::import::{Import, typed};
use courser_auth::{AccountError, PermissionRow, TopicPermissionRow};
use courser_broker::admin::AccountsError;
use serde_json::Value;

impl Import<'_> {
    pub(super) fn permission(&mut self, row: &Value) -> Result<(), ImportError> {
        let row: PermissionRow = typed("permissions", row)?;
        self.known_vhost(&row.vhost)?;
        match self.admin.set_permission(&row.user, &row.vhost, row.permission()) {
            Ok(_) => Ok(()),
            Err(error) => {
                let why = not_made("permission of user", &row.user, &error);
                if !row.permission().is_outdated() {
                    return Err(why);
                }
                let known = self.admin.accounts().permission(&row.user, &row.vhost);
                let is_other = known.is_some_and(|known| known != row.permission());
                self.leave_out(named_permission(&row.user, &row.vhost, None), is_other, why)
            }
        }
    }

    /// Leaves out what is refused only for a pattern that an earlier version may have taken. Where another is there, that
    /// would go on to hold, though the file may permit less: a client is refused, a start only says so.
    pub(super) fn leave_out(
        &mut self,
        row: String,
        is_other_there: bool,
        why: ImportError,
    ) -> Result<(), ImportError> {
        match self.call {
            Some(_) if is_other_there => return Err(why),
            None if is_other_there => self.skipped.outdated_beside.push(row),
            _ => self.skipped.outdated.push(row),
        }
        Ok(())
    }

    pub(super) fn topic_permission(&mut self, row: &Value) -> Result<(), ImportError> {
        let row: TopicPermissionRow = typed("topic_permissions", row)?;
        self.known_vhost(&row.vhost)?;
        let (user, vhost, exchange) = (&row.user, &row.vhost, &row.exchange);
        let why = |error| unrestricted(user, &error);
        let set = self.admin.set_topic_permission(user, vhost, exchange, row.permission());
        let Err(error) = set else { return Ok(()) };
        if !row.permission().is_outdated() {
            return Err(why(error));
        }
        let accounts = self.admin.accounts();
        let all = accounts.topic_permissions(user, vhost);
        let known = all.into_iter().find(|(of, _)| of == exchange);
        let is_other = known.is_some_and(|(_, known)| *known != row.permission());
        self.leave_out(named_permission(user, vhost, Some(exchange)), is_other, why(error))?;
        let kept = self.admin.keep_topic_permission(user, vhost, exchange, row.permission());
        kept.map_err(why)
    }
}

/// Why a user goes without a topic permission. There is no going on where it might do more than is meant for that.
fn unrestricted(user: &str, error: &AccountsError) -> ImportError {
    let what = "topic permission of user";
    match error {
        AccountsError::Refused(AccountError::TooManyPermissions) => refused(what, user, error),
        error => not_made(what, user, error),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_permission_that_there_is_no_room_for_is_not_passed_over() {
        let why = |error| unrestricted("app", &AccountsError::Refused(error));
        let (full, gone) =
            (why(AccountError::TooManyPermissions), AccountError::NoUser("app".into()));
        assert!(!full.is_of_state() && why(gone).is_of_state());
        assert_eq!(
            full.to_string(),
            "topic permission of user 'app': permission limit (200000) reached"
        );
    }
}

//! Permissions and policies without effect, as an earlier version has taken patterns that are refused now.

use super::diagnosis::Finding;
use crate::definitions::{Rows, named_permission};
use courser_broker::admin::Admin;

/// What needs attention of them.
pub(super) fn findings(admin: &Admin) -> impl Iterator<Item = Finding> + use<> {
    let (mut permissions, mut policies) = (Rows::default(), Rows::default());
    admin.accounts().for_each_refused(&mut |user, vhost, exchange| {
        permissions.push(named_permission(user, vhost, exchange));
    });
    admin.for_each_refused_policy(&mut |vhost, name, _| {
        policies.push(format!("policy '{name}' in vhost '{vhost}'"));
    });
    let found = [
        ("permission_refused", "permit nothing until they are set anew", permissions),
        ("policy_refused", "match nothing until they are changed or cleared", policies),
    ];
    let found = found.into_iter().filter(|(_, _, rows)| !rows.is_empty());
    found.map(|(kind, what, rows)| {
        let named = rows.named();
        let text = format!(
            "Patterns that an earlier version has accepted are refused now, and these {what}: {named}"
        );
        Finding::new("warning", kind, text)
    })
}

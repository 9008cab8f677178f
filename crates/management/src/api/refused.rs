//! Permissions and policies without effect, as an earlier version has taken patterns that are refused now, and what a start has
//! left out of definitions.

use super::diagnosis::Finding;
use crate::call::Call;
use crate::definitions::{LEFT_OUT, Rows, named_permission};
use crate::groups::HOME;
use crate::json::kept_value;
use courser_auth::Accounts;
use courser_broker::admin::Admin;
use parking_lot::Mutex;

/// The permissions without effect in a line, with the generation of the accounts that this is true of. There may be many
/// patterns to read for it.
#[derive(Default)]
pub(crate) struct RefusedPermissions(Mutex<(u64, String)>);

impl RefusedPermissions {
    fn named(&self, accounts: &Accounts) -> String {
        let mut known = self.0.lock();
        // First the number, then the directory: what is newer than its number is read again.
        let generation = accounts.generation();
        if known.0 != generation {
            let mut permissions = Rows::default();
            accounts.directory().for_each_refused(&mut |user, vhost, exchange| {
                permissions.push(named_permission(user, vhost, exchange));
            });
            *known = (generation, permissions.named());
        }
        known.1.clone()
    }
}

/// What needs attention of them. Other groups have a copy of the permissions; home tells of them.
pub(super) fn findings(call: &Call) -> impl Iterator<Item = Finding> + use<> {
    let (admin, accounts) = (call.admin(), &call.api.settings.accounts);
    let permissions = match admin.group() {
        HOME => call.api.refused_permissions.named(accounts),
        _ => String::new(),
    };
    let mut policies = Rows::default();
    admin.for_each_refused_policy(&mut |vhost, name, _| {
        policies.push(format!("policy '{name}' in vhost '{vhost}'"));
    });
    let found = [
        ("permission_refused", "permit nothing until they are set anew", permissions),
        ("policy_refused", "match nothing until they are changed or cleared", policies.named()),
    ];
    let found = found.into_iter().filter(|(_, _, named)| !named.is_empty());
    let found = found.map(|(kind, what, named)| {
        let text = format!(
            "Patterns that an earlier version has accepted are refused now, and these {what}: {named}"
        );
        Finding::new("warning", kind, text)
    });
    found.chain(left_out(admin))
}

/// The definitions that a start has left out, as what there was refused them. Other groups have a copy of the note.
fn left_out(admin: &Admin) -> Option<Finding> {
    let noted = admin.global_parameter(LEFT_OUT).filter(|_| admin.group() == HOME)?;
    let noted = kept_value(&noted);
    let text = format!(
        "What is there has refused definitions of management.load_definitions, and they were left out: {}. Mend that, \
         import the file (courser ctl import_definitions), and delete the global parameter {LEFT_OUT}",
        noted.as_str()?
    );
    Some(Finding::new("warning", "definitions_left_out", text))
}

//! Policies as definitions carry them.
//!
//! All of a vhost are set at the same moment. One after the other, queues would follow some of them without those that count
//! before these, and drop what they are to keep.

use super::check::{check, is_outdated};
use super::compare::text_of;
use super::error::{ImportError, Why, not_made, refused};
use super::import::{Import, reason, rows, text};
use courser_broker::admin::{Policy, PolicyKind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The vhost, the kind and the name of a policy.
pub(super) type NamedPolicy = (String, PolicyKind, String);

/// What a row, or the value of a parameter, says of a policy.
fn policy_of(name: &str, value: &Value) -> Result<Policy, ImportError> {
    let empty = Map::new();
    let policy = crate::api::policy(name, value.as_object().unwrap_or(&empty));
    policy.map_err(|refusal| refused("policy", name, reason(&refusal)))
}

/// The kind of the policy that a row of this list is, and where its settings are, if it is one.
fn kind_of<'r>(list: &str, row: &'r Value) -> Option<(PolicyKind, &'r Value)> {
    match list {
        "policies" => Some((PolicyKind::User, row)),
        _ if text_of(row, "component") == Some("operator_policy") => {
            Some((PolicyKind::Operator, row.get("value")?))
        }
        _ => None,
    }
}

impl Import<'_> {
    /// Sets the policies of each vhost that are in order, up to the first row that is not. Where all of them together are refused,
    /// none is set: they are tried one by one then, which tells the row.
    pub(super) fn set_policies_at_once(
        &mut self,
        document: &Map<String, Value>,
    ) -> Result<(), ImportError> {
        let mut by_vhost: BTreeMap<String, Vec<(PolicyKind, Policy)>> = BTreeMap::new();
        'lists: for list in ["policies", "parameters"] {
            for row in rows(document, list).unwrap_or_default() {
                if is_outdated(list, row) {
                    continue;
                }
                let Ok(read) = self.read(list, row) else { break 'lists };
                if let Some((vhost, kind, policy)) = read {
                    by_vhost.entry(vhost).or_default().push((kind, policy));
                }
            }
        }
        for (vhost, policies) in by_vhost {
            self.check_asker()?;
            match self.admin.set_policies(&vhost, &policies) {
                Ok(()) => {
                    let named =
                        policies.into_iter().map(|(kind, one)| (vhost.clone(), kind, one.name));
                    self.set_at_once.extend(named);
                }
                Err(error) if error.is_failure() => {
                    return Err(not_made("policies of vhost", &vhost, &error));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The policy that a row of this list is, if it is one, and its vhost.
    fn read(
        &self,
        list: &str,
        row: &Value,
    ) -> Result<Option<(String, PolicyKind, Policy)>, ImportError> {
        check(list, row, None)?;
        let Some((kind, value)) = kind_of(list, row) else { return Ok(None) };
        let vhost = self.vhost_of(row, "policy")?.to_owned();
        Ok(Some((vhost, kind, policy_of(text(row, "name", "policy")?, value)?)))
    }

    pub(super) fn policy(&mut self, row: &Value) -> Result<(), ImportError> {
        let name = text(row, "name", "policy")?;
        let vhost = self.vhost_of(row, "policy")?.to_owned();
        self.set_policy(&vhost, name, row, PolicyKind::User)
    }

    pub(super) fn set_policy(
        &mut self,
        vhost: &str,
        name: &str,
        value: &Value,
        kind: PolicyKind,
    ) -> Result<(), ImportError> {
        if self.set_at_once.contains(&(vhost.to_owned(), kind, name.to_owned())) {
            return Ok(());
        }
        self.known_vhost(vhost)?;
        let policy = policy_of(name, value)?;
        match self.admin.set_policy(vhost, kind, policy.clone()) {
            Ok(_) => Ok(()),
            Err(error) if policy.is_outdated(kind) => {
                let of = if kind == PolicyKind::User { "policy" } else { "operator policy" };
                let known = self.admin.kept_policies(vhost, kind).unwrap_or_default();
                let is_other = known.iter().any(|known| known.name == name && *known != policy);
                let (row, why) =
                    (format!("{of} '{name}' in vhost '{vhost}'"), refused(of, name, error));
                self.leave_out(row, is_other, why)
            }
            Err(error) => Err(not_made("policy", name, &error)),
        }
    }
}

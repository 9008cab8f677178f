//! What files have that is another program's and does nothing here: an import takes policies without such keys, and leaves out
//! parameters of such components.

use super::compare::text_of;
use crate::api::is_component;
use courser_broker::admin::is_rabbitmq_only;
use serde_json::{Map, Value};

/// A policy, or an operator policy, of a file, without what was RabbitMQ's.
pub(super) struct Stripped<'r> {
    /// The list that the row is in.
    pub list: &'static str,
    pub row: &'r Value,
    /// The keys that it had besides.
    pub keys: Vec<String>,
    /// It has no other keys, and goes out of the file.
    pub is_empty: bool,
}

/// Takes the keys that do nothing here out of all policies, and policies without other keys out of the file.
pub(super) fn strip(document: &mut Map<String, Value>, mut tell: impl FnMut(&Stripped<'_>)) {
    for list in ["policies", "parameters"] {
        let Some(Value::Array(rows)) = document.get_mut(list) else { continue };
        rows.retain_mut(|row| {
            let Some(definition) = definition(list, row) else { return true };
            let keys: Vec<String> =
                definition.keys().filter(|key| is_rabbitmq_only(key)).cloned().collect();
            if keys.is_empty() {
                return true;
            }
            definition.retain(|key, _| !is_rabbitmq_only(key));
            let is_empty = definition.is_empty();
            tell(&Stripped { list, row, keys, is_empty });
            !is_empty
        });
    }
}

/// Takes parameters of components that there are not out of the file. RabbitMQ's nodes keep notes in such ones, and its exports have
/// them.
pub(super) fn leave_out_parameters(
    document: &mut Map<String, Value>,
    mut tell: impl FnMut(&str, &Value),
) {
    let Some(Value::Array(rows)) = document.get_mut("parameters") else { return };
    rows.retain(|row| match text_of(row, "component") {
        Some(component) if !is_component(component) => {
            tell(component, row);
            false
        }
        _ => true,
    });
}

/// The settings of a policy, if a row is one.
fn definition<'r>(list: &str, row: &'r mut Value) -> Option<&'r mut Map<String, Value>> {
    let policy = match list {
        "policies" => row,
        _ if row.get("component")? == "operator_policy" => row.get_mut("value")?,
        _ => return None,
    };
    policy.get_mut("definition")?.as_object_mut()
}

impl Stripped<'_> {
    /// Why its keys are not taken.
    pub fn because(&self) -> String {
        let keys = self.keys.join(", ");
        match self.keys.len() {
            1 => format!("{keys} is RabbitMQ's and does nothing here"),
            _ => format!("{keys} are RabbitMQ's and do nothing here"),
        }
    }

    /// The policy and its keys, in a line that names several. A file of one vhost names none.
    pub fn named(&self) -> String {
        let text = |member: &str| self.row.get(member).and_then(Value::as_str);
        let kind = if self.list == "policies" { "policy" } else { "operator policy" };
        let place = text("vhost").map(|vhost| format!(" in vhost '{vhost}'")).unwrap_or_default();
        let (name, keys) = (text("name").unwrap_or_default(), self.keys.join(", "));
        format!("{kind} '{name}'{place} ({keys})")
    }
}

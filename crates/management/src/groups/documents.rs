//! Definitions of all groups as one document.

use super::parts::{Part, values};
use crate::api::exported;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use serde_json::{Value, json};

/// Lists of what is in vhosts, each in the order of vhosts.
pub(super) const IN_VHOSTS: [&str; 5] =
    ["exchanges", "queues", "bindings", "policies", "parameters"];

pub(super) fn definitions(call: &Call, parts: Vec<Part>) -> Outcome {
    exported(call, &merged(values(parts)?)?)
}

/// Users, permissions and vhosts as home has them, and what is in vhosts from where it is.
pub(super) fn merged(documents: Vec<Value>) -> Result<Value, Refusal> {
    let mut documents = documents.into_iter();
    let mut all = documents.next().ok_or_else(Refusal::not_found)?;
    for mut document in documents {
        for list in IN_VHOSTS {
            if let (Some(all), Some(more)) =
                (all[list].as_array_mut(), document[list].as_array_mut())
            {
                all.append(more);
            }
        }
        add_warnings(&mut all, &document);
    }
    for list in IN_VHOSTS {
        if let Some(rows) = all[list].as_array_mut() {
            rows.sort_by(|one, other| one["vhost"].as_str().cmp(&other["vhost"].as_str()));
        }
    }
    Ok(all)
}

/// Adds the warnings of another group, but for those of what every group has.
fn add_warnings(all: &mut Value, document: &Value) {
    for warning in document["warnings"].as_array().into_iter().flatten() {
        match all["warnings"].as_array_mut() {
            Some(warnings) if warnings.contains(warning) => {}
            Some(warnings) => warnings.push(warning.clone()),
            None => all["warnings"] = json!([warning]),
        }
    }
}

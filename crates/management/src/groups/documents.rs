//! Definitions of all groups as one document.

use super::parts::{Part, values};
use crate::api::exported;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use serde_json::Value;
use std::collections::HashMap;

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
    let mut limits: HashMap<String, Value> = HashMap::new();
    for mut document in documents {
        for list in IN_VHOSTS {
            if let (Some(all), Some(more)) = (all[list].as_array_mut(), document[list].as_array_mut())
            {
                all.append(more);
            }
        }
        for vhost in document["vhosts"].as_array_mut().into_iter().flatten() {
            if let Some(name) = vhost["name"].as_str().map(str::to_owned) {
                limits.insert(name, vhost["limits"].take());
            }
        }
    }
    for list in IN_VHOSTS {
        if let Some(rows) = all[list].as_array_mut() {
            rows.sort_by(|one, other| one["vhost"].as_str().cmp(&other["vhost"].as_str()));
        }
    }
    for vhost in all["vhosts"].as_array_mut().into_iter().flatten() {
        if let Some(limits) = vhost["name"].as_str().and_then(|name| limits.remove(name)) {
            vhost["limits"] = limits;
        }
    }
    Ok(all)
}

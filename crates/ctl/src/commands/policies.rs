//! Policies and operator policies.

use crate::failure::{Failure, UNAVAILABLE};
use crate::input::Input;
use crate::spec::{Action, Argument, Body, Change, Refused, Spec, option, refused, required};
use serde_json::{Value, json};

const NAME: Argument = required("name", "The policy's name");
const PATTERN: Argument =
    required("pattern", "A regular expression for the names that it applies to");
const DEFINITION: Argument =
    required("definition", "The arguments to set, as JSON, such as {\"max-length\": 1000}");
const PRIORITY: Argument =
    option("priority", "Of all that match, the one with the highest priority applies [default: 0]");
const APPLY_TO: Argument = option(
    "apply-to",
    "all, queues, exchanges, classic_queues, quorum_queues or streams [default: all]",
);
/// What a policy is.
pub(super) const SET: &[Argument] = &[NAME, PATTERN, DEFINITION, PRIORITY, APPLY_TO];
const GONE: &[Refused] = &[refused(404, UNAVAILABLE, "Parameter does not exist")];

const fn set(path: &'static str) -> Action {
    Action::Change(Change {
        method: "PUT",
        path,
        body: Body::Made(policy),
        refusals: &[],
        done: "",
    })
}

const fn clear(path: &'static str) -> Action {
    Action::Change(Change { method: "DELETE", path, body: Body::Nothing, refusals: GONE, done: "" })
}

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "set_policy",
        about: "Set arguments of all queues or exchanges whose names match",
        arguments: SET,
        examples: &[
            "set_policy short '^tmp\\.' '{\"message-ttl\": 60000}' --apply-to queues --priority 1",
        ],
        intent: "Setting policy \"{name}\" for pattern \"{pattern}\" to \"{definition}\" for vhost \"{vhost}\" ...",
        action: set("/api/policies/{vhost}/{name}"),
    },
    Spec {
        name: "clear_policy",
        about: "Delete a policy",
        arguments: &[NAME],
        examples: &["clear_policy short"],
        intent: "Clearing policy \"{name}\" on vhost \"{vhost}\" ...",
        action: clear("/api/policies/{vhost}/{name}"),
    },
    Spec {
        name: "set_operator_policy",
        about: "Set an operator policy, which caps policies and arguments: the smaller value applies",
        arguments: SET,
        examples: &["set_operator_policy cap '.*' '{\"max-length\": 1000000}' --apply-to queues"],
        intent: "Setting operator policy override \"{name}\" for pattern \"{pattern}\" to \"{definition}\" for vhost \"{vhost}\" ...",
        action: set("/api/operator-policies/{vhost}/{name}"),
    },
    Spec {
        name: "clear_operator_policy",
        about: "Delete an operator policy",
        arguments: &[NAME],
        examples: &["clear_operator_policy cap"],
        intent: "Clearing operator policy \"{name}\" on vhost \"{vhost}\" ...",
        action: clear("/api/operator-policies/{vhost}/{name}"),
    },
];

pub(super) fn policy(input: &Input) -> Result<Value, Failure> {
    let priority = input.find("priority").unwrap_or("0");
    let priority: i64 = priority
        .parse()
        .map_err(|_| Failure::usage(format!("--priority: '{priority}' is not a whole number")))?;
    Ok(json!({
        "pattern": input.text("pattern"),
        "definition": input.json("definition")?,
        "priority": priority,
        "apply-to": input.find("apply-to").unwrap_or("all"),
    }))
}

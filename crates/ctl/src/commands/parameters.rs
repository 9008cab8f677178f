//! Parameters of components, and global ones.

use crate::failure::UNAVAILABLE;
use crate::spec::{Action, Argument, Body, Change, Refused, Spec, required};
use serde_json::json;

const COMPONENT: Argument = required("component", "The component");
const NAME: Argument = required("name", "The name");
const VALUE: Argument = required("value", "The value, as JSON");
const GONE: &[Refused] = &[crate::spec::refused(404, UNAVAILABLE, "Parameter does not exist")];

const fn set(path: &'static str) -> Action {
    Action::Change(Change {
        method: "PUT",
        path,
        body: Body::Made(|input| Ok(json!({ "value": input.json("value")? }))),
        refusals: &[],
        done: "",
    })
}

const fn clear(path: &'static str) -> Action {
    Action::Change(Change { method: "DELETE", path, body: Body::Nothing, refusals: GONE, done: "" })
}

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "set_parameter",
        about: "Set a parameter of a component in a vhost",
        arguments: &[COMPONENT, NAME, VALUE],
        examples: &["set_parameter vhost-limits limits '{\"max-queues\": 100}'"],
        intent: "Setting runtime parameter \"{name}\" for component \"{component}\" to \"{value}\" in vhost \"{vhost}\" ...",
        action: set("/api/parameters/{component}/{vhost}/{name}"),
    },
    Spec {
        name: "clear_parameter",
        about: "Delete a parameter",
        arguments: &[COMPONENT, NAME],
        examples: &["clear_parameter vhost-limits limits"],
        intent: "Clearing runtime parameter \"{name}\" for component \"{component}\" on vhost \"{vhost}\" ...",
        action: clear("/api/parameters/{component}/{vhost}/{name}"),
    },
    Spec {
        name: "set_global_parameter",
        about: "Set a global parameter",
        arguments: &[NAME, VALUE],
        examples: &["set_global_parameter owner '\"team-messaging\"'"],
        intent: "Setting global runtime parameter \"{name}\" to \"{value}\" ...",
        action: set("/api/global-parameters/{name}"),
    },
    Spec {
        name: "clear_global_parameter",
        about: "Delete a global parameter",
        arguments: &[NAME],
        examples: &["clear_global_parameter owner"],
        intent: "Clearing global runtime parameter \"{name}\" ...",
        action: clear("/api/global-parameters/{name}"),
    },
    Spec {
        name: "set_cluster_name",
        about: "Set the cluster name, which the broker sends to clients",
        arguments: &[NAME],
        examples: &["set_cluster_name orders-eu"],
        intent: "Setting cluster name to {name} ...",
        action: Action::Change(Change {
            method: "PUT",
            path: "/api/cluster-name",
            body: Body::Made(|input| Ok(json!({ "name": input.text("name") }))),
            refusals: &[],
            done: "",
        }),
    },
];

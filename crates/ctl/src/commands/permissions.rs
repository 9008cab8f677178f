//! What users may do in vhosts.

use crate::failure::{NO_USER, UNAVAILABLE};
use crate::spec::{
    Action, Argument, Body, Change, Refused, Spec, harmless, optional, refused, required,
};
use serde_json::json;

const USER: Argument = required("user", "The user's name");
const CONFIGURE: Argument =
    required("configure", "A regular expression: what it may declare and delete");
const WRITE: Argument = required("write", "A regular expression: what it may publish to");
const READ: Argument = required("read", "A regular expression: what it may consume from");

/// The API says the same of a user and a vhost that are not there.
const MISSING: &[Refused] = &[
    Refused {
        status: 400,
        reason: "vhost_or_user_not_found",
        failure: Some((
            NO_USER,
            "User {user} does not exist, or virtual host {vhost} does not exist",
        )),
    },
    refused(404, UNAVAILABLE, "Virtual host {vhost} does not exist"),
];

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "set_permissions",
        about: "Grant a user access to a vhost: configure, write and read patterns",
        arguments: &[USER, CONFIGURE, WRITE, READ],
        examples: &[
            "set_permissions -p / alice '.*' '.*' '.*'",
            "set_permissions -p orders bob '' '^orders\\.' '^bob\\.'",
        ],
        intent: "Setting permissions for user \"{user}\" in vhost \"{vhost}\" ...",
        action: Action::Change(Change {
            method: "PUT",
            path: "/api/permissions/{vhost}/{user}",
            body: Body::Made(|input| {
                Ok(json!({
                    "configure": input.text("configure"),
                    "write": input.text("write"),
                    "read": input.text("read"),
                }))
            }),
            refusals: MISSING,
            done: "",
        }),
    },
    Spec {
        name: "clear_permissions",
        about: "Revoke a user's access to a vhost",
        arguments: &[USER],
        examples: &["clear_permissions -p orders bob"],
        intent: "Clearing permissions for user \"{user}\" in vhost \"{vhost}\" ...",
        action: Action::Change(Change {
            method: "DELETE",
            path: "/api/permissions/{vhost}/{user}",
            body: Body::Nothing,
            refusals: &[harmless(404)],
            done: "",
        }),
    },
    Spec {
        name: "set_topic_permissions",
        about: "Set the routing keys of a topic exchange that a user may publish with and bind",
        arguments: &[USER, required("exchange", "A topic exchange"), WRITE, READ],
        examples: &["set_topic_permissions -p / bob amq.topic '^bob\\.' '.*'"],
        intent: "Setting topic permissions on \"{exchange}\" for user \"{user}\" in vhost \"{vhost}\" ...",
        action: Action::Change(Change {
            method: "PUT",
            path: "/api/topic-permissions/{vhost}/{user}",
            body: Body::Made(|input| {
                Ok(json!({
                    "exchange": input.text("exchange"),
                    "write": input.text("write"),
                    "read": input.text("read"),
                }))
            }),
            refusals: MISSING,
            done: "",
        }),
    },
    Spec {
        name: "clear_topic_permissions",
        about: "Remove a user's topic permissions, for one exchange or all",
        arguments: &[USER, optional("exchange", "The exchange; all if left out")],
        examples: &["clear_topic_permissions -p / bob amq.topic"],
        intent: "Clearing topic permissions for user \"{user}\" in vhost \"{vhost}\" ...",
        action: Action::Run(super::lists::clear_topic_permissions),
    },
];

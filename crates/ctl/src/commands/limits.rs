//! Limits of vhosts and users.

use super::{users, vhosts};
use crate::client::{body, good, segment};
use crate::failure::{DATA, Failure};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, flag, optional, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

const DEFINITION: crate::spec::Argument =
    required("definition", "Limits by name, as JSON; a negative value removes a limit");

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "list_vhost_limits",
        about: "Show the limits of a vhost, or of all",
        arguments: &[flag("global", "Of all vhosts that have limits")],
        examples: &["list_vhost_limits -p orders", "list_vhost_limits --global"],
        intent: "Listing limits for vhost \"{vhost}\" ...",
        action: Action::Run(of_vhost),
    },
    Spec {
        name: "set_vhost_limits",
        about: "Limit connections (max-connections) or queues (max-queues) of a vhost",
        arguments: &[DEFINITION],
        examples: &["set_vhost_limits -p orders '{\"max-connections\": 256}'"],
        intent: "Setting vhost limits to \"{definition}\" for vhost \"{vhost}\" ...",
        action: Action::Run(set_vhost),
    },
    Spec {
        name: "clear_vhost_limits",
        about: "Remove all limits of a vhost",
        arguments: &[],
        examples: &["clear_vhost_limits -p orders"],
        intent: "Clearing vhost \"{vhost}\" limits ...",
        action: Action::Run(clear_vhost),
    },
    Spec {
        name: "list_user_limits",
        about: "Show the limits of a user, or of all",
        arguments: &[
            optional("user", "The user's name [default: guest]"),
            flag("global", "Of all users that have limits"),
        ],
        examples: &["list_user_limits alice", "list_user_limits --global"],
        intent: "Listing user limits ...",
        action: Action::Run(of_user),
    },
    Spec {
        name: "set_user_limits",
        about: "Limit connections (max-connections) or channels (max-channels) of a user",
        arguments: &[required("user", "The user's name"), DEFINITION],
        examples: &["set_user_limits alice '{\"max-channels\": 100}'"],
        intent: "Setting user limits to \"{definition}\" for user \"{user}\" ...",
        action: Action::Run(set_user),
    },
    Spec {
        name: "clear_user_limits",
        about: "Remove one limit of a user, or all",
        arguments: &[
            required("user", "The user's name"),
            required("limit", "max-connections, max-channels or all"),
        ],
        examples: &["clear_user_limits alice all"],
        intent: "Clearing \"{limit}\" limit for user \"{user}\" ...",
        action: Action::Run(clear_user),
    },
];

const VHOST_LIMITS: [&str; 2] = ["max-connections", "max-queues"];

/// The limits at a path, which lists what has some.
fn shown(session: &mut Session, path: &str) -> Result<Output, Failure> {
    let found = session.client.find(path)?.unwrap_or_default();
    let value = found.get(0).map_or_else(|| json!({}), |one| one["value"].clone());
    Ok(Output::Both(value.to_string(), value))
}

/// Sets each limit by itself, as the API has it.
fn set(session: &mut Session, path: &str, definition: &Value) -> Result<(), Failure> {
    let wrong =
        || Failure::error(DATA, "limits must be a JSON object, such as {\"max-connections\": 10}");
    for (name, value) in definition.as_object().ok_or_else(wrong)? {
        let sent = body(&json!({ "value": value }));
        let path = format!("{path}/{}", segment(name));
        good(session.client.call(Method::PUT, &path, sent)?)?;
    }
    Ok(())
}

fn clear(session: &mut Session, path: &str) -> Result<(), Failure> {
    let answer = session.client.call(Method::DELETE, path, Bytes::new())?;
    // A limit that there was not is as good as one that was lifted.
    if answer.status == 404 {
        return Ok(());
    }
    good(answer).map(drop)
}

fn vhost_path(input: &Input) -> String {
    format!("/api/vhost-limits/{}", segment(input.vhost()))
}

fn user_path(name: &str) -> String {
    format!("/api/user-limits/{}", segment(name))
}

/// What has limits, and which.
fn all(session: &mut Session, path: &str, what: &str) -> Result<Output, Failure> {
    let found = session.client.get(path)?;
    let row = |one: &Value| vec![one[what].clone(), one["value"].to_string().into()];
    Ok(Output::Rows {
        columns: [what, "limits"].map(str::to_owned).to_vec(),
        rows: found.as_array().into_iter().flatten().map(row).collect(),
    })
}

fn of_vhost(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    if input.has("global") {
        if input.vhost.is_some() {
            return Err(Failure::usage("--global is of all vhosts: leave out -p"));
        }
        return all(session, "/api/vhost-limits", "vhost");
    }
    let limits = shown(session, &vhost_path(input))?;
    vhosts::refuse_unknown(session, input.vhost())?;
    Ok(limits)
}

fn set_vhost(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    vhosts::refuse_unknown(session, input.vhost())?;
    set(session, &vhost_path(input), &input.json("definition")?)?;
    Ok(Output::Nothing)
}

fn clear_vhost(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    vhosts::refuse_unknown(session, input.vhost())?;
    for name in VHOST_LIMITS {
        clear(session, &format!("{}/{name}", vhost_path(input)))?;
    }
    Ok(Output::Nothing)
}

fn of_user(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    if input.has("global") {
        if input.find("user").is_some() {
            return Err(Failure::usage("--global is of all users: leave out the user's name"));
        }
        return all(session, "/api/user-limits", "user");
    }
    let user = input.find("user").unwrap_or("guest");
    let limits = shown(session, &user_path(user))?;
    users::refuse_unknown(session, user)?;
    Ok(limits)
}

fn set_user(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    users::known(session, input)?;
    set(session, &user_path(input.text("user")), &input.json("definition")?)?;
    Ok(Output::Nothing)
}

fn clear_user(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    users::known(session, input)?;
    clear(session, &format!("{}/{}", user_path(input.text("user")), segment(input.text("limit"))))?;
    Ok(Output::Nothing)
}

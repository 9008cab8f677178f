//! Virtual hosts.

use crate::client::{body, good, segment};
use crate::failure::{DATA, Failure};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{
    Action, Argument, Body, Change, Output, Refused, Spec, any, option, refused, required,
};
use hyper::Method;
use serde_json::{Map, Value};

const VHOST: Argument = required("name", "The vhost's name");
const DESCRIPTION: Argument = option("description", "Its description");
const TAGS: Argument = option("tags", "Its tags, separated by commas");
const TYPE: Argument = option("default-queue-type", "classic, quorum or stream");
const GROUP: Argument = option(
    "group",
    "In a cluster, the group to put it in [default: the one with the fewest vhosts]",
);
const GONE: Refused = refused(404, DATA, "Virtual host '{name}' does not exist");

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "add_vhost",
        about: "Create a vhost; an existing one stays as it is",
        arguments: &[VHOST, DESCRIPTION, TAGS, TYPE, GROUP],
        examples: &[
            "add_vhost orders --description 'Orders and payments'",
            "add_vhost orders --group 2",
        ],
        intent: "Adding vhost \"{name}\" ...",
        action: Action::Run(add),
    },
    Spec {
        name: "delete_vhost",
        about: "Delete a vhost with everything in it",
        arguments: &[VHOST],
        examples: &["delete_vhost orders"],
        intent: "Deleting vhost \"{name}\" ...",
        action: Action::Change(Change {
            method: "DELETE",
            path: "/api/vhosts/{name}",
            body: Body::Nothing,
            refusals: &[
                GONE,
                refused(
                    412,
                    DATA,
                    "Cannot delete this virtual host: it is protected from deletion. To lift the protection: \
                     courser ctl disable_vhost_deletion_protection {name}",
                ),
            ],
            done: "",
        }),
    },
    Spec {
        name: "restart_vhost",
        about: "Does nothing: vhosts run as long as the broker does",
        arguments: &[],
        examples: &["restart_vhost -p orders"],
        intent: "Trying to restart vhost '{vhost}' ...",
        action: Action::Run(restart),
    },
    Spec {
        name: "trace_on",
        about: "Copy every message published and delivered to amq.rabbitmq.trace",
        arguments: &[],
        examples: &["trace_on -p orders"],
        intent: "Starting tracing for vhost \"{vhost}\" ...",
        action: Action::Run(trace_on),
    },
    Spec {
        name: "trace_off",
        about: "Stop copying messages to amq.rabbitmq.trace",
        arguments: &[],
        examples: &["trace_off -p orders"],
        intent: "Stopping tracing for vhost \"{vhost}\" ...",
        action: Action::Run(trace_off),
    },
    Spec {
        name: "update_vhost_metadata",
        about: "Change the description, tags or default queue type of a vhost",
        arguments: &[VHOST, DESCRIPTION, TAGS, TYPE],
        examples: &["update_vhost_metadata orders --tags production,eu"],
        intent: "Updating metadata of vhost \"{name}\" ...",
        action: Action::Run(update),
    },
    Spec {
        name: "set_vhost_tags",
        about: "Set the tags of a vhost",
        arguments: &[VHOST, any("tags", "Its new tags")],
        examples: &["set_vhost_tags orders production eu"],
        intent: "Setting tags for virtual host \"{name}\" to [{tags}] ...",
        action: Action::Run(set_tags),
    },
    Spec {
        name: "enable_vhost_deletion_protection",
        about: "Protect a vhost from deletion",
        arguments: &[VHOST],
        examples: &["enable_vhost_deletion_protection orders"],
        intent: "Protecting virtual host \"{name}\" from removal by updating its metadata...",
        action: Action::Change(Change {
            method: "POST",
            path: "/api/vhosts/{name}/deletion/protection",
            body: Body::Nothing,
            refusals: &[GONE],
            done: "",
        }),
    },
    Spec {
        name: "disable_vhost_deletion_protection",
        about: "Allow a vhost to be deleted again",
        arguments: &[VHOST],
        examples: &["disable_vhost_deletion_protection orders"],
        intent: "Removing deletion protection from virtual host \"{name}\" by updating its metadata...",
        action: Action::Change(Change {
            method: "DELETE",
            path: "/api/vhosts/{name}/deletion/protection",
            body: Body::Nothing,
            refusals: &[GONE],
            done: "",
        }),
    },
];

/// Fails if there is no such vhost, or none that who asks may enter.
pub(super) fn refuse_unknown(session: &mut Session, name: &str) -> Result<(), Failure> {
    // Of what is in a vhost, everyone who may enter it can ask for this.
    match session.client.find(&format!("/api/policies/{}?columns=name", segment(name)))? {
        Some(_) => Ok(()),
        None => Err(no_vhost(name)),
    }
}

fn no_vhost(name: &str) -> Failure {
    Failure::error(DATA, format!("Virtual host '{name}' does not exist"))
}

/// The path of a vhost, and what is there.
fn find(session: &mut Session, name: &str) -> Result<(String, Option<Value>), Failure> {
    let path = format!("/api/vhosts/{}", segment(name));
    let found = session.client.find(&path)?;
    Ok((path, found))
}

/// Sends what is known of a vhost, with what is said now in its place: what is left out would be cleared.
fn put(
    session: &mut Session,
    path: &str,
    known: &Value,
    said: Map<String, Value>,
) -> Result<(), Failure> {
    let names = ["description", "tags", "default_queue_type", "tracing"];
    let kept = names.iter().filter(|name| !known[**name].is_null());
    let mut members: Map<String, Value> =
        kept.map(|name| ((*name).to_owned(), known[*name].clone())).collect();
    members.extend(said);
    good(session.client.call(Method::PUT, path, body(&Value::Object(members)))?).map(drop)
}

fn said(input: &Input) -> Map<String, Value> {
    let mut said = Map::new();
    if let Some(text) = input.find("description") {
        said.insert("description".into(), text.into());
    }
    if let Some(text) = input.find("tags") {
        said.insert(
            "tags".into(),
            text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect(),
        );
    }
    if let Some(text) = input.find("default-queue-type") {
        said.insert("default_queue_type".into(), text.into());
    }
    said
}

fn add(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let (path, known) = find(session, input.text("name"))?;
    let mut said = said(input);
    if let Some(given) = input.find("group") {
        let wrong =
            |_| Failure::usage(format_args!("--group needs the number of a group, not '{given}'"));
        said.insert("group".to_owned(), given.parse::<u16>().map_err(wrong)?.into());
    }
    match known {
        None => put(session, &path, &Value::Null, said)?,
        // It stays as it is; the broker says so if it is in another group.
        Some(known) if input.find("group").is_some() => {
            let group = said.remove("group").into_iter().map(|group| ("group".to_owned(), group));
            put(session, &path, &known, group.collect())?;
        }
        Some(_) => {}
    }
    Ok(Output::Nothing)
}

fn update(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    change(session, input.text("name"), said(input))
}

fn set_tags(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let tags = input.texts("tags").iter().map(String::as_str).collect();
    change(session, input.text("name"), Map::from_iter([("tags".to_owned(), tags)]))
}

fn trace_on(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    trace(session, input.vhost(), true)?;
    Ok(Output::Text(format!("Trace enabled for vhost {}", input.vhost())))
}

fn trace_off(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    trace(session, input.vhost(), false)?;
    Ok(Output::Text(format!("Trace disabled for vhost {}", input.vhost())))
}

fn trace(session: &mut Session, vhost: &str, is_traced: bool) -> Result<Output, Failure> {
    change(session, vhost, Map::from_iter([("tracing".to_owned(), is_traced.into())]))
}

fn change(session: &mut Session, name: &str, said: Map<String, Value>) -> Result<Output, Failure> {
    let (path, known) = find(session, name)?;
    let known = known.ok_or_else(|| no_vhost(name))?;
    put(session, &path, &known, said)?;
    Ok(Output::Nothing)
}

fn restart(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let name = input.vhost();
    match find(session, name)?.1 {
        Some(_) => Ok(Output::Text(format!("Vhost '{name}' is already running"))),
        None => Err(no_vhost(name)),
    }
}

//! What users may do in vhosts.

use crate::client::{body, good, segment};
use crate::failure::{DATA, Failure, NO_USER};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Argument, Output, Spec, optional, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

const USER: Argument = required("user", "The user's name");
const CONFIGURE: Argument =
    required("configure", "A regular expression: what it may declare and delete");
const WRITE: Argument = required("write", "A regular expression: what it may publish to");
const READ: Argument = required("read", "A regular expression: what it may consume from");

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
        action: Action::Run(set),
    },
    Spec {
        name: "set_permissions_globally",
        about: "Grant a user the same access to every vhost that there is now",
        arguments: &[USER, CONFIGURE, WRITE, READ],
        examples: &["set_permissions_globally alice '.*' '.*' '.*'"],
        intent: "Setting permissions for user \"{user}\" in all virtual hosts ...",
        action: Action::Run(set_everywhere),
    },
    Spec {
        name: "clear_permissions",
        about: "Revoke a user's access to a vhost",
        arguments: &[USER],
        examples: &["clear_permissions -p orders bob"],
        intent: "Clearing permissions for user \"{user}\" in vhost \"{vhost}\" ...",
        action: Action::Run(clear),
    },
    Spec {
        name: "set_topic_permissions",
        about: "Set the routing keys of a topic exchange that a user may publish with and bind",
        arguments: &[USER, required("exchange", "A topic exchange"), WRITE, READ],
        examples: &["set_topic_permissions -p / bob amq.topic '^bob\\.' '.*'"],
        intent: "Setting topic permissions on \"{exchange}\" for user \"{user}\" in vhost \"{vhost}\" ...",
        action: Action::Run(set_topic),
    },
    Spec {
        name: "clear_topic_permissions",
        about: "Remove a user's topic permissions, for one exchange or all",
        arguments: &[USER, optional("exchange", "The exchange; all if left out")],
        examples: &["clear_topic_permissions -p / bob amq.topic"],
        intent: "Clearing topic permissions for user \"{user}\" in vhost \"{vhost}\" ...",
        action: Action::Run(clear_topic),
    },
];

fn patterns(input: &Input) -> Value {
    json!({
        "configure": input.text("configure"),
        "write": input.text("write"),
        "read": input.text("read"),
    })
}

fn set(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    put(session, input.vhost(), input.text("user"), "permissions", &patterns(input))
}

/// One vhost after the other: what was set before a failure stays.
fn set_everywhere(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    if input.vhost.is_some() {
        return Err(Failure::usage("the permissions are of all vhosts: leave out -p"));
    }
    // Who is no administrator sees fewer vhosts than there are.
    super::users::known(session, input)?;
    let vhosts = session.client.get("/api/vhosts?columns=name")?;
    let names = vhosts.as_array().into_iter().flatten().filter_map(|vhost| vhost["name"].as_str());
    let names: Vec<&str> = names.collect();
    session.each(&names, |session, index| {
        let user = input.text("user");
        put(session, names[index], user, "permissions", &patterns(input)).map(drop)
    })?;
    Ok(Output::Nothing)
}

fn set_topic(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let sent = json!({
        "exchange": input.text("exchange"),
        "write": input.text("write"),
        "read": input.text("read"),
    });
    put(session, input.vhost(), input.text("user"), "topic-permissions", &sent)
}

fn clear(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    delete(session, input, "permissions", "")
}

fn clear_topic(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let exchange = input.find("exchange").map(|exchange| format!("/{}", segment(exchange)));
    delete(session, input, "topic-permissions", &exchange.unwrap_or_default())
}

/// What was not there is as good as deleted, and said; but not where the vhost is not there.
fn delete(session: &mut Session, input: &Input, kind: &str, rest: &str) -> Result<Output, Failure> {
    let (vhost, user) = (input.vhost(), input.text("user"));
    let path = format!("/api/{kind}/{}/{}{rest}", segment(vhost), segment(user));
    let answer = session.client.call(Method::DELETE, &path, Bytes::new())?;
    if answer.status != 404 {
        return good(answer).map(|_| Output::Nothing);
    }
    super::vhosts::refuse_unknown(session, vhost)?;
    Ok(Output::Text(format!("User \"{user}\" has no such permissions in vhost \"{vhost}\"")))
}

fn put(
    session: &mut Session,
    vhost: &str,
    user: &str,
    kind: &str,
    sent: &Value,
) -> Result<Output, Failure> {
    let path = format!("/api/{kind}/{}/{}", segment(vhost), segment(user));
    let answer = session.client.call(Method::PUT, &path, body(sent))?;
    // The API says the same of a user and a vhost that are not there.
    if answer.status == 404 || answer.reason().contains("vhost_or_user_not_found") {
        let found = session.client.find(&format!("/api/vhosts/{}", segment(vhost)))?;
        return Err(match found {
            None => Failure::error(DATA, format!("Virtual host '{vhost}' does not exist")),
            Some(_) => Failure::error(NO_USER, format!("User \"{user}\" does not exist")),
        });
    }
    good(answer).map(|_| Output::Nothing)
}

//! What is done to queues.

use crate::client::{good, permitted, segment};
use crate::failure::{DATA, Failure, USAGE};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Body, Change, Output, Refused, Spec, flag, option, refused, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;

const NO_QUEUE: &str = "Object (queue, stream, exchange, etc) was not found";
const MISSING: &[Refused] = &[refused(404, DATA, NO_QUEUE)];

pub(super) const COMMANDS: &[Spec] = &[
    super::topology::QUEUE,
    Spec {
        name: "purge_queue",
        about: "Drop all ready messages of a queue",
        arguments: &[
            required("queue", "The queue's name"),
            option("count", "Only this many, the oldest"),
        ],
        examples: &["purge_queue -p orders failed", "purge_queue failed --count 100"],
        intent: "Purging queue '{queue}' in vhost '{vhost}' ...",
        action: Action::Run(purge),
    },
    Spec {
        name: "pause_queue",
        about: "Stop deliveries from a queue until it is resumed",
        arguments: &[required("queue", "The queue's name")],
        examples: &["pause_queue -p orders failed"],
        intent: "Pausing queue '{queue}' in vhost '{vhost}' ...",
        action: Action::Change(Change {
            method: "PUT",
            path: "/api/queues/{vhost}/{queue}/pause",
            body: Body::Nothing,
            refusals: MISSING,
            done: "",
        }),
    },
    Spec {
        name: "resume_queue",
        about: "Resume deliveries from a paused queue",
        arguments: &[required("queue", "The queue's name")],
        examples: &["resume_queue -p orders failed"],
        intent: "Resuming queue '{queue}' in vhost '{vhost}' ...",
        action: Action::Change(Change {
            method: "PUT",
            path: "/api/queues/{vhost}/{queue}/resume",
            body: Body::Nothing,
            refusals: MISSING,
            done: "",
        }),
    },
    Spec {
        name: "delete_queue",
        about: "Delete a queue with its messages",
        arguments: &[
            required("queue", "The queue's name"),
            flag("if-empty", "Only if it has no messages"),
            flag("if-unused", "Only if it has no consumers"),
        ],
        examples: &["delete_queue -p orders failed --if-unused"],
        intent: "Deleting queue '{queue}' on vhost '{vhost}' ...",
        action: Action::Run(delete),
    },
    Spec {
        name: "delete_queues",
        about: "Delete all queues of a vhost whose names match, with their messages",
        arguments: &[
            required(
                "pattern",
                "A regular expression that the names match; anchor it with ^ and $",
            ),
            flag("if-empty", "Only those without messages"),
            flag("if-unused", "Only those without consumers"),
            flag("dry-run", "Only show them"),
        ],
        examples: &["delete_queues -p orders '^tmp\\.' --if-empty --if-unused --dry-run"],
        intent: "Deleting queues whose names match '{pattern}' on vhost '{vhost}' ...",
        action: Action::Run(delete_matching),
    },
];

fn purge(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let mut path = format!("{}/contents", queue_path(input.vhost(), input.text("queue")));
    if let Some(count) = input.find("count") {
        let count: u64 = count
            .parse()
            .map_err(|_| Failure::usage(format!("--count: '{count}' is not a whole number")))?;
        path = format!("{path}?count={count}");
    }
    let answer = session.client.call(Method::DELETE, &path, Bytes::new())?;
    if answer.status == 404 {
        return Err(Failure::error(DATA, NO_QUEUE));
    }
    let answer = good(answer)?;
    if input.find("count").is_none() {
        return Ok(Output::Nothing);
    }
    let done = answer.json()?;
    Ok(Output::Both(format!("{} messages purged", done["purged"]), done))
}

fn queue_path(vhost: &str, queue: &str) -> String {
    format!("/api/queues/{}/{}", segment(vhost), segment(queue))
}

/// What a deletion asks for besides the name.
fn conditions(input: &Input) -> String {
    let conditions = ["if-empty", "if-unused"].into_iter().filter(|name| input.has(name));
    conditions.map(|name| format!("{name}=true")).collect::<Vec<_>>().join("&")
}

/// Deletes one after the other; those that are in use or filled by now stay.
fn delete_matching(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let pattern = match input.text("pattern") {
        // A variable of a script that was not set must not delete everything.
        "" => return Err(Failure::usage("the pattern is empty: give '.*' for all queues")),
        given => fancy_regex::Regex::new(given)
            .map_err(|error| Failure::usage(format!("the pattern can't be used: {error}")))?,
    };
    let path = format!("/api/queues/{}?columns=name,messages,consumers", segment(input.vhost()));
    let found = session.client.find(&path)?.ok_or_else(|| {
        Failure::error(DATA, format!("Virtual host '{}' does not exist", input.vhost()))
    })?;
    let is_wanted = |queue: &&Value| {
        let has = |member: &str| queue[member].as_u64().is_some_and(|count| count > 0);
        queue["name"].as_str().is_some_and(|name| is_found(&pattern, name))
            && !(input.has("if-empty") && has("messages"))
            && !(input.has("if-unused") && has("consumers"))
    };
    let wanted: Vec<&Value> = found.as_array().into_iter().flatten().filter(is_wanted).collect();
    let names: Vec<&str> = wanted.iter().filter_map(|queue| queue["name"].as_str()).collect();
    let mut rows = Vec::new();
    let ended = session.each(&names, |session, index| {
        let result = match input.has("dry-run") {
            true => "would be deleted".into(),
            false => delete_one(session, input, names[index])?,
        };
        rows.push(vec![names[index].into(), wanted[index]["messages"].clone(), result]);
        Ok(())
    });
    let columns = ["name", "messages", "result"].map(str::to_owned).to_vec();
    session.shown(Output::Rows { columns, rows }, ended)
}

/// Deletes one of several. Returns what became of it.
fn delete_one(session: &mut Session, input: &Input, name: &str) -> Result<Value, Failure> {
    let path = format!("{}?{}", queue_path(input.vhost(), name), conditions(input));
    let answer = session.client.call(Method::DELETE, &path, Bytes::new())?;
    match answer.status {
        404 => Ok("gone".into()),
        400 => Ok(answer.reason().into()),
        _ => good(answer).map(|_| "deleted".into()),
    }
}

/// A match that takes too many steps is none: nothing is deleted by it.
fn is_found(pattern: &fancy_regex::Regex, name: &str) -> bool {
    pattern.is_match(name).unwrap_or(false)
}

fn delete(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let path = queue_path(input.vhost(), input.text("queue"));
    let Some(queue) = session.client.find(&path)? else {
        return Err(Failure::error(USAGE, "No such queue was found"));
    };
    let path = format!("{path}?{}", conditions(input));
    let answer = session.client.call(Method::DELETE, &path, Bytes::new())?;
    if answer.status == 404 {
        return Err(Failure::error(USAGE, "No such queue was found"));
    }
    permitted(answer)?;
    let ready = queue["messages_ready"].as_u64().unwrap_or(0);
    Ok(Output::Text(format!("Queue was successfully deleted with {ready} ready messages")))
}

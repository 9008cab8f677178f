//! What is done to queues.

use crate::client::{good, segment};
use crate::failure::{DATA, Failure, USAGE};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Body, Change, Output, Refused, Spec, flag, refused, required};
use bytes::Bytes;
use hyper::Method;

const NO_QUEUE: &[Refused] =
    &[refused(404, DATA, "Object (queue, stream, exchange, etc) was not found")];

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "purge_queue",
        about: "Drop all ready messages of a queue",
        arguments: &[required("queue", "The queue's name")],
        examples: &["purge_queue -p orders failed"],
        intent: "Purging queue '{queue}' in vhost '{vhost}' ...",
        action: Action::Change(Change {
            method: "DELETE",
            path: "/api/queues/{vhost}/{queue}/contents",
            body: Body::Nothing,
            refusals: NO_QUEUE,
            done: "",
        }),
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
            refusals: NO_QUEUE,
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
            refusals: NO_QUEUE,
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
];

fn delete(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let path = format!("/api/queues/{}/{}", segment(input.vhost()), segment(input.text("queue")));
    let Some(queue) = session.client.find(&path)? else {
        return Err(Failure::error(USAGE, "No such queue was found"));
    };
    let conditions: Vec<&str> = [("if-empty", "if-empty=true"), ("if-unused", "if-unused=true")]
        .iter()
        .filter(|(name, _)| input.has(name))
        .map(|(_, text)| *text)
        .collect();
    let path = format!("{path}?{}", conditions.join("&"));
    let answer = session.client.call(Method::DELETE, &path, Bytes::new())?;
    if answer.status == 404 {
        return Err(Failure::error(USAGE, "No such queue was found"));
    }
    good(answer)?;
    let ready = queue["messages_ready"].as_u64().unwrap_or(0);
    Ok(Output::Text(format!("Queue was successfully deleted with {ready} ready messages")))
}

//! Holding back what clients would get of a queue.

use super::declare::check;
use crate::call::{Call, Outcome};
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use courser_auth::{Resource, Right};

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/queues/{vhost}/{queue}/pause",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: pause,
        doc: "Pauses a queue: it takes messages, and clients get none, until it is resumed.",
    },
    Route {
        method: Verb::Put,
        pattern: "/api/queues/{vhost}/{queue}/resume",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: resume,
        doc: "Ends the pause of a queue.",
    },
];

fn pause(call: &Call) -> Outcome {
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    check(call, Right::Configure, Resource::Queue(queue))?;
    call.admin().pause_queue(vhost, queue)?;
    Ok(Reply::done())
}

fn resume(call: &Call) -> Outcome {
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    check(call, Right::Configure, Resource::Queue(queue))?;
    call.admin().resume_queue(vhost, queue)?;
    Ok(Reply::done())
}

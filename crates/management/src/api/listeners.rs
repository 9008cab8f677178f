//! The listeners for clients: they can be suspended, so that no new connections are taken.

use super::nodes::is_this;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use crate::settings::ListenerFacts;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/nodes/{node}/listeners/suspend",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: suspend,
        doc: "Suspends the listeners for clients: no new connections are taken until they are resumed.",
    },
    Route {
        method: Verb::Put,
        pattern: "/api/nodes/{node}/listeners/resume",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: resume,
        doc: "Has the listeners for clients take connections again.",
    },
];

fn suspend(call: &Call) -> Outcome {
    set(call, true)
}

fn resume(call: &Call) -> Outcome {
    set(call, false)
}

fn set(call: &Call, on: bool) -> Outcome {
    is_this(call)?;
    if call.api.settings.cluster.is_some() {
        return Err(Refusal::bad_request(
            "listeners of a node of a cluster can't be suspended: drain the node instead",
        ));
    }
    (call.api.settings.suspend_listeners)(on);
    Ok(Reply::done())
}

/// Whether the listeners for clients are suspended.
pub(super) fn are_suspended(call: &Call) -> bool {
    (call.api.settings.listeners_suspended)()
}

/// The listeners that take connections.
pub(super) fn active(call: &Call) -> impl Iterator<Item = &ListenerFacts> {
    let suspended = are_suspended(call);
    let all = call.api.settings.node.listeners.iter();
    all.filter(move |one| !(suspended && one.is_for_clients()))
}

//! Reading the journal of a node for damage.

use super::get;
use super::nodes::is_this;
use crate::ScrubState;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use hyper::StatusCode;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/nodes/{node}/scrub",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: start,
        doc: "Has a node read all of its journal for damage, as fast as it may.",
    },
    get(
        "/api/nodes/{node}/scrub",
        Needs::Monitoring,
        state,
        "How far a node is with reading its journal for damage, and what was found.",
    ),
];

/// How far it is, behind its start if that is wanted.
fn scrub(call: &Call, start: bool) -> Result<ScrubState, Refusal> {
    if let Some(cluster) = &call.api.settings.cluster {
        let node = call.text("node")?;
        let name = node.strip_prefix("courser@").unwrap_or(node);
        return Ok(cluster.scrub(name, start)?);
    }
    is_this(call)?;
    let none = || Refusal::bad_request("this node does not read its journal for damage");
    let scrub = call.api.settings.scrub.as_ref().ok_or_else(none)?;
    if start {
        scrub.start();
    }
    Ok(scrub.state())
}

fn start(call: &Call) -> Outcome {
    Ok(Reply::json(&scrub(call, true)?).with_status(StatusCode::ACCEPTED))
}

fn state(call: &Call) -> Outcome {
    Ok(Reply::json(&scrub(call, false)?))
}

//! Reading the journal for damage.

use super::get;
use super::nodes::is_this;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route, Verb};
use crate::scrub::Scrub;
use hyper::StatusCode;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/nodes/{node}/scrub",
        needs: Needs::Administrator,
        handler: start,
        doc: "Begins to read all of the journal for damage, as fast as it may.",
    },
    get(
        "/api/nodes/{node}/scrub",
        Needs::Monitoring,
        state,
        "How far the reading of the journal for damage is, and what was found.",
    ),
];

fn scrub(call: &Call) -> Result<&dyn Scrub, Refusal> {
    is_this(call)?;
    let none = || Refusal::bad_request("the journal of this node is not read for damage");
    call.api.settings.scrub.as_deref().ok_or_else(none)
}

fn start(call: &Call) -> Outcome {
    let scrub = scrub(call)?;
    scrub.start();
    Ok(Reply::json(&scrub.state()).with_status(StatusCode::ACCEPTED))
}

fn state(call: &Call) -> Outcome {
    Ok(Reply::json(&scrub(call)?.state()))
}

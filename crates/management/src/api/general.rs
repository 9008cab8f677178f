//! Who asks, and what this API is.

use super::get;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use crate::{API_VERSION, openapi};
use courser_auth::Tags;
use serde_json::json;

pub(crate) const ROUTES: &[Route] = &[
    get("/api/whoami", Needs::Login, whoami, "The user who asks."),
    get("/api/version", Needs::Nothing, version, "The version of RabbitMQ whose API this is."),
    get("/api/openapi.json", Needs::Nothing, description, "This description."),
    get(
        "/api/audit",
        Needs::Administrator,
        audit,
        "The last requests for changes, newest first (count), and what came of them.",
    ),
    get("/api/config/effective", Needs::Administrator, settings, "The settings, without secrets."),
    get("/api/extensions", Needs::Login, extensions, "Extensions of the web page: there is none."),
];

/// Lines of the audit log that are shown where nothing is said, and at most.
const AUDIT_LINES: usize = 100;
const AUDIT_LINES_MAX: usize = 1000;

fn whoami(call: &Call) -> Outcome {
    let user = &call.caller()?.user;
    Ok(Reply::json(&json!({
        "name": user.name,
        "tags": tags(&user.tags),
        "is_internal_user": true,
    })))
}

/// Tags as a list.
pub(super) fn tags(tags: &Tags) -> Vec<&str> {
    tags.iter().collect()
}

fn version(_: &Call) -> Outcome {
    Ok(Reply::json(&API_VERSION))
}

fn description(call: &Call) -> Outcome {
    Ok(Reply::json(&openapi::document(&call.api.routes, &call.api.settings.node.version)))
}

fn audit(call: &Call) -> Outcome {
    let count = call.query("count").filter(|count| !count.is_empty()).map(str::parse::<usize>);
    let count = count.unwrap_or(Ok(AUDIT_LINES));
    let count = count.map_err(|_| Refusal::bad_request(json!(["not_int", "count"])))?;
    let last = call.api.audit.as_ref().map(|audit| audit.last(count.min(AUDIT_LINES_MAX)));
    Ok(Reply::json(&last.transpose().map_err(Refusal::internal)?.unwrap_or_default()))
}

fn settings(call: &Call) -> Outcome {
    Ok(Reply::json(&call.api.settings.node.settings))
}

fn extensions(_: &Call) -> Outcome {
    Ok(Reply::json(&json!([])))
}

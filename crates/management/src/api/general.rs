//! Who asks, and what this API is.

use super::get;
use crate::call::{Call, Outcome};
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use crate::{API_VERSION, openapi};
use courser_auth::Tags;
use serde_json::json;

pub(crate) const ROUTES: &[Route] = &[
    get("/api/whoami", Needs::Login, whoami, "The user who asks."),
    get("/api/version", Needs::Nothing, version, "The version of RabbitMQ whose API this is."),
    get("/api/openapi.json", Needs::Nothing, description, "This description."),
    get("/api/extensions", Needs::Login, extensions, "Extensions of the web page: there is none."),
];

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

fn extensions(_: &Call) -> Outcome {
    Ok(Reply::json(&json!([])))
}

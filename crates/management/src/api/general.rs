//! Who asks, and what this API is.

use super::peek::number;
use super::{get, runtime};
use crate::audit::AuditPage;
use crate::call::{Call, Outcome};
use crate::packed::Packed;
use crate::path::readable;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use crate::{API_VERSION, openapi, reference};
use courser_auth::{Origin, Tags};
use courser_broker::admin::PAGE_MAX;
use serde_json::{Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get("/api/whoami", Needs::Login, whoami, "The user who asks."),
    get("/api/version", Needs::Nothing, version, "The version of RabbitMQ whose API this is."),
    get(
        "/api/auth",
        Needs::Nothing,
        auth,
        "Where pages log people in for tokens (OAuth 2), if they do.",
    ),
    get("/api/openapi.json", Needs::Nothing, description, "This description as OpenAPI."),
    get("/api/index.html", Needs::Nothing, reference_page, "This description as a page."),
    get("/api/index.css", Needs::Nothing, reference_style, "How that page looks."),
    get(
        "/api/audit",
        Needs::Administrator,
        audit,
        "Requests for changes, newest first, and what came of them: `count`, or `page` and `page_size`; of a `user`, a `method`, with `contains` in the path, `since_ms`, a `result` (done, refused), with all words of `search` somewhere.",
    ),
    get("/api/config/effective", Needs::Administrator, settings, "The settings, without secrets."),
    get("/api/extensions", Needs::Login, extensions, "Extensions of the web page: there is none."),
];

/// Lines of the audit log that are shown where nothing is said, and at most; a page has 500.
const AUDIT_LINES: usize = 100;
const AUDIT_LINES_MAX: usize = 1000;

fn whoami(call: &Call) -> Outcome {
    let user = &call.caller()?.user;
    Ok(Reply::json(&json!({
        "name": user.name,
        "tags": tags(&user.tags),
        "is_internal_user": user.origin != Origin::Elsewhere,
    })))
}

/// Tags as a list.
pub(super) fn tags(tags: &Tags) -> Vec<&str> {
    tags.iter().collect()
}

fn version(_: &Call) -> Outcome {
    Ok(Reply::json(&API_VERSION))
}

fn auth(call: &Call) -> Outcome {
    Ok(Reply::json(&match &call.api.settings.web.oauth {
        None => json!({ "oauth_enabled": false }),
        Some(client) => json!({
            "oauth_enabled": true,
            "oauth_disable_basic_auth": client.disable_basic_auth,
            "oauth_client_id": client.client_id,
            "oauth_provider_name": client.provider_name,
            "oauth_provider_url": client.provider_url,
            "oauth_scopes": client.scopes,
        }),
    }))
}

fn description(call: &Call) -> Outcome {
    let api = &call.api;
    let description = api.description.get_or_init(|| {
        let document = openapi::document(&api.routes, &api.settings.node.version);
        Packed::new(document.to_string(), "application/json")
    });
    Ok(description.reply(&call.headers))
}

fn reference_page(call: &Call) -> Outcome {
    let api = &call.api;
    let reference = api.reference.get_or_init(|| {
        let page = reference::html(&api.routes, &api.settings.node.version);
        Packed::new(page, "text/html; charset=utf-8")
    });
    Ok(reference.reply(&call.headers))
}

fn reference_style(_: &Call) -> Outcome {
    Ok(Reply::text(reference::STYLE, "text/css; charset=utf-8"))
}

fn audit(call: &Call) -> Outcome {
    let asked = |name: &str| call.query(name).filter(|text| !text.is_empty());
    let since_ms = number(call, "since_ms", 0)? as u64;
    let refused = match asked("result") {
        None => None,
        Some("done") => Some(false),
        Some("refused") => Some(true),
        Some(_) => return Err(Refusal::bad_request("result is one of done and refused")),
    };
    let words: Vec<String> =
        asked("search").unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let wants = |line: &Value| {
        let is = |member: &str, wanted: Option<&str>| {
            wanted.is_none_or(|wanted| line[member].as_str() == Some(wanted))
        };
        let part = asked("contains").unwrap_or_default();
        is("user", asked("user"))
            && is("method", asked("method"))
            && line["path"].as_str().is_some_and(|path| path.contains(part))
            && line["at_ms"].as_u64().is_some_and(|at_ms| at_ms >= since_ms)
            && refused.is_none_or(|refused| (line["status"].as_u64() >= Some(400)) == refused)
            && (words.is_empty() || has_words(line, &words))
    };
    let look = |skip, most| match &call.api.audit {
        Some(audit) => audit.page(skip, most, &wants).map_err(Refusal::internal),
        None => Ok(AuditPage::default()),
    };
    if asked("page").is_none() {
        let count = number(call, "count", AUDIT_LINES)?.min(AUDIT_LINES_MAX);
        return Ok(Reply::json(&look(0, count)?.lines));
    }
    let (page, size) = (number(call, "page", 1)?.max(1), number(call, "page_size", AUDIT_LINES)?);
    let size = size.clamp(1, PAGE_MAX);
    let found = look((page - 1).saturating_mul(size), size)?;
    Ok(Reply::json(&json!({
        "items": found.lines,
        "item_count": found.lines.len(),
        "page": page,
        "page_size": size,
        "has_more": found.has_more,
    })))
}

/// Whether each word, in lower case, is somewhere in a line; a path is read with and without escapes.
fn has_words(line: &Value, words: &[String]) -> bool {
    let text = |member: &str| line[member].as_str().unwrap_or_default();
    let path = text("path");
    let all = format!(
        "{} {} {} {path} {} {}",
        text("user"),
        text("peer"),
        text("method"),
        readable(path).unwrap_or_default(),
        line["status"]
    )
    .to_lowercase();
    words.iter().all(|word| all.contains(word))
}

fn settings(call: &Call) -> Outcome {
    Ok(Reply::json(&runtime::settings_in_effect(call)))
}

fn extensions(_: &Call) -> Outcome {
    Ok(Reply::json(&json!([])))
}

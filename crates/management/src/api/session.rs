//! Logging in with a browser, and out.

use super::general::tags;
use super::get;
use crate::call::{Call, Outcome};
use crate::cookies::Kept;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use crate::sessions::{CHANGE_HEADER, SESSION};
use courser_auth::Origin;
use hyper::header::SET_COOKIE;
use serde_json::json;
use tokio::runtime::Handle;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Post,
        pattern: "/api/login",
        needs: Needs::Credentials,
        changes: Changes::Memory,
        handler: begun,
        doc: "Begins a session, which a cookie stands for: `username` and `password` as a form or as JSON.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/login",
        needs: Needs::Login,
        changes: Changes::Memory,
        handler: log_out,
        doc: "Ends the session; if it was begun at a provider of tokens, says where to log out there (`end_session`).",
    },
    get("/api/login", Needs::Login, who, "The user who is logged in, and how a session is used."),
];

/// Begins a session of the user who has logged in with this request.
pub(super) fn begun(call: &Call) -> Outcome {
    let caller = call.caller()?;
    let web = &call.api.settings.web;
    let idle_ms = web.session_idle_s.saturating_mul(1000);
    let secret = call.api.sessions.begin(caller, call.api.now_ms(), idle_ms)?;
    let kept = Kept::UntilItCloses;
    let cookie = SESSION.set(&call.headers, &secret, kept, call.is_tls, &web.path_prefix);
    // The audit log has logins, as many of each user as do not fill it.
    tracing::debug!(user = caller.name(), peer = %call.peer, "session begun");
    Ok(who(call)?.with_header(SET_COOKIE, &cookie))
}

fn log_out(call: &Call) -> Outcome {
    let ended = call.api.sessions.end(&call.headers);
    let path_prefix = &call.api.settings.web.path_prefix;
    let cookie = SESSION.clear(&call.headers, call.is_tls, path_prefix);
    let is_elsewhere_too = ended.is_some_and(|session| session.renewal.is_some());
    let reply = is_elsewhere_too.then(|| elsewhere(call)).flatten().unwrap_or_else(Reply::done);
    Ok(reply.with_header(SET_COOKIE, &cookie))
}

/// Where the browser goes to log out of the provider too, if that is known.
fn elsewhere(call: &Call) -> Option<Reply> {
    let client = call.api.settings.web.oauth.as_ref()?;
    let endpoints = Handle::current().block_on(client.provider.endpoints()).ok()?;
    let mut reply = Reply::json(&json!({
        "end_session": endpoints.end_session?,
        "client_id": client.client_id,
    }));
    reply.no_store = true;
    Some(reply)
}

fn who(call: &Call) -> Outcome {
    let caller = call.caller()?;
    let (user, grant) = (&caller.user, caller.grant.as_ref());
    let mut reply = Reply::json(&json!({
        "user": { "name": user.name, "tags": tags(&user.tags), "is_internal_user": user.origin != Origin::Elsewhere },
        "with_token": grant.is_some_and(|grant| grant.is_renewable()),
        "change_header": CHANGE_HEADER.as_str(),
        "idle_seconds": call.api.settings.web.session_idle_s,
    }));
    reply.no_store = true;
    Ok(reply)
}

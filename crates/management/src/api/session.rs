//! Logging in with a browser, and out.

use super::general::tags;
use super::get;
use crate::call::{Call, Outcome};
use crate::reply::Reply;
use crate::routes::{Needs, Route, Verb};
use crate::sessions::{CHANGE_HEADER, set_cookie};
use courser_auth::Origin;
use hyper::header::SET_COOKIE;
use serde_json::json;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Post,
        pattern: "/api/login",
        needs: Needs::Credentials,
        handler: log_in,
        doc: "Begins a session, which a cookie stands for: `username` and `password` as a form or as JSON.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/login",
        needs: Needs::Login,
        handler: log_out,
        doc: "Ends the session.",
    },
    get("/api/login", Needs::Login, who, "The user who is logged in, and how a session is used."),
];

fn log_in(call: &Call) -> Outcome {
    let caller = call.caller()?;
    let web = &call.api.settings.web;
    // As it is now: a good login may have renewed the hash.
    let user = call.admin().accounts().user(caller.name()).cloned();
    let user = user.filter(|_| caller.grant.is_none()).unwrap_or_else(|| caller.user.clone());
    let secret = call.api.sessions.begin(&user, caller.grant.clone(), call.api.now_ms())?;
    let cookie = set_cookie(&call.headers, Some(&secret), call.is_tls, &web.path_prefix);
    tracing::info!(user = caller.name(), peer = %call.peer, "session begun");
    Ok(who(call)?.with_header(SET_COOKIE, &cookie))
}

fn log_out(call: &Call) -> Outcome {
    call.api.sessions.end(&call.headers);
    let path_prefix = &call.api.settings.web.path_prefix;
    let cookie = set_cookie(&call.headers, None, call.is_tls, path_prefix);
    Ok(Reply::done().with_header(SET_COOKIE, &cookie))
}

fn who(call: &Call) -> Outcome {
    let user = &call.caller()?.user;
    let mut reply = Reply::json(&json!({
        "user": { "name": user.name, "tags": tags(&user.tags), "is_internal_user": user.origin != Origin::Elsewhere },
        "change_header": CHANGE_HEADER.as_str(),
        "idle_seconds": call.api.settings.web.session_idle_s,
    }));
    reply.no_store = true;
    Ok(reply)
}

//! Logging in with a browser at the provider of tokens.

use super::session::begun;
use crate::call::{Call, Outcome};
use crate::oauth::flow::{PENDING, begin};
use crate::routes::{Changes, Needs, Route, Verb};
use hyper::header::SET_COOKIE;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Post,
        pattern: "/api/oauth/login",
        needs: Needs::Nothing,
        changes: Changes::Memory,
        handler: begin,
        doc: "Begins a login at the provider of tokens, which sends the browser back to `page`: the `location` where it goes first, and the `state` with which it comes back.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/oauth/session",
        needs: Needs::Code,
        changes: Changes::Memory,
        handler: finish,
        doc: "Begins a session with what the provider has sent the browser back with: `code` and `state`, and the same `page`.",
    },
];

fn finish(call: &Call) -> Outcome {
    let path_prefix = &call.api.settings.web.path_prefix;
    let cookie = PENDING.clear(&call.headers, call.is_tls, path_prefix);
    Ok(begun(call)?.with_header(SET_COOKIE, &cookie))
}

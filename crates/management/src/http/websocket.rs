//! Requests that turn an HTTP connection into a WebSocket which speaks AMQP.
//!
//! Only the handshake is done here: the AMQP server takes the connection over, and its client logs in there. A browser
//! connects for any page, so that one of another origin is refused unless the settings name it.

use super::answer::{empty, refusal};
use super::body::Outgoing;
use super::request::{Connected, is_from_elsewhere};
use crate::Api;
use crate::hosts::names_this;
use crate::refusal::Refusal;
use crate::settings::WebSocketEnds;
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tungstenite::handshake::derive_accept_key;

/// Where sockets are served. The shorter ones are what clients' examples have.
const PATHS: [&str; 3] = ["/ws/amqp", "/ws", ""];
/// The only version of the protocol that is in use.
const VERSION: &str = "13";

/// The answer to a request, if it is one for a socket; `prefix` stands before every path.
pub(super) fn answer(
    api: &Api,
    connected: &Connected,
    prefix: &str,
    request: &mut Request<Incoming>,
) -> Option<Response<Outgoing>> {
    let serve = api.settings.websocket.clone().filter(|_| !connected.is_inside)?;
    let path = request.uri().path().strip_prefix(prefix)?.trim_end_matches('/');
    let is_asked = has_token(request.headers(), &UPGRADE, "websocket");
    // What is at the root is the page.
    if !PATHS.contains(&path) || !is_asked && path.is_empty() {
        return None;
    }
    Some(match shake_hands(api, request, is_asked) {
        Ok(agreed) => {
            let (peer, local) = (connected.address, connected.local);
            let by_foreign_name = !names_this(request.headers(), &api.settings.web);
            let (tls, is_operator) = (connected.tls.clone(), connected.is_operator);
            let ends = WebSocketEnds { peer, local, tls, by_foreign_name, is_operator };
            let upgrade = hyper::upgrade::on(request);
            tokio::spawn(async move {
                match upgrade.await {
                    Ok(upgraded) => serve(TokioIo::new(upgraded), ends),
                    Err(error) => tracing::debug!(%peer, %error, "no WebSocket"),
                }
            });
            agreed
        }
        Err(refused) => *refused,
    })
}

fn shake_hands(
    api: &Api,
    request: &Request<Incoming>,
    is_asked: bool,
) -> Result<Response<Outgoing>, Box<Response<Outgoing>>> {
    let headers = request.headers();
    let version = headers.get(SEC_WEBSOCKET_VERSION);
    if !is_asked || version.is_none_or(|version| version != VERSION) {
        let mut upgrade = empty(StatusCode::UPGRADE_REQUIRED);
        let headers = upgrade.headers_mut();
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        return Err(Box::new(upgrade));
    }
    if is_from_elsewhere(api, headers) {
        let reason = "A web page of another origin must not connect (management.cors_origins)";
        let mut refused = refusal(&Refusal::bad_request(reason));
        *refused.status_mut() = StatusCode::FORBIDDEN;
        return Err(Box::new(refused));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let is_good = request.method() == Method::GET && has_token(headers, &CONNECTION, "upgrade");
    let Some(key) = key.filter(|_| is_good) else {
        let reason = "This is no handshake of a WebSocket";
        return Err(Box::new(refusal(&Refusal::bad_request(reason))));
    };
    let accept = derive_accept_key(key.as_bytes());
    let mut agreed = empty(StatusCode::SWITCHING_PROTOCOLS);
    let answers = agreed.headers_mut();
    answers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        answers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    // A client that asks for a protocol gives up if it is not told which one it gets.
    if let Some(protocol) = protocol(headers) {
        answers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(agreed)
}

/// The first protocol that a client wants and that is AMQP, however exactly it is called.
fn protocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut wanted = tokens(headers, &SEC_WEBSOCKET_PROTOCOL);
    let amqp = wanted.find(|protocol| protocol.starts_with("amqp"))?;
    HeaderValue::from_str(amqp).ok()
}

fn has_token(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    tokens(headers, name).any(|token| token.eq_ignore_ascii_case(wanted))
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lists = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(str::trim)
}

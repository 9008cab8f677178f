//! What a request says of itself, and who sends it.

use super::body::{BODY_BYTES_MAX, LOGIN_BODY_BYTES_MAX, POLICY_BODY_BYTES_MAX, read};
use super::places::{Keeper, Kept};
use crate::Api;
use crate::api::changes_policies;
use crate::call::{Call, check_query};
use crate::caller::Caller;
use crate::groups::inside::{INSIDE, Inside};
use crate::hosts;
use crate::oauth::{flow, renewal};
use crate::path;
use crate::refusal::Refusal;
use crate::routes::{Needs, Resource, Route, check_tags};
use crate::sessions::{CHANGE_HEADER, SESSION};
use crate::settings::ClientTls;
use crate::taken;
use courser_broker::admin::Admin;
use hyper::body::{Body, Incoming};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;

/// Both ends of a connection over which requests come.
#[derive(Clone, Debug)]
pub(super) struct Connected {
    /// Where the client is.
    pub address: SocketAddr,
    /// Where it has connected to.
    pub local: SocketAddr,
    /// With TLS: what its handshake has said.
    pub tls: Option<Arc<ClientTls>>,
    /// The system says that it belongs to the user whom the broker runs as, or to root.
    pub is_operator: bool,
    /// It comes from a relay, which keeps a place for the client too.
    pub is_relayed: bool,
    /// It comes from the API of home, which says on whose behalf.
    pub is_inside: bool,
}

impl Connected {
    /// The ends of a connection that is a client's own.
    pub fn new(address: SocketAddr, local: SocketAddr) -> Self {
        let (is_operator, is_relayed, is_inside) = (false, false, false);
        Connected { address, local, tls: None, is_operator, is_relayed, is_inside }
    }
}

/// Where a request comes from.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub connected: Connected,
    pub keeper: Keeper,
    /// Says when its broker stops.
    pub stopping: watch::Receiver<bool>,
}

/// Reads a request whole, and finds out who sends it, which is noted in `user` as soon as it is known. A user who had
/// logged in before it came whole keeps the connection's place from then on, until the answer is sent.
pub(super) async fn prepare(
    api: &Arc<Api>,
    peer: Peer,
    request: Request<Incoming>,
    resource: &Resource,
    segments: Vec<Vec<u8>>,
    route: &Route,
    user: &mut Option<String>,
) -> Result<(Call, Option<Kept>), Refusal> {
    let (mut head, body) = request.into_parts();
    let mut caller = None;
    let inside = inside(&peer, &mut head);
    if !peer.connected.is_inside {
        refuse_foreign_page(api, &head)?;
    }
    if !matches!(route.needs, Needs::Nothing | Needs::Credentials | Needs::Code) {
        let who = match &inside {
            Some(inside) => inside.caller(api)?,
            None => known(api, &peer, &head).await?,
        };
        *user = Some(who.name().to_owned());
        check_tags(&who, route.needs)?;
        caller = Some(who);
    }
    if !accepts_json(&head.headers) {
        return Err(Refusal::empty(StatusCode::NOT_ACCEPTABLE));
    }
    let query = query(&head)?;
    // What home passes on is its own.
    if inside.is_none() && route.needs != Needs::Nothing {
        taken::check_query(route.method, route.pattern, &query)?;
    }
    let has_body = !body.is_end_stream();
    let most = match caller {
        None => LOGIN_BODY_BYTES_MAX,
        Some(_) if changes_policies(route) => POLICY_BODY_BYTES_MAX,
        Some(_) => BODY_BYTES_MAX,
    };
    let (body, room) = read(body, most, &api.bodies, user.as_deref().unwrap_or_default()).await?;
    // While it came, its sender may have been deleted. Home has asked where it passes something on.
    if let Some(who) = caller.as_mut().filter(|_| has_body && inside.is_none()) {
        *who = who.asked_again(api.now_ms()).await?;
        check_tags(who, route.needs)?;
    }
    let kept = caller.as_ref().and_then(|who| peer.keeper.keep(who.name()));
    if matches!(route.needs, Needs::Credentials | Needs::Code) {
        let who = logs_in(api, route.needs, &peer.connected, &head.headers, &body).await?;
        *user = Some(who.name().to_owned());
        check_tags(&who, route.needs)?;
        caller = Some(who);
    }
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let target = target.strip_prefix(prefix(api, &peer.connected)).unwrap_or(target).to_owned();
    let from = inside.as_ref().map(|inside| inside.from);
    let call = Call {
        api: Arc::clone(api),
        admin: admin_for(api, caller.as_ref()),
        caller,
        target,
        inside: inside.map(Arc::new),
        method: head.method,
        params: resource.params(segments),
        query,
        takes: taken::body_of(route.method, route.pattern),
        headers: head.headers,
        body,
        _room: room,
        peer: from.unwrap_or(peer.connected.address),
        is_tls: peer.connected.tls.is_some(),
        stopping: peer.stopping,
    };
    Ok((call, kept))
}

/// What home says of a request that it passes on.
fn inside(peer: &Peer, head: &mut Parts) -> Option<Inside> {
    if peer.connected.is_inside {
        return Inside::read(&head.headers);
    }
    // It counts inside only.
    head.headers.remove(INSIDE);
    None
}

/// What does as this caller asks, and notes by whom it was asked.
fn admin_for(api: &Api, caller: Option<&Caller>) -> Admin {
    let admin = match caller.and_then(Caller::author) {
        Some(author) => api.admin.on_behalf_of(author),
        None => api.admin.clone(),
    };
    admin.sparing_protected()
}

fn query(head: &Parts) -> Result<Vec<(String, String)>, Refusal> {
    let query = path::query(head.uri.query().unwrap_or_default())
        .ok_or_else(|| Refusal::bad_request("The query string can't be read"))?;
    check_query(&query)?;
    Ok(query)
}

/// Who logs in with a request.
async fn logs_in(
    api: &Arc<Api>,
    needs: Needs,
    connected: &Connected,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Caller, Refusal> {
    let from = connected.address;
    let who = match needs {
        Needs::Code => flow::finish(api, headers, body, from).await?,
        _ => api.logins.of_login(headers, body, from, &api.admin).await?,
    };
    come_by_name(api, connected, headers, &who)?;
    Ok(who)
}

fn come_by_name(
    api: &Api,
    connected: &Connected,
    headers: &HeaderMap,
    who: &Caller,
) -> Result<(), Refusal> {
    match connected.is_operator {
        true => Ok(()),
        false => named_by(api, headers, who),
    }
}

/// Refuses a user who may only come from this machine where the request is for a name that need not be this machine's.
pub(crate) fn named_by(api: &Api, headers: &HeaderMap, who: &Caller) -> Result<(), Refusal> {
    if hosts::names_this(headers, &api.settings.web) {
        return Ok(());
    }
    let come = api.settings.accounts.come_from(&who.user, Ipv4Addr::UNSPECIFIED.into());
    come.map_err(|_| {
        Refusal::not_authorised(
            "User can only log in via localhost: ask for localhost or an address, or list the host in management.hosts",
        )
    })
}

/// Refuses a web page that is neither ours nor one that the settings name, unless it only reads, and sends no credentials.
fn refuse_foreign_page(api: &Api, head: &Parts) -> Result<(), Refusal> {
    if !is_from_elsewhere(api, &head.headers) {
        return Ok(());
    }
    let has_credentials =
        head.headers.contains_key(AUTHORIZATION) || SESSION.value(&head.headers).is_some();
    // A browser adds the credentials that it knows to what any page sends, and keeps the cookie of a login.
    let what = match (is_change(head), has_credentials) {
        (true, _) => "change anything",
        (false, true) => "send credentials",
        (false, false) => return Ok(()),
    };
    let reason = format!("A web page of another origin must not {what} (management.cors_origins)");
    Err(Refusal::bad_request(reason))
}

fn is_change(head: &Parts) -> bool {
    !matches!(head.method, Method::GET | Method::HEAD)
}

/// What stands before every path.
pub(super) fn prefix<'a>(api: &'a Api, connected: &Connected) -> &'a str {
    match connected.is_operator || connected.is_inside {
        true => "",
        false => api.settings.web.path_prefix.as_str(),
    }
}

/// Who sends a request: by name and password, or by the cookie of a session.
async fn known(api: &Arc<Api>, peer: &Peer, head: &Parts) -> Result<Caller, Refusal> {
    let is_change = is_change(head);
    let headers = &head.headers;
    let caller = match headers.contains_key(AUTHORIZATION) {
        true => api.logins.of_headers(headers, peer.connected.address, &api.admin).await,
        false if peer.connected.is_operator => Ok(Caller::operator(&api.settings.accounts)),
        false => of_session(api, peer, headers, is_change).await,
    };
    // Who sends this header has a form of its own: its browser must not show another one, nor one that is of no use.
    let caller = caller.map_err(|mut refusal| {
        refusal.challenge &= !headers.contains_key(CHANGE_HEADER) && !api.logins.only_tokens();
        refusal
    })?;
    come_by_name(api, &peer.connected, headers, &caller)?;
    Ok(caller)
}

async fn of_session(
    api: &Arc<Api>,
    peer: &Peer,
    headers: &HeaderMap,
    is_change: bool,
) -> Result<Caller, Refusal> {
    let from = peer.connected.address;
    let session = api.sessions.find(headers, from, api)?.ok_or_else(Refusal::challenge)?;
    if let Some((grant, renewal)) = session.renewable() {
        renewal::keep(api, grant, renewal, from).await?;
    }
    session.caller(is_change, headers, api)?.asked_again(api.now_ms()).await
}

/// Whether a web page sends this that is neither ours nor one that the settings name.
pub(crate) fn is_from_elsewhere(api: &Api, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let Ok(origin) = origin.to_str() else { return true };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    let is_ours = authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host));
    !is_ours && !api.settings.web.names_origin(origin)
}

/// Whether JSON is among what a client wants; without a word it is. Who wants text or events gets what
/// there is.
fn accepts_json(headers: &HeaderMap) -> bool {
    let mut wanted = headers.get_all(ACCEPT).iter().peekable();
    if wanted.peek().is_none() {
        return true;
    }
    let lists = wanted.filter_map(|value| value.to_str().ok());
    let mut types = lists.flat_map(|list| list.split(','));
    types.any(|one| {
        let name = one.split(';').next().unwrap_or_default().trim();
        let names = [
            "application/json",
            "application/*",
            "*/*",
            "text/plain",
            "text/*",
            "text/event-stream",
        ];
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    })
}

/// Whether a client can read what is compressed.
pub(crate) fn wants_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let is_refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        name.eq_ignore_ascii_case("gzip") && !is_refused
    })
}

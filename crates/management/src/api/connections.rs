//! Connections.

use super::get;
use crate::call::{Call, Outcome};
use crate::json::{Fields, from_table, name};
use crate::list::{paged, whole};
use crate::rates::{Range, put_counters};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_broker::admin::{ConnectionState, ConnectionView};
use serde_json::Value;

pub(crate) const ROUTES: &[Route] = &[
    get("/api/connections", Needs::Login, connections, "The connections that the caller may see."),
    get("/api/connections/{name}", Needs::Login, connection, "A connection."),
    get(
        "/api/connections/{name}/channels",
        Needs::Login,
        super::channels::channels_of_connection,
        "The channels of a connection.",
    ),
    get("/api/connections/{name}/sessions", Needs::Login, sessions, "AMQP 1.0 has sessions."),
    get(
        "/api/connections/username/{user}",
        Needs::Login,
        connections_of_user,
        "The connections of a user.",
    ),
    get("/api/stream/connections", Needs::Login, none, "Connections of the stream protocol."),
    get("/api/stream/publishers", Needs::Login, none, "Publishers of the stream protocol."),
    get("/api/stream/consumers", Needs::Login, none, "Consumers of the stream protocol."),
];

/// Members that say something of TLS and are not known.
const UNKNOWN_OF_TLS: [&str; 8] = [
    "ssl_protocol",
    "ssl_key_exchange",
    "ssl_cipher",
    "ssl_hash",
    "peer_cert_subject",
    "peer_cert_issuer",
    "peer_cert_validity",
    "peer_cert_serial_number",
];

pub(super) fn none(_: &Call) -> Outcome {
    Ok(Reply::json(&Value::Array(Vec::new())))
}

/// The connections in the vhost that is asked for, or in all.
pub(super) fn connections(call: &Call) -> Outcome {
    let caller = call.caller()?;
    let vhost = call.vhost()?;
    let user = (!caller.is_monitor()).then(|| caller.name());
    let listing = call.admin().connections_of(vhost, user)?;
    let render = renderer(call)?;
    paged(call, listing, render)
}

/// The connection in the path, if the caller may see it.
pub(super) fn known(call: &Call, to_change: bool) -> Result<ConnectionView, Refusal> {
    let connection = call.admin().connection(call.text("name")?)?;
    call.caller()?.need_ownership(&name(&connection.user), to_change)?;
    Ok(connection)
}

fn connection(call: &Call) -> Outcome {
    let connection = known(call, false)?;
    let mut fields = Fields::new(&call.columns());
    renderer(call)?(&connection, &mut fields);
    Ok(Reply::object(fields))
}

fn sessions(call: &Call) -> Outcome {
    known(call, false)?;
    none(call)
}

fn connections_of_user(call: &Call) -> Outcome {
    let user = call.text("user")?;
    call.caller()?.need_ownership(user, false)?;
    let node = call.api.settings.node.name.clone();
    whole(call, call.admin().connections_of_user(user), move |connection, fields| {
        fields
            .put("name", connection.name.as_str())
            .put("vhost", connection.vhost.as_str())
            .put("user", name(&connection.user))
            .put("node", node.as_str());
    })
}

fn renderer(
    call: &Call,
) -> Result<impl Fn(&ConnectionView, &mut Fields) + Send + 'static, Refusal> {
    let call = call.later();
    let with_stats = !call.is_set("disable_stats");
    let range = Range::asked(&call, "data_rates")?;
    Ok(move |connection: &ConnectionView, fields: &mut Fields| {
        head(&call, connection, fields);
        if !with_stats {
            return;
        }
        fields
            .put("state", state(connection.state))
            .put("channels", connection.channels)
            .put("recv_cnt", connection.receives)
            .put("send_cnt", connection.sends)
            .put("send_pend", connection.pending_bytes);
        let counters = [
            ("recv_oct", connection.received_bytes),
            ("send_oct", connection.sent_bytes),
            ("reductions", 0),
        ];
        put_counters(&call, fields, &format!("connection {}", connection.name), &counters, range);
    })
}

fn head(call: &Call, connection: &ConnectionView, fields: &mut Fields) {
    let node = &call.api.settings.node;
    let port = connection.local.map_or(0, |local| local.port());
    let mut listeners = node.listeners.iter();
    let is_tls = listeners.any(|one| one.is_tls() && one.address.port() == port);
    let properties = &connection.client_properties;
    let own_name = properties.get("connection_name").and_then(|value| value.as_str());
    let user = name(&connection.user);
    fields
        .put("name", connection.name.as_str())
        .put("vhost", connection.vhost.as_str())
        .put("user", user.as_str())
        .put("user_who_performed_action", user.as_str())
        .put("node", node.name.as_str())
        .put("host", connection.local.map_or_else(String::new, |local| local.ip().to_string()))
        .put("port", port)
        .put("peer_host", connection.peer.map_or_else(String::new, |peer| peer.ip().to_string()))
        .put("peer_port", connection.peer.map_or(0, |peer| peer.port()))
        .put("protocol", "AMQP 0-9-1")
        .put("auth_mechanism", connection.mechanism)
        .put("ssl", is_tls)
        .put_all(&UNKNOWN_OF_TLS, Value::Null)
        .put("timeout", connection.heartbeat_s)
        .put("frame_max", connection.frame_max)
        .put("channel_max", connection.channel_max)
        .put_with("client_properties", || from_table(properties))
        .put("connected_at", connection.since_ms)
        .put("type", if connection.peer.is_some() { "network" } else { "direct" })
        .put_some("user_provided_name", own_name);
}

fn state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Running => "running",
        ConnectionState::Blocked => "blocked",
        ConnectionState::Flow => "flow",
        ConnectionState::Closing => "closing",
    }
}

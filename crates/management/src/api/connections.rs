//! Connections.

use super::get;
use crate::call::{Call, Outcome};
use crate::json::{Fields, from_table, name};
use crate::list::{paged, whole};
use crate::rates::{Range, put_counters};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_broker::admin::{ConnectionState, ConnectionView, PeerCertificate, TlsSession};
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
    get(
        "/api/stream/connections/{vhost}",
        Needs::Vhost,
        none,
        "Connections of the stream protocol.",
    ),
    get("/api/stream/publishers", Needs::Login, none, "Publishers of the stream protocol."),
    get("/api/stream/publishers/{vhost}", Needs::Vhost, none, "Publishers of the stream protocol."),
    get("/api/stream/consumers", Needs::Login, none, "Consumers of the stream protocol."),
    get("/api/stream/consumers/{vhost}", Needs::Vhost, none, "Consumers of the stream protocol."),
];

pub(super) fn none(_: &Call) -> Outcome {
    Ok(Reply::json(&Value::Array(Vec::new())))
}

/// The connections in the vhost that is asked for, or in all.
pub(super) fn connections(call: &Call) -> Outcome {
    let caller = call.caller()?;
    let vhost = known_vhost(call)?;
    let user = (!caller.is_monitor()).then(|| caller.name());
    let listing = call.admin().connections_of(vhost, user)?;
    let render = renderer(call)?;
    paged(call, listing, render)
}

/// The vhost that is asked for, if any. Whether there is one that the caller may not enter, it need not know.
pub(super) fn known_vhost(call: &Call) -> Result<Option<&str>, Refusal> {
    let (caller, vhost) = (call.caller()?, call.vhost()?);
    let is_known = |vhost| caller.is_monitor() || caller.may_enter(vhost);
    match vhost.is_none_or(is_known) {
        true => Ok(vhost),
        false => Err(Refusal::not_found()),
    }
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
        .put("timeout", connection.heartbeat_s)
        .put("frame_max", connection.frame_max)
        .put("channel_max", connection.channel_max)
        .put_with("client_properties", || from_table(properties))
        .put("connected_at", connection.since_ms)
        .put("type", if connection.peer.is_some() { "network" } else { "direct" })
        .put_some("user_provided_name", own_name);
    put_tls(connection.tls.as_deref(), fields);
}

/// What the TLS handshake has agreed on, under RabbitMQ's names; null without TLS, or without a client's certificate.
fn put_tls(tls: Option<&TlsSession>, fields: &mut Fields) {
    let suite = tls.and_then(|tls| Suite::of(&tls.session));
    let certificate = tls.and_then(|tls| tls.certificate.as_ref());
    let shown = |text: fn(&PeerCertificate) -> &String| certificate.map(|one| text(one).as_str());
    fields
        .put("ssl", tls.is_some())
        .put("ssl_protocol", suite.as_ref().map(|suite| suite.protocol.as_str()))
        .put("ssl_key_exchange", suite.as_ref().map(|suite| suite.key_exchange.as_str()))
        .put("ssl_cipher", suite.as_ref().map(|suite| suite.cipher.as_str()))
        // All suites are authenticated encryption.
        .put("ssl_hash", suite.as_ref().map(|_| "aead"))
        .put("peer_cert_subject", shown(|one| &one.subject))
        .put("peer_cert_issuer", shown(|one| &one.issuer))
        .put("peer_cert_validity", shown(|one| &one.validity))
        .put("peer_cert_serial_number", shown(|one| &one.serial));
}

/// A version and a cipher suite as RabbitMQ names their parts.
struct Suite {
    protocol: String,
    key_exchange: String,
    cipher: String,
}

impl Suite {
    /// Of `TLSv1_2, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` or `TLSv1_3, TLS13_AES_256_GCM_SHA384`.
    fn of(session: &str) -> Option<Self> {
        let (protocol, suite) = session.split_once(", ")?;
        let (key_exchange, cipher) = match suite.strip_prefix("TLS13_") {
            Some(cipher) => ("any", cipher),
            None => suite.strip_prefix("TLS_")?.split_once("_WITH_")?,
        };
        let (cipher, _) = cipher.rsplit_once("_SHA")?;
        Some(Suite {
            protocol: protocol.to_ascii_lowercase().replace('_', "."),
            key_exchange: key_exchange.to_ascii_lowercase(),
            cipher: cipher.to_ascii_lowercase(),
        })
    }
}

fn state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Running => "running",
        ConnectionState::Blocked => "blocked",
        ConnectionState::Flow => "flow",
        ConnectionState::Closing => "closing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_suites_have_rabbitmqs_names() {
        for (session, parts) in [
            ("TLSv1_3, TLS13_AES_256_GCM_SHA384", Some(["tlsv1.3", "any", "aes_256_gcm"])),
            (
                "TLSv1_2, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                Some(["tlsv1.2", "ecdhe_ecdsa", "chacha20_poly1305"]),
            ),
            ("", None),
        ] {
            let suite = Suite::of(session);
            let named =
                suite.as_ref().map(|one| [&*one.protocol, &*one.key_exchange, &*one.cipher]);
            assert_eq!(named, parts, "{session}");
        }
    }
}

//! What the broker offers its clients when they connect, and says of itself.

use crate::VERSION;
use crate::config::{ClientCertificates, Config};
use courser_codec::FieldTable;
use courser_connection::server::{Config as ConnectionConfig, capabilities};
use courser_connection::{Mechanism, Mechanisms};
use courser_oauth::TOKEN_BYTES_MAX;
use std::time::Duration;

/// Bytes of a frame with which users log in where it may have a token in it, besides what a client says of itself.
const LOGIN_FRAME_MAX: u32 = 16 * 1024 + TOKEN_BYTES_MAX as u32;

/// As [`plain`], for clients with TLS: one that may present a certificate may log in
/// with it.
pub(crate) fn with_tls(config: &Config) -> ConnectionConfig {
    let mut connection = plain(config);
    if config.tls.client_certificates != ClientCertificates::None {
        connection.mechanisms = connection.mechanisms.with(Mechanism::External);
    }
    connection
}

/// As `connection`, for the operator of the machine, for whom the system vouches.
pub(crate) fn for_operator(connection: &ConnectionConfig) -> ConnectionConfig {
    let mechanisms = connection.mechanisms.with(Mechanism::External);
    ConnectionConfig { mechanisms, ..connection.clone() }
}

/// What is offered to clients without TLS.
pub(crate) fn plain(config: &Config) -> ConnectionConfig {
    let properties = FieldTable::new()
        .with("product", "Courser")
        .with("version", VERSION)
        .with("platform", "Rust")
        .with("copyright", "Copyright (c) 2026 The Courser authors")
        .with("information", "Licensed under the MIT License")
        .with("cluster_name", config.cluster.name.as_str())
        .with("capabilities", capabilities());
    let mut mechanisms = Mechanisms::PASSWORD;
    if !config.auth.anonymous_user.is_empty() {
        mechanisms = mechanisms.with(Mechanism::Anonymous);
    }
    ConnectionConfig {
        mechanisms,
        server_properties: properties,
        channel_max: config.amqp.channel_max,
        frame_max: config.amqp.frame_max,
        heartbeat_s: config.amqp.heartbeat_s,
        handshake_timeout: Duration::from_millis(config.amqp.handshake_timeout_ms),
        max_message_bytes: config.amqp.max_message_bytes,
        login_frame_max: if config.oauth.is_used() { LOGIN_FRAME_MAX } else { 0 },
        ..ConnectionConfig::default()
    }
}

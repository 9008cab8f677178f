//! The keys of RabbitMQ 4.3, and what each is here. The first pattern that fits counts.

use super::Fate;
use super::backends::backend;
use super::lines::Line;
use super::logins::{anonymous, loopback, mechanism, user};
use super::tokens::{
    algorithm, endpoint, endpoint_param, flag, logon_type, only_tokens, page_client, provider_url,
    scope_alias, signing_key, username_claim, words,
};
use super::values::{
    authorities, consumer_timeout, formatter, http_method, level, limit, login_from, management,
    management_tls, number, origin, peer_cert, proxies, queue_type, size, ssl, tcp, text, verify,
    version, vhost, whole_seconds,
};
use serde_json::Value;

/// A key, or several that are alike.
pub(super) struct Key {
    pub pattern: &'static str,
    pub what: Use,
}

/// What a key is here.
#[derive(Clone, Copy)]
pub(super) enum Use {
    /// A setting of this name, with this value.
    Is(&'static str, fn(&str) -> Result<Option<Value>, String>),
    /// Something that more than one key has to do with.
    Made(fn(&str, &str, &[Line], &mut Value) -> Fate),
    NotNeeded(&'static str),
    NotThere(&'static str),
}

use Use::{Is, Made, NotNeeded, NotThere};

const fn key(pattern: &'static str, what: Use) -> Key {
    Key { pattern, what }
}

const CLUSTER: &str = "clusters have settings of their own: cluster.join and others";
const STATISTICS: &str = "statistics are sampled only on request";
const DISK: &str = "the journal has settings of its own";
const SOCKET: &str = "the broker and the system configure sockets";
const LOG: &str = "the log goes to standard error, and the system stores it";
const ERLANG: &str = "Courser does not run on Erlang";
const PLUGIN: &str = "this protocol or plugin does not exist in Courser";
const OAUTH_PAGE: &str = "the page logs people in with the authorization code flow: docs/oauth.md";
const OAUTH_SEVERAL: &str =
    "one issuer and one resource server are supported: set oauth.issuer, oauth.resource_server_id";

pub(super) const KEYS: &[Key] = &[
    key("listeners.tcp.*", Made(tcp)),
    key("listeners.tcp", Made(tcp)),
    key("listeners.ssl.*", Made(ssl)),
    key("listeners.ssl", Made(ssl)),
    key("ssl_options.certfile", Is("tls.certificate", text)),
    key("ssl_options.keyfile", Is("tls.key", text)),
    key("ssl_options.cacertfile", Made(authorities)),
    key("ssl_options.verify", Made(verify)),
    key("ssl_options.fail_if_no_peer_cert", Made(peer_cert)),
    key("ssl_options.versions.*", Made(version)),
    key(
        "ssl_options.password",
        NotThere("keys must not be encrypted: decrypt the file of tls.key"),
    ),
    key("ssl_options.ciphers.*", NotNeeded("only strong ones are offered")),
    key("ssl_options.*", NotNeeded("TLS uses modern defaults")),
    key("ssl_handshake_timeout", Is("tls.handshake_timeout_ms", number)),
    key("ssl_cert_login_from", Is("tls.external_name", login_from)),
    key("ssl_cert_login_san_index", Is("tls.external_name_index", number)),
    key(
        "ssl_cert_login_san_type",
        NotThere("set tls.external_name: san_dns, san_ip, san_email or san_uri"),
    ),
    key("default_user", Made(user)),
    key("default_pass", Is("auth.password", text)),
    key("default_vhost", Made(vhost)),
    key("default_permissions.*", NotThere("the user auth.user has all permissions in every vhost")),
    key("default_user_tags.*", NotThere("the user auth.user is an administrator")),
    key(
        "default_users.*",
        NotThere(
            "no user comes with a vhost: create them with courser ctl add_user, or in definitions",
        ),
    ),
    key("loopback_users", Made(loopback)),
    key("loopback_users.*", Made(loopback)),
    key("anonymous_login_user", Made(anonymous)),
    key("anonymous_login_pass", NotNeeded("who logs in without credentials needs no password")),
    key("auth_mechanisms.*", Made(mechanism)),
    key("auth_backends.*", Made(backend)),
    key(
        "password_hashing_module",
        NotThere("set auth.password_hashing: argon2id or rabbitmq_sha256"),
    ),
    key(
        "credential_validator.*",
        NotThere(
            "passwords of any form are accepted: check them where users are made, or keep users elsewhere (auth_http, oauth)",
        ),
    ),
    key("heartbeat", Is("amqp.heartbeat_s", number)),
    key("handshake_timeout", Is("amqp.handshake_timeout_ms", number)),
    key("frame_max", Is("amqp.frame_max", number)),
    key("initial_frame_max", NotNeeded("frames before the login are small")),
    key("max_channels_per_connection", Is("amqp.channel_max", number)),
    key("channel_max", Is("amqp.channel_max", number)),
    key("max_message_size", Is("amqp.max_message_bytes", number)),
    key("max_connections", Is("limits.connections_max", limit)),
    key("connection_max", Is("limits.connections_max", limit)),
    key("consumer_max_per_channel", Is("limits.consumers_per_channel_max", limit)),
    key("cluster_queue_limit", Is("limits.queues_max", limit)),
    key("cluster_exchange_limit", Is("limits.exchanges_max", limit)),
    key(
        "channel_max_per_node",
        NotThere("channels are limited per connection (amqp.channel_max) and user"),
    ),
    key("vhost_max", NotThere("only administrators create vhosts")),
    key("vm_memory_high_watermark.absolute", Is("limits.memory_high_bytes", size)),
    key(
        "vm_memory_high_watermark.relative",
        NotThere("set limits.memory_high_bytes, in bytes; the default is 40 % of the memory"),
    ),
    key(
        "total_memory_available_override_value",
        NotThere("set limits.memory_high_bytes, in bytes"),
    ),
    key("vm_memory_calculation_strategy", NotNeeded(ERLANG)),
    key(
        "disk_free_limit.*",
        NotNeeded("the journal keeps a reserve of its own (journal.spare_segments)"),
    ),
    key("consumer_timeout", Made(consumer_timeout)),
    key("default_queue_type", Made(queue_type)),
    key(
        "default_policies.*",
        NotThere(
            "no policy comes with a vhost: create them with courser ctl set_operator_policy, or in operator_policies",
        ),
    ),
    key(
        "default_limits.*",
        NotThere(
            "no limit comes with a vhost: set those of each with courser ctl set_vhost_limits, or in vhosts",
        ),
    ),
    key("load_definitions", Is("management.load_definitions", text)),
    key("definitions.local.path", Is("management.load_definitions", text)),
    key(
        "definitions.import_backend",
        NotNeeded("definitions are read from management.load_definitions"),
    ),
    key("definitions.skip_if_unchanged", Is("management.skip_if_unchanged", flag)),
    key(
        "definitions.hashing.algorithm",
        NotNeeded("the hash that tells whether definitions have changed is SHA-256"),
    ),
    key(
        "definitions.https.*",
        NotThere(
            "definitions are read from a file: download it before the start, and set management.load_definitions",
        ),
    ),
    key("definitions.*", NotNeeded("definitions are read from management.load_definitions")),
    key("management.load_definitions", Is("management.load_definitions", text)),
    key("management.tcp.port", Made(management)),
    key("management.tcp.ip", Made(management)),
    key("management.listener.port", NotThere("an obsolete key: set management.listen")),
    key("management.ssl.port", Made(management_tls)),
    key("management.ssl.ip", Made(management_tls)),
    key("management.ssl.*", NotThere("HTTPS uses the certificates of tls")),
    key("management.path_prefix", Is("management.path_prefix", text)),
    key("management.cors.allow_origins.*", Made(origin)),
    key("management.cors.max_age", NotNeeded("browsers cache CORS answers for half an hour")),
    key("management.login_session_timeout", Is("management.session_idle_minutes", number)),
    key("management.rates_mode", NotNeeded(STATISTICS)),
    key("management.sample_retention_policies.*", NotNeeded(STATISTICS)),
    key("management.disable_stats", NotNeeded(STATISTICS)),
    key("management.enable_queue_totals", NotNeeded(STATISTICS)),
    key("management.http.max_body_size", NotNeeded("the limit is 10,000,000 bytes")),
    key("management.http_log_dir", NotThere("only changes are logged: management.audit_log")),
    key("management.disable_basic_auth", Made(only_tokens)),
    key("management.oauth_enabled", NotNeeded("it is if oauth.client_id is set")),
    key("management.oauth_disable_basic_auth", Made(only_tokens)),
    key("management.oauth_client_id", Made(page_client)),
    key("management.oauth_client_secret", Made(page_client)),
    key("management.oauth_scopes", Made(page_client)),
    key("management.oauth_provider_url", Made(provider_url)),
    key("management.oauth_authorization_endpoint_params.*", Made(endpoint_param)),
    key("management.oauth_token_endpoint_params.*", Made(endpoint_param)),
    key(
        "management.oauth_metadata_url",
        NotThere("set oauth.authorization_endpoint, oauth.token_endpoint and oauth.jwks_uri"),
    ),
    key("management.oauth_initiated_logon_type", Made(logon_type)),
    key("management.oauth_response_type", NotNeeded("it is always code")),
    key("management.oauth_resource_servers.*", NotThere(OAUTH_SEVERAL)),
    key("management.oauth_resource_id", NotNeeded("it is oauth.resource_server_id")),
    key("management.oauth_*", NotThere(OAUTH_PAGE)),
    key("management.*", NotNeeded("the HTTP API has no such setting")),
    key("collect_statistics", NotNeeded(STATISTICS)),
    key("collect_statistics_interval", NotNeeded(STATISTICS)),
    key("prometheus.*", NotThere("set metrics.listen: docs/monitoring.md")),
    key("log.console.level", Is("log.level", level)),
    key("log.file.level", Is("log.level", level)),
    key("log.default.level", Is("log.level", level)),
    key("log.exchange", NotThere("the log is not published")),
    key("log.exchange.*", NotThere("the log is not published")),
    key("log.syslog", NotThere("send standard error to syslog")),
    key("log.syslog.*", NotThere("send standard error to syslog")),
    key("log.*.formatter", Made(formatter)),
    key("log.*", NotNeeded(LOG)),
    key(
        "message_interceptors.*",
        NotThere(
            "the broker adds nothing to messages: have publishers set timestamp, or headers of their own",
        ),
    ),
    key("proxy_protocol", Made(proxies)),
    key("tcp_listen_options.*", NotNeeded(SOCKET)),
    key("num_acceptors.*", NotNeeded(SOCKET)),
    key("socket_writer.*", NotNeeded(SOCKET)),
    key("reverse_dns_lookups", NotNeeded("addresses are not resolved")),
    key("cluster_name", NotThere("set it with courser ctl set_cluster_name")),
    key("cluster_formation.*", NotNeeded(CLUSTER)),
    key("cluster_partition_handling", NotNeeded(CLUSTER)),
    key("cluster_partition_handling.*", NotNeeded(CLUSTER)),
    key("cluster_keepalive_interval", NotNeeded(CLUSTER)),
    key("cluster_tags.*", NotNeeded(CLUSTER)),
    key("node_tags.*", NotNeeded(CLUSTER)),
    key("distribution.*", NotNeeded(CLUSTER)),
    key("net_ticktime", NotNeeded(CLUSTER)),
    key("queue_leader_locator", NotNeeded(CLUSTER)),
    key("queue_master_locator", NotNeeded(CLUSTER)),
    key("mirroring_sync_batch_size", NotNeeded(CLUSTER)),
    key("quorum_queue.*", NotNeeded(CLUSTER)),
    key("quorum_cluster_size", NotNeeded(CLUSTER)),
    key("raft.*", NotNeeded(DISK)),
    key("classic_queue.*", NotNeeded(DISK)),
    key("queue_index_embed_msgs_below", NotNeeded(DISK)),
    key("msg_store_file_size_limit", NotNeeded(DISK)),
    key("lazy_queue_explicit_gc_run_operation_threshold", NotNeeded(ERLANG)),
    key("background_gc_enabled", NotNeeded(ERLANG)),
    key("background_gc_target_interval", NotNeeded(ERLANG)),
    key("hipe_compile", NotNeeded(ERLANG)),
    key("erlang.*", NotNeeded(ERLANG)),
    key("deprecated_features.*", NotNeeded("no feature is deprecated")),
    key("feature_flags.*", NotNeeded("every feature is enabled")),
    key("default_consumer_prefetch", NotThere("clients set their prefetch (basic.qos)")),
    key("mqtt.*", NotThere(PLUGIN)),
    key("stomp.*", NotThere(PLUGIN)),
    key("stream.*", NotThere(PLUGIN)),
    key("amqp1_0.*", NotThere(PLUGIN)),
    key("web_mqtt.*", NotThere(PLUGIN)),
    key("web_stomp.*", NotThere(PLUGIN)),
    key("shovel.*", NotThere(PLUGIN)),
    key("federation.*", NotThere(PLUGIN)),
    key("auth_ldap.*", NotThere("LDAP is not supported: create users")),
    key("auth_http.http_method", Is("auth_http.method", http_method)),
    key("auth_http.user_path", Is("auth_http.user_path", text)),
    key("auth_http.vhost_path", Is("auth_http.vhost_path", text)),
    key("auth_http.resource_path", Is("auth_http.resource_path", text)),
    key("auth_http.topic_path", Is("auth_http.topic_path", text)),
    key("auth_http.request_timeout", Is("auth_http.timeout_ms", number)),
    key("auth_http.connection_timeout", NotNeeded("auth_http.timeout_ms covers the whole request")),
    key("auth_http.ssl_options.cacertfile", Is("auth_http.ca", text)),
    key("auth_http.ssl_options.certfile", NotThere("the broker presents no client certificate")),
    key("auth_http.ssl_options.keyfile", NotThere("the broker presents no client certificate")),
    key("auth_http.ssl_options.*", NotNeeded("certificates are always checked")),
    key("auth_http.*", NotThere("auth_http has no such setting")),
    key("auth_cache.cache_ttl", Is("auth_http.cache_seconds", whole_seconds)),
    key("auth_cache.*", NotNeeded("answers of auth_http are cached")),
    key("auth_oauth2.resource_server_id", Is("oauth.resource_server_id", text)),
    key("auth_oauth2.scope_prefix", Is("oauth.scope_prefix", text)),
    key("auth_oauth2.additional_scopes_key", Made(words)),
    key("auth_oauth2.scope_aliases.*", Made(scope_alias)),
    key("auth_oauth2.preferred_username_claims.*", Made(username_claim)),
    key("auth_oauth2.issuer", Is("oauth.issuer", text)),
    key("auth_oauth2.jwks_uri", Is("oauth.jwks_uri", text)),
    key("auth_oauth2.jwks_url", Is("oauth.jwks_uri", text)),
    key("auth_oauth2.signing_keys.*", Made(signing_key)),
    key("auth_oauth2.default_key", Is("oauth.default_key", text)),
    key("auth_oauth2.algorithms.*", Made(algorithm)),
    key("auth_oauth2.verify_aud", Is("oauth.verify_aud", flag)),
    key("auth_oauth2.require_exp", Is("oauth.require_exp", flag)),
    key("auth_oauth2.https.cacertfile", Is("oauth.ca", text)),
    key("auth_oauth2.https.*", NotNeeded("certificates are always checked")),
    key("auth_oauth2.discovery_endpoint_path", NotThere("set oauth.jwks_uri")),
    key("auth_oauth2.discovery_endpoint_params.*", NotThere("set oauth.jwks_uri")),
    key("auth_oauth2.token_endpoint", Made(endpoint)),
    key("auth_oauth2.authorization_endpoint", Made(endpoint)),
    key("auth_oauth2.end_session_endpoint", Made(endpoint)),
    key("auth_oauth2.resource_servers.*", NotThere(OAUTH_SEVERAL)),
    key("auth_oauth2.oauth_providers.*", NotThere(OAUTH_SEVERAL)),
    key("auth_oauth2.default_oauth_provider", NotThere(OAUTH_SEVERAL)),
    key("auth_oauth2.*", NotThere("oauth has no such setting")),
];

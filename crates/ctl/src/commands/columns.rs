//! What lists can show of each kind of thing.

use crate::spec::From::{self, Always, Json, Member};

/// Members that are shown under their own names.
macro_rules! members {
    ($($name:literal),* $(,)?) => { &[$(($name, Member($name))),*] };
}

pub(super) use members;

pub(super) const QUEUE: &[(&str, From)] = members![
    "name",
    "messages",
    "messages_ready",
    "messages_unacknowledged",
    "messages_ram",
    "messages_ready_ram",
    "messages_unacknowledged_ram",
    "messages_persistent",
    "messages_delayed",
    "next_delayed_at",
    "last_delayed_at",
    "delayed_retry",
    "message_bytes",
    "message_bytes_ready",
    "message_bytes_unacknowledged",
    "message_bytes_ram",
    "message_bytes_persistent",
    "head_message_timestamp",
    "consumers",
    "memory",
    "idle_since",
    "state",
    "type",
    "durable",
    "auto_delete",
    "exclusive",
    "arguments",
    "policy",
    "operator_policy",
    "effective_policy_definition",
    "vhost",
    "node",
    "leader",
    "members",
    "online",
    "consumer_capacity",
    "consumer_utilisation",
    "single_active_consumer_tag",
    "message_stats",
];

pub(super) const EXCHANGE: &[(&str, From)] =
    members!["name", "type", "durable", "auto_delete", "internal", "arguments", "policy", "vhost"];

pub(super) const BINDING: &[(&str, From)] = &[
    ("source_name", Member("source")),
    ("source_kind", Always("exchange")),
    ("destination_name", Member("destination")),
    ("destination_kind", Member("destination_type")),
    ("routing_key", Member("routing_key")),
    ("arguments", Member("arguments")),
    ("vhost", Member("vhost")),
];

pub(super) const CONNECTION: &[(&str, From)] = &[
    ("user", Member("user")),
    ("peer_host", Member("peer_host")),
    ("peer_port", Member("peer_port")),
    ("state", Member("state")),
    // Connections have no processes of their own: their names say which one is meant.
    ("pid", Member("name")),
    ("name", Member("name")),
    ("vhost", Member("vhost")),
    ("host", Member("host")),
    ("port", Member("port")),
    ("ssl", Member("ssl")),
    ("ssl_protocol", Member("ssl_protocol")),
    ("ssl_key_exchange", Member("ssl_key_exchange")),
    ("ssl_cipher", Member("ssl_cipher")),
    ("ssl_hash", Member("ssl_hash")),
    ("peer_cert_subject", Member("peer_cert_subject")),
    ("peer_cert_issuer", Member("peer_cert_issuer")),
    ("peer_cert_validity", Member("peer_cert_validity")),
    ("protocol", Member("protocol")),
    ("auth_mechanism", Member("auth_mechanism")),
    ("channels", Member("channels")),
    ("channel_max", Member("channel_max")),
    ("frame_max", Member("frame_max")),
    ("timeout", Member("timeout")),
    ("connected_at", Member("connected_at")),
    ("client_properties", Member("client_properties")),
    ("user_provided_name", Member("user_provided_name")),
    ("recv_oct", Member("recv_oct")),
    ("recv_cnt", Member("recv_cnt")),
    ("send_oct", Member("send_oct")),
    ("send_cnt", Member("send_cnt")),
    ("send_pend", Member("send_pend")),
    ("node", Member("node")),
];

pub(super) const CHANNEL: &[(&str, From)] = &[
    ("pid", Member("name")),
    ("user", Member("user")),
    ("consumer_count", Member("consumer_count")),
    ("messages_unacknowledged", Member("messages_unacknowledged")),
    ("name", Member("name")),
    ("number", Member("number")),
    ("connection", Member("connection_details.name")),
    ("vhost", Member("vhost")),
    ("state", Member("state")),
    ("confirm", Member("confirm")),
    ("transactional", Member("transactional")),
    ("prefetch_count", Member("prefetch_count")),
    ("global_prefetch_count", Member("global_prefetch_count")),
    ("messages_unconfirmed", Member("messages_unconfirmed")),
    ("node", Member("node")),
];

pub(super) const CONSUMER: &[(&str, From)] = &[
    ("queue_name", Member("queue.name")),
    ("channel_pid", Member("channel_details.name")),
    ("consumer_tag", Member("consumer_tag")),
    ("ack_required", Member("ack_required")),
    ("prefetch_count", Member("prefetch_count")),
    ("active", Member("active")),
    ("arguments", Member("arguments")),
    ("activity_status", Member("activity_status")),
    ("exclusive", Member("exclusive")),
];

pub(super) const VHOST: &[(&str, From)] = members![
    "name",
    "description",
    "tags",
    "default_queue_type",
    "tracing",
    "protected_from_deletion",
    "metadata",
    "group",
    "messages",
    "messages_ready",
    "messages_unacknowledged",
];

pub(super) const POLICY: &[(&str, From)] = &[
    ("vhost", Member("vhost")),
    ("name", Member("name")),
    ("pattern", Member("pattern")),
    ("apply-to", Member("apply-to")),
    ("definition", Json("definition")),
    ("priority", Member("priority")),
];
pub(super) const POLICY_COLUMNS: &[&str] =
    &["vhost", "name", "pattern", "apply-to", "definition", "priority"];

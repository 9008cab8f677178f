//! Methods and properties built from values by name.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

use courser_codec::{Method, Properties, basic, channel, confirm, connection, exchange, queue, tx};

use super::values::{FieldKind, Values};

/// All methods by name.
pub const METHODS: &[&str] = &[
    "connection.start",
    "connection.start-ok",
    "connection.secure",
    "connection.secure-ok",
    "connection.tune",
    "connection.tune-ok",
    "connection.open",
    "connection.open-ok",
    "connection.close",
    "connection.close-ok",
    "connection.blocked",
    "connection.unblocked",
    "connection.update-secret",
    "connection.update-secret-ok",
    "channel.open",
    "channel.open-ok",
    "channel.flow",
    "channel.flow-ok",
    "channel.close",
    "channel.close-ok",
    "exchange.declare",
    "exchange.declare-ok",
    "exchange.delete",
    "exchange.delete-ok",
    "exchange.bind",
    "exchange.bind-ok",
    "exchange.unbind",
    "exchange.unbind-ok",
    "queue.declare",
    "queue.declare-ok",
    "queue.bind",
    "queue.bind-ok",
    "queue.purge",
    "queue.purge-ok",
    "queue.delete",
    "queue.delete-ok",
    "queue.unbind",
    "queue.unbind-ok",
    "basic.qos",
    "basic.qos-ok",
    "basic.consume",
    "basic.consume-ok",
    "basic.cancel",
    "basic.cancel-ok",
    "basic.publish",
    "basic.return",
    "basic.deliver",
    "basic.get",
    "basic.get-ok",
    "basic.get-empty",
    "basic.ack",
    "basic.reject",
    "basic.recover-async",
    "basic.recover",
    "basic.recover-ok",
    "basic.nack",
    "tx.select",
    "tx.select-ok",
    "tx.commit",
    "tx.commit-ok",
    "tx.rollback",
    "tx.rollback-ok",
    "confirm.select",
    "confirm.select-ok",
];

/// All fields and properties by name.
pub const FIELDS: &[(&str, FieldKind)] = &[
    ("active", FieldKind::Bit),
    ("app-id", FieldKind::ShortStr),
    ("arguments", FieldKind::Table),
    ("auto-delete", FieldKind::Bit),
    ("challenge", FieldKind::LongStr),
    ("channel-max", FieldKind::Number { bits: 16 }),
    ("class-id", FieldKind::Number { bits: 16 }),
    ("client-properties", FieldKind::Table),
    ("cluster-id", FieldKind::ShortStr),
    ("consumer-count", FieldKind::Number { bits: 32 }),
    ("consumer-tag", FieldKind::ShortStr),
    ("content-encoding", FieldKind::ShortStr),
    ("content-type", FieldKind::ShortStr),
    ("correlation-id", FieldKind::ShortStr),
    ("delivery-mode", FieldKind::Number { bits: 8 }),
    ("delivery-tag", FieldKind::Number { bits: 64 }),
    ("destination", FieldKind::ShortStr),
    ("durable", FieldKind::Bit),
    ("exchange", FieldKind::ShortStr),
    ("exclusive", FieldKind::Bit),
    ("expiration", FieldKind::ShortStr),
    ("frame-max", FieldKind::Number { bits: 32 }),
    ("global", FieldKind::Bit),
    ("headers", FieldKind::Table),
    ("heartbeat", FieldKind::Number { bits: 16 }),
    ("if-empty", FieldKind::Bit),
    ("if-unused", FieldKind::Bit),
    ("immediate", FieldKind::Bit),
    ("internal", FieldKind::Bit),
    ("locale", FieldKind::ShortStr),
    ("locales", FieldKind::LongStr),
    ("mandatory", FieldKind::Bit),
    ("mechanism", FieldKind::ShortStr),
    ("mechanisms", FieldKind::LongStr),
    ("message-count", FieldKind::Number { bits: 32 }),
    ("message-id", FieldKind::ShortStr),
    ("method-id", FieldKind::Number { bits: 16 }),
    ("multiple", FieldKind::Bit),
    ("new-secret", FieldKind::LongStr),
    ("no-ack", FieldKind::Bit),
    ("no-local", FieldKind::Bit),
    ("nowait", FieldKind::Bit),
    ("passive", FieldKind::Bit),
    ("prefetch-count", FieldKind::Number { bits: 16 }),
    ("prefetch-size", FieldKind::Number { bits: 32 }),
    ("priority", FieldKind::Number { bits: 8 }),
    ("queue", FieldKind::ShortStr),
    ("reason", FieldKind::ShortStr),
    ("redelivered", FieldKind::Bit),
    ("reply-code", FieldKind::Number { bits: 16 }),
    ("reply-text", FieldKind::ShortStr),
    ("reply-to", FieldKind::ShortStr),
    ("requeue", FieldKind::Bit),
    ("response", FieldKind::LongStr),
    ("routing-key", FieldKind::ShortStr),
    ("server-properties", FieldKind::Table),
    ("source", FieldKind::ShortStr),
    ("timestamp", FieldKind::Number { bits: 64 }),
    ("type", FieldKind::ShortStr),
    ("user-id", FieldKind::ShortStr),
    ("version-major", FieldKind::Number { bits: 8 }),
    ("version-minor", FieldKind::Number { bits: 8 }),
    ("virtual-host", FieldKind::ShortStr),
];

/// The method of this name with these values; `None` when there is no such method.
pub fn method<'a>(name: &str, values: &'a Values) -> Option<Method<'a>> {
    Some(match name {
        "connection.start" => Method::ConnectionStart(connection::Start {
            version_major: values.u8("version-major"),
            version_minor: values.u8("version-minor"),
            server_properties: values.table("server-properties"),
            mechanisms: values.long_str("mechanisms"),
            locales: values.long_str("locales"),
        }),
        "connection.start-ok" => Method::ConnectionStartOk(connection::StartOk {
            client_properties: values.table("client-properties"),
            mechanism: values.short_str("mechanism"),
            response: values.long_str("response"),
            locale: values.short_str("locale"),
        }),
        "connection.secure" => {
            Method::ConnectionSecure(connection::Secure { challenge: values.long_str("challenge") })
        }
        "connection.secure-ok" => Method::ConnectionSecureOk(connection::SecureOk {
            response: values.long_str("response"),
        }),
        "connection.tune" => Method::ConnectionTune(connection::Tune {
            channel_max: values.u16("channel-max"),
            frame_max: values.u32("frame-max"),
            heartbeat: values.u16("heartbeat"),
        }),
        "connection.tune-ok" => Method::ConnectionTuneOk(connection::TuneOk {
            channel_max: values.u16("channel-max"),
            frame_max: values.u32("frame-max"),
            heartbeat: values.u16("heartbeat"),
        }),
        "connection.open" => Method::ConnectionOpen(connection::Open {
            virtual_host: values.short_str("virtual-host"),
        }),
        "connection.open-ok" => Method::ConnectionOpenOk(connection::OpenOk),
        "connection.close" => Method::ConnectionClose(connection::Close {
            reply_code: values.u16("reply-code"),
            reply_text: values.short_str("reply-text"),
            class_id: values.u16("class-id"),
            method_id: values.u16("method-id"),
        }),
        "connection.close-ok" => Method::ConnectionCloseOk(connection::CloseOk),
        "connection.blocked" => {
            Method::ConnectionBlocked(connection::Blocked { reason: values.short_str("reason") })
        }
        "connection.unblocked" => Method::ConnectionUnblocked(connection::Unblocked),
        "connection.update-secret" => Method::ConnectionUpdateSecret(connection::UpdateSecret {
            new_secret: values.long_str("new-secret"),
            reason: values.short_str("reason"),
        }),
        "connection.update-secret-ok" => {
            Method::ConnectionUpdateSecretOk(connection::UpdateSecretOk)
        }
        "channel.open" => Method::ChannelOpen(channel::Open),
        "channel.open-ok" => Method::ChannelOpenOk(channel::OpenOk),
        "channel.flow" => Method::ChannelFlow(channel::Flow { active: values.bit("active") }),
        "channel.flow-ok" => {
            Method::ChannelFlowOk(channel::FlowOk { active: values.bit("active") })
        }
        "channel.close" => Method::ChannelClose(channel::Close {
            reply_code: values.u16("reply-code"),
            reply_text: values.short_str("reply-text"),
            class_id: values.u16("class-id"),
            method_id: values.u16("method-id"),
        }),
        "channel.close-ok" => Method::ChannelCloseOk(channel::CloseOk),
        "exchange.declare" => Method::ExchangeDeclare(exchange::Declare {
            exchange: values.short_str("exchange"),
            kind: values.short_str("type"),
            passive: values.bit("passive"),
            durable: values.bit("durable"),
            auto_delete: values.bit("auto-delete"),
            internal: values.bit("internal"),
            nowait: values.bit("nowait"),
            arguments: values.table("arguments"),
        }),
        "exchange.declare-ok" => Method::ExchangeDeclareOk(exchange::DeclareOk),
        "exchange.delete" => Method::ExchangeDelete(exchange::Delete {
            exchange: values.short_str("exchange"),
            if_unused: values.bit("if-unused"),
            nowait: values.bit("nowait"),
        }),
        "exchange.delete-ok" => Method::ExchangeDeleteOk(exchange::DeleteOk),
        "exchange.bind" => Method::ExchangeBind(exchange::Bind {
            destination: values.short_str("destination"),
            source: values.short_str("source"),
            routing_key: values.short_str("routing-key"),
            nowait: values.bit("nowait"),
            arguments: values.table("arguments"),
        }),
        "exchange.bind-ok" => Method::ExchangeBindOk(exchange::BindOk),
        "exchange.unbind" => Method::ExchangeUnbind(exchange::Unbind {
            destination: values.short_str("destination"),
            source: values.short_str("source"),
            routing_key: values.short_str("routing-key"),
            nowait: values.bit("nowait"),
            arguments: values.table("arguments"),
        }),
        "exchange.unbind-ok" => Method::ExchangeUnbindOk(exchange::UnbindOk),
        "queue.declare" => Method::QueueDeclare(queue::Declare {
            queue: values.short_str("queue"),
            passive: values.bit("passive"),
            durable: values.bit("durable"),
            exclusive: values.bit("exclusive"),
            auto_delete: values.bit("auto-delete"),
            nowait: values.bit("nowait"),
            arguments: values.table("arguments"),
        }),
        "queue.declare-ok" => Method::QueueDeclareOk(queue::DeclareOk {
            queue: values.short_str("queue"),
            message_count: values.u32("message-count"),
            consumer_count: values.u32("consumer-count"),
        }),
        "queue.bind" => Method::QueueBind(queue::Bind {
            queue: values.short_str("queue"),
            exchange: values.short_str("exchange"),
            routing_key: values.short_str("routing-key"),
            nowait: values.bit("nowait"),
            arguments: values.table("arguments"),
        }),
        "queue.bind-ok" => Method::QueueBindOk(queue::BindOk),
        "queue.purge" => Method::QueuePurge(queue::Purge {
            queue: values.short_str("queue"),
            nowait: values.bit("nowait"),
        }),
        "queue.purge-ok" => {
            Method::QueuePurgeOk(queue::PurgeOk { message_count: values.u32("message-count") })
        }
        "queue.delete" => Method::QueueDelete(queue::Delete {
            queue: values.short_str("queue"),
            if_unused: values.bit("if-unused"),
            if_empty: values.bit("if-empty"),
            nowait: values.bit("nowait"),
        }),
        "queue.delete-ok" => {
            Method::QueueDeleteOk(queue::DeleteOk { message_count: values.u32("message-count") })
        }
        "queue.unbind" => Method::QueueUnbind(queue::Unbind {
            queue: values.short_str("queue"),
            exchange: values.short_str("exchange"),
            routing_key: values.short_str("routing-key"),
            arguments: values.table("arguments"),
        }),
        "queue.unbind-ok" => Method::QueueUnbindOk(queue::UnbindOk),
        "basic.qos" => Method::BasicQos(basic::Qos {
            prefetch_size: values.u32("prefetch-size"),
            prefetch_count: values.u16("prefetch-count"),
            global: values.bit("global"),
        }),
        "basic.qos-ok" => Method::BasicQosOk(basic::QosOk),
        "basic.consume" => Method::BasicConsume(basic::Consume {
            queue: values.short_str("queue"),
            consumer_tag: values.short_str("consumer-tag"),
            no_local: values.bit("no-local"),
            no_ack: values.bit("no-ack"),
            exclusive: values.bit("exclusive"),
            nowait: values.bit("nowait"),
            arguments: values.table("arguments"),
        }),
        "basic.consume-ok" => Method::BasicConsumeOk(basic::ConsumeOk {
            consumer_tag: values.short_str("consumer-tag"),
        }),
        "basic.cancel" => Method::BasicCancel(basic::Cancel {
            consumer_tag: values.short_str("consumer-tag"),
            nowait: values.bit("nowait"),
        }),
        "basic.cancel-ok" => Method::BasicCancelOk(basic::CancelOk {
            consumer_tag: values.short_str("consumer-tag"),
        }),
        "basic.publish" => Method::BasicPublish(basic::Publish {
            exchange: values.short_str("exchange"),
            routing_key: values.short_str("routing-key"),
            mandatory: values.bit("mandatory"),
            immediate: values.bit("immediate"),
        }),
        "basic.return" => Method::BasicReturn(basic::Return {
            reply_code: values.u16("reply-code"),
            reply_text: values.short_str("reply-text"),
            exchange: values.short_str("exchange"),
            routing_key: values.short_str("routing-key"),
        }),
        "basic.deliver" => Method::BasicDeliver(basic::Deliver {
            consumer_tag: values.short_str("consumer-tag"),
            delivery_tag: values.u64("delivery-tag"),
            redelivered: values.bit("redelivered"),
            exchange: values.short_str("exchange"),
            routing_key: values.short_str("routing-key"),
        }),
        "basic.get" => Method::BasicGet(basic::Get {
            queue: values.short_str("queue"),
            no_ack: values.bit("no-ack"),
        }),
        "basic.get-ok" => Method::BasicGetOk(basic::GetOk {
            delivery_tag: values.u64("delivery-tag"),
            redelivered: values.bit("redelivered"),
            exchange: values.short_str("exchange"),
            routing_key: values.short_str("routing-key"),
            message_count: values.u32("message-count"),
        }),
        "basic.get-empty" => Method::BasicGetEmpty(basic::GetEmpty),
        "basic.ack" => Method::BasicAck(basic::Ack {
            delivery_tag: values.u64("delivery-tag"),
            multiple: values.bit("multiple"),
        }),
        "basic.reject" => Method::BasicReject(basic::Reject {
            delivery_tag: values.u64("delivery-tag"),
            requeue: values.bit("requeue"),
        }),
        "basic.recover-async" => {
            Method::BasicRecoverAsync(basic::RecoverAsync { requeue: values.bit("requeue") })
        }
        "basic.recover" => Method::BasicRecover(basic::Recover { requeue: values.bit("requeue") }),
        "basic.recover-ok" => Method::BasicRecoverOk(basic::RecoverOk),
        "basic.nack" => Method::BasicNack(basic::Nack {
            delivery_tag: values.u64("delivery-tag"),
            multiple: values.bit("multiple"),
            requeue: values.bit("requeue"),
        }),
        "tx.select" => Method::TxSelect(tx::Select),
        "tx.select-ok" => Method::TxSelectOk(tx::SelectOk),
        "tx.commit" => Method::TxCommit(tx::Commit),
        "tx.commit-ok" => Method::TxCommitOk(tx::CommitOk),
        "tx.rollback" => Method::TxRollback(tx::Rollback),
        "tx.rollback-ok" => Method::TxRollbackOk(tx::RollbackOk),
        "confirm.select" => Method::ConfirmSelect(confirm::Select { nowait: values.bit("nowait") }),
        "confirm.select-ok" => Method::ConfirmSelectOk(confirm::SelectOk),
        _ => return None,
    })
}

/// Properties with these values; those without one are not set.
pub fn properties(values: &Values) -> Properties<'_> {
    Properties {
        content_type: values.has("content-type").then(|| values.short_str("content-type")),
        content_encoding: values
            .has("content-encoding")
            .then(|| values.short_str("content-encoding")),
        headers: values.has("headers").then(|| values.table("headers")),
        delivery_mode: values.has("delivery-mode").then(|| values.u8("delivery-mode")),
        priority: values.has("priority").then(|| values.u8("priority")),
        correlation_id: values.has("correlation-id").then(|| values.short_str("correlation-id")),
        reply_to: values.has("reply-to").then(|| values.short_str("reply-to")),
        expiration: values.has("expiration").then(|| values.short_str("expiration")),
        message_id: values.has("message-id").then(|| values.short_str("message-id")),
        timestamp: values.has("timestamp").then(|| values.u64("timestamp")),
        kind: values.has("type").then(|| values.short_str("type")),
        user_id: values.has("user-id").then(|| values.short_str("user-id")),
        app_id: values.has("app-id").then(|| values.short_str("app-id")),
        cluster_id: values.has("cluster-id").then(|| values.short_str("cluster-id")),
    }
}

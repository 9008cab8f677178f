//! The broker at a glance.

use super::parameters::name_of_cluster;
use super::{get, stats};
use crate::API_VERSION;
use crate::call::{Call, Outcome};
use crate::json::Fields;
use crate::rates::{Range, put_counters};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use crate::settings::{ListenerFacts, NodeFacts};
use courser_broker::admin::{Churn, ExchangeKind, MessageCounts};
use serde_json::{Value, json};

pub(crate) const ROUTES: &[Route] =
    &[get("/api/overview", Needs::Login, overview, "The broker at a glance.")];

fn overview(call: &Call) -> Outcome {
    let is_monitor = call.caller()?.is_monitor();
    let node = &call.api.settings.node;
    let mut fields = Fields::new(&call.columns());
    head(&mut fields, node, &name_of_cluster(call.admin(), node));
    fields.put("node", node.name.as_str());
    if is_monitor {
        fields.put_with("listeners", || listeners(node));
        fields.put_with("contexts", || contexts(node, true));
    }
    objects(call, &mut fields, is_monitor)?;
    if !call.is_set("disable_stats") {
        let range = Range::asked(call, "msg_rates")?;
        fields.put("message_stats", json!({}));
        let counts = message_counts(call, is_monitor)?;
        let object = match is_monitor {
            true => "all vhosts".to_owned(),
            false => format!("vhosts of {}", call.caller()?.name()),
        };
        stats::put(call, &mut fields, &object, &stats::of_messages(&counts), range);
        let mut churn = Fields::default();
        let object = if is_monitor { "churn" } else { "" };
        put_counters(call, &mut churn, object, &churn_counters(&call.admin().churn()), range);
        fields.put("churn_rates", churn.finish());
        fields.put("statistics_db_event_queue", 0);
    }
    Ok(Reply::object(fields))
}

fn head(fields: &mut Fields, node: &NodeFacts, cluster: &str) {
    fields
        .put("management_version", API_VERSION)
        .put("rates_mode", "basic")
        .put(
            "sample_retention_policies",
            json!({ "global": [600], "basic": [600], "detailed": [600] }),
        )
        .put_with("exchange_types", exchange_types)
        .put("product_name", "Courser")
        .put("product_version", node.version.as_str())
        .put("rabbitmq_version", API_VERSION)
        .put("cluster_name", cluster)
        .put("cluster_tags", json!({}))
        .put("node_tags", json!({}))
        .put("erlang_version", "")
        .put("erlang_full_version", "")
        .put("crypto_lib_version", "aws-lc-rs")
        .put("disable_stats", false)
        .put("default_queue_type", "classic")
        .put("is_op_policy_updating_enabled", true)
        .put("enable_queue_totals", false)
        .put("require_definition_json_extension", false);
}

/// The types of exchanges, with what each is.
pub(super) fn exchange_types() -> Value {
    ExchangeKind::all()
        .map(|kind| json!({ "name": kind.name(), "description": "", "enabled": true }))
        .collect()
}

/// What was counted in all vhosts, or in those that the caller may enter.
fn message_counts(call: &Call, is_monitor: bool) -> Result<MessageCounts, Refusal> {
    if is_monitor {
        return Ok(call.admin().message_counts());
    }
    let mut all = MessageCounts::default();
    for vhost in call.vhosts()? {
        if let Some(view) = call.admin().vhost(&vhost) {
            all += &view.counts;
        }
    }
    Ok(all)
}

/// How much there is, as far as the caller may see it.
fn objects(call: &Call, fields: &mut Fields, is_monitor: bool) -> Result<(), Refusal> {
    let admin = call.admin();
    let (mut queues, mut exchanges) = (0, 0);
    let (mut ready, mut unacked, mut delayed, mut consumers) = (0, 0, 0, 0);
    let wants_totals = fields.wants("queue_totals") || fields.wants("object_totals");
    for vhost in call.vhosts()? {
        let Some(view) = admin.vhost(&vhost) else { continue };
        (queues, exchanges) = (queues + view.queues, exchanges + view.exchanges);
        // It may be deleted just now.
        if wants_totals && let Ok(totals) = admin.message_totals(&vhost) {
            ready += totals.ready;
            unacked += totals.unacked;
            delayed += totals.delayed;
            consumers += totals.consumers;
        }
    }
    let mut totals = Fields::default();
    totals.put("queues", queues).put("exchanges", exchanges);
    if is_monitor {
        let churn = admin.churn();
        totals.put("connections", admin.connections(None)?.len());
        if !call.is_set("disable_stats") {
            totals.put("channels", churn.channels_opened.saturating_sub(churn.channels_closed));
            totals.put("consumers", consumers);
        }
    } else {
        let own = admin.connections_of_user(call.caller()?.name());
        totals.put("connections", own.len());
        totals.put("channels", own.iter().map(|one| one.channels).sum::<usize>());
    }
    fields.put("object_totals", totals.finish());
    if !call.is_set("disable_stats") {
        let counters = [
            ("messages", ready + unacked + delayed),
            ("messages_ready", ready),
            ("messages_unacknowledged", unacked),
        ];
        let object = format!("totals of {}", call.caller()?.name());
        let mut totals = Fields::default();
        put_counters(call, &mut totals, &object, &counters, Range::asked(call, "lengths")?);
        fields.put("queue_totals", totals.finish());
    }
    Ok(())
}

/// What has come and gone, by the names of its counters.
pub(super) fn churn_counters(churn: &Churn) -> [(&'static str, u64); 7] {
    [
        ("connection_created", churn.connections_opened),
        ("connection_closed", churn.connections_closed),
        ("channel_created", churn.channels_opened),
        ("channel_closed", churn.channels_closed),
        ("queue_declared", churn.queues_declared),
        ("queue_created", churn.queues_created),
        ("queue_deleted", churn.queues_deleted),
    ]
}

fn listeners(node: &NodeFacts) -> Value {
    let listener = |one: &ListenerFacts| {
        json!({
            "node": node.name,
            "protocol": one.protocol,
            "ip_address": one.address.ip().to_string(),
            "port": one.address.port(),
            "socket_opts": { "nodelay": true },
            "tls": one.is_tls(),
        })
    };
    node.listeners.iter().map(listener).collect()
}

/// Where HTTP is served.
pub(super) fn contexts(node: &NodeFacts, with_node: bool) -> Value {
    let http = node.listeners.iter().filter(|one| one.protocol.starts_with("http"));
    http.map(|one| {
        let mut context = Fields::default();
        context
            .put("description", "RabbitMQ Management")
            .put("path", "/")
            .put("ip", one.address.ip().to_string())
            .put("port", one.address.port().to_string())
            .put("protocol", one.protocol)
            .put("ssl_opts", json!([]))
            .put("cowboy_opts", "[]");
        if with_node {
            context.put("node", node.name.as_str());
        }
        context.finish()
    })
    .collect()
}

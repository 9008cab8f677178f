//! The node: the process that the broker is, and what it uses.

use super::get;
use super::overview::{churn_counters, contexts, exchange_types};
use crate::API_VERSION;
use crate::call::{Call, Outcome};
use crate::json::Fields;
use crate::process::{disk_free_bytes, open_files, open_files_max, resident_bytes};
use crate::rates::{Range, put_counters};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use serde_json::{Map, Value, json};
use std::time::Duration;

pub(crate) const ROUTES: &[Route] = &[
    get(
        "/api/nodes",
        Needs::Monitoring,
        nodes,
        "All nodes; of those that do not lead, whether they run.",
    ),
    get("/api/nodes/{node}", Needs::Monitoring, node, "A node."),
    get("/api/nodes/{node}/memory", Needs::Monitoring, memory, "What a node uses memory for."),
    get(
        "/api/nodes/{node}/memory/relative",
        Needs::Monitoring,
        relative_memory,
        "What a node uses memory for, in percent.",
    ),
];

/// The parts of a node's memory. Those that stand for parts of an Erlang machine are always 0.
const MEMORY_PARTS: [&str; 27] = [
    "connection_readers",
    "connection_writers",
    "connection_channels",
    "connection_other",
    "queue_procs",
    "quorum_queue_procs",
    "stream_queue_procs",
    "stream_queue_replica_reader_procs",
    "stream_queue_coordinator_procs",
    "plugins",
    "metadata_store",
    "other_proc",
    "metrics",
    "mgmt_db",
    "mnesia",
    "quorum_ets",
    "metadata_store_ets",
    "other_ets",
    "binary",
    "msg_index",
    "code",
    "atom",
    "other_system",
    "quorum_queue_dlx_procs",
    "stream_queue_ets",
    "allocated_unused",
    "reserved_unallocated",
];

/// Counters that nothing here stands for.
const WITHOUT_MEANING: [&str; 11] = [
    "sockets_used",
    "gc_num",
    "gc_bytes_reclaimed",
    "context_switches",
    "io_seek_count",
    "io_seek_avg_time",
    "io_reopen_count",
    "mnesia_ram_tx_count",
    "mnesia_disk_tx_count",
    "queue_index_read_count",
    "queue_index_write_count",
];

/// What each broker on a node has for itself, with the rates of what it counts; everything else is of the process.
pub(crate) const NODE_COUNTERS: [&str; 17] = [
    "mem_used",
    "mem_limit",
    "proc_used",
    "io_read_count",
    "io_read_bytes",
    "io_write_count",
    "io_write_bytes",
    "io_sync_count",
    "msg_store_read_count",
    "msg_store_write_count",
    "connection_created",
    "connection_closed",
    "channel_created",
    "channel_closed",
    "queue_declared",
    "queue_created",
    "queue_deleted",
];

fn nodes(call: &Call) -> Outcome {
    let own = view(call)?;
    let Some(cluster) = &call.api.settings.cluster else { return Ok(Reply::json(&[own])) };
    let others = cluster.nodes().into_iter().filter(|one| one.name != cluster.node_name());
    let others = others.map(|one| {
        let mut fields = Fields::new(&call.columns());
        fields
            .put("name", format!("courser@{}", one.name))
            .put("type", "disc")
            .put("running", one.is_connected);
        fields.finish()
    });
    Ok(Reply::json(&std::iter::once(own).chain(others).collect::<Vec<_>>()))
}

fn node(call: &Call) -> Outcome {
    is_this(call)?;
    let mut node = view(call)?;
    if let Value::Object(members) = &mut node
        && (call.is_set("memory") || call.is_set("binary"))
    {
        members.insert("memory".to_owned(), breakdown(call));
    }
    Ok(Reply::json(&node))
}

/// Refuses nodes that there are not.
pub(super) fn is_this(call: &Call) -> Result<(), Refusal> {
    match call.bytes("node") == call.api.settings.node.name.as_bytes() {
        true => Ok(()),
        false => Err(Refusal::not_found()),
    }
}

fn view(call: &Call) -> Result<Value, Refusal> {
    let facts = &call.api.settings.node;
    let alarms = call.admin().alarms();
    let is_drained = call.api.settings.cluster.as_ref().is_some_and(|one| one.is_draining());
    let mut fields = Fields::new(&call.columns());
    let mechanism = |name: &String| json!({ "name": name, "description": "", "enabled": true });
    fields
        .put("name", facts.name.as_str())
        .put("type", "disc")
        .put("running", true)
        .put("being_drained", is_drained)
        .put("listeners_suspended", super::listeners::are_suspended(call))
        .put("partitions", json!([]))
        .put("os_pid", std::process::id().to_string())
        .put("fd_total", open_files_max())
        .put("sockets_total", 0)
        .put("proc_total", facts.connections_max)
        .put("mem_limit", call.admin().memory_high_bytes())
        .put("mem_alarm", alarms.memory)
        .put("mem_calculation_strategy", "allocated")
        .put("disk_free_limit", 0)
        .put("disk_free_alarm", alarms.disk)
        .put("rates_mode", "basic")
        // Clients take it for a number of 32 bits.
        .put("uptime", call.api.now_ms().saturating_sub(facts.started_ms) % (1 << 32))
        .put("run_queue", 0)
        .put("processors", std::thread::available_parallelism().map_or(1, usize::from))
        .put_with("exchange_types", exchange_types)
        .put_with("auth_mechanisms", || facts.mechanisms.iter().map(mechanism).collect())
        .put("applications", json!([application("courser", "Courser", &facts.version)]))
        .put_with("contexts", || contexts(facts, false))
        .put("log_files", json!(["<stderr>"]))
        .put("db_dir", facts.data_dir.display().to_string())
        .put("config_files", json!([]))
        .put("net_ticktime", 60)
        .put("enabled_plugins", json!(["rabbitmq_management"]))
        .put("ra_open_file_metrics", json!({}))
        .put("rabbitmq_version", API_VERSION)
        .put("erlang_version", "")
        .put("erlang_full_version", "")
        .put("crypto_lib_version", "aws-lc-rs")
        .put("cluster_links", json!([]))
        .put("metrics_gc_queue_length", json!({}));
    let range = Range::asked(call, "node_stats")?;
    let log = call.admin().log_figures();
    let mut counters = vec![
        ("mem_used", call.admin().memory_used_bytes()),
        ("fd_used", open_files()),
        ("proc_used", call.admin().connections(None)?.len() as u64),
        ("disk_free", disk_free_bytes(&facts.data_dir)),
        ("io_read_count", log.reads),
        ("io_read_bytes", log.read_bytes),
        ("io_write_count", log.writes),
        ("io_write_bytes", log.written_bytes),
        ("io_sync_count", log.syncs()),
        ("msg_store_read_count", log.reads),
        ("msg_store_write_count", log.records),
    ];
    counters.extend(churn_counters(&call.admin().churn()));
    counters.extend(WITHOUT_MEANING.map(|name| (name, 0)));
    put_counters(call, &mut fields, "node", &counters, range);
    for (name, time, count) in [
        ("io_read_avg_time", log.read_time, log.reads),
        ("io_write_avg_time", log.write_time, log.writes),
        ("io_sync_avg_time", log.sync_time, log.syncs()),
    ] {
        fields.put(name, average_ms(time, count));
    }
    Ok(fields.finish())
}

/// The mean since the broker was started, in milliseconds.
fn average_ms(time: Duration, count: u64) -> f64 {
    if count == 0 { 0.0 } else { time.as_secs_f64() * 1000.0 / count as f64 }
}

fn application(name: &str, description: &str, version: &str) -> Value {
    json!({ "name": name, "description": description, "version": version })
}

fn memory(call: &Call) -> Outcome {
    is_this(call)?;
    Ok(Reply::json(&json!({ "memory": breakdown(call) })))
}

fn breakdown(call: &Call) -> Value {
    let parts = memory_parts(call.admin().memory_used_bytes()).into_iter();
    let total: u64 = parts.clone().map(|(_, bytes)| bytes).sum();
    let mut parts: Map<String, Value> =
        parts.map(|(name, bytes)| (name.to_owned(), bytes.into())).collect();
    parts.insert("strategy".to_owned(), "rss".into());
    let total = json!({ "rss": resident_bytes(), "allocated": total, "erlang": total });
    parts.insert("total".to_owned(), total);
    Value::Object(parts)
}

/// What memory is used for: what is `held` because clients make brokers hold it, and the rest of the process.
pub(crate) fn memory_parts(held: u64) -> Vec<(&'static str, u64)> {
    let rest = resident_bytes().saturating_sub(held);
    let bytes = |name: &str| match name {
        "binary" => held,
        "other_system" => rest,
        _ => 0,
    };
    MEMORY_PARTS.iter().map(|name| (*name, bytes(name))).collect()
}

fn relative_memory(call: &Call) -> Outcome {
    is_this(call)?;
    let whole = resident_bytes().max(call.admin().memory_used_bytes()).max(1);
    let percent = |bytes: u64| (bytes * 100).div_ceil(whole);
    let Value::Object(parts) = breakdown(call) else { return Err(Refusal::not_found()) };
    let relative = |(name, value): (String, Value)| match value.as_u64() {
        Some(bytes) => (name, percent(bytes).into()),
        None if name == "total" => (name, 100.into()),
        None => (name, value),
    };
    let parts: Map<String, Value> = parts.into_iter().map(relative).collect();
    Ok(Reply::json(&json!({ "memory": parts })))
}

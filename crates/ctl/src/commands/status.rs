//! How the broker is, and what it uses memory for.

use super::runtime;
use crate::client::segment;
use crate::failure::Failure;
use crate::format::plain;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Argument, Output, option};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;

pub(super) const UNIT: Argument =
    option("unit", "B, KB, MB, GB or TB, or KiB, MiB, GiB or TiB [default: GB]");

/// What bytes are counted in.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    bytes: f64,
}

/// The units by the names that are given; RabbitMQ prints them in small letters.
const UNITS: [(&str, Unit); 10] = [
    ("b", Unit { name: "bytes", bytes: 1.0 }),
    ("bytes", Unit { name: "bytes", bytes: 1.0 }),
    ("kb", Unit { name: "kb", bytes: 1e3 }),
    ("mb", Unit { name: "mb", bytes: 1e6 }),
    ("gb", Unit { name: "gb", bytes: 1e9 }),
    ("tb", Unit { name: "tb", bytes: 1e12 }),
    ("kib", Unit { name: "kib", bytes: 1024.0 }),
    ("mib", Unit { name: "mib", bytes: 1_048_576.0 }),
    ("gib", Unit { name: "gib", bytes: 1_073_741_824.0 }),
    ("tib", Unit { name: "tib", bytes: 1_099_511_627_776.0 }),
];

impl Unit {
    /// The one that is asked for.
    fn of(input: &Input) -> Result<Self, Failure> {
        let given = input.find("unit").unwrap_or("gb");
        let mut units = UNITS.iter();
        let found = units.find(|(name, _)| name.eq_ignore_ascii_case(given)).map(|(_, unit)| *unit);
        found.ok_or_else(|| {
            Failure::usage(format!(
                "unknown unit '{given}': use B, KB, MB, GB, TB, KiB, MiB, GiB or TiB"
            ))
        })
    }

    /// A number of bytes as RabbitMQ prints it.
    fn written(self, bytes: f64) -> String {
        format!("{:.4} {}", bytes / self.bytes, self.name)
    }
}

/// What the broker says of itself, as RabbitMQ's status has it.
pub(super) fn facts(session: &mut Session) -> Result<Value, Failure> {
    let overview = session.client.get("/api/overview")?;
    let node = overview["node"].as_str().unwrap_or_default().to_owned();
    let node = session.client.get(&format!("/api/nodes/{}?memory=true", segment(&node)))?;
    let vhosts = session.client.get("/api/vhosts?columns=name")?;
    let alarms: Vec<&str> = [("memory", "mem_alarm"), ("disk", "disk_free_alarm")]
        .iter()
        .filter(|(_, member)| node[*member] == true)
        .map(|(name, _)| *name)
        .collect();
    let pid = node["os_pid"].as_str().and_then(|pid| pid.parse::<u64>().ok());
    let listener = |one: &Value| json!({ "interface": one["ip_address"], "port": one["port"], "protocol": one["protocol"], "node": one["node"] });
    let listeners = overview["listeners"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(json!({
        "product_name": overview["product_name"],
        "product_version": overview["product_version"],
        "rabbitmq_version": overview["rabbitmq_version"],
        "node": node["name"],
        "cluster_name": overview["cluster_name"],
        "pid": pid,
        "uptime": node["uptime"].as_u64().unwrap_or(0) / 1000,
        "is_under_maintenance": node["being_drained"],
        "listeners_suspended": node["listeners_suspended"],
        "data_directory": node["db_dir"],
        "alarms": alarms,
        "memory": node["memory"],
        "memory_used": node["mem_used"],
        "vm_memory_high_watermark_limit": node["mem_limit"],
        "disk_free": node["disk_free"],
        "disk_free_limit": node["disk_free_limit"],
        "file_descriptors": { "total_used": node["fd_used"], "total_limit": node["fd_total"] },
        "listeners": listeners.iter().map(listener).collect::<Value>(),
        "totals": {
            "connection_count": overview["object_totals"]["connections"],
            "channel_count": overview["object_totals"]["channels"],
            "queue_count": overview["object_totals"]["queues"],
            "consumer_count": overview["object_totals"]["consumers"],
            "virtual_host_count": vhosts.as_array().map_or(0, Vec::len),
        },
    }))
}

pub(super) fn status(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let unit = Unit::of(input)?;
    let mut facts = facts(session)?;
    let node = facts["node"].as_str().unwrap_or_default().to_owned();
    for (fact, setting) in [("log_level", "log-level"), ("memory_limit", "memory-limit")] {
        // A broker whose log is that of a program around it has no level, and an earlier one says none.
        let path = format!("/api/nodes/{}/{setting}", segment(&node));
        let answer = session.client.call(Method::GET, &path, Bytes::new())?;
        facts[fact] = answer.is_good().then(|| answer.json()).transpose()?.into();
    }
    Ok(Output::Both(described(&facts, unit), facts))
}

/// The memory limit: an earlier broker does not say who has changed it.
fn limit(facts: &Value, bytes: impl Fn(&Value) -> String) -> String {
    match facts["memory_limit"].is_object() {
        true => runtime::in_effect(&facts["memory_limit"], bytes),
        false => bytes(&facts["vm_memory_high_watermark_limit"]),
    }
}

fn described(facts: &Value, unit: Unit) -> String {
    let text = |value: &Value| crate::format::cell(value);
    let mut out = String::new();
    let mut section = |title: &str, lines: &[String]| {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{title}\n");
        let nothing = ["(none)".to_owned()];
        for line in if lines.is_empty() { &nothing } else { lines } {
            let _ = writeln!(out, "{line}");
        }
        out.push('\n');
    };
    section(
        "Runtime",
        &[
            format!("OS PID: {}", text(&facts["pid"])),
            format!("Uptime (seconds): {}", text(&facts["uptime"])),
            format!("Is under maintenance?: {}", text(&facts["is_under_maintenance"])),
            format!(
                "{} version: {}",
                text(&facts["product_name"]),
                text(&facts["product_version"])
            ),
            format!("RabbitMQ API version: {}", text(&facts["rabbitmq_version"])),
            format!("Node name: {}", text(&facts["node"])),
            format!("Cluster name: {}", text(&facts["cluster_name"])),
        ],
    );
    section(
        "Data directory",
        &[format!("Node data directory: {}", text(&facts["data_directory"]))],
    );
    let alarms = facts["alarms"].as_array().map_or(&[][..], Vec::as_slice);
    let alarm = |one: &Value| format!("{} alarm", text(one));
    section("Alarms", &alarms.iter().map(alarm).collect::<Vec<_>>());
    let bytes = |value: &Value| unit.written(value.as_f64().unwrap_or(0.0));
    let size = |name: &str| bytes(&facts[name]);
    section(
        "Memory",
        &[
            format!("Total memory used: {}", bytes(&facts["memory"]["total"]["rss"])),
            format!("Held for clients: {}", size("memory_used")),
            format!("Memory high watermark: {}", limit(facts, bytes)),
        ],
    );
    if facts["log_level"].is_object() {
        section("Log", &[format!("Level: {}", runtime::in_effect(&facts["log_level"], text))]);
    }
    section(
        "File Descriptors",
        &[format!(
            "Total: {}, limit: {}",
            text(&facts["file_descriptors"]["total_used"]),
            text(&facts["file_descriptors"]["total_limit"])
        )],
    );
    section("Free Disk Space", &[format!("Free disk space: {}", size("disk_free"))]);
    let total = |name: &str| text(&facts["totals"][name]);
    section(
        "Totals",
        &[
            format!("Connection count: {}", total("connection_count")),
            format!("Queue count: {}", total("queue_count")),
            format!("Virtual host count: {}", total("virtual_host_count")),
        ],
    );
    let listeners = facts["listeners"].as_array().map_or(&[][..], Vec::as_slice);
    let mut lines: Vec<String> = listeners.iter().map(listener).collect();
    if facts["listeners_suspended"] == true {
        lines.insert(0, "Those for clients are suspended: no new connections are taken".to_owned());
    }
    section("Listeners", &lines);
    out.trim_end().to_owned()
}

pub(super) fn listener(one: &Value) -> String {
    let purpose = match one["protocol"].as_str().unwrap_or_default() {
        "amqp" => "AMQP 0-9-1",
        "amqp/ssl" => "AMQP 0-9-1 over TLS",
        "http" => "HTTP API",
        "https" => "HTTP API over TLS (HTTPS)",
        "http/prometheus" => "Prometheus metrics",
        _ => "other",
    };
    let interface = one["interface"].as_str().or(one["ip_address"].as_str()).unwrap_or_default();
    let (port, protocol) = (&one["port"], one["protocol"].as_str().unwrap_or_default());
    format!(
        "Interface: {}, port: {port}, protocol: {}, purpose: {purpose}",
        plain(interface),
        plain(protocol)
    )
}

pub(super) fn memory_breakdown(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let unit = Unit::of(input)?;
    let node = super::node::name(session)?;
    let found = session.client.get(&format!("/api/nodes/{}/memory", segment(&node)))?;
    let memory = found["memory"].as_object().cloned().unwrap_or_default();
    let mut parts: Vec<(&String, f64)> =
        memory.iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let whole: f64 = parts.iter().map(|(_, bytes)| bytes).sum::<f64>().max(1.0);
    let line = |(name, bytes): &(&String, f64)| {
        format!("{name}: {} ({:.2}%)", unit.written(*bytes), bytes * 100.0 / whole)
    };
    let lines: Vec<String> = parts.iter().filter(|(_, bytes)| *bytes > 0.0).map(line).collect();
    Ok(Output::Both(lines.join("\n"), found["memory"].clone()))
}

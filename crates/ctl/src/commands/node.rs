//! The broker itself: whether it runs, and how it is.

use crate::client::segment;
use crate::failure::{Failure, TEMPORARY, UNAVAILABLE};
use crate::format::plain;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, any, option, optional};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// How long to wait before a broker that is not there is asked again.
const RETRY: Duration = Duration::from_millis(100);

macro_rules! spec {
    ($name:literal, $about:literal, [$($argument:expr),*], [$($example:literal),*], $intent:literal, $run:expr) => {
        Spec {
            name: $name,
            about: $about,
            arguments: &[$($argument),*],
            examples: &[$($example),*],
            intent: $intent,
            action: Action::Run($run),
        }
    };
}

pub(super) const COMMANDS: &[Spec] = &[
    spec!(
        "status",
        "Show version, memory, alarms, listeners and totals",
        [],
        ["status", "status --formatter json"],
        "Status of the broker ...",
        status
    ),
    spec!(
        "ping",
        "Check whether the broker answers",
        [],
        ["-q ping"],
        "Will ping the broker ...",
        ping
    ),
    spec!("version", "Show the version of this program", [], ["version"], "", own_version),
    spec!(
        "server_version",
        "Show the version of the broker",
        [],
        ["-q server_version"],
        "Asking the broker for its version...",
        server_version
    ),
    spec!(
        "enable_feature_flag",
        "Does nothing: there are no feature flags, all features are enabled",
        [any("name", "Ignored")],
        ["enable_feature_flag all"],
        "",
        enable_feature_flag
    ),
    spec!(
        "cluster_status",
        "Show the nodes of the cluster, and which of them run",
        [],
        ["cluster_status"],
        "Cluster status ...",
        cluster_status
    ),
    spec!(
        "listeners",
        "Show listeners",
        [],
        ["-q listeners"],
        "Asking the broker to report its protocol listeners ...",
        listeners
    ),
    spec!(
        "environment",
        "Show the settings in effect, without passwords",
        [],
        ["environment"],
        "Settings of the broker ...",
        environment
    ),
    spec!(
        "memory_breakdown",
        "Show memory by use",
        [option("unit", "B, KB, MB or GB [default: GB]")],
        ["memory_breakdown --unit MB"],
        "Reporting memory breakdown ...",
        memory_breakdown
    ),
    spec!(
        "alarms",
        "Show alarms in effect",
        [],
        ["alarms"],
        "Asking the broker to report any known resource alarms ...",
        alarms
    ),
    spec!(
        "await_startup",
        "Wait until the broker serves clients",
        [],
        ["-t 60 await_startup"],
        "",
        wait
    ),
    spec!(
        "wait",
        "Wait until the broker serves clients; with a pid file, fail if that process ends",
        [optional("pidfile", "A file with the broker's process ID")],
        ["-t 60 wait", "wait /run/courser.pid"],
        "",
        wait
    ),
];

/// The name of the broker's node.
pub(super) fn name(session: &mut Session) -> Result<String, Failure> {
    let overview = session.client.get("/api/overview?columns=node")?;
    let name = overview["node"].as_str().ok_or_else(|| Failure::answer("it names no node"))?;
    Ok(name.to_owned())
}

fn ping(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    session.client.get("/api/health/checks/is-in-service")?;
    Ok(Output::Text("Ping succeeded".to_owned()))
}

fn own_version(_: &mut Session, _: &Input) -> Result<Output, Failure> {
    Ok(Output::Text(env!("CARGO_PKG_VERSION").to_owned()))
}

fn server_version(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let overview = session.client.get("/api/overview?columns=product_version,product_name")?;
    let version = overview["product_version"].as_str();
    Ok(Output::Text(version.ok_or_else(|| Failure::answer("it names no version"))?.to_owned()))
}

fn enable_feature_flag(_: &mut Session, _: &Input) -> Result<Output, Failure> {
    Ok(Output::Text("All features are enabled.".to_owned()))
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

fn status(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let facts = facts(session)?;
    Ok(Output::Both(described(&facts), facts))
}

fn described(facts: &Value) -> String {
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
    let size = |name: &str| bytes(&facts[name]);
    section(
        "Memory",
        &[
            format!("Total memory used: {}", bytes(&facts["memory"]["total"]["rss"])),
            format!("Held for clients: {}", size("memory_used")),
            format!("Memory high watermark: {}", size("vm_memory_high_watermark_limit")),
        ],
    );
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
    section("Listeners", &listeners.iter().map(listener).collect::<Vec<_>>());
    out.trim_end().to_owned()
}

fn listener(one: &Value) -> String {
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

/// A number of bytes as RabbitMQ prints it.
fn bytes(value: &Value) -> String {
    let bytes = value.as_f64().unwrap_or(0.0);
    format!("{:.4} gb", bytes / 1e9)
}

fn cluster_status(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let overview = session.client.get("/api/overview")?;
    let node = overview["node"].as_str().unwrap_or_default();
    let cluster = overview["cluster_name"].as_str().unwrap_or_default();
    let nodes = session.client.get("/api/nodes?columns=name,running")?;
    let nodes = nodes.as_array().cloned().unwrap_or_default();
    let names = |wanted: fn(&Value) -> bool| -> Vec<String> {
        let found = nodes.iter().filter(|node| wanted(node));
        found.filter_map(|node| node["name"].as_str().map(str::to_owned)).collect()
    };
    let (all, running) = (names(|_| true), names(|node| node["running"] == true));
    let value = json!({
        "cluster_name": cluster, "disk_nodes": all, "running_nodes": running, "partitions": {}, "alarms": [],
        "listeners": { node: overview["listeners"] },
    });
    let version = overview["product_version"].as_str().unwrap_or_default();
    let lines =
        |names: &[String]| names.iter().map(|name| plain(name)).collect::<Vec<_>>().join("\n");
    let text = format!(
        "Basics\n\nCluster name: {}\n\nDisk Nodes\n\n{}\n\nRunning Nodes\n\n{}\n\nVersions\n\n{}: Courser {}",
        plain(cluster),
        lines(&all),
        lines(&running),
        plain(node),
        plain(version)
    );
    Ok(Output::Both(text, value))
}

fn listeners(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let overview = session.client.get("/api/overview?columns=listeners")?;
    let found = overview["listeners"].as_array().cloned().unwrap_or_default();
    let lines: Vec<String> = found.iter().map(listener).collect();
    Ok(Output::Both(lines.join("\n"), json!({ "listeners": found })))
}

fn environment(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let settings = session.client.get("/api/config/effective")?;
    let text = serde_saphyr::to_string(&settings).map_err(Failure::answer)?;
    Ok(Output::Both(text.trim_end().to_owned(), settings))
}

fn memory_breakdown(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let (unit, size) = match input.find("unit").unwrap_or("GB").to_uppercase().as_str() {
        "B" | "BYTES" => ("bytes", 1.0),
        "KB" => ("kb", 1e3),
        "MB" => ("mb", 1e6),
        "GB" => ("gb", 1e9),
        other => {
            return Err(Failure::usage(format!("unknown unit '{other}': use B, KB, MB or GB")));
        }
    };
    let node = name(session)?;
    let found = session.client.get(&format!("/api/nodes/{}/memory", segment(&node)))?;
    let memory = found["memory"].as_object().cloned().unwrap_or_default();
    let mut parts: Vec<(&String, f64)> =
        memory.iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let whole: f64 = parts.iter().map(|(_, bytes)| bytes).sum::<f64>().max(1.0);
    let line = |(name, bytes): &(&String, f64)| {
        format!("{name}: {:.4} {unit} ({:.2}%)", bytes / size, bytes * 100.0 / whole)
    };
    let lines: Vec<String> = parts.iter().filter(|(_, bytes)| *bytes > 0.0).map(line).collect();
    Ok(Output::Both(lines.join("\n"), found["memory"].clone()))
}

fn alarms(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let facts = facts(session)?;
    let node = facts["node"].as_str().unwrap_or_default();
    let alarms = facts["alarms"].as_array().cloned().unwrap_or_default();
    let line =
        |one: &Value| format!("{} alarm on node {node}", capital(one.as_str().unwrap_or_default()));
    let text = match alarms.is_empty() {
        true => format!("Node {node} reported no alarms, local or clusterwide"),
        false => alarms.iter().map(line).collect::<Vec<_>>().join("\n"),
    };
    Ok(Output::Both(text, json!({ "alarms": alarms })))
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn wait(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    loop {
        let pid = input.find("pidfile").and_then(process);
        if let Some(pid) = pid
            && !std::path::Path::new(&format!("/proc/{pid}")).exists()
        {
            return Err(Failure::error(UNAVAILABLE, format!("process {pid} is not running")));
        }
        let is_there = input.find("pidfile").is_none() || pid.is_some();
        match session.client.get("/api/health/checks/is-in-service") {
            Ok(_) if is_there => return Ok(Output::Nothing),
            // What no waiting mends.
            Err(failure) if !matches!(failure.code, UNAVAILABLE | TEMPORARY) => {
                return Err(failure);
            }
            _ if session.client.is_late() => {
                let after = session.client.timeout().as_secs_f64();
                return Err(Failure::new(
                    TEMPORARY,
                    format!("Error: the broker did not start within {after} s"),
                ));
            }
            _ => session.client.pause(RETRY),
        }
    }
}

/// The number in a pid file, if there is one already.
fn process(file: &str) -> Option<u32> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

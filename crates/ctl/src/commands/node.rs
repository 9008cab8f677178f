//! The broker itself: whether it runs, and how it is.

use super::status;
use crate::failure::{Failure, TEMPORARY, UNAVAILABLE};
use crate::format::plain;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, any, optional};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
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
        [status::UNIT],
        ["status", "status --unit MB", "status --formatter json"],
        "Status of the broker ...",
        status::status
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
        [status::UNIT],
        ["memory_breakdown --unit MB"],
        "Reporting memory breakdown ...",
        status::memory_breakdown
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
    let (in_effect, alarms) = super::checks::alarms_in_effect(session)?;
    let value = json!({
        "cluster_name": cluster, "disk_nodes": all, "running_nodes": running, "partitions": {}, "alarms": alarms,
        "listeners": { node: overview["listeners"] },
    });
    let version = overview["product_version"].as_str().unwrap_or_default();
    let lines =
        |names: &[String]| names.iter().map(|name| plain(name)).collect::<Vec<_>>().join("\n");
    let text = format!(
        "Basics\n\nCluster name: {}\n\nDisk Nodes\n\n{}\n\nRunning Nodes\n\n{}\n\nVersions\n\n{}: Courser {}\n\n\
         Alarms\n\n{in_effect}",
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
    let lines: Vec<String> = found.iter().map(status::listener).collect();
    Ok(Output::Both(lines.join("\n"), json!({ "listeners": found })))
}

fn environment(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let settings = session.client.get("/api/config/effective")?;
    let text = serde_saphyr::to_string(&settings).map_err(Failure::answer)?;
    Ok(Output::Both(text.trim_end().to_owned(), settings))
}

fn alarms(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let facts = status::facts(session)?;
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
            && !is_running(pid)
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

/// Whether there is such a process, also one that this user may not signal. Not all systems have a /proc that tells.
fn is_running(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// The number in a pid file, if there is one already.
fn process(file: &str) -> Option<u32> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

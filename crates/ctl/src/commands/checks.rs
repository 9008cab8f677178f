//! Checks for probes: each succeeds, or fails with 69.

use crate::client::segment;
use crate::failure::{Failure, NO_PERMISSION, UNAVAILABLE};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// How long a listener may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

macro_rules! spec {
    ($name:literal, $about:literal, [$($argument:expr),*], $example:literal, $intent:literal, $run:expr) => {
        Spec {
            name: $name,
            about: $about,
            arguments: &[$($argument),*],
            examples: &[$example],
            intent: $intent,
            action: Action::Run($run),
        }
    };
}

pub(super) const COMMANDS: &[Spec] = &[
    spec!(
        "check_running",
        "The broker is up and serves clients",
        [],
        "-q check_running",
        "Checking if the broker is running ...",
        running
    ),
    spec!(
        "check_alarms",
        "No memory or disk alarm is in effect on any node",
        [],
        "-q check_alarms",
        "Asking the broker to report any resource alarms ...",
        alarms
    ),
    spec!(
        "check_local_alarms",
        "No memory or disk alarm is in effect on this node",
        [],
        "-q check_local_alarms",
        "Asking the broker to report any local resource alarms ...",
        local_alarms
    ),
    spec!(
        "check_port_listener",
        "A listener is active on a port",
        [required("port", "The port")],
        "check_port_listener 5672",
        "Asking the broker if there's an active listener on port {port} ...",
        port
    ),
    spec!(
        "check_protocol_listener",
        "A listener is active for a protocol",
        [required("protocol", "amqp, amqp/ssl, http or https")],
        "check_protocol_listener amqp",
        "Asking the broker if there's an active listener for protocol {protocol} ...",
        protocol
    ),
    spec!(
        "check_port_connectivity",
        "Every listener accepts connections from this machine",
        [],
        "check_port_connectivity",
        "Testing TCP connections to all active listeners ...",
        connectivity
    ),
    spec!(
        "check_virtual_hosts",
        "All vhosts are running",
        [],
        "check_virtual_hosts",
        "Checking if all vhosts are running ...",
        vhosts
    ),
    spec!(
        "check_if_node_is_quorum_critical",
        "The cluster keeps a majority without this node; a single broker passes",
        [],
        "check_if_node_is_quorum_critical",
        "Checking if the node is critical for quorum of any queues/streams ...",
        quorum
    ),
    spec!(
        "node_health_check",
        "An old name of check_running",
        [],
        "node_health_check",
        "",
        running
    ),
];

/// What a check answers: nothing if it passes, else what it found.
pub(super) fn check(session: &mut Session, path: &str) -> Result<Option<Value>, Failure> {
    let path = format!("/api/health/checks/{path}");
    let answer = session.client.call(Method::GET, &path, Bytes::new())?;
    match answer.status {
        503 => answer.json().map(Some),
        _ => match crate::client::good(answer)?.json()?["status"] == "ok" {
            true => Ok(None),
            false => Err(session.client.no_api()),
        },
    }
}

fn failed(text: String) -> Failure {
    Failure::error(UNAVAILABLE, text)
}

fn said(text: String) -> Result<Output, Failure> {
    Ok(Output::Text(text))
}

fn list(value: &Value) -> String {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().map(crate::format::cell).collect::<Vec<_>>().join(", ")
}

fn running(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    match check(session, "ready-to-serve-clients")? {
        None => said("Courser is fully booted and running".to_owned()),
        Some(found) => Err(failed(crate::format::cell(&found["reason"]))),
    }
}

fn alarms(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    report_alarms(check(session, "alarms")?)
}

fn local_alarms(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    report_alarms(check(session, "local-alarms")?)
}

fn report_alarms(failed_check: Option<Value>) -> Result<Output, Failure> {
    match failed_check {
        None => said("The broker reported no alarms".to_owned()),
        Some(found) => Err(failed(lines_of(&found))),
    }
}

/// A line for each alarm that a check has found.
fn lines_of(found: &Value) -> String {
    let line = |one: &Value| {
        let what = super::node::capital(one["resource"].as_str().unwrap_or_default());
        format!("{what} alarm on node {}", crate::format::cell(&one["node"]))
    };
    let alarms = found["alarms"].as_array().map_or(&[][..], Vec::as_slice);
    alarms.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The alarms of all nodes: a line for each, and as RabbitMQ's tools have them in JSON.
pub(super) fn alarms_in_effect(session: &mut Session) -> Result<(String, Vec<Value>), Failure> {
    let Some(found) = check(session, "alarms")? else { return Ok(("(none)".to_owned(), vec![])) };
    let alarms = found["alarms"].as_array().map_or(&[][..], Vec::as_slice);
    let alarm = |one: &Value| json!({ "type": "resource_limit", "resource": one["resource"], "node": one["node"] });
    Ok((lines_of(&found), alarms.iter().map(alarm).collect()))
}

fn port(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let port = input.text("port");
    if port.parse::<u16>().is_err() {
        return Err(Failure::usage(format!("'{port}' is not a port number")));
    }
    match check(session, &format!("port-listener/{}", segment(port)))? {
        None => said(format!("A listener for port {port} is running.")),
        Some(found) => Err(failed(format!(
            "No listener for port {port} is active. Found listeners that use the following ports: {}",
            list(&found["ports"])
        ))),
    }
}

fn protocol(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let name = input.text("protocol");
    match check(session, &format!("protocol-listener/{}", segment(name)))? {
        None => said(format!("A listener for protocol {name} is running.")),
        Some(found) => Err(failed(format!(
            "No listener for protocol {name} is active. Found listeners for the following protocols: {}",
            list(&found["protocols"])
        ))),
    }
}

fn connectivity(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let overview = session.client.get("/api/overview?columns=listeners")?;
    let listeners = overview["listeners"].as_array().cloned().ok_or_else(|| {
        let text = "the listeners are shown to users with the tag monitoring: nothing was tried";
        Failure::error(NO_PERMISSION, text)
    })?;
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for listener in listeners {
        let port = listener["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
        match connect(session, listener["ip_address"].as_str().unwrap_or_default(), port) {
            Ok(()) => good.push(port.to_string()),
            Err(error) => bad.push(format!("{port} ({error})")),
        }
    }
    match bad.is_empty() {
        true => said(format!("Successfully connected to ports {}", good.join(", "))),
        false => Err(failed(format!("Failed to connect to ports {}", bad.join(", ")))),
    }
}

/// Connects to a listener: at its own address, or at the broker's where it listens at all.
fn connect(session: &Session, interface: &str, port: u16) -> std::io::Result<()> {
    let everywhere = ["0.0.0.0", "::"].contains(&interface);
    let host = match session.client.target() {
        crate::target::Target::Http(remote) if everywhere => remote.host.clone(),
        _ if everywhere => "localhost".to_owned(),
        _ => interface.to_owned(),
    };
    let addresses: Vec<SocketAddr> = (host.as_str(), port).to_socket_addrs()?.collect();
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let limit = CONNECT_TIMEOUT.min(session.client.left());
        if limit.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, limit) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn vhosts(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    match check(session, "virtual-hosts")? {
        None => said("The broker reported all vhosts as running".to_owned()),
        Some(found) => Err(failed(crate::format::cell(&found["reason"]))),
    }
}

fn quorum(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    match check(session, "node-is-quorum-critical")? {
        None => said("The check passed: no quorum depends on this node".to_owned()),
        Some(found) => Err(failed(crate::format::cell(&found["reason"]))),
    }
}

//! The cluster that the broker is a node of.

use crate::client::{body, good, segment};
use crate::failure::Failure;
use crate::format::cell;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, optional, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;

pub(super) const COMMANDS: &[Spec] = &[Spec {
    name: "cluster",
    about: "The cluster: status, add ADDRESS, remove NODE, transfer-leader [NODE], drain NODE",
    arguments: &[
        required("action", "status, add, remove, transfer-leader or drain"),
        optional("what", "For add, the node's address as host:port; otherwise its name"),
    ],
    examples: &[
        "cluster status",
        "cluster add 10.0.0.4:5680",
        "cluster remove c",
        "cluster transfer-leader b",
        "cluster drain a",
    ],
    intent: "",
    action: Action::Run(run),
}];

fn run(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let what = input.find("what");
    match (input.text("action"), what) {
        ("status", None) => status(session),
        ("add", Some(address)) => add(session, address),
        ("remove", Some(node)) => remove(session, node),
        ("transfer-leader", to) => transfer(session, to),
        ("drain", Some(node)) => drain(session, node),
        ("add", None) => Err(Failure::usage("add needs the node's address, as host:port")),
        ("remove" | "drain", None) => Err(Failure::usage("remove and drain need a node's name")),
        ("status", Some(_)) => Err(Failure::usage("status takes no further argument")),
        (other, _) => Err(Failure::usage(format_args!(
            "unknown action '{other}': use status, add, remove, transfer-leader or drain"
        ))),
    }
}

fn status(session: &mut Session) -> Result<Output, Failure> {
    let status = session.client.get("/api/cluster")?;
    let of = |name: &str| cell(&status[name]);
    let mut text = format!("Cluster {}: {}", of("name"), of("state"));
    // Writing to a String does not fail.
    let _ = write!(text, ", leader {}, term {}", of("leader"), of("term"));
    let _ = write!(text, ", committed {} of {}", of("committed"), of("last"));
    for member in status["members"].as_array().into_iter().flatten() {
        let connected = match member["connected"].as_bool() {
            Some(true) => "connected",
            _ => "not connected",
        };
        let lag = match member["lag_entries"].as_u64() {
            Some(lag) => format!(", lag {lag}"),
            None => String::new(),
        };
        let part = |name: &str| cell(&member[name]);
        let _ = write!(
            text,
            "\n{}\t{}\t{}\t{connected}{lag}",
            part("name"),
            part("role"),
            part("address")
        );
    }
    Ok(Output::Both(text, status))
}

fn send(session: &mut Session, method: Method, path: &str, sent: Bytes) -> Result<(), Failure> {
    good(session.client.call(method, path, sent)?).map(drop)
}

fn add(session: &mut Session, address: &str) -> Result<Output, Failure> {
    let sent = body(&json!({ "address": address }));
    send(session, Method::POST, "/api/cluster/nodes", sent)?;
    Ok(Output::Text(format!("Added the node at {address}. It votes once it has caught up.")))
}

fn remove(session: &mut Session, node: &str) -> Result<Output, Failure> {
    let path = format!("/api/cluster/nodes/{}", segment(node));
    send(session, Method::DELETE, &path, Bytes::new())?;
    Ok(Output::Text(format!(
        "Removed node {node}. It stops when it hears of it, and does not start again with its data folder."
    )))
}

fn transfer(session: &mut Session, to: Option<&str>) -> Result<Output, Failure> {
    let sent = to.map_or_else(|| json!({}), |node| json!({ "node": node }));
    let answer = session.client.call(Method::PUT, "/api/cluster/leader", body(&sent))?;
    let leader = good(answer)?.json()?;
    Ok(Output::Text(format!("Transferring leadership to node {}.", cell(&leader["leader"]))))
}

/// Sees to it that a node can be stopped: it does not lead, and there is a majority without it.
fn drain(session: &mut Session, node: &str) -> Result<Output, Failure> {
    let status = session.client.get("/api/cluster")?;
    let members = status["members"].as_array().cloned().unwrap_or_default();
    let find = |one: &&Value| one["name"].as_str() == Some(node);
    let Some(member) = members.iter().find(find) else {
        return Err(Failure::error(
            crate::failure::DATA,
            format_args!("no member is named '{node}'"),
        ));
    };
    let votes = |one: &&Value| one["role"].as_str() != Some("learner");
    let there = |one: &&Value| votes(one) && one["connected"].as_bool() == Some(true);
    let others = members.iter().filter(there).filter(|one| !find(one)).count() as u64;
    if votes(&member) && others < status["majority"].as_u64().unwrap_or(u64::MAX) {
        let why =
            format!("without node {node} the cluster has no majority: start the other nodes first");
        return Err(Failure::error(crate::failure::UNAVAILABLE, why));
    }
    if member["role"].as_str() == Some("leader") {
        transfer(session, None)?;
    }
    Ok(Output::Text(format!(
        "Node {node} can be stopped: the other nodes have a leader and a majority."
    )))
}

//! The cluster that the broker is a node of.

use crate::client::{body, permitted, segment};
use crate::failure::{Failure, UNAVAILABLE, say_error};
use crate::format::cell;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, flag, option, optional, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

/// How often a node that is drained is asked how many clients it still has.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Requests in a row that may fail after the first: no node answers while the lead goes to another one.
const FAILURES_MAX: u32 = 20;

pub(super) const COMMANDS: &[Spec] = &[Spec {
    name: "cluster",
    about: "The cluster: status, add ADDRESS, remove NODE, transfer-leader [NODE], move VHOST, drain [NODE], resume NODE",
    arguments: &[
        required("action", "status, add, remove, transfer-leader, move, drain or resume"),
        optional(
            "what",
            "For add, the node's address as host:port; for move, the vhost; otherwise the node's name. drain alone takes the node that it asks",
        ),
        option(
            "group",
            "move: the number of the group to move the vhost to; transfer-leader: the group whose lead goes [default: 0]; drain: connections to close at a time, 1 to 250 [default: 100]",
        ),
        option("pause-ms", "drain: milliseconds between two groups, 0 to 60000 [default: 1000]"),
        flag(
            "from-this-copy",
            "Not here: 'courser cluster recover' has it, for a node that is stopped",
        ),
    ],
    examples: &[
        "cluster status",
        "cluster add 10.0.0.4:5680",
        "cluster remove c",
        "cluster transfer-leader b",
        "cluster transfer-leader c --group 3",
        "cluster move orders --group 2",
        "cluster drain a",
        "cluster drain a --group 20 --pause-ms 500",
        "cluster resume a",
    ],
    intent: "",
    action: Action::Run(run),
}];

fn run(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let what = input.find("what");
    check_options(input)?;
    match (input.text("action"), what) {
        ("status", None) => status(session),
        ("add", Some(address)) => add(session, address),
        ("remove", Some(node)) => remove(session, node),
        ("transfer-leader", to) => transfer(session, input, to),
        ("move", Some(vhost)) => move_vhost(session, input, vhost),
        ("move", None) => Err(Failure::usage("move needs a vhost")),
        ("drain", Some(node)) => drain(session, input, node),
        ("drain", None) => {
            let status = session.client.get("/api/cluster")?;
            drain(session, input, status["node"].as_str().unwrap_or_default())
        }
        ("resume", Some(node)) => resume(session, node),
        ("recover", _) => Err(Failure::error(
            UNAVAILABLE,
            "not supported: a cluster is recovered from a node that is stopped, by 'courser cluster recover' on its machine, \
             with the same settings",
        )),
        ("add", None) => Err(Failure::usage("add needs the node's address, as host:port")),
        ("remove" | "resume", None) => Err(Failure::usage("remove and resume need a node's name")),
        ("status", Some(_)) => Err(Failure::usage("status takes no further argument")),
        (other, _) => Err(Failure::usage(format_args!(
            "unknown action '{other}': use status, add, remove, transfer-leader, move, drain or resume"
        ))),
    }
}

/// Refuses options that the action does not have.
fn check_options(input: &Input) -> Result<(), Failure> {
    let action = input.text("action");
    if input.has("from-this-copy") && action != "recover" {
        return Err(Failure::usage(format_args!("{action} has no --from-this-copy")));
    }
    for (option, of) in
        [("group", &["move", "transfer-leader", "drain"][..]), ("pause-ms", &["drain"])]
    {
        if input.find(option).is_some() && !of.contains(&action) {
            let of = of.join(", ");
            return Err(Failure::usage(format_args!(
                "{action} has no --{option}: that is for {of}"
            )));
        }
    }
    Ok(())
}

/// The numbers of the groups without a leader.
fn without_leader(status: &Value) -> String {
    let groups = status["groups"].as_array().into_iter().flatten();
    let without = groups.filter(|group| !group["leader"].is_string());
    without.map(|group| cell(&group["group"])).collect::<Vec<_>>().join(", ")
}

fn status(session: &mut Session) -> Result<Output, Failure> {
    let status = session.client.get("/api/cluster")?;
    let of = |name: &str| cell(&status[name]);
    let mut text = format!("Cluster {}: {}", of("name"), of("state"));
    if status["term"].is_null() {
        let _ = write!(
            text,
            ": node {} waits for the nodes of its list, or to be added at a member \
             (courser ctl cluster add ADDRESS); its log says for which",
            of("node")
        );
        return Ok(Output::Both(text, status));
    }
    let without = without_leader(&status);
    if !without.is_empty() {
        let _ = write!(text, ", but no leader of group {without}");
    }
    // Writing to a String does not fail.
    if status["draining"].as_bool() == Some(true) {
        let _ = write!(text, ", node {} is drained", of("node"));
    }
    let _ = match status["leader"].is_string() {
        true => write!(text, ", leader {}, term {}", of("leader"), of("term")),
        false => write!(text, ", term {}", of("term")),
    };
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
        let version = match member["version"].as_str() {
            Some(version) => format!(", version {version}"),
            None => String::new(),
        };
        let room = match member["room"].as_bool() {
            Some(false) => ", no room on its disk",
            _ => "",
        };
        let part = |name: &str| cell(&member[name]);
        let _ = write!(
            text,
            "\n{}\t{}\t{}\t{connected}{lag}{version}{room}",
            part("name"),
            part("role"),
            part("address")
        );
    }
    for group in status["groups"].as_array().into_iter().flatten() {
        let of = |name: &str| cell(&group[name]);
        let leader = match group["leader"].is_string() {
            true => format!("leader {}", of("leader")),
            false => "no leader".to_owned(),
        };
        let _ = write!(text, "\ngroup {}\t{leader}", of("group"));
        if group["term"].is_null() {
            let _ = write!(text, "\t{}", of("state"));
            continue;
        }
        let _ = write!(text, "\tterm {}", of("term"));
        let _ = write!(text, "\tcommitted {} of {}", of("committed"), of("last"));
        for (member, lag) in group["lag_entries"].as_object().into_iter().flatten() {
            let _ = write!(text, ", lag of {member} {}", cell(lag));
        }
    }
    Ok(Output::Both(text, status))
}

fn send(session: &mut Session, method: Method, path: &str, sent: Bytes) -> Result<(), Failure> {
    permitted(session.client.call(method, path, sent)?).map(drop)
}

fn add(session: &mut Session, address: &str) -> Result<Output, Failure> {
    let status = session.client.get("/api/cluster")?;
    let mut members = status["members"].as_array().into_iter().flatten();
    if let Some(member) = members.find(|member| member["address"] == address) {
        return Ok(Output::Text(format!(
            "Node {} at {address} is a member already.",
            cell(&member["name"])
        )));
    }
    let sent = body(&json!({ "address": address }));
    send(session, Method::POST, "/api/cluster/nodes", sent)?;
    Ok(Output::Text(format!("Added the node at {address}. It votes once it has caught up.")))
}

fn remove(session: &mut Session, node: &str) -> Result<Output, Failure> {
    let path = format!("/api/cluster/nodes/{}", segment(node));
    let answer = permitted(session.client.call(Method::DELETE, &path, Bytes::new())?)?;
    let mut text = format!(
        "Removed node {node}. It stops when it hears of this, and does not start again with its data folder."
    );
    if answer.status == 200 {
        let _ = write!(
            text,
            "\nWithout a vote until they have caught up: {}. Remove no further node before.",
            cell(&answer.json()?["not_voting"])
        );
    }
    Ok(Output::Text(text))
}

fn transfer(session: &mut Session, input: &Input, to: Option<&str>) -> Result<Output, Failure> {
    let mut sent = to.map_or_else(|| json!({}), |node| json!({ "node": node }));
    if let Some(given) = input.find("group") {
        let group = given.parse::<u16>();
        let wrong =
            |_| Failure::usage(format_args!("--group needs a group's number, not '{given}'"));
        sent["group"] = group.map_err(wrong)?.into();
    }
    let answer = session.client.call(Method::PUT, "/api/cluster/leader", body(&sent))?;
    let leader = permitted(answer)?.json()?;
    Ok(Output::Text(format!("Transferring leadership to node {}.", cell(&leader["leader"]))))
}

/// Moves a vhost to another group, and waits until it is there.
fn move_vhost(session: &mut Session, input: &Input, vhost: &str) -> Result<Output, Failure> {
    let given = input.find("group").ok_or_else(|| Failure::usage("move needs --group"))?;
    let group: u16 = given.parse().map_err(|_| {
        Failure::usage(format_args!("--group needs a group's number, not '{given}'"))
    })?;
    let path = format!("/api/cluster/moves/{}", segment(vhost));
    send(session, Method::PUT, &path, body(&json!({ "group": group })))?;
    let mut failures = 0;
    loop {
        thread::sleep(ASK_AGAIN);
        // However long it takes: it does not stop with this command.
        session.client.restart_clock();
        let answer = match session.client.call(Method::GET, &path, Bytes::new()) {
            // Another node leads home since: it ends what the one before has left.
            Ok(answer) if answer.status == 404 => return broken_off(session, vhost, group),
            answer => answer.and_then(permitted).and_then(|answer| answer.json()),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(_) if failures < FAILURES_MAX => {
                failures += 1;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        failures = 0;
        match answer["state"].as_str() {
            Some("running") => {}
            Some("done") => {
                let messages = cell(&answer["messages"]);
                return Ok(Output::Text(format!(
                    "Vhost {vhost} is in group {group} now, with {messages} messages."
                )));
            }
            _ => {
                let reason = cell(&answer["reason"]);
                return Err(Failure::error(
                    UNAVAILABLE,
                    format_args!("vhost {vhost} was not moved: {reason}"),
                ));
            }
        }
    }
}

/// Says where a vhost is whose move was going on when the node that led home was lost.
fn broken_off(session: &mut Session, vhost: &str, group: u16) -> Result<Output, Failure> {
    let known = session.client.get(&format!("/api/vhosts/{}", segment(vhost)))?;
    match known["group"].as_u64() {
        Some(now) if now == u64::from(group) => {
            Ok(Output::Text(format!("Vhost {vhost} is in group {group} now.")))
        }
        now => {
            let now = now.unwrap_or_default();
            Err(Failure::error(
                UNAVAILABLE,
                format_args!(
                    "the move was broken off, as another node leads the cluster now: vhost {vhost} is in group {now} as \
                     before; run this again to move it"
                ),
            ))
        }
    }
}

/// Sees to it that a node can be stopped: it does not lead, there is a majority without it, and it has no clients.
pub(super) fn drain(session: &mut Session, input: &Input, node: &str) -> Result<Output, Failure> {
    let mut pace = json!({});
    for (option, name) in [("group", "group"), ("pause-ms", "pause_ms")] {
        if let Some(given) = input.find(option) {
            let number = given.parse::<u64>().map_err(|_| {
                Failure::usage(format_args!("--{option} needs a number, not '{given}'"))
            })?;
            pace[name] = number.into();
        }
    }
    let path = format!("/api/cluster/drain/{}", segment(node));
    let mut answer = session.client.call(Method::PUT, &path, body(&pace)).and_then(permitted);
    let (mut left, mut failures) = (None, None);
    loop {
        match (answer, failures) {
            (Ok(answer), _) => {
                failures = Some(0);
                let answer = answer.json()?;
                if answer["draining"] == false {
                    return Err(Failure::error(
                        UNAVAILABLE,
                        format_args!(
                            "node {node} is not drained any more: it was resumed or restarted"
                        ),
                    ));
                }
                let now = answer["clients"].as_u64();
                if now == Some(0) {
                    break;
                }
                // As long as another node leads, it closes connections: that may take its time.
                if now.is_some() {
                    session.client.restart_clock();
                }
                if let Some(now) = now.filter(|_| now != left && session.style.says_intent()) {
                    let noun = if now == 1 { "connection" } else { "connections" };
                    say_error(&format_args!("Node {node} still has {now} {noun}."));
                }
                left = now;
            }
            (Err(_), Some(before)) if before < FAILURES_MAX && !session.client.is_late() => {
                failures = Some(before + 1);
            }
            (Err(failure), _) => return Err(failure),
        }
        thread::sleep(ASK_AGAIN);
        answer = session.client.call(Method::GET, &path, Bytes::new()).and_then(permitted);
    }
    Ok(Output::Text(format!(
        "Node {node} can be stopped: it has no clients, and the other nodes have a leader and a majority."
    )))
}

pub(super) fn resume(session: &mut Session, node: &str) -> Result<Output, Failure> {
    let path = format!("/api/cluster/drain/{}", segment(node));
    send(session, Method::DELETE, &path, Bytes::new())?;
    Ok(Output::Text(format!("Node {node} takes clients again.")))
}

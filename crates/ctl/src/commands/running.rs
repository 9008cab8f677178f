//! Whether the broker runs, and how many nodes of its cluster do.

use super::checks;
use crate::failure::{Failure, SOFTWARE, TEMPORARY, UNAVAILABLE};
use crate::format::cell;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, required};
use serde_json::{Value, json};
use std::time::Duration;

/// How often it is asked how many nodes there are.
const ASK_AGAIN: Duration = Duration::from_millis(200);

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "is_running",
        about: "Say whether the broker is up and serves clients; check_running fails if not",
        arguments: &[],
        examples: &["-q is_running --formatter json"],
        intent: "Asking the broker for its status ...",
        action: Action::Run(is_running),
    },
    Spec {
        name: "is_booting",
        about: "Say whether the broker is still starting: a node that waits for its cluster",
        arguments: &[],
        examples: &["-q is_booting"],
        intent: "Asking the broker for its boot status ...",
        action: Action::Run(is_booting),
    },
    Spec {
        name: "await_online_nodes",
        about: "Wait until so many nodes of the cluster are online, this one included",
        arguments: &[required("count", "The number of nodes")],
        examples: &["-t 300 await_online_nodes 3"],
        intent: "Will wait for at least {count} nodes to join the cluster.",
        action: Action::Run(await_nodes),
    },
];

/// For people a sentence, for programs whether it is so.
fn answer(result: bool, message: &str) -> Output {
    Output::Both(message.to_owned(), json!({ "result": result, "message": message }))
}

fn is_running(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    Ok(match checks::check(session, "ready-to-serve-clients")? {
        None => answer(true, "Courser is fully booted and running"),
        Some(found) => {
            let why = cell(&found["reason"]);
            answer(false, &format!("Courser is not running or has not fully booted yet: {why}"))
        }
    })
}

fn is_booting(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let done = "Courser is fully booted (check with is_running), or stopped";
    if checks::check(session, "ready-to-serve-clients")?.is_none() {
        return Ok(answer(false, done));
    }
    // A node without a leader may have been a member for long; one without a term never was.
    let cluster = session.client.find("/api/cluster")?.unwrap_or(json!({ "term": 0 }));
    Ok(match cluster["term"].is_null() {
        true => answer(true, "Courser is booting: it waits for the other nodes of its cluster"),
        false => answer(false, done),
    })
}

fn await_nodes(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let count = input.count("count")?.unwrap_or(1);
    loop {
        match online(session) {
            Ok(online) if online >= count => return Ok(Output::Nothing),
            // What no waiting mends.
            Err(failure) if !matches!(failure.code, UNAVAILABLE | TEMPORARY) => {
                return Err(failure);
            }
            _ if session.client.is_late() => {
                let text = "Error: timed out while waiting. Not enough nodes joined the cluster.";
                return Err(Failure::new(SOFTWARE, text));
            }
            _ => session.client.pause(ASK_AGAIN),
        }
    }
}

/// How many nodes run. A broker that is no node of a cluster is one.
fn online(session: &mut Session) -> Result<u64, Failure> {
    let nodes = session.client.get("/api/nodes?columns=name,running")?;
    let runs = |node: &&Value| node["running"] == true;
    Ok(nodes.as_array().into_iter().flatten().filter(runs).count() as u64)
}

//! Where the replicas of a queue are, and queues that do not answer.

use crate::client::{good, segment};
use crate::failure::{DATA, Failure, TEMPORARY};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, any, option, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;
use std::time::Duration;

/// Seconds that a queue may take to answer where nothing is said.
const ANSWER_S: u64 = 15;
/// What is known of a queue that does not answer.
const COLUMNS: [&str; 4] = ["name", "durable", "auto_delete", "arguments"];

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "quorum_status",
        about: "Show the nodes that have a replica of a quorum queue, and which of them leads",
        arguments: &[required("queue", "The queue's name")],
        examples: &["quorum_status -p orders paid"],
        intent: "Status of queue {queue} ...",
        action: Action::Run(quorum_status),
    },
    Spec {
        name: "list_unresponsive_queues",
        about: "Ask each queue of a vhost, and list those that do not answer in time",
        arguments: &[
            any(
                "columns",
                "The columns to show: name, durable, auto_delete, arguments [default: name]",
            ),
            option("queue-timeout", "Seconds that each queue may take [default: 15]"),
        ],
        examples: &["list_unresponsive_queues -p orders --queue-timeout 5"],
        intent: "Listing unresponsive queues for vhost {vhost} ...",
        action: Action::Run(unresponsive),
    },
];

fn quorum_status(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let (vhost, queue) = (input.vhost(), input.text("queue"));
    let path = format!("/api/queues/quorum/{}/{}/status", segment(vhost), segment(queue));
    let answer = session.client.call(Method::GET, &path, Bytes::new())?;
    if answer.status == 404 {
        let text = format!("Target queue was not found in virtual host '{vhost}'");
        return Err(Failure::error(DATA, text));
    }
    if answer.status == 400 && answer.reason() == "not_a_quorum_queue" {
        let text = format!(
            "queue '{queue}' is not a quorum queue. Every node of a cluster has a replica of every durable queue: \
             'courser ctl cluster status' shows the nodes"
        );
        return Err(Failure::error(DATA, text));
    }
    let columns = ["Node Name", "Raft State", "Membership"];
    Ok(super::lists::rows(&good(answer)?.json()?, &columns, |_| true))
}

fn unresponsive(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let limit = Duration::from_secs(input.count("queue-timeout")?.unwrap_or(ANSWER_S));
    let asked = input.texts("columns").iter().flat_map(|text| text.split([',', ' ']));
    let mut columns: Vec<&str> = asked.filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = columns.iter().find(|name| !COLUMNS.contains(name)) {
        return Err(Failure::usage(format!(
            "Info key(s) {unknown} are not supported. Supported: {}",
            COLUMNS.join(", ")
        )));
    }
    if columns.is_empty() {
        columns.push("name");
    }
    let vhost = segment(input.vhost());
    let path = format!("/api/queues/{vhost}?columns={}", COLUMNS.join(","));
    let found = session.client.find(&path)?.ok_or_else(|| {
        Failure::error(DATA, format!("Virtual host '{}' does not exist", input.vhost()))
    })?;
    let mut silent = Vec::new();
    for queue in found.as_array().into_iter().flatten() {
        let name = segment(queue["name"].as_str().unwrap_or_default());
        let path = format!("/api/queues/{vhost}/{name}");
        match session.client.within(limit, |client| client.find(&path)) {
            // One that was deleted meanwhile is none.
            Ok(_) => {}
            Err(failure) if failure.code == TEMPORARY && !session.client.is_late() => {
                silent.push(queue.clone());
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(super::lists::rows(&Value::Array(silent), &columns, |_| true))
}

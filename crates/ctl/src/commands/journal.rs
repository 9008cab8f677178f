//! The journal of a broker, while it runs.

use crate::client::{permitted, segment};
use crate::failure::{Failure, UNAVAILABLE, say_error};
use crate::format::cell;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, optional, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// How often the broker is asked how far it is.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// How often that is told: once in so many questions.
const TELL_EVERY: u32 = 10;

pub(super) const COMMANDS: &[Spec] = &[Spec {
    name: "journal",
    about: "The journal of the running broker: scrub [NODE], status [NODE]",
    arguments: &[
        required(
            "action",
            "scrub, to read all of it for damage now; status, to show how far that is",
        ),
        optional("node", "The node of a cluster whose journal is meant [default: the one asked]"),
    ],
    examples: &["journal scrub", "journal status", "journal scrub b"],
    intent: "",
    action: Action::Run(run),
}];

fn run(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let action = input.text("action");
    if !["scrub", "status"].contains(&action) {
        let text = format!("unknown action '{action}': use scrub or status");
        return Err(Failure::usage(text));
    }
    let node = match (input.find("node"), session.client.find("/api/cluster")?) {
        (Some(node), _) => node.to_owned(),
        (None, Some(cluster)) => cell(&cluster["node"]),
        (None, None) => super::node::name(session)?,
    };
    let path = format!("/api/nodes/{}/scrub", segment(&node));
    if action == "scrub" {
        return scrub(session, &path);
    }
    let state = permitted(session.client.call(Method::GET, &path, Bytes::new())?)?.json()?;
    Ok(Output::Both(described(&state), state))
}

/// Has it read, and waits until it was. It goes on if this is interrupted.
fn scrub(session: &mut Session, path: &str) -> Result<Output, Failure> {
    let mut state = permitted(session.client.call(Method::PUT, path, Bytes::new())?)?.json()?;
    let mut asked = 0;
    while state["running"] == true {
        asked += 1;
        if asked % TELL_EVERY == 0 && session.style.says_intent() {
            say_error(&described(&state));
        }
        thread::sleep(ASK_AGAIN);
        session.client.restart_clock();
        state = permitted(session.client.call(Method::GET, path, Bytes::new())?)?.json()?;
    }
    let is_complete = state["completed_ms"].as_u64() >= state["began_ms"].as_u64();
    match is_complete && state["damaged"] == state["repaired"] {
        true => Ok(Output::Both(described(&state), state)),
        false => Err(Failure::error(UNAVAILABLE, described(&state))),
    }
}

/// How far it is, in a sentence.
fn described(state: &Value) -> String {
    let of = |name: &str| cell(&state[name]);
    let count = |name: &str| state[name].as_u64().unwrap_or_default();
    let (damaged, repaired) = (count("damaged"), count("repaired"));
    let parts = if damaged == 1 { "1 part is" } else { &format!("{damaged} parts are") };
    let damaged = match (damaged, repaired) {
        (0, _) => "nothing is damaged".to_owned(),
        (all, written) if all == written => {
            "what was damaged is written again as other nodes have it, so look after the disk"
                .to_owned()
        }
        (_, 0) => format!("{parts} damaged, which the broker's log names"),
        (_, written) => {
            format!("{parts} damaged, which the broker's log names, and {written} written again")
        }
    };
    if state["running"] == true {
        let (read, total) = (of("read_bytes"), of("total_bytes"));
        return format!("{read} of {total} bytes of the journal are read so far: {damaged}.");
    }
    match (state["began_ms"].as_u64(), state["completed_ms"].as_u64()) {
        (None, _) => "The journal was not read for damage since the broker was started.".to_owned(),
        (Some(began), Some(completed)) if completed >= began => {
            format!("All of the journal was read ({} bytes): {damaged}.", of("read_bytes"))
        }
        _ => format!("The reading of the journal was ended after {} bytes.", of("read_bytes")),
    }
}

//! The journal of a broker, while it runs.

use crate::client::{permitted, segment};
use crate::failure::{Failure, UNAVAILABLE, say_error};
use crate::format::cell;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, required};
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
    about: "The journal of the running broker: scrub, status",
    arguments: &[required(
        "action",
        "scrub, to read all of it for damage now; status, to show how far that is",
    )],
    examples: &["journal scrub", "journal status"],
    intent: "",
    action: Action::Run(run),
}];

fn run(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let action = input.text("action");
    if !["scrub", "status"].contains(&action) {
        let text = format!("unknown action '{action}': use scrub or status");
        return Err(Failure::usage(text));
    }
    let path = format!("/api/nodes/{}/scrub", segment(&super::node::name(session)?));
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
    match (is_complete, state["damaged"].as_u64()) {
        (true, Some(0)) => Ok(Output::Both(described(&state), state)),
        _ => Err(Failure::error(UNAVAILABLE, described(&state))),
    }
}

/// How far it is, in a sentence.
fn described(state: &Value) -> String {
    let of = |name: &str| cell(&state[name]);
    let damaged = match state["damaged"].as_u64() {
        Some(0) => "nothing is damaged".to_owned(),
        Some(1) => "1 part is damaged, which the broker's log names".to_owned(),
        _ => format!("{} parts are damaged, which the broker's log names", of("damaged")),
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

//! What is done to connections.

use crate::client::{good, segment};
use crate::failure::{DATA, Failure};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Argument, Output, Spec, flag, option, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;

const REASON: Argument = required("reason", "The reason that the client is given");

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "close_connection",
        about: "Close a connection",
        arguments: &[required("pid", "The connection's pid, from 'list_connections pid'"), REASON],
        examples: &["close_connection '127.0.0.1:55992 -> 127.0.0.1:5672' 'go away'"],
        intent: "Closing connection {pid}, reason: {reason}...",
        action: Action::Run(close),
    },
    Spec {
        name: "close_all_connections",
        about: "Close all connections of a vhost, or of the broker",
        arguments: &[
            REASON,
            flag("global", "Connections of all vhosts"),
            option("limit", "Close at most this many [default: all]"),
        ],
        examples: &[
            "close_all_connections -p orders 'maintenance'",
            "close_all_connections --global bye",
        ],
        intent: "Closing connections, reason: {reason}...",
        action: Action::Run(close_all),
    },
    Spec {
        name: "close_all_user_connections",
        about: "Close all connections of a user",
        arguments: &[required("user", "The user's name"), REASON],
        examples: &["close_all_user_connections alice 'password changed'"],
        intent: "Closing all connections of user \"{user}\", reason: {reason}...",
        action: Action::Run(close_of_user),
    },
];

/// Closes one. Whether it was still there.
fn close_named(session: &mut Session, name: &str, reason: &str) -> Result<bool, Failure> {
    if reason.chars().any(char::is_control) || !reason.is_ascii() {
        return Err(Failure::usage("the reason may contain only printable ASCII characters"));
    }
    let path = format!("/api/connections/{}", segment(name));
    let headers = [("x-reason", reason)];
    let answer = session.client.call_with(Method::DELETE, &path, Bytes::new(), &headers)?;
    match answer.status {
        404 => Ok(false),
        _ => good(answer).map(|_| true),
    }
}

fn close(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let name = input.text("pid");
    match close_named(session, name, input.text("reason"))? {
        true => Ok(Output::Nothing),
        false => {
            let why = format!("there is no connection '{name}': 'list_connections pid' shows all");
            Err(Failure::error(DATA, why))
        }
    }
}

/// Closes those that fit. Returns how many they were.
fn close_some(
    session: &mut Session,
    reason: &str,
    limit: usize,
    fits: impl Fn(&Value) -> bool,
) -> Result<usize, Failure> {
    let found =
        session.client.get("/api/connections?columns=name,vhost,user&disable_stats=true")?;
    let list = found.as_array().map_or(&[][..], Vec::as_slice);
    let names = list.iter().filter(|one| fits(one)).filter_map(|one| one["name"].as_str());
    let names: Vec<&str> = names.take(limit).collect();
    let mut closed = 0;
    let ended = session.each(&names, |session, index| {
        closed += usize::from(close_named(session, names[index], reason)?);
        Ok(())
    });
    session.shown(told(closed), ended)?;
    Ok(closed)
}

fn told(closed: usize) -> Output {
    Output::Text(format!("Closed {closed} connections"))
}

fn close_all(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let limit = match input.find("limit") {
        None => usize::MAX,
        Some(text) => text
            .parse()
            .map_err(|_| Failure::usage(format!("--limit: '{text}' is not a whole number")))?,
    };
    if input.has("global") && input.vhost.is_some() {
        return Err(Failure::usage("--global and --vhost can't both be given"));
    }
    let is_global = input.has("global");
    let closed = close_some(session, input.text("reason"), limit, |one| {
        is_global || one["vhost"] == input.vhost()
    })?;
    if closed == 0 && !is_global {
        super::vhosts::refuse_unknown(session, input.vhost())?;
    }
    Ok(told(closed))
}

fn close_of_user(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let user = input.text("user");
    let closed = close_some(session, input.text("reason"), usize::MAX, |one| one["user"] == user)?;
    Ok(told(closed))
}

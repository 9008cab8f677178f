//! Who may log in, and how. A list there forbids what is not in it; here passwords of the broker's own users always count.

use super::lines::{Line, value, values};
use super::values::push;
use super::{Fate, set};
use serde_json::{Value, json};

/// The user whom RabbitMQ makes, and lets in from its own machine only.
const GUEST: &str = "guest";

/// The user of the file. There, who is limited to the broker's machine is in a list, which has `guest` alone unless it
/// says otherwise; here, the user of the file has a setting of its own.
pub(super) fn user(_: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    set(settings, "auth.user", text.into());
    if text == GUEST || is_limited(text, lines) {
        return Fate::Taken("auth.user".to_owned());
    }
    set(settings, "auth.loopback_only", false.into());
    Fate::Taken(
        "auth.user, with auth.loopback_only: false (in RabbitMQ, only guest is limited to the broker's machine)"
            .to_owned(),
    )
}

/// Whether a line limits a user to the broker's machine.
fn is_limited(user: &str, lines: &[Line]) -> bool {
    value(lines, &format!("loopback_users.{user}")) == Some("true")
}

pub(super) fn loopback(key: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    let name = key.strip_prefix("loopback_users.");
    match (name, text) {
        (None, "none") | (Some(GUEST), "false") => {
            if !is_limited(value(lines, "default_user").unwrap_or(GUEST), lines) {
                set(settings, "auth.loopback_only", false.into());
            }
            // Other lines may have named others.
            if settings.pointer("/auth/loopback_users").is_none() {
                set(settings, "auth.loopback_users", json!([]));
            }
        }
        (Some(name), "true") => push(settings, "auth.loopback_users", name.into()),
        (Some(_), "false") => return Fate::NotNeeded("users may come from anywhere".to_owned()),
        _ => return Fate::Wrong(format!("'{text}' is neither a user nor none")),
    }
    Fate::Taken("auth.loopback_users".to_owned())
}

/// The mechanisms that are listed; RabbitMQ offers no others if any is.
pub(super) fn mechanisms(lines: &[Line]) -> impl Iterator<Item = &str> {
    values(lines, "auth_mechanisms.").map(|(_, one)| one)
}

pub(super) fn anonymous(_: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    let mut listed = mechanisms(lines).peekable();
    if text == "none" || (listed.peek().is_some() && !listed.any(|one| one == "ANONYMOUS")) {
        return Fate::NotNeeded("no client logs in without credentials".to_owned());
    }
    set(settings, "auth.anonymous_user", text.into());
    Fate::Taken("auth.anonymous_user".to_owned())
}

fn takes_passwords(mechanism: &str) -> bool {
    matches!(mechanism, "PLAIN" | "AMQPLAIN")
}

pub(super) fn mechanism(_: &str, text: &str, lines: &[Line], _: &mut Value) -> Fate {
    match text {
        one if takes_passwords(one) => Fate::NotNeeded("it is always offered".to_owned()),
        "EXTERNAL" if mechanisms(lines).any(takes_passwords) => {
            Fate::NotNeeded("it is offered if clients are asked for certificates".to_owned())
        }
        "EXTERNAL" => Fate::NotThere(
            "it is not offered alone: clients may log in with passwords too, so give users none, and set auth.password \
             to one that no client has"
                .to_owned(),
        ),
        "ANONYMOUS" => match value(lines, "anonymous_login_user") {
            Some("none") => Fate::NotNeeded("no client logs in without credentials".to_owned()),
            Some(_) => Fate::NotNeeded("it is offered if auth.anonymous_user is set".to_owned()),
            None => Fate::NotThere(
                "it is offered if auth.anonymous_user is set, which in RabbitMQ is guest".to_owned(),
            ),
        },
        other => Fate::NotThere(format!("{other}: clients must log in with PLAIN or EXTERNAL")),
    }
}

//! Settings that are changed while the broker runs.

use crate::client::{body, good, segment};
use crate::failure::{DATA, Failure};
use crate::format::{cell, plain};
use crate::input::Input;
use crate::node_name;
use crate::rabbitmq_conf::{level, size};
use crate::session::Session;
use crate::spec::{Action, Argument, Output, Spec, option, optional, required};
use hyper::Method;
use serde_json::{Value, json};

/// What RabbitMQ's tool takes in the place of a target. Here, the targets are parts of the program.
const CATEGORIES: [&str; 12] = [
    "connection",
    "channel",
    "queue",
    "mirroring",
    "federation",
    "shovel",
    "upgrade",
    "ra",
    "prelaunch",
    "default",
    "global",
    "user",
];
const MEMBER: Argument =
    option("member", "The node of a cluster whose setting is meant [default: the one asked]");

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "set_log_level",
        about: "Change what is logged, until the broker is started or reloads its configuration. In a cluster each node has its own level",
        arguments: &[
            required(
                "level",
                "debug, info, warning, error, critical (as error) or none; or what log.level takes, such as trace or info,courser::cluster=debug",
            ),
            optional(
                "target",
                "Only this part of the log, by the target that its lines have, such as courser::cluster [default: all, in the place of what was set for targets]",
            ),
            MEMBER,
        ],
        examples: &[
            "set_log_level debug",
            "set_log_level debug courser::cluster",
            "set_log_level info --member b",
        ],
        intent: "Setting the log level ...",
        action: Action::Run(set_log_level),
    },
    Spec {
        name: "set_vm_memory_high_watermark",
        about: "Change from when on publishers are held back, until the broker is started or reloads its configuration. In a cluster each node has its own limit",
        arguments: &[
            required(
                "fraction",
                "Of the memory of the machine, or of the control group, such as 0.4; or the word absolute, and a size",
            ),
            optional(
                "size",
                "Behind absolute: bytes, or as in 4GiB or 4GB; 0 for the default, 40 % of the memory",
            ),
            MEMBER,
        ],
        examples: &[
            "set_vm_memory_high_watermark 0.4",
            "set_vm_memory_high_watermark absolute 4GiB",
            "set_vm_memory_high_watermark absolute 4GiB --member b",
        ],
        intent: "Setting the memory limit ...",
        action: Action::Run(set_memory_limit),
    },
];

/// Changes a setting of the node that is meant, and says what it was.
fn change(
    session: &mut Session,
    input: &Input,
    (setting, name): (&str, &str),
    new: &Value,
    shown: impl Fn(&Value) -> String,
) -> Result<Output, Failure> {
    let node = match input.find("member") {
        Some(member) => member.to_owned(),
        None => node_name::own(&mut session.client)?.name,
    };
    let path = format!("/api/nodes/{}/{setting}", segment(&node));
    let answer = session.client.call(Method::PUT, &path, body(new))?;
    // One that is a node of a cluster says which there are.
    if answer.status == 404 && answer.reason() == "Not Found" {
        return Err(Failure::error(DATA, format!("this broker has no node '{node}'")));
    }
    let done = good(answer)?.json()?;
    let text = format!(
        "The {name} is {} now and was {}. A restart or a reload of the configuration sets it to {}.",
        shown(&done["value"]),
        shown(&done["before"]),
        shown(&done["configured"])
    );
    Ok(Output::Both(text, done))
}

fn set_log_level(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let (mut wanted, mut target) = (input.text("level"), input.find("target"));
    // RabbitMQ's tool takes the category first.
    if let Some(second) = target
        && own_level(wanted).is_none()
        && own_level(second).is_some()
    {
        (wanted, target) = (second, Some(wanted));
    }
    if let Some(category) = target.filter(|target| CATEGORIES.contains(target)) {
        let text = format!(
            "'{category}' is a category of RabbitMQ's log. Here, a target is a part of the program, and each line of the log \
             names its own, such as courser::cluster (courser ctl log_tail)"
        );
        return Err(Failure::usage(text));
    }
    let wanted = own_level(wanted).unwrap_or_else(|| wanted.to_owned());
    let new = json!({ "level": wanted, "target": target });
    change(session, input, ("log-level", "log level"), &new, cell)
}

/// The level here that a level of RabbitMQ's stands for, or that is one here; none for anything else.
fn own_level(name: &str) -> Option<String> {
    match name {
        "warn" | "off" | "trace" => Some(name.to_owned()),
        name => Some(level(name).ok()??.as_str()?.to_owned()),
    }
}

fn set_memory_limit(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let new = new_limit(input.text("fraction"), input.find("size")).map_err(Failure::usage)?;
    let shown = |bytes: &Value| format!("{} bytes", cell(bytes));
    change(session, input, ("memory-limit", "memory limit"), &new, shown)
}

/// The limit as the API takes it.
fn new_limit(fraction: &str, amount: Option<&str>) -> Result<Value, String> {
    match (fraction, amount) {
        ("absolute", None) => Err("absolute takes a size: absolute 4GiB".to_owned()),
        ("absolute", Some(amount)) => Ok(json!({ "bytes": size(amount)? })),
        (_, Some(amount)) => Err(format!("expected absolute {amount}, not {fraction} {amount}")),
        (fraction, None) => match fraction.parse::<f64>() {
            Ok(number) if number > 0.0 && number <= 1.0 => Ok(json!({ "fraction": number })),
            _ => Err(format!(
                "'{fraction}' is not a fraction of the memory above 0 and up to 1, such as 0.4; for a size: absolute 4GiB"
            )),
        },
    }
}

/// What `status` says of a setting that may have been changed.
pub(super) fn in_effect(setting: &Value, shown: impl Fn(&Value) -> String) -> String {
    let value = shown(&setting["value"]);
    match setting["changed_by"].as_str() {
        None => value,
        Some(by) => {
            let configured = shown(&setting["configured"]);
            format!("{value} (changed at run time by {}; configured: {configured})", plain(by))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_fractions_or_sizes() {
        for (fraction, amount, expected) in [
            ("0.4", None, Ok(json!({ "fraction": 0.4 }))),
            ("1", None, Ok(json!({ "fraction": 1.0 }))),
            ("absolute", Some("4GiB"), Ok(json!({ "bytes": 4_u64 << 30 }))),
            ("absolute", Some("4GB"), Ok(json!({ "bytes": 4_000_000_000_u64 }))),
            ("absolute", Some("0"), Ok(json!({ "bytes": 0 }))),
            ("0", None, Err("above 0")),
            ("1.5", None, Err("up to 1")),
            ("NaN", None, Err("is not a fraction")),
            ("4GiB", None, Err("for a size: absolute 4GiB")),
            ("absolute", None, Err("takes a size")),
            ("absolute", Some("much"), Err("'much' is not a size")),
            ("0.4", Some("4GiB"), Err("expected absolute 4GiB")),
        ] {
            match (new_limit(fraction, amount), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{fraction}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (found, _) => panic!("{fraction} {amount:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn levels_of_rabbitmq_have_a_meaning_here() {
        for (name, expected) in [
            ("debug", Some("debug")),
            ("info", Some("info")),
            ("warning", Some("warn")),
            ("error", Some("error")),
            ("critical", Some("error")),
            ("none", Some("off")),
            ("trace", Some("trace")),
            ("loud", None),
            ("info,courser=debug", None),
        ] {
            assert_eq!(own_level(name).as_deref(), expected, "{name}");
        }
    }
}

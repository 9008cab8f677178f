//! Questions: why a queue stands still, where a message would go, what a user may do, what a policy would
//! change, and who changed what. Nothing is changed by asking.

use super::policies;
use crate::client::{body, good, segment};
use crate::failure::{DATA, Failure, UNAVAILABLE};
use crate::format::rfc3339;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, option, required};
use hyper::Method;
use serde_json::{Value, json};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "attention",
        about: "What needs attention in the whole broker, the most urgent first",
        arguments: &[],
        examples: &["attention"],
        intent: "What needs attention ...",
        action: Action::Run(attention),
    },
    Spec {
        name: "explain_queue",
        about: "Why messages of a queue wait; nothing if nothing holds them back",
        arguments: &[required("queue", "The queue's name")],
        examples: &["explain_queue -p orders failed"],
        intent: "Why messages of queue '{queue}' in vhost '{vhost}' wait ...",
        action: Action::Run(explain),
    },
    Spec {
        name: "trace_route",
        about: "Where a message would go, and why; none is published",
        arguments: &[
            required("exchange", "The exchange's name; amq.default is the default exchange"),
            required("routing-key", "The routing key"),
            option("properties", "Properties as JSON, such as {\"headers\": {\"kind\": \"a\"}}"),
        ],
        examples: &["trace_route -p orders events order.paid"],
        intent: "Where a message to exchange '{exchange}' in vhost '{vhost}' would go ...",
        action: Action::Run(route),
    },
    Spec {
        name: "check_access",
        about: "A user may do something; if not, with the error that a client would get",
        arguments: &[
            required("user", "The user's name"),
            required("right", "configure, write or read"),
            required("resource", "queue or exchange"),
            required(
                "name",
                "The name of the queue or exchange; amq.default is the default exchange",
            ),
            option("routing-key", "A routing key, if the exchange is of type topic"),
        ],
        examples: &["check_access -p orders alice write exchange events --routing-key order.paid"],
        intent: "",
        action: Action::Run(access),
    },
    Spec {
        name: "preview_policy",
        about: "What a policy would change; it is not set",
        arguments: policies::SET,
        examples: &["preview_policy short '^tmp\\.' '{\"message-ttl\": 60000}' --apply-to queues"],
        intent: "What policy \"{name}\" would change in vhost \"{vhost}\" ...",
        action: Action::Run(policy),
    },
    Spec {
        name: "preview_operator_policy",
        about: "What an operator policy would change; it is not set",
        arguments: policies::SET,
        examples: &[
            "preview_operator_policy cap '.*' '{\"max-length\": 1000000}' --apply-to queues",
        ],
        intent: "What operator policy \"{name}\" would change in vhost \"{vhost}\" ...",
        action: Action::Run(operator_policy),
    },
    Spec {
        name: "audit_log",
        about: "The last requests for changes over HTTP, and what came of them",
        arguments: &[
            option("number", "Number of lines, up to 500 [default: 50]"),
            option("by", "Only those of this user"),
            option("method", "Only those with this method: PUT, POST or DELETE"),
            option("contains", "Only those whose path contains this text"),
            option("result", "Only those that were done, or refused"),
        ],
        examples: &["audit_log --by alice --result refused"],
        intent: "Last requests for changes ...",
        action: Action::Run(audit),
    },
];

/// Findings as a table, with times for people.
fn findings(mut found: Value) -> Output {
    for one in found.as_array_mut().into_iter().flatten() {
        one["since"] = one["since_ms"].as_u64().map(rfc3339).into();
    }
    super::lists::rows(&found, &["severity", "kind", "since", "text"], |_| true)
}

fn attention(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    Ok(findings(session.client.get("/api/attention")?))
}

fn explain(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let (vhost, queue) = (segment(input.vhost()), segment(input.text("queue")));
    let found = session.client.find(&format!("/api/queues/{vhost}/{queue}/diagnosis"))?;
    found.map(findings).ok_or_else(|| Failure::error(DATA, "No such queue was found"))
}

fn ask(session: &mut Session, path: &str, asked: &Value) -> Result<Value, Failure> {
    good(session.client.call(Method::POST, path, body(asked))?)?.json()
}

fn route(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let properties = match input.find("properties") {
        Some(_) => input.json("properties")?,
        None => json!({}),
    };
    // An empty segment is the default exchange.
    let path = format!(
        "/api/exchanges/{}/{}/route",
        segment(input.vhost()),
        segment(input.text("exchange"))
    );
    let asked = json!({ "routing_key": input.text("routing-key"), "properties": properties });
    let traced = ask(session, &path, &asked)?;
    Ok(Output::Both(told(&traced), traced))
}

fn list<'v>(object: &'v Value, name: &str) -> &'v [Value] {
    object[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(object: &'v Value, name: &str) -> &'v str {
    object[name].as_str().unwrap_or_default()
}

/// Says how many there are of what is not all shown.
fn more(traced: &Value, shown: &str, count: &str, what: &str) -> Option<String> {
    let more = traced[count].as_u64()?.saturating_sub(list(traced, shown).len() as u64);
    (more > 0).then(|| format!("... and {more} more {what}"))
}

/// The way of a message in words, a step a line.
fn told(traced: &Value) -> String {
    let mut lines = Vec::new();
    for step in list(traced, "steps") {
        lines.push(text(step, "text").to_owned());
        for binding in list(step, "bindings") {
            let end = if binding["loop"] == true { " (where it was before)" } else { "" };
            lines.push(format!(
                "  binding '{}' to {} '{}'{end}",
                text(binding, "routing_key"),
                text(binding, "destination_type"),
                text(binding, "destination"),
            ));
        }
    }
    lines.extend(more(traced, "steps", "step_count", "exchanges that it passes"));
    for queue in list(traced, "queues") {
        let refuses = if queue["refuses"] == true { ", which is full and refuses it" } else { "" };
        let letters = match queue["dead_letter_exchange"].as_str() {
            Some(exchange) => format!("; its dead letters go to exchange '{exchange}'"),
            None => String::new(),
        };
        lines.push(format!("It goes to queue '{}'{refuses}{letters}", text(queue, "name")));
    }
    lines.extend(more(traced, "queues", "queue_count", "queues that it goes to"));
    if traced["routed"] != true {
        lines.push("No queue gets it".to_owned());
    }
    crate::format::lines(&lines)
}

fn access(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    for (name, words) in
        [("right", &["configure", "write", "read"][..]), ("resource", &["queue", "exchange"])]
    {
        let given = input.text(name);
        if !words.contains(&given) {
            let text = format!("'{given}' is no {name}: expected {}", words.join(" or "));
            return Err(Failure::usage(text));
        }
    }
    let asked = json!({
        "user": input.text("user"),
        "vhost": input.vhost(),
        "right": input.text("right"),
        "resource": input.text("resource"),
        "name": input.text("name"),
        "routing_key": input.find("routing-key"),
    });
    let answer = ask(session, "/api/access/check", &asked)?;
    match answer["allowed"] == true {
        true => Ok(Output::Both(text(&answer, "because").to_owned(), answer)),
        false => {
            super::users::refuse_unknown(session, input.text("user"))?;
            Err(Failure::error(UNAVAILABLE, text(&answer, "because")))
        }
    }
}

fn policy(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    preview(session, input, "/api/policy-preview/")
}

fn operator_policy(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    preview(session, input, "/api/operator-policy-preview/")
}

fn preview(session: &mut Session, input: &Input, path: &str) -> Result<Output, Failure> {
    let mut asked = policies::policy(input)?;
    asked["name"] = input.text("name").into();
    let found = ask(session, &format!("{path}{}", segment(input.vhost())), &asked)?;
    let count = |name: &str| found[name].as_u64().unwrap_or_default();
    let mut lines = vec![format!(
        "It matches {} queues, and would change {} of them and {} exchanges.",
        count("matching_queues"),
        count("changed_queues"),
        count("changed_exchanges"),
    )];
    let none = |one: &Value, name: &str| one[name].as_str().unwrap_or("none").to_owned();
    for (what, name) in [("queue", "queues"), ("exchange", "exchanges")] {
        for one in list(&found, name) {
            let (before, after) = (none(one, "policy_before"), none(one, "policy_after"));
            let mut line = format!("{what} '{}': policy {before} -> {after}", text(one, "name"));
            if what == "queue" {
                line = format!("{line}, arguments {} -> {}", one["before"], one["after"]);
            }
            lines.push(line);
        }
    }
    Ok(Output::Both(crate::format::lines(&lines), found))
}

fn audit(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let number = input.count("number")?.unwrap_or(50);
    let mut path = format!("/api/audit?page=1&page_size={number}");
    for (name, option) in
        [("user", "by"), ("method", "method"), ("contains", "contains"), ("result", "result")]
    {
        if let Some(wanted) = input.find(option) {
            path = format!("{path}&{name}={}", segment(wanted));
        }
    }
    let mut found = session.client.get(&path)?;
    let mut items = found["items"].take();
    if let Some(items) = items.as_array_mut() {
        // The newest stands last, as in a log.
        items.reverse();
        for one in items {
            one["at"] = one["at_ms"].as_u64().map(rfc3339).into();
        }
    }
    let columns = ["at", "user", "peer", "method", "path", "status"];
    Ok(super::lists::rows(&items, &columns, |_| true))
}

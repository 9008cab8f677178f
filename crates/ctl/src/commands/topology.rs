//! Making queues, exchanges and bindings, and removing what is no queue.

use crate::client::{Answer, body, good, segment};
use crate::failure::{DATA, Failure};
use crate::input::Input;
use crate::pairs;
use crate::session::Session;
use crate::spec::{Action, Argument, Output, Spec, flag, option, options, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Map, Value, json};

/// The types of queues, as `x-queue-type` names them.
const QUEUE_TYPES: &[&str] = &["classic", "quorum", "stream"];
/// The types of exchanges that the broker has.
const EXCHANGE_TYPES: &[&str] = &[
    "direct",
    "fanout",
    "topic",
    "headers",
    "x-consistent-hash",
    "x-delayed-message",
    "x-local-random",
    "x-message-deduplication",
    "x-modulus-hash",
    "x-random",
    "x-recent-history",
];
const BOOL: &[&str] = &["true", "false"];
const ARGUMENT: Argument = options(
    "argument",
    "An argument, may be repeated; VALUE is JSON where it reads as JSON, else text",
);
const ARGUMENTS: Argument = option("arguments", "All arguments, as a JSON object");
const DURABLE: Argument =
    option("durable", "Whether it survives a restart of the broker [default: true]").one_of(BOOL);
const SOURCE: Argument = required("source", "The exchange that messages come from");
const DESTINATION: Argument = required("destination", "The queue or exchange that they go to");
const DESTINATION_TYPE: Argument =
    option("destination-type", "What the destination is [default: queue]")
        .one_of(&["queue", "exchange"]);
const ROUTING_KEY: Argument =
    option("routing-key", "The routing key of the binding [default: an empty one]").short('r');

pub(super) const QUEUE: Spec = Spec {
    name: "declare_queue",
    about: "Create a queue or stream; one that is there already has to be the same",
    arguments: &[
        required("queue", "The queue's name"),
        option("type", "What kind of queue it is [default: that of the vhost, or classic]")
            .one_of(QUEUE_TYPES),
        DURABLE,
        flag("auto-delete", "Delete it when its last consumer is gone"),
        ARGUMENT,
        ARGUMENTS,
    ],
    examples: &[
        "declare_queue greetings",
        "declare_queue orders --type quorum --argument x-delivery-limit=5",
        "declare_queue failed --argument x-max-length=1000 --argument x-dead-letter-exchange=dead",
        "declare_queue log --type stream --arguments '{\"x-max-age\": \"7D\"}'",
    ],
    intent: "Declaring queue '{queue}' in vhost '{vhost}' ...",
    action: Action::Run(declare_queue),
};

pub(super) const EXCHANGES: &[Spec] = &[
    Spec {
        name: "declare_exchange",
        about: "Create an exchange; one that is there already has to be the same",
        arguments: &[
            required("name", "The exchange's name"),
            option("type", "How it routes [default: direct]").one_of(EXCHANGE_TYPES),
            DURABLE,
            flag("auto-delete", "Delete it when its last binding is gone"),
            flag("internal", "Only other exchanges may send to it"),
            ARGUMENT,
            ARGUMENTS,
        ],
        examples: &[
            "declare_exchange events --type topic",
            "declare_exchange later --type x-delayed-message --argument x-delayed-type=direct",
        ],
        intent: "Declaring exchange '{name}' in vhost '{vhost}' ...",
        action: Action::Run(declare_exchange),
    },
    Spec {
        name: "delete_exchange",
        about: "Delete an exchange with its bindings",
        arguments: &[
            required("name", "The exchange's name"),
            flag("if-unused", "Only if it is the source of no binding"),
        ],
        examples: &["delete_exchange events --if-unused"],
        intent: "Deleting exchange '{name}' in vhost '{vhost}' ...",
        action: Action::Run(delete_exchange),
    },
    Spec {
        name: "bind",
        about: "Have messages of an exchange go to a queue, or to another exchange",
        arguments: &[SOURCE, DESTINATION, ROUTING_KEY, DESTINATION_TYPE, ARGUMENT, ARGUMENTS],
        examples: &[
            "bind events orders --routing-key 'order.*'",
            "bind events archive --destination-type exchange --routing-key '#'",
            "bind amq.headers invoices --argument x-match=any --argument kind=invoice",
        ],
        intent: "Binding {destination} to exchange '{source}' in vhost '{vhost}' ...",
        action: Action::Run(bind),
    },
    Spec {
        name: "unbind",
        about: "Remove a binding; its routing key and arguments say which",
        arguments: &[SOURCE, DESTINATION, ROUTING_KEY, DESTINATION_TYPE, ARGUMENT, ARGUMENTS],
        examples: &["unbind events orders --routing-key 'order.*'"],
        intent: "Removing the binding of {destination} to exchange '{source}' in vhost '{vhost}' ...",
        action: Action::Run(unbind),
    },
];

fn declare_queue(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let mut arguments = arguments(input)?;
    if let Some(kind) = input.find("type") {
        pairs::add(&mut arguments, "x-queue-type", kind.into())?;
    }
    declare(session, input, ("queue", input.text("queue")), settings(input, arguments))
}

fn declare_exchange(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let arguments = arguments(input)?;
    let mut asked = settings(input, arguments);
    asked["type"] = input.find("type").unwrap_or("direct").into();
    asked["internal"] = input.has("internal").into();
    declare(session, input, ("exchange", input.text("name")), asked)
}

fn arguments(input: &Input) -> Result<Map<String, Value>, Failure> {
    let mut arguments = pairs::object(input, ARGUMENTS.name)?;
    pairs::add_all(&mut arguments, input, ARGUMENT.name)?;
    Ok(arguments)
}

/// What queues and exchanges are declared with.
fn settings(input: &Input, arguments: Map<String, Value>) -> Value {
    json!({
        "durable": input.find(DURABLE.name) != Some("false"),
        "auto_delete": input.has("auto-delete"),
        "arguments": arguments,
    })
}

fn declare(
    session: &mut Session,
    input: &Input,
    (what, name): (&str, &str),
    asked: Value,
) -> Result<Output, Failure> {
    let path = format!("/api/{what}s/{}/{}", segment(input.vhost()), segment(name));
    let answer = call(session, input, Method::PUT, &path, body(&asked))?;
    Ok(Output::Text(match answer.status {
        201 => format!("Created {what} '{name}'"),
        _ => format!("{what} '{name}' is there already, with these settings"),
    }))
}

fn delete_exchange(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let name = input.text("name");
    let (vhost, exchange) = (segment(input.vhost()), segment(name));
    let condition = if input.has("if-unused") { "?if-unused=true" } else { "" };
    let path = format!("/api/exchanges/{vhost}/{exchange}{condition}");
    call(session, input, Method::DELETE, &path, Bytes::new())?;
    Ok(Output::Text(format!("Deleted exchange '{name}'")))
}

/// Where the bindings from the source to the destination are.
fn bindings(input: &Input) -> String {
    let [vhost, source, destination] =
        [input.vhost(), input.text("source"), input.text("destination")].map(segment);
    let kind = if input.find(DESTINATION_TYPE.name) == Some("exchange") { "e" } else { "q" };
    format!("/api/bindings/{vhost}/e/{source}/{kind}/{destination}")
}

fn bind(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let arguments = arguments(input)?;
    let key = input.text(ROUTING_KEY.name);
    let asked = body(&json!({ "routing_key": key, "arguments": arguments }));
    call(session, input, Method::POST, &bindings(input), asked)?;
    let (source, destination) = (input.text("source"), input.text("destination"));
    Ok(Output::Text(format!("Bound '{destination}' to '{source}' with routing key '{key}'")))
}

fn unbind(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let arguments = Value::Object(arguments(input)?);
    let (path, key) = (bindings(input), input.text(ROUTING_KEY.name));
    let answer = call(session, input, Method::GET, &path, Bytes::new())?.json()?;
    let known = answer.as_array().map_or(&[][..], Vec::as_slice);
    let is_meant = |one: &&Value| one["routing_key"] == key && one["arguments"] == arguments;
    let Some(binding) = known.iter().find(is_meant) else {
        let others: Vec<String> = known
            .iter()
            .map(|one| {
                format!("  routing key {}, arguments {}", one["routing_key"], one["arguments"])
            })
            .collect();
        let text = "There is no binding with this routing key and these arguments";
        return Err(Failure::error(
            DATA,
            match others.is_empty() {
                true => text.to_owned(),
                false => format!("{text}. There are:\n{}", others.join("\n")),
            },
        ));
    };
    let name = binding["properties_key"].as_str().unwrap_or_default();
    let path = format!("{path}/{}", segment(name));
    call(session, input, Method::DELETE, &path, Bytes::new())?;
    let (source, destination) = (input.text("source"), input.text("destination"));
    Ok(Output::Text(format!("Removed the binding of '{destination}' to '{source}'")))
}

/// Asks something that is about the vhost, the exchange or the queue that the command names.
fn call(
    session: &mut Session,
    input: &Input,
    method: Method,
    path: &str,
    sent: Bytes,
) -> Result<Answer, Failure> {
    let answer = session.client.call(method, path, sent)?;
    found(session, input, answer)
}

/// The answer if it is a success; what is missing otherwise, in words.
pub(super) fn found(
    session: &mut Session,
    input: &Input,
    answer: Answer,
) -> Result<Answer, Failure> {
    if answer.status != 404 {
        return good(answer);
    }
    let (vhost, reason) = (input.vhost(), answer.reason());
    // Who may not enter a vhost is told no more than that something is not found.
    let has_vhost = match reason.as_str() {
        "Not Found" => {
            let path = format!("/api/exchanges/{}?columns=name", segment(vhost));
            session.client.find(&path)?.is_some()
        }
        reason => reason != "vhost_not_found",
    };
    let exchange = input.find("exchange").or(input.find("name"));
    let text = match (reason.as_str(), exchange) {
        _ if !has_vhost => format!("Virtual host '{vhost}' does not exist"),
        ("exchange_not_found" | "Not Found", Some(name)) => {
            format!("There is no exchange '{name}' in vhost '{vhost}'")
        }
        ("queue_not_found", _) => {
            format!("There is no queue '{}' in vhost '{vhost}'", input.text("queue"))
        }
        ("Not Found", _) => {
            "There is no binding: the source or the destination does not exist".to_owned()
        }
        (reason, _) => reason.to_owned(),
    };
    Err(Failure::error(DATA, text))
}

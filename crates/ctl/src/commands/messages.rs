//! Messages: looking at them without a change to them, and moving them.

use crate::client::{body, good, segment};
use crate::failure::{CANT_CREATE, DATA, Failure, UNAVAILABLE};
use crate::format::Format;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Argument, Output, Spec, flag, option, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::{Map, Value, json};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;

const QUEUE: Argument = required("queue", "The queue's name");
const CONTAINS: Argument = option("contains", "Only messages whose payload contains this text");
const HEADER: Argument = option("header", "Only messages with this header: NAME or NAME:VALUE");
const NO_QUEUE: &str = "Object (queue, stream, exchange, etc) was not found";

/// Bytes of a payload that are shown where nothing is said.
const SHOWN_BYTES: u64 = 1024;
/// Messages that are shown where nothing is said.
const PEEKED: u64 = 20;

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "peek_messages",
        about: "Show ready messages of a queue or stream; nothing about them changes",
        arguments: &[
            QUEUE,
            option("count", "Show at most this many [default: 20]"),
            option("offset", "Start there: a number; of a stream also first, last or next"),
            CONTAINS,
            HEADER,
            option("truncate", "Show this many bytes of each payload [default: 1024]"),
        ],
        examples: &[
            "peek_messages -p orders failed --count 5",
            "peek_messages failed --contains refused --formatter json",
        ],
        intent: "Messages of queue '{queue}' in vhost '{vhost}' ...",
        action: Action::Run(peek),
    },
    Spec {
        name: "peek",
        about: "Show the ready message at a position of a queue, the first at 1; nothing about it changes",
        arguments: &[QUEUE, required("position", "Its position, from 1")],
        examples: &["peek -p orders failed 1"],
        intent: "Peeking at queue {queue} at position {position} ...",
        action: Action::Run(peek_at),
    },
    Spec {
        name: "save_message",
        about: "Write the payload of a ready message to a new file; the message stays",
        arguments: &[
            QUEUE,
            required("offset", "Its offset, as peek_messages shows it"),
            required("file", "The file, or - for standard output"),
            option("number", "Only if the message there has this number"),
        ],
        examples: &["save_message -p orders failed 0 payload.bin"],
        intent: "",
        action: Action::Run(save),
    },
    Spec {
        name: "list_unacknowledged",
        about: "Messages of a queue that are delivered and not acknowledged, oldest first, and who has them",
        arguments: &[QUEUE, option("count", "Show at most this many, up to 500 [default: 100]")],
        examples: &["list_unacknowledged -p orders failed"],
        intent: "Unacknowledged messages of queue '{queue}' in vhost '{vhost}' ...",
        action: Action::Run(unacknowledged),
    },
    Spec {
        name: "move_messages",
        about: "Move ready messages elsewhere in the vhost, or dead letters back to where they died",
        arguments: &[
            QUEUE,
            option("to-queue", "To the end of this queue"),
            option("to-exchange", "Wherever this exchange routes them"),
            option(
                "routing-key",
                "With this routing key instead of their own (with --to-exchange)",
            ),
            flag("to-origin", "To the queue in which each died last"),
            option("count", "At most this many"),
            option("numbers", "Only those with these numbers, as peek_messages shows them: 3,7,12"),
            CONTAINS,
            HEADER,
            flag("dry-run", "Only say what would be moved"),
        ],
        examples: &[
            "move_messages -p orders failed --to-origin --dry-run",
            "move_messages failed --to-queue parked --contains refused --count 100",
        ],
        intent: "Moving messages of queue '{queue}' in vhost '{vhost}' ...",
        action: Action::Run(relocate),
    },
];

fn path(input: &Input, rest: &str) -> String {
    format!("/api/queues/{}/{}/{rest}", segment(input.vhost()), segment(input.text("queue")))
}

/// The value of an option that is a whole number.
fn number(input: &Input, name: &str) -> Result<Option<u64>, Failure> {
    let Some(text) = input.find(name) else { return Ok(None) };
    let number = text.parse();
    number
        .map(Some)
        .map_err(|_| Failure::usage(format!("--{name}: '{text}' is not a whole number")))
}

/// What is at a path of the queue, which has to be there.
fn found(session: &mut Session, path: &str) -> Result<Value, Failure> {
    session.client.find(path)?.ok_or_else(|| Failure::error(DATA, NO_QUEUE))
}

/// Asks until there are as many as are wanted: one request looks at a bounded number of messages.
fn peek(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let wanted = number(input, "count")?.unwrap_or(PEEKED);
    let truncate = number(input, "truncate")?.unwrap_or(SHOWN_BYTES);
    let mut query = format!("truncate={truncate}");
    for name in ["contains", "header"] {
        if let Some(text) = input.find(name) {
            query = format!("{query}&{name}={}", segment(text));
        }
    }
    let mut offset = input.find("offset").map(segment);
    let mut messages: Vec<Value> = Vec::new();
    while (messages.len() as u64) < wanted {
        let left = wanted - messages.len() as u64;
        let from = offset.map(|offset| format!("&offset={offset}")).unwrap_or_default();
        let page = found(session, &path(input, &format!("messages?{query}&count={left}{from}")))?;
        messages.extend(page["messages"].as_array().cloned().unwrap_or_default());
        let next = page["next"].as_u64().filter(|_| page["looked_at"].as_u64() > Some(0));
        let Some(next) = next else { break };
        offset = Some(next.to_string());
    }
    let columns = [
        "offset",
        "number",
        "exchange",
        "routing_key",
        "redelivered",
        "payload_bytes",
        "payload_encoding",
        "payload",
        "properties",
    ];
    Ok(super::lists::rows(&Value::Array(messages), &columns, |_| true))
}

/// The message at a position, as RabbitMQ shows it.
fn peek_at(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let position = input.text("position");
    let offset = position.parse::<u64>().ok().and_then(|position| position.checked_sub(1));
    let offset = offset.ok_or_else(|| {
        Failure::usage(format!("position value must be a positive integer, not '{position}'"))
    })?;
    let queue = format!("/api/queues/{}/{}", segment(input.vhost()), segment(input.text("queue")));
    let about = session.client.find(&format!("{queue}?columns=type"))?.ok_or_else(|| {
        let vhost = input.vhost();
        Failure::error(DATA, format!("Target queue was not found in virtual host '{vhost}'"))
    })?;
    if about["type"] == "stream" {
        let text = "Cannot peek into a stream by position: use peek_messages --offset";
        return Err(Failure::error(UNAVAILABLE, text));
    }
    let page = found(session, &path(input, &format!("messages?count=1&offset={offset}")))?;
    let message = page["messages"][0].as_object().cloned().ok_or_else(|| {
        Failure::error(UNAVAILABLE, "Target queue does not have a message at that position")
    })?;
    if matches!(session.style.format, Format::Json | Format::JsonStream) {
        let shown = json!({ "result": "ok", "message": message });
        return Ok(Output::Both(String::new(), shown));
    }
    let columns = ["keys", "values"].map(str::to_owned).to_vec();
    let rows = message.into_iter().map(|(name, value)| vec![name.into(), value]).collect();
    Ok(Output::Rows { columns, rows })
}

fn save(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let mut place = path(input, &format!("messages/{}", segment(input.text("offset"))));
    if let Some(number) = input.find("number") {
        place = format!("{place}?number={}", segment(number));
    }
    let answer = session.client.call(Method::GET, &place, Bytes::new())?;
    if answer.status == 404 {
        return Err(Failure::error(DATA, "there is no such message, or no such queue"));
    }
    let payload = good(answer)?.body;
    match input.text("file") {
        "-" => Ok(Output::Raw(payload.to_vec())),
        file => {
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
            let written = opened.and_then(|mut opened| opened.write_all(&payload));
            written.map_err(|error| {
                Failure::error(CANT_CREATE, format!("can't write {file}: {error}"))
            })?;
            Ok(Output::Text(format!("{} bytes written to {file}", payload.len())))
        }
    }
}

fn unacknowledged(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let count = number(input, "count")?.unwrap_or(100);
    let mut page = found(session, &path(input, &format!("unacked?page=1&page_size={count}")))?;
    let mut items = page["items"].take();
    for item in items.as_array_mut().into_iter().flatten() {
        // A caller who may not see others' connections is not told.
        item["channel"] = item["channel_details"]["name"].take();
    }
    let columns = [
        "age_ms",
        "user",
        "channel",
        "consumer_tag",
        "delivery_tag",
        "exchange",
        "routing_key",
        "redelivered",
        "payload_bytes",
    ];
    Ok(super::lists::rows(&items, &columns, |_| true))
}

/// Where messages go; exactly one place has to be named.
fn place(input: &Input) -> Result<Value, Failure> {
    let key = input.find("routing-key");
    let is_exchange = input.find("to-exchange").is_some();
    let places = [input.find("to-queue").is_some(), is_exchange, input.has("to-origin")];
    if places.into_iter().filter(|is_named| *is_named).count() != 1 {
        return Err(Failure::usage("name one of --to-queue, --to-exchange and --to-origin"));
    }
    if key.is_some() && !is_exchange {
        return Err(Failure::usage("--routing-key is for --to-exchange"));
    }
    Ok(match (input.find("to-queue"), input.find("to-exchange"), key) {
        (Some(queue), ..) => json!({ "queue": queue }),
        (_, Some(exchange), Some(key)) => json!({ "exchange": exchange, "routing_key": key }),
        (_, Some(exchange), None) => json!({ "exchange": exchange }),
        _ => json!("origin"),
    })
}

fn relocate(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let mut asked = Map::new();
    asked.insert("to".to_owned(), place(input)?);
    asked.insert("dry_run".to_owned(), input.has("dry-run").into());
    if let Some(count) = number(input, "count")? {
        asked.insert("count".to_owned(), count.into());
    }
    for name in ["contains", "header"] {
        if let Some(text) = input.find(name) {
            asked.insert(name.to_owned(), text.into());
        }
    }
    if let Some(text) = input.find("numbers") {
        let numbers: Vec<Value> = text.split(',').map(|one| one.trim().into()).collect();
        asked.insert("numbers".to_owned(), numbers.into());
    }
    let sent = body(&Value::Object(asked));
    let done = good(session.client.call(Method::POST, &path(input, "move"), sent)?)?.json()?;
    Ok(Output::Both(told(&done), done))
}

/// What became of the messages, in words.
fn told(done: &Value) -> String {
    let count = |name: &str| done[name].as_u64().unwrap_or_default();
    let verb = if done["dry_run"] == true { "would move" } else { "moved" };
    let mut text = format!("{verb}: {}", count("moved"));
    for (name, why) in
        [("without_place", "no queue takes them"), ("forbidden", "you may not send messages there")]
    {
        if count(name) > 0 {
            text = format!("{text}\nnot moved, as {why}: {}", count(name));
        }
    }
    if done["partial"] == true {
        text.push_str("\nMore may be left: run the command again.");
    }
    text
}

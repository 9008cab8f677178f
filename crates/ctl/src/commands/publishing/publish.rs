//! Publishing messages.

use super::super::topology::found;
use crate::client::{body, segment};
use crate::failure::{DATA, Failure, UNAVAILABLE, say_error};
use crate::input::Input;
use crate::pairs;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, flag, option, optional, options};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};

/// The properties of a message, by their names in AMQP.
const PROPERTIES: [&str; 14] = [
    "content_type",
    "content_encoding",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
];
/// Bytes of a payload that a request over HTTP has room for, as base64.
const PAYLOAD_BYTES_MAX: u64 = 7_000_000;
const PERSISTENT: u8 = 2;
const TRANSIENT: u8 = 1;

pub(super) const SPEC: Spec = Spec {
    name: "publish",
    about: "Publish a message, and wait until the broker has confirmed it",
    arguments: &[
        optional("payload", "The payload [default: all of standard input]"),
        option("exchange", "The exchange [default: the default one, which sends to the queue that the routing key names]")
            .short('e'),
        option("routing-key", "The routing key; for the default exchange, the queue's name").short('r'),
        option("file", "Take the payload from this file; - is standard input"),
        flag("lines", "Publish each line of the file or standard input as a message"),
        option("count", "Publish it this many times [default: 1]"),
        flag("transient", "Let a restart of the broker lose it: messages are persistent otherwise"),
        option("content-type", "What the payload is, such as application/json"),
        options("header", "A header, may be repeated; VALUE is JSON where it reads as JSON, else text"),
        option("properties", "Properties, as a JSON object: priority, expiration, message_id, reply_to, ..."),
    ],
    examples: &[
        "publish --routing-key greetings 'Hello!'",
        "publish -e events -r order.paid --content-type application/json '{\"id\": 7}'",
        "publish -r greetings --file photo.jpg --header origin=camera --header size=3",
        "publish -r greetings --properties '{\"priority\": 5, \"expiration\": \"60000\"}' soon",
        "publish -r greetings --lines < names.txt",
    ],
    intent: "",
    action: Action::Run(publish),
};

fn publish(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let (exchange, key) = (input.text("exchange"), input.find("routing-key"));
    if exchange.is_empty() && key.is_none() {
        let why =
            "say where it goes: --routing-key QUEUE, or --exchange with or without a routing key";
        return Err(Failure::usage(why));
    }
    let count = input.count("count")?;
    let mut publisher = Publisher {
        path: format!("/api/exchanges/{}/{}/publish", segment(input.vhost()), segment(exchange)),
        message: json!({ "routing_key": key.unwrap_or_default(), "properties": properties(input)? }),
        published: 0,
    };
    let ended = match input.has("lines") {
        true if count.is_some() || input.find("payload").is_some() => {
            return Err(Failure::usage(
                "--lines takes messages from a file or standard input: leave out PAYLOAD and --count",
            ));
        }
        true => source(session, input).and_then(|source| publisher.lines(source, session, input)),
        false => {
            let payload = payload(session, input)?;
            publisher.set(&payload);
            (0..count.unwrap_or(1)).try_for_each(|_| publisher.publish(session, input))
        }
    };
    let published = publisher.published;
    match ended {
        Ok(()) => {
            let text = match published {
                1 => "Message published".to_owned(),
                _ => format!("{published} messages published"),
            };
            Ok(Output::Both(text, json!({ "published": published })))
        }
        Err(failure) if published > 0 => {
            let text =
                format!("{}\nBefore that, {published} messages were published.", failure.text);
            Err(Failure { text, ..failure })
        }
        Err(failure) => Err(failure),
    }
}

/// Where messages go, and how many have gone.
struct Publisher {
    path: String,
    message: Value,
    published: u64,
}

impl Publisher {
    /// Has the next message have this payload.
    fn set(&mut self, payload: &[u8]) {
        self.message["payload"] = STANDARD.encode(payload).into();
        self.message["payload_encoding"] = "base64".into();
    }

    /// Publishes the message, which has the time of a command for itself.
    fn publish(&mut self, session: &mut Session, input: &Input) -> Result<(), Failure> {
        session.client.restart_clock();
        let answer = session.client.call(Method::POST, &self.path, body(&self.message))?;
        let routed = found(session, input, answer)?.json()?["routed"] == true;
        if !routed {
            return Err(unrouted(input));
        }
        self.published += 1;
        Ok(())
    }

    /// Publishes each line as it comes, without its end.
    fn lines(
        &mut self,
        mut source: impl BufRead,
        session: &mut Session,
        input: &Input,
    ) -> Result<(), Failure> {
        let mut line = Vec::new();
        loop {
            line.clear();
            read(source.by_ref().take(PAYLOAD_BYTES_MAX + 1).read_until(b'\n', &mut line))?;
            if line.is_empty() {
                return Ok(());
            }
            check_size(&line)?;
            let ends: &[&[u8]] = &[b"\r\n", b"\n"];
            let end = ends.iter().find(|end| line.ends_with(end)).map_or(0, |end| end.len());
            self.set(&line[..line.len() - end]);
            self.publish(session, input)?;
        }
    }
}

/// What is said of a message that no queue takes.
fn unrouted(input: &Input) -> Failure {
    let (exchange, key) = (input.text("exchange"), input.text("routing-key"));
    let why = match exchange {
        "" | "amq.default" => {
            format!(
                "there is no queue '{key}' in vhost '{}': declare_queue makes one",
                input.vhost()
            )
        }
        _ => format!(
            "no queue is bound to exchange '{exchange}' for routing key '{key}': trace_route says where a message would go, bind \
             changes it"
        ),
    };
    Failure::error(UNAVAILABLE, format!("Message published but NOT routed: {why}"))
}

/// The properties that the message has.
fn properties(input: &Input) -> Result<Value, Failure> {
    let mut all = pairs::object(input, "properties")?;
    if let Some(unknown) = all.keys().find(|name| !PROPERTIES.contains(&name.as_str())) {
        return Err(Failure::usage(format!("--properties: {}", unknown_property(unknown))));
    }
    if input.has("transient") {
        pairs::add(&mut all, "delivery_mode", TRANSIENT.into())?;
    }
    all.entry("delivery_mode").or_insert_with(|| PERSISTENT.into());
    if let Some(kind) = input.find("content-type") {
        pairs::add(&mut all, "content_type", kind.into())?;
    }
    if !input.texts("header").is_empty() {
        let headers = all.entry("headers").or_insert_with(|| Map::new().into());
        let Value::Object(headers) = headers else {
            return Err(Failure::usage("--properties: headers is no JSON object"));
        };
        pairs::add_all(headers, input, "header")?;
    }
    Ok(all.into())
}

fn unknown_property(name: &str) -> String {
    let likeness = |known: &&&str| (strsim::jaro_winkler(name, known) * 1000.0) as u32;
    let nearest = PROPERTIES.iter().max_by_key(likeness).filter(|known| likeness(known) > 800);
    match nearest {
        Some(known) => format!("there is no property '{name}'; did you mean '{known}'?"),
        None => format!("there is no property '{name}'; there are {}", PROPERTIES.join(", ")),
    }
}

/// The payload, whole.
fn payload(session: &Session, input: &Input) -> Result<Vec<u8>, Failure> {
    if let Some(payload) = input.find("payload") {
        if input.find("file").is_some() {
            return Err(Failure::usage("give either PAYLOAD or --file"));
        }
        return Ok(payload.as_bytes().to_vec());
    }
    let mut payload = Vec::new();
    read(source(session, input)?.take(PAYLOAD_BYTES_MAX + 1).read_to_end(&mut payload))?;
    check_size(&payload)?;
    Ok(payload)
}

/// Where payloads are read from.
fn source(session: &Session, input: &Input) -> Result<Box<dyn BufRead>, Failure> {
    match input.find("file") {
        None | Some("-") => {
            let stdin = io::stdin().lock();
            if stdin.is_terminal() && session.style.says_intent() {
                say_error(&"Reading from the terminal; Ctrl-D ends it ...");
            }
            Ok(Box::new(stdin))
        }
        Some(path) => {
            let file = File::open(path)
                .map_err(|error| Failure::error(DATA, format!("can't read {path}: {error}")))?;
            Ok(Box::new(BufReader::new(file)))
        }
    }
}

fn read(bytes: io::Result<usize>) -> Result<usize, Failure> {
    bytes.map_err(|error| Failure::error(DATA, format!("can't read the payload: {error}")))
}

fn check_size(payload: &[u8]) -> Result<(), Failure> {
    match payload.len() as u64 > PAYLOAD_BYTES_MAX {
        true => Err(Failure::error(
            DATA,
            format!(
                "the payload has more than the {PAYLOAD_BYTES_MAX} bytes that go over the HTTP API: use a client program"
            ),
        )),
        false => Ok(()),
    }
}

//! What happens in the broker, and how large the messages are.

use crate::client::segment;
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::Format;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, option};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "consume_event_stream",
        about: "Print what happens in the broker from now on, a JSON object on each line",
        arguments: &[
            option("duration", "Seconds after which to end [default: never]").short('d'),
            option("pattern", "A regular expression: only events whose names match"),
        ],
        examples: &[
            "consume_event_stream --duration 60",
            "consume_event_stream --pattern '^(queue|vhost)\\.' -p orders | jq .name",
        ],
        intent: "",
        action: Action::Run(events),
    },
    Spec {
        name: "message_size_stats",
        about: "Show how many messages of each size clients have published since the start",
        arguments: &[],
        examples: &["message_size_stats"],
        intent: "Gathering message size statistics across the cluster ...",
        action: Action::Run(sizes),
    },
];

fn events(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    if !matches!(session.style.format, Format::Table | Format::Json | Format::JsonStream) {
        return Err(Failure::usage(
            "events are always JSON objects, one on a line: leave out --formatter",
        ));
    }
    let pattern = fancy_regex::Regex::new(input.text("pattern"))
        .map_err(|error| Failure::usage(format!("the pattern can't be used: {error}")))?;
    let duration = input.count("duration")?;
    let mut path = "/api/events?".to_owned();
    if let Some(seconds) = duration {
        path = format!("{path}seconds={seconds}&");
    }
    if let Some(vhost) = &input.vhost {
        path = format!("{path}vhost={}", segment(vhost));
    }
    let (style, begun) = (session.style, Instant::now());
    let mut written = Ok(true);
    session.client.follow(&path, |event| {
        let event = shown(event);
        // The broker says so if it had to leave out some: that is always of interest.
        let name = event["event"].as_str().unwrap_or_default();
        if name == "missed" || pattern.is_match(name).unwrap_or(false) {
            written = style.line(&event);
        }
        matches!(written, Ok(true))
    })?;
    let is_open = written?;
    let is_over = duration.is_some_and(|seconds| begun.elapsed() >= Duration::from_secs(seconds));
    match is_open && !is_over {
        true => Err(Failure::error(
            UNAVAILABLE,
            "the broker ended the stream: it stops, or the user may not listen any more",
        )),
        false => Ok(Output::Nothing),
    }
}

/// An event as RabbitMQ's tools print it, with what it is about beside its name.
fn shown(event: &Value) -> Value {
    if let Some(missed) = event.get("missed") {
        return json!({ "event": "missed", "missed": missed });
    }
    let mut all = Map::new();
    all.insert("event".to_owned(), event["kind"].clone());
    all.insert("timestamp_in_ms".to_owned(), event["at_ms"].clone());
    for name in ["vhost", "name"] {
        all.insert(name.to_owned(), event[name].clone());
    }
    for (name, value) in event["details"].as_object().into_iter().flatten() {
        all.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(all)
}

fn sizes(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let found = session.client.get("/api/message-sizes")?;
    let counts = found["messages"].as_object().ok_or_else(|| Failure::answer("no sizes"))?;
    let mut sizes: Vec<(u64, u64)> = counts
        .iter()
        .map(|(limit, count)| (limit.parse().unwrap_or(u64::MAX), count.as_u64().unwrap_or(0)))
        .collect();
    sizes.sort_unstable();
    let all: u64 = sizes.iter().map(|(_, count)| count).sum();
    let mut from = 0;
    let mut rows = Vec::new();
    for (limit, count) in sizes {
        let name = match (from, limit) {
            (0, to) => format!("below {}", short(to)),
            (from, u64::MAX) => format!("above {}", short(from)),
            (from, to) => format!("between {} and {}", short(from), short(to)),
        };
        let percent = count as f64 * 100.0 / all.max(1) as f64;
        rows.push(vec![name.into(), count.into(), format!("{percent:.2}").into()]);
        from = limit;
    }
    let columns = ["Message Size", "Count", "Percentage"].map(str::to_owned).to_vec();
    Ok(Output::Rows { columns, rows })
}

/// A number of bytes, as `10KB`.
fn short(bytes: u64) -> String {
    match bytes {
        1_000_000.. => format!("{}MB", bytes / 1_000_000),
        1000.. => format!("{}KB", bytes / 1000),
        _ => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_of_an_event_stand_beside_its_name() {
        let event = json!({ "at_ms": 1, "kind": "queue.created", "vhost": "/", "name": "q", "details": { "durable": "true", "name": "x" } });
        let expected = json!({ "event": "queue.created", "timestamp_in_ms": 1, "vhost": "/", "name": "q", "durable": "true" });
        assert_eq!(shown(&event), expected);
        assert_eq!(shown(&json!({ "missed": 3 })), json!({ "event": "missed", "missed": 3 }));
    }
}

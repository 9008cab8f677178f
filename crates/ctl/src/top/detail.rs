//! One queue, exchange, connection or channel: what is looked up of it, and how that is laid out.

use super::look::permitted;
use super::view::{View, member, number, rate_text, size, visible};
use crate::client::{Client, segment};
use crate::failure::Failure;
use serde_json::Value;

/// Rows of the table below the facts.
const ROWS_MAX: usize = 200;

/// One thing that can be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A queue, by its vhost and name.
    Queue(String, String),
    /// An exchange, by its vhost and name.
    Exchange(String, String),
    /// A connection, by its name.
    Connection(String),
    /// A channel, by its name.
    Channel(String),
}

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Detail {
    /// What stands above it.
    pub title: String,
    /// What is said of it: a name and a value each.
    pub facts: Vec<(&'static str, String)>,
    /// What may be wrong with it.
    pub findings: Vec<String>,
    /// What belongs to it.
    pub table: Table,
    /// What comes in and goes out, each second.
    pub rates: (f64, f64),
}

/// What belongs to a thing: its consumers, bindings or channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// What the rows are.
    pub title: &'static str,
    /// What stands above the columns.
    pub head: &'static [&'static str],
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Subject {
    /// The thing of a row in a list.
    pub fn of(view: View, row: &Value) -> Option<Self> {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        Some(match view {
            View::Queues => Subject::Queue(text("vhost")?, text("name")?),
            View::Exchanges => Subject::Exchange(text("vhost")?, text("name")?),
            View::Connections => Subject::Connection(text("name")?),
            View::Channels => Subject::Channel(text("name")?),
        })
    }

    /// Asks the broker for it; nothing if it is gone.
    ///
    /// # Errors
    /// If the broker does not answer, or refuses.
    pub fn look(&self, client: &mut Client) -> Result<Option<Detail>, Failure> {
        match self {
            Subject::Queue(vhost, name) => queue(client, vhost, name),
            Subject::Exchange(vhost, name) => exchange(client, vhost, name),
            Subject::Connection(name) => connection(client, name),
            Subject::Channel(name) => channel(client, name),
        }
    }
}

fn queue(client: &mut Client, vhost: &str, name: &str) -> Result<Option<Detail>, Failure> {
    let path = format!("/api/queues/{}/{}", segment(vhost), segment(name));
    let Some(found) = client.find(&path)? else { return Ok(None) };
    let diagnosis =
        permitted(client.find(&format!("{path}/diagnosis")).map(Option::unwrap_or_default))?;
    let consumers = list(&found["consumer_details"], |one| {
        vec![
            text(one, "channel_details.name"),
            text(one, "consumer_tag"),
            text(one, "prefetch_count"),
            yes_no(&one["ack_required"]),
            text(one, "activity_status"),
        ]
    });
    Ok(Some(Detail {
        title: format!("queue {} in vhost {}", visible(name), visible(vhost)),
        facts: vec![
            ("type", text(&found, "type")),
            ("state", text(&found, "state")),
            ("ready", count(&found, "messages_ready")),
            ("unacknowledged", count(&found, "messages_unacknowledged")),
            ("consumers", count(&found, "consumers")),
            ("policy", or_none(text(&found, "policy"))),
            ("durable", yes_no(&found["durable"])),
            ("arguments", or_none(arguments(&found["arguments"]))),
            ("in/s", rate(&found, "publish")),
            ("out/s", rate(&found, "deliver_get")),
            ("acknowledged/s", rate(&found, "ack")),
            ("redelivered/s", rate(&found, "redeliver")),
        ],
        findings: texts(&diagnosis),
        table: Table {
            title: "consumers",
            head: &["channel", "tag", "prefetch", "acknowledges", "status"],
            rows: consumers,
        },
        rates: (rate_of(&found, "publish"), rate_of(&found, "deliver_get")),
    }))
}

fn exchange(client: &mut Client, vhost: &str, name: &str) -> Result<Option<Detail>, Failure> {
    let api_name = if name.is_empty() { "amq.default" } else { name };
    let path = format!("/api/exchanges/{}/{}", segment(vhost), segment(api_name));
    let Some(found) = client.find(&path)? else { return Ok(None) };
    let bindings = client.find(&format!("{path}/bindings/source"))?.unwrap_or_default();
    let name = if name.is_empty() { "(default)" } else { name };
    Ok(Some(Detail {
        title: format!("exchange {} in vhost {}", visible(name), visible(vhost)),
        facts: vec![
            ("type", text(&found, "type")),
            ("durable", yes_no(&found["durable"])),
            ("internal", yes_no(&found["internal"])),
            ("policy", or_none(text(&found, "policy"))),
            ("arguments", or_none(arguments(&found["arguments"]))),
            ("in/s", rate(&found, "publish_in")),
            ("out/s", rate(&found, "publish_out")),
        ],
        findings: Vec::new(),
        table: Table {
            title: "bindings",
            head: &["to", "", "routing key", "arguments"],
            rows: list(&bindings, |one| {
                vec![
                    text(one, "destination"),
                    text(one, "destination_type"),
                    text(one, "routing_key"),
                    arguments(&one["arguments"]),
                ]
            }),
        },
        rates: (rate_of(&found, "publish_in"), rate_of(&found, "publish_out")),
    }))
}

fn connection(client: &mut Client, name: &str) -> Result<Option<Detail>, Failure> {
    let path = format!("/api/connections/{}", segment(name));
    let Some(found) = client.find(&path)? else { return Ok(None) };
    let channels = client.find(&format!("{path}/channels"))?.unwrap_or_default();
    let bytes = |member: &str| super::view::member(&found, member).as_f64().unwrap_or_default();
    let tls = text(&found, "ssl_protocol");
    Ok(Some(Detail {
        title: format!("connection {}", visible(name)),
        facts: vec![
            ("client", or_none(text(&found, "client_properties.connection_name"))),
            ("product", text(&found, "client_properties.product")),
            ("version", text(&found, "client_properties.version")),
            ("platform", text(&found, "client_properties.platform")),
            ("user", text(&found, "user")),
            ("vhost", text(&found, "vhost")),
            ("state", text(&found, "state")),
            ("TLS", or_none(tls)),
            ("heartbeat", format!("{} s", text(&found, "timeout"))),
            ("frame_max", count(&found, "frame_max")),
            ("received", size(bytes("recv_oct"))),
            ("sent", size(bytes("send_oct"))),
        ],
        findings: Vec::new(),
        table: Table {
            title: "channels",
            head: &["channel", "consumers", "prefetch", "unacked", "in/s", "out/s"],
            rows: list(&channels, |one| {
                vec![
                    text(one, "number"),
                    text(one, "consumer_count"),
                    text(one, "prefetch_count"),
                    text(one, "messages_unacknowledged"),
                    rate(one, "publish"),
                    rate(one, "deliver_get"),
                ]
            }),
        },
        rates: (bytes("recv_oct_details.rate"), bytes("send_oct_details.rate")),
    }))
}

fn channel(client: &mut Client, name: &str) -> Result<Option<Detail>, Failure> {
    let Some(found) = client.find(&format!("/api/channels/{}", segment(name)))? else {
        return Ok(None);
    };
    let mode = match (found["confirm"].as_bool(), found["transactional"].as_bool()) {
        (Some(true), _) => "confirms",
        (_, Some(true)) => "transactions",
        _ => "plain",
    };
    Ok(Some(Detail {
        title: format!("channel {}", visible(name)),
        facts: vec![
            ("user", text(&found, "user")),
            ("vhost", text(&found, "vhost")),
            ("state", text(&found, "state")),
            ("mode", mode.to_owned()),
            ("prefetch", text(&found, "prefetch_count")),
            ("unacknowledged", count(&found, "messages_unacknowledged")),
            ("unconfirmed", count(&found, "messages_unconfirmed")),
            ("uncommitted", count(&found, "messages_uncommitted")),
            ("in/s", rate(&found, "publish")),
            ("confirmed/s", rate(&found, "confirm")),
            ("out/s", rate(&found, "deliver_get")),
            ("acknowledged/s", rate(&found, "ack")),
        ],
        findings: Vec::new(),
        table: Table {
            title: "consumers",
            head: &["queue", "vhost", "tag", "prefetch", "acknowledges"],
            rows: list(&found["consumer_details"], |one| {
                vec![
                    text(one, "queue.name"),
                    text(one, "queue.vhost"),
                    text(one, "consumer_tag"),
                    text(one, "prefetch_count"),
                    yes_no(&one["ack_required"]),
                ]
            }),
        },
        rates: (rate_of(&found, "publish"), rate_of(&found, "deliver_get")),
    }))
}

fn list(found: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    found.as_array().into_iter().flatten().take(ROWS_MAX).map(row).collect()
}

fn texts(found: &Value) -> Vec<String> {
    let texts = found.as_array().into_iter().flatten();
    texts.filter_map(|one| one["text"].as_str().map(visible)).collect()
}

fn text(found: &Value, path: &str) -> String {
    match member(found, path) {
        Value::String(text) => visible(text),
        Value::Null => String::new(),
        other => visible(&other.to_string()),
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".to_owned() } else { text }
}

fn count(found: &Value, path: &str) -> String {
    member(found, path).as_u64().map_or_else(|| "-".to_owned(), number)
}

fn yes_no(value: &Value) -> String {
    if value.as_bool() == Some(true) { "yes" } else { "no" }.to_owned()
}

fn rate_of(found: &Value, of: &str) -> f64 {
    found["message_stats"][format!("{of}_details")]["rate"].as_f64().unwrap_or_default()
}

fn rate(found: &Value, of: &str) -> String {
    rate_text(rate_of(found, of))
}

fn arguments(found: &Value) -> String {
    let pairs = found.as_object().into_iter().flatten();
    let pairs = pairs.map(|(name, value)| match value {
        Value::String(text) => visible(&format!("{name}={text}")),
        other => visible(&format!("{name}={other}")),
    });
    pairs.collect::<Vec<_>>().join(" ")
}

//! What is shown in a list: its columns, and how the broker calls what is in them.

use crate::format::steers;
use serde_json::Value;

/// A list of the broker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum View {
    /// The queues.
    Queues,
    /// The exchanges.
    Exchanges,
    /// The connections.
    Connections,
    /// The channels.
    Channels,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// As it is, at the left.
    Text,
    /// A number of things.
    Count,
    /// Things each second.
    Rate,
    /// Bytes each second.
    Bytes,
}

/// A column of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// What stands above it.
    pub title: &'static str,
    /// The member of the API's rows, with dots; the broker sorts by it.
    pub member: &'static str,
    /// How its values are written.
    pub show: Show,
    /// Cells of the screen; none takes what is left.
    pub width: Option<u16>,
}

const fn text(title: &'static str, member: &'static str, width: u16) -> Column {
    Column { title, member, show: Show::Text, width: Some(width) }
}

const fn rest(title: &'static str, member: &'static str) -> Column {
    Column { title, member, show: Show::Text, width: None }
}

const fn count(title: &'static str, member: &'static str) -> Column {
    Column { title, member, show: Show::Count, width: Some(10) }
}

const fn rate(title: &'static str, member: &'static str) -> Column {
    Column { title, member, show: Show::Rate, width: Some(9) }
}

const fn bytes(title: &'static str, member: &'static str) -> Column {
    Column { title, member, show: Show::Bytes, width: Some(11) }
}

const QUEUES: &[Column] = &[
    rest("queue", "name"),
    text("vhost", "vhost", 12),
    text("type", "type", 8),
    count("ready", "messages_ready"),
    count("unacked", "messages_unacknowledged"),
    count("consumers", "consumers"),
    rate("in/s", "message_stats.publish_details.rate"),
    rate("out/s", "message_stats.deliver_get_details.rate"),
    rate("ack/s", "message_stats.ack_details.rate"),
];

const EXCHANGES: &[Column] = &[
    rest("exchange", "name"),
    text("vhost", "vhost", 12),
    text("type", "type", 18),
    rate("in/s", "message_stats.publish_in_details.rate"),
    rate("out/s", "message_stats.publish_out_details.rate"),
];

const CONNECTIONS: &[Column] = &[
    rest("connection", "name"),
    text("client", "client_properties.connection_name", 18),
    text("user", "user", 12),
    text("vhost", "vhost", 12),
    text("state", "state", 8),
    count("channels", "channels"),
    bytes("received/s", "recv_oct_details.rate"),
    bytes("sent/s", "send_oct_details.rate"),
];

const CHANNELS: &[Column] = &[
    rest("channel", "name"),
    text("user", "user", 12),
    text("vhost", "vhost", 12),
    count("consumers", "consumer_count"),
    count("prefetch", "prefetch_count"),
    count("unacked", "messages_unacknowledged"),
    rate("in/s", "message_stats.publish_details.rate"),
    rate("out/s", "message_stats.deliver_get_details.rate"),
    rate("ack/s", "message_stats.ack_details.rate"),
];

impl View {
    /// All, in the order of their keys 1 to 4.
    pub const ALL: [View; 4] = [View::Queues, View::Exchanges, View::Connections, View::Channels];

    /// The name on the tab, and in the API's paths.
    pub const fn name(self) -> &'static str {
        match self {
            View::Queues => "queues",
            View::Exchanges => "exchanges",
            View::Connections => "connections",
            View::Channels => "channels",
        }
    }

    /// Its columns.
    pub const fn columns(self) -> &'static [Column] {
        match self {
            View::Queues => QUEUES,
            View::Exchanges => EXCHANGES,
            View::Connections => CONNECTIONS,
            View::Channels => CHANNELS,
        }
    }

    /// The column that it is sorted by at first: what an operator looks for, the largest on top.
    pub fn first_sort(self) -> usize {
        let member = match self {
            View::Queues => "messages_ready",
            View::Exchanges => "message_stats.publish_in_details.rate",
            View::Connections => "recv_oct_details.rate",
            View::Channels => "messages_unacknowledged",
        };
        self.columns().iter().position(|column| column.member == member).unwrap_or_default()
    }

    /// What else of a row is needed, to find the thing again.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            View::Queues | View::Exchanges => &["name", "vhost"],
            View::Connections => &["name", "client_properties.product"],
            View::Channels => &["name"],
        }
    }
}

impl Column {
    /// Whether large values come first.
    pub fn is_number(&self) -> bool {
        self.show != Show::Text
    }

    /// What a row has in this column, as it is written.
    pub fn text(&self, row: &Value) -> String {
        let value = member(row, self.member);
        match self.show {
            Show::Text => plain(row, self.member, value),
            Show::Count => value.as_u64().map_or_else(|| "-".to_owned(), number),
            Show::Rate => rate_text(value.as_f64().unwrap_or_default()),
            Show::Bytes => bytes_text(value.as_f64().unwrap_or_default()),
        }
    }
}

fn plain(row: &Value, path: &str, value: &Value) -> String {
    match (value.as_str(), path) {
        (Some(""), "name") => "(default)".to_owned(),
        (Some(text), _) => visible(text),
        // A client that gives its connection no name has at least a product.
        (None, "client_properties.connection_name") => {
            visible(member(row, "client_properties.product").as_str().unwrap_or_default())
        }
        (None, _) => String::new(),
    }
}

/// A name as it can stand on a line: clients choose names, and a terminal obeys some characters.
pub(crate) fn visible(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// The member at a path with dots; null where there is none.
pub(crate) fn member<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(value, |value, name| &value[name])
}

/// A number with its thousands apart, or rounded where it is long.
pub(crate) fn number(value: u64) -> String {
    if value >= 100_000_000 {
        return rounded(value as f64, 1000.0, &["", "k", "M", "G", "T", "P", "E"]);
    }
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Things each second; nothing where nothing happens, so that the eye finds what does.
pub(crate) fn rate_text(rate: f64) -> String {
    match rate {
        rate if rate < 0.05 => "·".to_owned(),
        rate if rate < 10.0 => format!("{rate:.1}"),
        rate if rate < 100_000.0 => number(rate.round() as u64),
        rate => rounded(rate, 1000.0, &["", "k", "M", "G", "T"]),
    }
}

/// Bytes each second.
fn bytes_text(rate: f64) -> String {
    if rate < 0.5 { "·".to_owned() } else { size(rate) }
}

/// Bytes, in the units of memory.
pub(crate) fn size(bytes: f64) -> String {
    rounded(bytes, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB", " PiB"])
}

fn rounded(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step - 0.05 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 99.95);
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_short_and_exact_where_they_can_be() {
        assert_eq!(number(0), "0");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(123_456_789), "123M");
        assert_eq!(rate_text(0.01), "·");
        assert_eq!(rate_text(9.96), "10.0");
        assert_eq!(rate_text(1234.4), "1,234");
        assert_eq!(rate_text(250_000.0), "250k");
        assert_eq!(size(1023.0), "1023 B");
        assert_eq!(size(1536.0), "1.5 KiB");
        assert_eq!(size(1024.0 * 1024.0 - 1.0), "1.0 MiB");
        assert_eq!(number(u64::MAX), "18.4E");
    }

    #[test]
    fn names_can_not_command_the_terminal() {
        let row = json!({ "name": "a\u{1b}[2Jb\nc\u{202e}d" });
        assert_eq!(QUEUES[0].text(&row), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d");
        assert_eq!(EXCHANGES[0].text(&json!({ "name": "" })), "(default)");
    }

    #[test]
    fn a_client_without_a_name_has_its_product() {
        let client = CONNECTIONS[1];
        let both =
            json!({ "client_properties": { "connection_name": "billing", "product": "pika" } });
        assert_eq!(client.text(&both), "billing");
        assert_eq!(client.text(&json!({ "client_properties": { "product": "pika" } })), "pika");
        assert_eq!(client.text(&json!({})), "");
    }
}

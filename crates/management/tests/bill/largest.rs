//! The largest arguments that are taken.

/// The queue that may be read.
pub const QUEUE: &str = "readable";
/// The connection that may be seen, which has some channels.
pub const CONNECTION: &str = "127.0.0.1:50000 -> 127.0.0.1:5672";
/// Bytes of a name in a path: all of a request's head have 64 KiB.
const NAME_BYTES: usize = 8 << 10;
/// Members that a request may name as columns, and characters of a path to one.
const COLUMNS: usize = 256;
const COLUMN_CHARS: usize = 256;
/// Characters of a regular expression, and bytes of what is looked for in messages.
const PATTERN_CHARS: usize = 1024;
const SEARCH_BYTES: usize = 4096;
/// Values of a body, headers of a message, and bytes of a body.
const VALUES: usize = 90_000;
const HEADERS: usize = 1024;
const BODY_BYTES: usize = 9_900_000;

/// A path of the pattern, with the objects that there are and, where there are none, with long names.
pub fn path(pattern: &str) -> String {
    let long = "n".repeat(NAME_BYTES);
    let connection = CONNECTION.replace(' ', "%20").replace('>', "%3E");
    let channel = format!("{connection}%20(1)");
    let is_of = |kind: &str| pattern.starts_with(&format!("/api/{kind}/"));
    let parts = pattern.split('/').map(|part| match part {
        "{vhost}" => "%2F",
        "{queue}" => QUEUE,
        "{exchange}" => "amq.topic",
        "{destination}" => "amq.fanout",
        "{offset}" => "0",
        "{user}" => "low",
        "{within}" => "4",
        "{unit}" => "weeks",
        "{port}" => "9",
        "{name}" if is_of("connections") => &connection,
        "{name}" if is_of("channels") => &channel,
        named if named.starts_with('{') => &long,
        literal => literal,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Queries and bodies, each of which is the largest in another way.
pub fn arguments(method: &str, pattern: &str) -> Vec<(String, String)> {
    let none = String::new();
    match method {
        "GET" => queries(pattern).into_iter().map(|query| (query, none.clone())).collect(),
        "POST" => bodies(pattern).into_iter().map(|body| (none.clone(), body)).collect(),
        _ => vec![(none.clone(), none), (String::new(), values())],
    }
}

fn queries(pattern: &str) -> Vec<String> {
    let last = pattern.rsplit('/').next().unwrap_or_default();
    match last {
        "messages" | "{offset}" => vec![
            "?count=1000&encoding=base64".to_owned(),
            format!("?count=1000&contains={}", "p".repeat(SEARCH_BYTES)),
            format!("?count=1000&header={}", "h".repeat(SEARCH_BYTES)),
        ],
        "tail" | "stream" | "events" => vec!["?seconds=0".to_owned()],
        "unacked" => vec!["?page_size=500".to_owned()],
        _ => vec![samples(), every_argument()],
    }
}

/// As many samples of all that is counted as may be asked for.
fn samples() -> String {
    let groups = ["lengths", "msg_rates", "data_rates", "node_stats"];
    let ranges = groups.map(|group| format!("&{group}_age=600&{group}_incr=5"));
    format!("?page=1&page_size=500{}", ranges.concat())
}

/// All that a list can be asked, with the longest texts.
fn every_argument() -> String {
    let columns: Vec<String> = (0..COLUMNS).map(|nth| format!("column{nth}.member")).collect();
    let column = format!("name.{}", "m.".repeat(COLUMN_CHARS / 2 - 3));
    let pattern = "(q|r)".repeat(PATTERN_CHARS / 5);
    format!(
        "?page=1&page_size=500&columns={},name&sort={column}&has={column}&use_regex=true&name={pattern}|.",
        columns[1..].join(",")
    )
}

/// A body of many values.
fn values() -> String {
    format!("{{\"arguments\":{{\"a\":[{}]}}}}", vec!["0"; VALUES].join(","))
}

fn bodies(pattern: &str) -> Vec<String> {
    let long = || "x".repeat(BODY_BYTES);
    let headers = || {
        let members: Vec<String> = (0..HEADERS).map(|nth| format!("\"h{nth}\":{nth}")).collect();
        members.join(",")
    };
    let last = pattern.rsplit('/').next().unwrap_or_default();
    match last {
        "get" => ["ack_requeue_true"]
            .map(|mode| {
                format!("{{\"count\":1000,\"ackmode\":\"{mode}\",\"encoding\":\"base64\"}}")
            })
            .into(),
        "publish" => vec![
            format!(
                "{{\"routing_key\":\"k\",\"properties\":{{\"headers\":{{{}}}}},\"payload\":\"\",\"payload_encoding\":\"string\"}}",
                headers()
            ),
            format!(
                "{{\"routing_key\":\"k\",\"properties\":{{}},\"payload\":\"{}\",\"payload_encoding\":\"base64\"}}",
                long()
            ),
        ],
        "move" => {
            let numbers: Vec<String> = (0..10_000).map(|nth| nth.to_string()).collect();
            vec![
                format!(
                    "{{\"to\":\"origin\",\"dry_run\":true,\"contains\":\"{}\"}}",
                    "p".repeat(SEARCH_BYTES)
                ),
                format!(
                    "{{\"to\":\"origin\",\"dry_run\":true,\"numbers\":[{}]}}",
                    numbers.join(",")
                ),
                format!("{{\"to\":\"{}\"}}", long()),
            ]
        }
        "route" => {
            let keys: Vec<String> = (0..100).map(|nth| format!("\"{nth}\"")).collect();
            vec![
                format!("{{\"properties\":{{\"headers\":{{{}}}}}}}", headers()),
                format!("{{\"properties\":{{\"headers\":{{\"CC\":[{}]}}}}}}", keys.join(",")),
                format!("{{\"routing_key\":\"{}\"}}", long()),
            ]
        }
        "check" => [8000, BODY_BYTES]
            .map(|bytes| {
                let name = "x".repeat(bytes);
                format!(
                    "{{\"vhost\":\"/\",\"right\":\"read\",\"resource\":\"queue\",\"name\":\"{name}\"}}"
                )
            })
            .into(),
        "login" => vec![format!("username=low&password={}", "x".repeat(60 << 10))],
        _ => vec![values(), format!("{{\"routing_key\":\"{}\",\"arguments\":{{}}}}", long())],
    }
}

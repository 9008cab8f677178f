//! What can be seen of a fixture again and again, without a change to it.

use super::broker::At;
use super::contents::*;
use courser_client::{ConsumeOptions, Error, FieldValue, Outgoing};
use serde_json::{Map, Value, json};

/// Sees that what is defined in a vhost is there, and what waits in it.
pub async fn check(at: At, vhost: &str, names: &str, made_ms: i64) {
    defined(at, vhost, names).await;
    accounts(at, vhost).await;
    routes(at, vhost).await;
    waiting(at, vhost).await;
    states(at, vhost).await;
    streams(at, vhost).await;
    times(at, vhost, made_ms).await;
    history_and_duplicates(at, vhost).await;
}

/// A login shows whether a password is right; its hash may be replaced then.
const SECRETS: [&str; 3] = ["password", "password_hash", "hashing_algorithm"];

/// Everything that was defined is still defined like that, and what was taken away is not.
async fn defined(at: At, vhost: &str, names: &str) {
    let (then, now) = (definitions(names, vhost), at.get("definitions").await);
    for (list, rows) in then.as_object().expect("lists") {
        for row in rows.as_array().expect("rows") {
            let mut row = row.clone();
            let members = row.as_object_mut().expect("members");
            members.retain(|name, _| !SECRETS.contains(&name.as_str()));
            let was_deleted = members.values().any(is_gone);
            let is_there = now[list].as_array().expect("rows").iter().any(|one| says(one, &row));
            assert_eq!(is_there, !was_deleted, "{list}: {row}\nin {:#}", now[list]);
        }
    }
}

fn is_gone(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text == "gone" || text.ends_with("-gone"))
}

/// Whether a value has all members of another one: a later version may say more.
fn says(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => has_all(now, then),
        _ => now == then,
    }
}

fn has_all(now: &Map<String, Value>, then: &Map<String, Value>) -> bool {
    then.iter().all(|(name, value)| now.get(name).is_some_and(|other| says(other, value)))
}

/// Passwords, tags and permissions have their effects.
async fn accounts(at: At, vhost: &str) {
    let who = format!("{vhost}-admin:admin's");
    let (status, me) = at.ask_as(&who, "GET", "whoami", &Value::Null).await;
    assert_eq!((status, &me["tags"]), (200, &json!(["administrator", "of-old"])), "{me}");
    let app = format!("{vhost}-app");
    assert!(at.log_in(vhost, &app, "wrong").await.is_err(), "a wrong password");
    let connection = at.log_in(vhost, &app, "app's").await.expect("the right one");
    let channel = connection.open_channel().await.expect("a channel");
    let refused = async |key| {
        let question = json!({
            "vhost": vhost, "right": "write", "resource": "exchange", "name": "topic", "routing_key": key, "user": app
        });
        at.ask("POST", "access/check", &question).await.1["allowed"] == false
    };
    assert!(!refused("allowed.key").await && refused("other.key").await);
    channel.confirm_select().await.expect("confirms");
    let confirm = channel.publish("topic", "other.key", "refused").await.expect("sent");
    let Err(Error::ChannelClosed { reason, .. }) = confirm.await else { panic!("let in") };
    assert_eq!(reason.code, 403, "{reason}");
    connection.close().await.expect("closed");
}

/// Each exchange sends messages where it did.
async fn routes(at: At, vhost: &str) {
    let (plain, second, both): (&[_], &[_], &[_]) = (&["plain"], &["second"], &["plain", "second"]);
    let routes = [
        ("direct", "by-key", json!({}), plain),
        ("direct", "to-exchange", json!({}), both),
        // By the policy for alternates.
        ("direct", "none", json!({}), both),
        ("topic", "allowed.a", json!({}), plain),
        ("topic", "allowed.a.b.c", json!({}), plain),
        ("topic", "allowed", json!({}), &[]),
        ("headers", "", json!({ "size": 12 }), plain),
        ("headers", "", json!({ "part": 0.5 }), plain),
        ("headers", "", json!({ "size": 13 }), both),
        ("delayed", "late", json!({}), &["due"]),
        ("unique", "once", json!({}), plain),
        ("amq.topic", "predefined", json!({}), plain),
        // What belonged to one queue belongs to it for ever.
        ("hash", "", json!({ "of": "a" }), second),
        ("hash", "", json!({ "of": "b" }), second),
        ("hash", "", json!({ "of": "c" }), plain),
        ("hash", "", json!({ "of": "d" }), plain),
        ("modulus", "a", json!({}), second),
        ("modulus", "b", json!({}), plain),
        ("modulus", "c", json!({}), plain),
        ("modulus", "e", json!({}), second),
    ];
    for (exchange, key, headers, to) in routes {
        let message = json!({ "routing_key": key, "properties": { "headers": headers } });
        let path = format!("exchanges/{vhost}/{exchange}/route");
        let (_, route) = at.ask("POST", &path, &message).await;
        let queues = route["queues"].as_array().unwrap_or_else(|| panic!("no route: {route}"));
        let mut queues: Vec<_> = queues.iter().map(|one| one["name"].as_str().unwrap()).collect();
        queues.sort_unstable();
        assert_eq!(queues, to, "{exchange} {key} {headers}");
    }
    let random = json!({ "routing_key": "", "properties": {} });
    let (_, route) = at.ask("POST", &format!("exchanges/{vhost}/random/route"), &random).await;
    assert_eq!(route["queues"][0]["name"], "plain", "{route}");
}

/// The messages that wait are those that did, in their order.
async fn waiting(at: At, vhost: &str) {
    let large = "x".repeat(LARGE_BYTES);
    let plain = ["all properties", &large, "", "by key", "to two queues"];
    let queues: [(&str, &[&str]); 16] = [
        ("plain", &plain),
        ("second", &["to two queues"]),
        ("quorum", &["returned"]),
        ("priorities", &["5", "5 again", "3", "1", "0"]),
        ("unique", &["one", "two"]),
        ("paused", &["waits"]),
        ("resumed", &["waits"]),
        ("held", &["held 1", "held 2", "held 3"]),
        ("mortal", &["expires"]),
        ("dead", &["refused"]),
        ("stranded", &["refused"]),
        ("aging", &["aging"]),
        ("aged", &[]),
        ("due", &["soon"]),
        ("leased", &[]),
        ("policy.first", &["policy.first"]),
    ];
    for (queue, bodies) in queues {
        let messages = at.messages(vhost, queue).await;
        let found = messages.iter().map(|one| brief(one["payload"].as_str().unwrap()));
        let expected: Vec<_> = bodies.iter().map(|body| brief(body)).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{queue} of {vhost}");
    }
    let plain = at.messages(vhost, "plain").await;
    let of_first = &plain[0]["properties"];
    assert_eq!(of_first["headers"]["table"], json!({ "inner": "value" }), "{of_first}");
    assert_eq!(of_first["expiration"], NINE_YEARS_MS.to_string(), "{of_first}");
    assert_eq!(plain[3]["exchange"], "direct", "{}", plain[3]);
    assert_eq!(plain[3]["routing_key"], "by-key", "{}", plain[3]);
    let dead = &at.messages(vhost, "dead").await[0]["properties"]["headers"];
    let death = &dead["x-death"][0];
    let (queue, reason, count) = (&death["queue"], &death["reason"], &death["count"]);
    assert_eq!((queue, reason, count), (&json!("mortal"), &json!("rejected"), &json!(1)), "{dead}");
}

/// So much of a body as a person wants to see if it is not the right one.
fn brief(body: &str) -> String {
    format!("{:.100} ({} bytes)", body, body.len())
}

/// Queues are as they were left: paused, under policies, of their types.
async fn states(at: At, vhost: &str) {
    let queue = async |name| at.get(&format!("queues/{vhost}/{name}")).await;
    assert_eq!(queue("paused").await["state"], "paused");
    assert_eq!(queue("resumed").await["state"], "running");
    let (connection, channel) = at.client(vhost).await;
    let paused = channel.get("paused", false).await.expect("an answer");
    assert!(paused.is_none(), "nothing of a queue that is paused");
    let under = queue("policy.first").await;
    assert_eq!((&under["policy"], &under["operator_policy"]), (&json!("ours"), &json!("theirs")));
    let effective = &under["effective_policy_definition"];
    assert_eq!(effective["max-length"], 4000, "{under}");
    assert_eq!(effective["message-ttl"], 300_000_000_000_i64, "{under}");
    connection.close().await.expect("closed");
}

/// Streams have their messages at their offsets, from where they were cut.
async fn streams(at: At, vhost: &str) {
    let all: Vec<u64> = (0..STREAMED).collect();
    assert_eq!(read(at, vhost, "stream", None, STREAMED).await, all);
    let of_two: Vec<u64> =
        all.iter().copied().filter(|at| filter_value(*at) == Some("two")).collect();
    assert_eq!(read(at, vhost, "stream", Some("two"), of_two.len() as u64).await, of_two);
    let page = at.get(&format!("queues/{vhost}/trimmed/messages?offset=first&count=1")).await;
    let bounds = (page["first_offset"].as_u64(), page["next_offset"].as_u64());
    let (Some(first), Some(next)) = bounds else { panic!("no offsets: {page}") };
    assert!(first > 0 && next == TRIMMED, "{page}");
    let left: Vec<u64> = (first..next).collect();
    assert_eq!(read(at, vhost, "trimmed", None, next - first).await, left);
}

/// Streams know when their messages came.
async fn times(at: At, vhost: &str, made_ms: i64) {
    let page = |from: String| format!("queues/{vhost}/stream/messages?{from}");
    let all = at.get(&page("offset=first&count=1000".to_owned())).await;
    let all = all["messages"].as_array().expect("a list");
    let came: Vec<_> = all.iter().map(|one| one["published_ms"].as_i64().unwrap()).collect();
    assert!(came[0] >= made_ms && came.is_sorted(), "{made_ms}: {came:?}");
    for time in [made_ms, came[100], came[300], came[319]] {
        let from_there = at.get(&page(format!("timestamp_ms={time}&count=1"))).await;
        let first = came.partition_point(|came| *came < time);
        assert_eq!(from_there["messages"][0]["offset"], first, "{vhost}: {time} in {came:?}");
    }
    let none = at.get(&page(format!("timestamp_ms={}&count=1", came[319] + 1))).await;
    assert_eq!(none["messages"], json!([]));
}

/// The offsets that a stream says of so many messages, which have to say the same.
async fn read(at: At, vhost: &str, stream: &str, filter: Option<&str>, count: u64) -> Vec<u64> {
    let (connection, channel) = at.client(vhost).await;
    channel.qos(1000).await.expect("a prefetch");
    let mut options = ConsumeOptions::default();
    options.arguments = options.arguments.with("x-stream-offset", "first");
    if let Some(filter) = filter {
        options.arguments = options.arguments.with("x-stream-filter", filter);
    }
    let mut consumer = channel.consume(stream, options).await.expect("consumed");
    let mut offsets = Vec::new();
    for _ in 0..count {
        let message = consumer.next().await.expect("open").expect("a message");
        let properties = message.owned_properties().expect("properties");
        let headers = properties.headers.expect("headers");
        let offset = headers.get("x-stream-offset").and_then(FieldValue::as_integer);
        let offset = offset.and_then(|offset| u64::try_from(offset).ok()).expect("an offset");
        assert_eq!(message.body(), streamed(offset).as_bytes());
        offsets.push(offset);
    }
    connection.close().await.expect("closed");
    offsets
}

/// An exchange remembers its last messages, and a queue which ones it has.
async fn history_and_duplicates(at: At, vhost: &str) {
    let (connection, channel) = at.client(vhost).await;
    let queue = courser_client::QueueOptions::exclusive().with("x-queue-type", "classic");
    let queue = channel.queue_declare("", queue).await.expect("a queue").name;
    channel.queue_bind(&queue, "history", "", Default::default()).await.expect("bound");
    for body in ["history 3", "history 4", "history 5"] {
        let message = channel.get(&queue, true).await.expect("an answer").expect("a message");
        assert_eq!(message.body(), body.as_bytes());
    }
    assert!(channel.get(&queue, true).await.expect("an answer").is_none());
    for id in ["one", "two"] {
        let again = with_header("x-deduplication-header", id);
        let again = Outgoing::new("again").properties(again);
        let confirm = channel.publish("", "unique", again).await.expect("sent");
        assert!(confirm.await.expect("a confirm").is_ack());
    }
    assert_eq!(at.count(vhost, "unique").await, 2, "{vhost}: duplicates are dropped");
    connection.close().await.expect("closed");
}

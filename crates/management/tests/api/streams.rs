//! Looking into streams, and following them.

use crate::support::{Broker, PATIENCE, follow, until};
use courser_auth::Tags;
use serde_json::{Value, json};
use std::time::Duration;

async fn publish(broker: &Broker, payload: &str) {
    let message = json!({
        "routing_key": "s", "properties": { "headers": { "first": payload == "m0" } },
        "payload": payload, "payload_encoding": "string",
    });
    let answer = broker.send("POST", "/api/exchanges/%2F//publish", &message.to_string()).await;
    assert_eq!(answer.json(), json!({ "routed": true }));
}

async fn with_stream(messages: usize) -> Broker {
    let broker = Broker::start().await;
    let stream = json!({ "durable": true, "arguments": { "x-queue-type": "stream" } });
    let made = broker.send("PUT", "/api/queues/%2F/s", &stream.to_string()).await;
    assert_eq!(made.status, 201);
    for nth in 0..messages {
        publish(&broker, &format!("m{nth}")).await;
    }
    broker
}

fn payloads(answer: &Value) -> Vec<&str> {
    let messages = answer["messages"].as_array().expect("messages");
    messages.iter().map(|one| one["payload"].as_str().expect("a text")).collect()
}

#[tokio::test]
async fn a_stream_is_looked_into_from_an_offset_or_a_time_on() {
    let broker = with_stream(5).await;
    let path = "/api/queues/%2F/s/messages";
    for (query, expected, next) in [
        ("", vec!["m0", "m1", "m2", "m3", "m4"], 5),
        ("?offset=first&count=2", vec!["m0", "m1"], 2),
        ("?offset=3", vec!["m3", "m4"], 5),
        ("?offset=last", vec!["m4"], 5),
        ("?offset=next", vec![], 5),
        ("?timestamp_ms=0&count=1", vec!["m0"], 1),
        ("?contains=3", vec!["m3"], 5),
        ("?header=first:false&count=2", vec!["m1", "m2"], 3),
        ("?offset=1&count=1&truncate=1", vec!["m"], 2),
    ] {
        let answer = broker.get(&format!("{path}{query}")).await.json();
        assert_eq!((payloads(&answer), &answer["next"]), (expected, &json!(next)), "{query}");
        assert_eq!((&answer["first_offset"], &answer["next_offset"]), (&json!(0), &json!(5)));
    }
    let second = &broker.get(&format!("{path}?offset=1")).await.json()["messages"][0];
    assert_eq!(second["offset"], 1);
    let published_ms = second["published_ms"].as_u64().expect("a time");
    let later = broker.get(&format!("{path}?timestamp_ms={}", published_ms + 60_000)).await.json();
    assert_eq!(payloads(&later), Vec::<&str>::new());
    assert_eq!(broker.get(&format!("{path}/4")).await.body, b"m4");
    assert_eq!(broker.get(&format!("{path}/5")).await.status, 404);
    for wrong in ["?offset=x", "?timestamp_ms=-1"] {
        assert_eq!(broker.get(&format!("{path}{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn what_comes_into_a_stream_is_sent_to_who_follows_it() {
    let broker = with_stream(2).await;
    let mut tail = follow(&broker, "guest", "/api/queues/%2F/s/tail?contains=m", &[]).await;
    until(&mut tail, ": messages as they come").await;
    publish(&broker, "x2").await;
    publish(&broker, "m3").await;
    let text = until(&mut tail, "\"m3\"").await;
    assert!(text.contains("event: message\nid: 3\ndata: {"), "{text}");
    assert!(!text.contains("m1") && !text.contains("x2"), "{text}");
    // Who comes back goes on behind what it has seen.
    let seen = [("last-event-id", "0")];
    let mut again = follow(&broker, "guest", "/api/queues/%2F/s/tail", &seen).await;
    let text = until(&mut again, "\"m3\"").await;
    assert!(text.contains("\"m1\"") && !text.contains("\"m0\""), "{text}");
    broker.send("DELETE", "/api/queues/%2F/s", "").await;
    until(&mut tail, "nothing comes behind the end").await;
}

#[tokio::test]
async fn only_streams_are_followed_and_only_by_who_may_read_them() {
    let broker = with_stream(1).await;
    broker.send("PUT", "/api/queues/%2F/q", "{}").await;
    let plain = broker.get("/api/queues/%2F/q/tail").await;
    assert_eq!((plain.status, plain.refusal().1), (400, json!("queue 'q' is not a stream")));
    assert_eq!(broker.get("/api/queues/%2F/none/tail").await.status, 404);
    broker.add_user("small", "management", &["/"]);
    let mut tail = follow(&broker, "small", "/api/queues/%2F/s/tail", &[]).await;
    until(&mut tail, ": messages as they come").await;
    broker.admin().clear_permission("small", "/").expect("it is there");
    publish(&broker, "secret").await;
    assert!(!until(&mut tail, "secret").await.contains("secret"));
}

#[tokio::test]
async fn who_has_lost_the_tags_to_log_in_follows_no_more() {
    let broker = with_stream(1).await;
    broker.add_user("small", "management", &["/"]);
    let mut tail = follow(&broker, "small", "/api/queues/%2F/s/tail", &[]).await;
    until(&mut tail, ": messages as they come").await;
    let took = broker.admin().change_user("small", |user| {
        user.tags = Tags::default();
        Ok(())
    });
    took.expect("it is there");
    publish(&broker, "secret").await;
    assert!(!until(&mut tail, "secret").await.contains("secret"));
}

/// Waits until the broker counts memory that is as wanted.
async fn counts(broker: &Broker, is_wanted: impl Fn(u64) -> bool) {
    let waiting = async {
        while !is_wanted(broker.admin().memory_used_bytes()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is counted");
}

#[tokio::test]
async fn what_waits_for_who_follows_and_does_not_read_is_counted() {
    let broker = with_stream(0).await;
    for _ in 0..12 {
        publish(&broker, &"p".repeat(256 << 10)).await;
    }
    let before = broker.admin().memory_used_bytes();
    let path = "/api/queues/%2F/s/tail?offset=first&truncate=262144";
    let tail = follow(&broker, "guest", path, &[]).await;
    counts(&broker, |used| used > before + (256 << 10)).await;
    // What waits for it is a part of what is there.
    assert!(broker.admin().memory_used_bytes() < before + (2 << 20));
    drop(tail);
    counts(&broker, |used| used < before + (1 << 20)).await;
}

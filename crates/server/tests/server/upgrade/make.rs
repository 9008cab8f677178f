//! Makes a data folder with everything in it that a broker keeps.
//!
//! The `courser` binary writes it, in two runs: the first ends in order, so that all of it is in a checkpoint;
//! the second makes the same once more, changes both, and is killed, so that this is in the log alone.

use super::broker::{At, SEGMENT_BYTES};
use super::contents::*;
use crate::support::{Process, wait_until};
use courser_client::{Channel, Confirm, Connection, Delivery, Outgoing, OwnedProperties};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;

/// Makes the folder `data` in `folder`, with these definitions.
pub async fn make(folder: &Path, names: &str) {
    let [first, second] = VHOSTS;
    let (mut broker, at) = start(folder);
    let (connection, channel) = build(at, first, names).await;
    broker.signal("TERM");
    assert!(broker.wait().success(), "with its last checkpoint");
    drop((connection, channel));

    let (mut broker, at) = start(folder);
    let at_work = build(at, second, names).await;
    for vhost in VHOSTS {
        change(at, vhost).await;
    }
    broker.signal("KILL");
    broker.wait();
    drop(at_work);
}

fn start(folder: &Path) -> (Process, At) {
    let mut command = Process::command();
    command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.join("data"));
    command.env("COURSER_LOG_LEVEL", "error").env("COURSER_MANAGEMENT_LISTEN", "127.0.0.1:0");
    command.env("COURSER_JOURNAL_SEGMENT_BYTES", SEGMENT_BYTES.to_string());
    // So little that transient messages go to the log as there is no room.
    command.env("COURSER_LIMITS_MEMORY_HIGH_BYTES", (8 << 20).to_string());
    let broker = Process::start_with(command);
    let http = broker
        .banner
        .split_whitespace()
        .find_map(|word| word.strip_prefix("http://")?.strip_suffix("/api/")?.parse().ok());
    let at = At { amqp: broker.address, http: http.expect("an address") };
    (broker, at)
}

async fn publish(
    channel: &Channel,
    exchange: &str,
    key: &str,
    properties: OwnedProperties,
    body: &str,
) {
    let confirm = send(channel, exchange, key, properties, body).await;
    assert!(confirm.await.expect("a confirm").is_ack(), "{exchange} {key} {body}");
}

async fn send(
    channel: &Channel,
    exchange: &str,
    key: &str,
    properties: OwnedProperties,
    body: &str,
) -> Confirm {
    let message = Outgoing::new(body).properties(properties);
    channel.publish(exchange, key, message).await.expect("it is sent")
}

/// A persistent message for a queue.
async fn put(channel: &Channel, queue: &str, body: &str) {
    publish(channel, "", queue, persistent(), body).await;
}

/// Everything that a vhost has before it is changed. What a client has and does not acknowledge, it has as long as this
/// connection is open.
async fn build(at: At, vhost: &str, names: &str) -> (Connection, Channel) {
    at.change("POST", "definitions", &definitions(names, vhost)).await;
    let (connection, channel) = at.client(vhost).await;
    put_plain(&channel).await;
    put_special(&channel).await;
    put_streams(&channel, 0..STREAMED - LATER, 0..TRIMMED - LATER).await;
    put_delayed(at, vhost, &channel).await;
    for queue in ["paused", "resumed"] {
        put(&channel, queue, "waits").await;
        at.change("PUT", &format!("queues/{vhost}/{queue}/pause"), &Value::Null).await;
    }
    put(&channel, "quorum", "returned").await;
    return_once(at, vhost).await;
    return_once(at, vhost).await;
    refuse(&channel, "mortal", "refused").await;
    refuse(&channel, "stranded", "refused").await;
    let expiration = Some(short(&(12 * HOUR_MS).to_string()));
    let expires = OwnedProperties { expiration, ..persistent() };
    publish(&channel, "", "mortal", expires, "expires").await;
    for body in ["held 1", "held 2", "held 3"] {
        put(&channel, "held", body).await;
    }
    for _ in 0..3 {
        // The channel has it as long as it is open, and nothing is said of it.
        get(&channel, "held").await;
    }
    (connection, channel)
}

/// Messages of a queue without any peculiarities, by whatever way they come.
async fn put_plain(channel: &Channel) {
    put(channel, "plain", "settled").await;
    publish(channel, "", "plain", all_properties(), "all properties").await;
    put(channel, "plain", &"x".repeat(LARGE_BYTES)).await;
    put(channel, "plain", "").await;
    publish(channel, "direct", "by-key", persistent(), "by key").await;
    publish(channel, "direct", "to-exchange", persistent(), "to two queues").await;
    let transient = "x".repeat(LARGE_BYTES);
    for _ in 0..8 {
        publish(channel, "", "plain", OwnedProperties::default(), &transient).await;
    }
}

/// Messages of queues that treat them in ways of their own.
async fn put_special(channel: &Channel) {
    for (priority, body) in [(1, "1"), (5, "5"), (3, "3"), (0, "0"), (5, "5 again")] {
        let properties = OwnedProperties { priority: Some(priority), ..persistent() };
        publish(channel, "", "priorities", properties, body).await;
    }
    for id in ["one", "two", "one"] {
        let properties = with_header("x-deduplication-header", id);
        publish(channel, "", "unique", properties, id).await;
    }
    for body in ["history 1", "history 2", "history 3", "history 4"] {
        publish(channel, "history", "", persistent(), body).await;
    }
    for queue in ["aging", "policy.first", "gone"] {
        put(channel, queue, queue).await;
    }
}

/// Messages with these offsets of the two streams.
async fn put_streams(channel: &Channel, all: Range<u64>, trimmed: Range<u64>) {
    let mut confirms = Vec::new();
    for offset in all {
        let properties = filter_value(offset)
            .map_or_else(persistent, |value| with_header("x-stream-filter-value", value));
        confirms.push(send(channel, "", "stream", properties, &streamed(offset)).await);
    }
    for offset in trimmed {
        confirms.push(send(channel, "", "trimmed", persistent(), &streamed(offset)).await);
    }
    for confirm in confirms {
        assert!(confirm.await.expect("a confirm").is_ack());
    }
}

/// Delayed messages: one that is due before the broker ends, others much later.
async fn put_delayed(at: At, vhost: &str, channel: &Channel) {
    let delays = [("soon", 1), ("in a day", DAY_MS), ("in nine years", NINE_YEARS_MS)];
    for (body, delay_ms) in delays {
        publish(channel, "delayed", "late", with_header("x-delay", delay_ms), body).await;
    }
    wait_until("what is due comes", async || at.count(vhost, "due").await == 1).await;
}

async fn get(channel: &Channel, queue: &str) -> Delivery {
    channel.get(queue, false).await.expect("an answer").expect("a message")
}

/// Has a message come back that was failed on, which its queue counts.
async fn return_once(at: At, vhost: &str) {
    let how = json!({ "count": 1, "ackmode": "reject_requeue_true", "encoding": "auto" });
    at.change("POST", &format!("queues/{vhost}/quorum/get"), &how).await;
}

async fn refuse(channel: &Channel, queue: &str, body: &str) {
    put(channel, queue, body).await;
    get(channel, queue).await.nack(false).expect("sent");
}

/// Changes of what is there: some of it goes, some is continued.
async fn change(at: At, vhost: &str) {
    let (connection, channel) = at.client(vhost).await;
    get(&channel, "plain").await.ack().expect("sent");
    return_once(at, vhost).await;
    put_streams(&channel, STREAMED - LATER..STREAMED, TRIMMED - LATER..TRIMMED).await;
    publish(&channel, "history", "", persistent(), "history 5").await;
    at.change("PUT", &format!("queues/{vhost}/resumed/resume"), &Value::Null).await;
    let gone = [
        format!("bindings/{vhost}/e/direct/q/plain/gone"),
        format!("queues/{vhost}/gone"),
        format!("exchanges/{vhost}/gone"),
        format!("policies/{vhost}/gone"),
        format!("users/{vhost}-gone"),
    ];
    for path in gone {
        at.change("DELETE", &path, &json!({})).await;
    }
    connection.close().await.expect("closed, and all of it said before");
}

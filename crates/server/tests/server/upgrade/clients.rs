//! What clients get of a fixture: this takes it.

use super::broker::At;
use super::contents::*;
use courser_client::{Channel, Delivery, FieldValue};
use serde_json::{Value, json};

/// Sees that the messages of a vhost come to clients as they should.
pub async fn check(at: At, vhost: &str) {
    let (connection, channel) = at.client(vhost).await;
    let properties = take(&channel, "plain", "all properties").await.owned_properties();
    assert_eq!(properties.expect("properties"), all_properties());
    take(&channel, "plain", &"x".repeat(LARGE_BYTES)).await;
    for body in ["", "by key", "to two queues"] {
        take(&channel, "plain", body).await;
    }
    for body in ["5", "5 again", "3", "1", "0"] {
        take(&channel, "priorities", body).await;
    }
    for body in ["held 1", "held 2", "held 3"] {
        take(&channel, "held", body).await;
    }
    let returned = take(&channel, "quorum", "returned").await;
    assert_eq!(header(&returned, "x-delivery-count"), Some(3), "{vhost}: all returns count");
    assert!(returned.redelivered());
    take(&channel, "resumed", "waits").await;
    at.change("PUT", &format!("queues/{vhost}/paused/resume"), &Value::Null).await;
    take(&channel, "paused", "waits").await;
    // Who has died knows where.
    at.change("POST", &format!("queues/{vhost}/dead/move"), &json!({ "to": "origin" })).await;
    let back = at.messages(vhost, "mortal").await;
    assert!(back.iter().any(|message| message["payload"] == "refused"), "{back:?}");
    let soon = take(&channel, "due", "soon").await;
    assert_eq!(header(&soon, "x-delay"), Some(-1));
    connection.close().await.expect("closed");
}

/// The next message of a queue, which says this; it is acknowledged.
async fn take(channel: &Channel, queue: &str, body: &str) -> Delivery {
    let message = channel.get(queue, false).await.expect("an answer");
    let message = message.unwrap_or_else(|| panic!("nothing in {queue} but {body}"));
    assert!(message.body() == body.as_bytes(), "{queue}: not {body:.100}");
    message.ack().expect("sent");
    message
}

fn header(message: &Delivery, name: &str) -> Option<i64> {
    let properties = message.owned_properties().expect("properties");
    properties.headers?.get(name).and_then(FieldValue::as_integer)
}

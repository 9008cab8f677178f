//! Messages that stay at their exchange though their delay is over.

use crate::direct::{Asked, Direct};
use courser_journal::testing::{Call, WatchedStore};
use courser_store::{MemoryGauge, MemoryStore, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn that_messages_stay_whose_delay_is_over_is_said_until_they_go() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::clone(&gauge)))));
    let direct = Direct::on(Arc::clone(&store) as _, gauge);
    direct.add_user("root", "administrator");
    let broker = &direct.broker;
    let send = async |method, path, body: Value| {
        let body = &body.to_string();
        let answer = direct.ask(Asked { body, ..Asked::new(method, path).by("root") }).await;
        assert!(answer.status < 300, "{path}: {answer:?}");
    };
    let all = json!({ "configure": ".*", "write": ".*", "read": ".*" });
    send("PUT", "/api/permissions/%2F/root", all).await;
    let arguments = json!({ "x-delayed-type": "fanout" });
    let exchange = json!({ "type": "x-delayed-message", "durable": true, "arguments": arguments });
    send("PUT", "/api/exchanges/%2F/x", exchange).await;
    send("PUT", "/api/queues/%2F/q", json!({ "durable": true })).await;
    send("POST", "/api/bindings/%2F/e/x/q/q", json!({})).await;
    let properties = json!({ "delivery_mode": 2, "headers": { "x-delay": 1000 } });
    let message = json!({
        "routing_key": "", "properties": properties, "payload": "x", "payload_encoding": "string",
    });
    send("POST", "/api/exchanges/%2F/x/publish", message).await;
    let asked = || direct.ask(Asked::new("GET", "/api/attention").by("root"));
    assert_eq!(asked().await.json(), json!([]));

    store.set_faults(|call| (call == Call::Append).then_some(StoreError::TooLarge(7)));
    let tick = |now_ms| {
        direct.now_ms.store(now_ms, Ordering::Relaxed);
        broker.tick(now_ms);
    };
    tick(1_001_000);
    store.heal();
    let attention = asked().await.json();
    let first = &attention[0];
    let told = (&first["kind"], &first["since_ms"], &first["object"]);
    let about = json!({ "vhost": "/", "exchange": "x" });
    assert_eq!(told, (&json!("overdue"), &json!(1_001_000), &about), "{attention}");
    tick(1_062_000);
    let attention = asked().await.json();
    assert_eq!(attention[0]["kind"], "no_consumer", "{attention}");
}

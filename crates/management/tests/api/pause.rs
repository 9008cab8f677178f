//! Pausing queues.

use crate::support::Broker;
use courser_auth::Permission;
use serde_json::json;

#[tokio::test]
async fn a_paused_queue_says_so_everywhere() {
    let broker = Broker::start().await;
    let queue = "/api/queues/%2F/q";
    broker.send("PUT", queue, "{}").await;
    assert_eq!(broker.get(queue).await.json()["state"], "running");
    for _ in 0..2 {
        assert_eq!(broker.send("PUT", &format!("{queue}/pause"), "").await.status, 204);
    }
    assert_eq!(broker.get(queue).await.json()["state"], "paused");
    assert_eq!(broker.get("/api/queues").await.json()[0]["state"], "paused");
    assert_eq!(broker.get(&format!("{queue}/diagnosis")).await.json()[0]["kind"], "paused");
    let attention = broker.get("/api/attention").await.json();
    let about = json!({ "vhost": "/", "queue": "q" });
    let is_named = |one: &serde_json::Value| one["kind"] == "paused" && one["object"] == about;
    assert!(attention.as_array().expect("a list").iter().any(is_named), "{attention}");
    assert_eq!(broker.send("PUT", &format!("{queue}/resume"), "").await.status, 204);
    assert_eq!(broker.get(queue).await.json()["state"], "running");
    assert_eq!(broker.get(&format!("{queue}/diagnosis")).await.json(), json!([]));
    assert_eq!(broker.send("PUT", "/api/queues/%2F/none/pause", "").await.status, 404);
}

#[tokio::test]
async fn it_takes_the_permission_to_configure_the_queue() {
    let broker = Broker::start().await;
    broker.send("PUT", "/api/queues/%2F/q", "{}").await;
    broker.add_user("small", "management", &[]);
    let permission =
        Permission { configure: "^other".into(), write: ".*".into(), read: ".*".into() };
    broker.admin().set_permission("small", "/", permission).expect("a permission");
    for path in ["/api/queues/%2F/q/pause", "/api/queues/%2F/q/resume"] {
        assert_eq!(broker.call("PUT", path, Some("small"), "").await.status, 401, "{path}");
    }
    assert_eq!(broker.get("/api/queues/%2F/q").await.json()["state"], "running");
}

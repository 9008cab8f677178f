//! Rates: of which object, and for which caller.

use crate::support::Broker;
use courser_auth::Permission;
use courser_broker::admin::NewQueue;
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than the least time between two samples.
const SAMPLES_APART: Duration = Duration::from_millis(1100);

async fn with_queues(queues: &[(&str, &str)]) -> Broker {
    let broker = Broker::start().await;
    for (vhost, queue) in queues {
        broker.admin().change_vhost(vhost, |_| {}).expect("a vhost");
        let all = Permission::all();
        broker.admin().set_permission("guest", vhost, all).expect("a permission");
        broker.admin().declare_queue(vhost, queue, NewQueue::default()).expect("a queue");
    }
    broker
}

async fn publish(broker: &Broker, vhost: &str, queue: &str, messages: usize) {
    let path = format!("/api/exchanges/{vhost}//publish");
    let body = json!({
        "routing_key": queue, "properties": {}, "payload": "x", "payload_encoding": "string"
    });
    for _ in 0..messages {
        assert_eq!(broker.send("POST", &path, &body.to_string()).await.status, 200);
    }
}

fn names(list: &Value) -> Vec<&str> {
    let list = list["items"].as_array().expect("a list");
    list.iter().map(|one| one["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn an_order_by_rates_is_right_whatever_others_have_filtered_meanwhile() {
    let broker = with_queues(&[("a", "idle"), ("a", "working"), ("b", "idle too")]).await;
    broker.add_user("narrow", "management", &["b"]);
    let list = "/api/queues?page=1&page_size=9&sort=messages_details.rate&sort_reverse=true";
    broker.get(list).await;
    publish(&broker, "a", "working", 5).await;
    tokio::time::sleep(SAMPLES_APART).await;
    // Neither of these looks at the queue that works.
    broker.get(&format!("{list}&name=idle")).await;
    broker.call("GET", list, Some("narrow"), "").await;
    tokio::time::sleep(SAMPLES_APART).await;
    let ordered = broker.get(list).await.json();
    assert_eq!(names(&ordered), ["working", "idle too", "idle"]);
}

#[tokio::test]
async fn queues_whose_names_look_alike_have_rates_of_their_own() {
    let broker = with_queues(&[("a", "b c"), ("a b", "c")]).await;
    publish(&broker, "a", "b c", 3).await;
    broker.get("/api/queues/a/b%20c").await;
    tokio::time::sleep(SAMPLES_APART).await;
    let other = broker.get("/api/queues/a%20b/c").await.json();
    assert_eq!((&other["messages"], &other["messages_details"]["rate"]), (&json!(0), &json!(0.0)));
}

#[tokio::test]
async fn a_user_shares_no_samples_with_those_who_see_all_vhosts() {
    let broker = with_queues(&[("a", "q"), ("b", "q")]).await;
    broker.add_user("all vhosts", "management", &["b"]);
    publish(&broker, "a", "q", 5).await;
    publish(&broker, "b", "q", 1).await;
    broker.get("/api/overview").await;
    tokio::time::sleep(SAMPLES_APART).await;
    let seen = broker.call("GET", "/api/overview", Some("all vhosts"), "").await.json();
    let stats = &seen["message_stats"];
    assert_eq!((&stats["publish"], &stats["publish_details"]["rate"]), (&json!(1), &json!(0.0)));
}

#[tokio::test]
async fn a_user_has_rates_while_another_looks_at_more_queues_than_there_is_room_for() {
    let broker = with_queues(&[("own", "q")]).await;
    for nth in 0..20_000 {
        broker.admin().declare_queue("/", &nth.to_string(), NewQueue::default()).expect("a queue");
    }
    broker.add_user("narrow", "management", &["own"]);
    let look = async || broker.call("GET", "/api/queues/own/q", Some("narrow"), "").await.json();
    broker.get("/api/queues/%2F?columns=messages_details").await;
    look().await;
    publish(&broker, "own", "q", 3).await;
    tokio::time::sleep(SAMPLES_APART).await;
    let rate = &look().await["messages_details"]["rate"];
    assert!(rate.as_f64().is_some_and(|rate| rate > 0.0), "{rate}");
}

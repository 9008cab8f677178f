//! Following what happens.

use crate::support::{Broker, PATIENCE, follow, until};
use serde_json::json;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;

/// A client that listens to `query`.
async fn listen(broker: &Broker, user: &str, query: &str) -> TcpStream {
    follow(broker, user, &format!("/api/events{query}"), &[]).await
}

#[tokio::test]
async fn what_happens_is_told_to_who_listens() {
    let broker = Broker::start().await;
    let mut stream = listen(&broker, "guest", "?kind=queue.&vhost=%2F").await;
    let head = until(&mut stream, "events from now on").await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    broker.admin().change_vhost("other", |_| {}).expect("a vhost");
    broker.send("PUT", "/api/queues/other/elsewhere", "{}").await;
    broker.send("PUT", "/api/exchanges/%2F/e", "{}").await;
    broker.send("PUT", "/api/queues/%2F/mine", "{}").await;
    let text = until(&mut stream, "\"mine\"").await;
    assert!(text.contains("event: queue.created\ndata: {"), "{text}");
    assert!(!text.contains("elsewhere") && !text.contains("exchange.created"), "{text}");
}

#[tokio::test]
async fn kinds_that_each_event_is_compared_with_are_bounded() {
    let broker = Broker::start().await;
    let asked = async |count: usize| {
        let kinds = vec!["queue."; count].join(",");
        broker.get(&format!("/api/events?seconds=0&kind={kinds}")).await
    };
    assert_eq!(asked(256).await.status, 200);
    let refused = asked(257).await;
    let reason = json!("kind names more than 256 kinds");
    assert_eq!((refused.status, refused.refusal().1), (400, reason));
}

#[tokio::test]
async fn who_may_not_see_everything_hears_nothing() {
    let broker = Broker::start().await;
    broker.add_user("small", "management", &["/"]);
    let mut stream = listen(&broker, "small", "").await;
    assert!(until(&mut stream, "Not monitor user").await.contains(" 401 "));
}

#[tokio::test]
async fn who_is_deleted_hears_no_more() {
    let broker = Broker::start().await;
    broker.add_user("watcher", "monitoring", &[]);
    let mut stream = listen(&broker, "watcher", "").await;
    until(&mut stream, "events from now on").await;
    broker.admin().delete_user("watcher").expect("it is there");
    broker.send("PUT", "/api/queues/%2F/later", "{}").await;
    assert!(!until(&mut stream, "later").await.contains("later"));
}

#[tokio::test]
async fn who_listens_is_told_the_end_when_the_broker_stops() {
    let broker = Broker::start().await;
    let mut stream = listen(&broker, "guest", "").await;
    until(&mut stream, "events from now on").await;
    broker.stop().await;
    let rest = tokio::time::timeout(PATIENCE, until(&mut stream, "never said")).await;
    let rest = rest.expect("nothing of the broker is left that could tell something");
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn an_event_has_the_time_at_which_it_happens_also_where_no_client_is_connected() {
    let broker = Broker::start().await;
    let mut stream = listen(&broker, "guest", "?kind=queue.").await;
    until(&mut stream, "events from now on").await;
    // Long enough to be told from when the broker was started, which is when it was told the time last.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = SystemTime::now().duration_since(UNIX_EPOCH).expect("a date").as_millis();
    broker.send("PUT", "/api/queues/%2F/q", "{}").await;
    let text = until(&mut stream, "\n\n").await;
    let at = text.split("\"at_ms\":").nth(1).expect("a time");
    let at = at.split(|byte: char| !byte.is_ascii_digit()).next().expect("a number");
    assert!(at.parse::<u128>().expect("a number") >= before, "{text}");
}

#[tokio::test]
async fn one_who_follows_much_leaves_places_to_others() {
    let broker = Broker::start().await;
    broker.add_user("many", "monitoring", &["/"]);
    let mut followed = Vec::new();
    for _ in 0..16 {
        let mut one = follow(&broker, "many", "/api/events", &[]).await;
        until(&mut one, ": events from now on").await;
        followed.push(one);
    }
    let refused = broker.call("GET", "/api/events?seconds=0", Some("many"), "").await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(broker.get("/api/events?seconds=0").await.status, 200);
    broker.stop().await;
}

#[tokio::test]
async fn those_who_follow_much_together_leave_places_to_administrators() {
    let broker = Broker::start().await;
    let mut followed = Vec::new();
    for (user, places) in [("a", 16), ("b", 16), ("c", 16), ("d", 16), ("guest", 4)] {
        if user != "guest" {
            broker.add_user(user, "monitoring", &["/"]);
        }
        for _ in 0..places {
            let mut one = follow(&broker, user, "/api/events", &[]).await;
            let heard = until(&mut one, "\r\n\r\n").await;
            assert!(heard.starts_with("HTTP/1.1 200"), "{user}: {heard}");
            followed.push(one);
        }
    }
    broker.add_user("late", "monitoring", &["/"]);
    broker.add_user("other", "administrator", &["/"]);
    for (user, status) in [("late", 503), ("guest", 503), ("other", 200)] {
        let answer = broker.call("GET", "/api/events?seconds=0", Some(user), "").await;
        assert_eq!(answer.status, status, "{user}: {answer:?}");
    }
    broker.stop().await;
}

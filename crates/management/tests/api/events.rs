//! Following what happens.

use crate::support::{Broker, follow, until};
use tokio::net::TcpStream;

/// Somebody who listens to `query`.
async fn listen(broker: &Broker, user: &str, query: &str) -> TcpStream {
    follow(broker, user, &format!("/api/events{query}"), &[]).await
}

#[tokio::test]
async fn what_happens_is_told_to_who_listens() {
    let broker = Broker::start().await;
    let mut stream = listen(&broker, "guest", "?kind=queue.&vhost=%2F").await;
    let head = until(&mut stream, "events from now on").await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    broker.admin().put_vhost("other", Default::default()).expect("a vhost");
    broker.send("PUT", "/api/queues/other/elsewhere", "{}").await;
    broker.send("PUT", "/api/exchanges/%2F/e", "{}").await;
    broker.send("PUT", "/api/queues/%2F/mine", "{}").await;
    let text = until(&mut stream, "\"mine\"").await;
    assert!(text.contains("event: queue.created\ndata: {"), "{text}");
    assert!(!text.contains("elsewhere") && !text.contains("exchange.created"), "{text}");
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

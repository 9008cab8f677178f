//! Lists that are merged from several groups.

use super::support::World;
use courser_broker::{Batch, Session};
use courser_codec::basic::Consume;
use serde_json::json;

/// Queues in all vhosts, with names that are spread over them, some of a kind, some with messages.
async fn fill(world: &World) {
    for (nth, vhost) in ["%2F", "a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
        for queue in 0..9 - nth {
            let name = format!("q{}-{}", (queue * 5 + nth * 3) % 7, ["x", "Y", "z"][queue % 3]);
            let kind = ["classic", "quorum", "stream"][(queue + nth) % 3];
            let mut arguments = json!({ "x-queue-type": kind });
            if kind == "classic" && queue % 2 == 0 {
                arguments["x-max-length"] = (queue as u64 * 100 + nth as u64).into();
            }
            let body = json!({ "durable": true, "arguments": arguments });
            world.both("PUT", &format!("/api/queues/{vhost}/{name}"), &body.to_string()).await;
            let bind = json!({ "routing_key": format!("key.{queue}") }).to_string();
            let path = format!("/api/bindings/{vhost}/e/amq.topic/q/{name}");
            // The binding of a queue that is named twice is there.
            world.both("POST", &path, &bind).await;
            for message in 0..(queue * 7 + nth * 3) % 5 {
                let body = json!({
                    "routing_key": name, "properties": {}, "payload": format!("{message}"),
                    "payload_encoding": "string",
                });
                let path = format!("/api/exchanges/{vhost}//publish");
                world.both("POST", &path, &body.to_string()).await;
            }
        }
        let policy = json!({
            "pattern": "^q1", "definition": { "max-length": 1000 + nth }, "priority": (nth * 5) % 4,
        });
        world.both("PUT", &format!("/api/policies/{vhost}/p{nth}"), &policy.to_string()).await;
        let path = format!("/api/operator-policies/{vhost}/o{}", nth % 2);
        world.both("PUT", &path, &policy.to_string()).await;
        let path = format!("/api/parameters/federation-upstream-set/{vhost}/name-{}", 9 - nth);
        world.both("PUT", &path, r#"{"value":{"x":1}}"#).await;
        if nth % 2 == 0 {
            let path = format!("/api/vhost-limits/{vhost}/max-queues");
            world.both("PUT", &path, r#"{"value":500}"#).await;
        }
        world.both("PUT", &format!("/api/queues/{vhost}/q0-x/pause"), "").await;
        let path = format!("/api/exchanges/{vhost}/own-{nth}");
        world.both("PUT", &path, r#"{"type":"fanout","durable":true}"#).await;
    }
}

fn consume(session: &mut Session, queue: &str, tag: &str) {
    let queue = queue.try_into().expect("short");
    let consumer_tag = tag.try_into().expect("short");
    let consume = Consume { queue, consumer_tag, ..Consume::default() };
    let mut batch = Batch::default();
    let consumed = session.request(&mut batch, 1, &consume.into());
    consumed.expect("a consumer");
    session.flush(&mut batch).expect("room");
}

const LISTS: [&str; 14] = [
    "/api/queues",
    "/api/queues/detailed",
    "/api/exchanges",
    "/api/bindings",
    "/api/consumers",
    "/api/connections",
    "/api/channels",
    "/api/vhosts",
    "/api/vhost-limits",
    "/api/policies",
    "/api/operator-policies",
    "/api/parameters",
    "/api/parameters/federation-upstream-set",
    "/api/connections/username/me",
];

const QUERIES: [&str; 28] = [
    "",
    "columns=name,vhost",
    "columns=messages",
    "sort=name",
    "sort=name&sort_reverse=true",
    "sort=vhost&sort_reverse=true",
    "sort=messages&sort_reverse=true&columns=name",
    "page=1",
    "page=1&page_size=3",
    "page=2&page_size=7",
    "page=3&page_size=5&columns=name,vhost,messages",
    "page=1&page_size=500&sort=name",
    "page=2&page_size=4&sort=name",
    "page=2&page_size=4&sort=name&sort_reverse=true",
    "page=2&page_size=6&sort=messages",
    "page=1&page_size=6&sort=messages&sort_reverse=true",
    "page=2&page_size=5&sort=vhost&sort_reverse=true",
    "page=1&page_size=9&sort=arguments.x-max-length&sort_reverse=true",
    "page=1&page_size=9&sort=message_stats.publish&sort_reverse=true",
    "page=2&page_size=5&sort=priority",
    "page=2&page_size=5&sort=node&sort_reverse=true",
    "page=1&page_size=4&name=q1",
    "page=2&page_size=2&name=Y",
    "page=1&page_size=5&name=%5Eq%5B12%5D&use_regex=true&sort=name",
    "page=1&page_size=5&type=stream",
    "page=1&page_size=5&state=paused&sort=name&sort_reverse=true",
    "page=2&page_size=3&has=messages&sort=messages",
    "page=99&page_size=10",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_those_of_one_broker_with_all_of_it() {
    let world = World::start().await;
    fill(&world).await;
    world.both("PUT", "/api/users/me", r#"{"password":"me","tags":"management"}"#).await;
    for vhost in ["b", "c", "%2F"] {
        let all = r#"{"configure":".*","write":".*","read":".*"}"#;
        world.both("PUT", &format!("/api/permissions/{vhost}/me"), all).await;
    }
    let mut sessions = Vec::new();
    for (port, (user, vhost)) in
        [("guest", "f"), ("me", "b"), ("guest", "a"), ("me", "/"), ("guest", "/"), ("me", "c")]
            .into_iter()
            .enumerate()
    {
        let path = format!("/api/queues/{}/own", vhost.replace('/', "%2F"));
        world.both("PUT", &path, "{}").await;
        for mut session in world.connect(user, vhost, 60_000 - port as u16) {
            consume(&mut session, "own", &format!("tag-{port}"));
            sessions.push(session);
        }
    }
    for list in LISTS {
        for query in QUERIES {
            let path = if query.is_empty() { list.to_owned() } else { format!("{list}?{query}") };
            world.both("GET", &path, "").await;
            world.both_as("GET", &path, "me", &[], "").await;
        }
        for vhost in ["a", "c", "/", "nowhere"] {
            world.both_as("GET", list, "guest", &[("x-vhost", vhost)], "").await;
        }
        world.both("HEAD", list, "").await;
        world.both_as("GET", list, "guest", &[("accept-encoding", "gzip")], "").await;
    }
}

/// This thread serves all connections of this test, and no thread else.
#[tokio::test]
async fn an_expression_for_a_list_is_not_compiled_by_a_thread_that_serves_connections() {
    let world = World::start().await;
    let queue = json!({ "durable": true }).to_string();
    world.home("PUT", "/api/queues/a/q", &queue).await;
    for list in ["queues", "exchanges", "connections", "channels"] {
        let path = format!("/api/{list}?page=1&use_regex=true&name=%5E%5Bq%5D");
        // What permissions need is compiled once.
        world.home("GET", &path, "").await;
        let before = courser_auth::compiled();
        let page = world.home("GET", &path, "").await;
        assert_eq!(page.json()["page"], 1, "{list}");
        assert_eq!(courser_auth::compiled(), before, "{list}");
    }
}

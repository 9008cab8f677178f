//! What is counted in several groups, and what there is of all of them once.

use super::support::{GROUPS, World};
use crate::support::until_of;
use courser_auth::TopicPermission;
use courser_broker::admin::NewQueue;
use courser_management::{Groups, HOME};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

async fn publish(world: &World, vhost: &str, queue: &str) {
    let body = json!({
        "routing_key": queue, "properties": {}, "payload": "x", "payload_encoding": "string",
    });
    world.both("POST", &format!("/api/exchanges/{vhost}//publish"), &body.to_string()).await;
}

async fn with_queues() -> World {
    let world = World::start().await;
    for (nth, vhost) in ["%2F", "a", "b", "c"].into_iter().enumerate() {
        world.both("PUT", &format!("/api/queues/{vhost}/q"), r#"{"durable":true}"#).await;
        for _ in 0..=nth {
            publish(&world, vhost, "q").await;
        }
    }
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overview_is_that_of_all_groups() {
    let world = with_queues().await;
    let _clients = [world.connect("guest", "a", 1), world.connect("guest", "b", 2)];
    let ranges = "lengths_age=10&lengths_incr=5&msg_rates_age=10&msg_rates_incr=5";
    for query in ["", "?columns=object_totals.queues,queue_totals", "?disable_stats=true"] {
        world.both("GET", &format!("/api/overview{query}"), "").await;
    }
    world.both("GET", &format!("/api/overview?{ranges}"), "").await;
    let sizes = world.both("GET", "/api/message-sizes", "").await.json();
    assert_eq!(sizes["messages"]["100"], 10);
    world.both("GET", "/api/tls", "").await;
    world.now_ms.fetch_add(5000, Ordering::Relaxed);
    publish(&world, "a", "q").await;
    publish(&world, "b", "q").await;
    let overview = world.both("GET", &format!("/api/overview?{ranges}"), "").await.json();
    assert_eq!(overview["queue_totals"]["messages"], 12);
    assert_eq!(overview["message_stats"]["publish_details"]["rate"], 0.4);
    assert_eq!(overview["object_totals"]["connections"], 2);
    world.both_as("GET", "/api/overview", "guest", &[("x-vhost", "a")], "").await;
    world.both("PUT", "/api/users/me", r#"{"password":"me","tags":"management"}"#).await;
    let all = r#"{"configure":"","write":"","read":".*"}"#;
    world.both("PUT", "/api/permissions/a/me", all).await;
    let of_me = world.both_as("GET", "/api/overview", "me", &[], "").await.json();
    assert_eq!(of_me["queue_totals"]["messages"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_several_brokers_is_one_node() {
    let world = with_queues().await;
    let _clients = [world.connect("guest", "a", 1), world.connect("guest", "b", 2)];
    let counted = ["proc_used", "queue_created", "connection_created", "mem_alarm", "uptime"];
    let columns = format!("columns=name,{}", counted.join(","));
    let nodes = world.both("GET", &format!("/api/nodes?{columns}"), "").await.json();
    assert_eq!((&nodes[0]["proc_used"], &nodes[0]["queue_created"]), (&json!(2), &json!(4)));
    world.both("GET", &format!("/api/nodes/courser@one?{columns}"), "").await;
    world.both("GET", "/api/nodes/courser@none", "").await;
    for path in ["/api/nodes/courser@one/memory", "/api/nodes/courser@one/memory/relative"] {
        let memory = world.home("GET", path, "").await.json();
        assert!(memory["memory"]["binary"].is_u64(), "{path}: {memory}");
    }
    let attempts = world.home("GET", "/api/auth/attempts/courser@one", "").await.json();
    let amqp =
        attempts.as_array().and_then(|all| all.iter().find(|one| one["protocol"] == "amqp091"));
    assert_eq!(amqp.map(|one| &one["auth_attempts"]), Some(&json!(3 * GROUPS)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_attention_is_what_one_broker_would_name() {
    let world = World::start().await;
    for vhost in ["%2F", "a", "b", "c", "d", "e", "f"] {
        for queue in 0..12 {
            let path = format!("/api/queues/{vhost}/q{queue}");
            let kind = if queue == 3 { "stream" } else { "classic" };
            let body = json!({ "durable": true, "arguments": { "x-queue-type": kind } });
            world.both("PUT", &path, &body.to_string()).await;
            for _ in 0..queue % 4 {
                publish(&world, vhost, &format!("q{queue}")).await;
            }
        }
        world.both("PUT", &format!("/api/queues/{vhost}/q7/pause"), "").await;
    }
    let findings = world.both("GET", "/api/attention", "").await.json();
    assert!(findings.as_array().is_some_and(|all| all.len() > 30), "{findings}");
    world.both_as("GET", "/api/attention", "guest", &[("x-vhost", "b")], "").await;
    world.both("GET", "/api/health/checks/alarms", "").await;
    world.both("GET", "/api/health/checks/virtual-hosts", "").await;
}

#[tokio::test]
async fn permissions_that_need_attention_are_told_of_once() {
    let world = World::start().await;
    assert_ne!(world.group_of("b"), Some(HOME));
    for vhost in ["/", "b"] {
        let outdated = TopicPermission { write: "(?#a)".into(), read: String::new() };
        let admin = world.admin_of(HOME);
        admin.keep_topic_permission("guest", vhost, "x", outdated).expect("it is kept");
    }
    world.known.changed().await;
    let findings = world.home("GET", "/api/attention", "").await.json();
    let findings = findings.as_array().expect("a list");
    let [finding] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!(finding["kind"], "permission_refused");
    let both = |text: &str| text.contains("in vhost '/'") && text.contains("in vhost 'b'");
    assert!(finding["text"].as_str().is_some_and(both), "{finding}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_can_not_be_reached_is_named_and_nothing_is_shown_in_part() {
    let world = with_queues().await;
    world.lose(2).await;
    for path in [
        "/api/queues",
        "/api/queues?page=1",
        "/api/overview",
        "/api/vhosts",
        "/api/definitions",
        "/api/events?seconds=1",
        "/api/queues/b/q",
        "/api/connections/none",
        "/api/health/checks/virtual-hosts",
    ] {
        let answer = world.home("GET", path, "").await;
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
        let (error, reason) = answer.refusal();
        assert_eq!(error, "service_unavailable");
        assert!(
            reason.as_str().is_some_and(|why| why.starts_with("group 2 has no leader")),
            "{reason}"
        );
    }
    let check = "/api/health/checks/quorum-queues-without-elected-leaders";
    for path in [format!("{check}/all-vhosts"), format!("{check}/vhost/b")] {
        let answer = world.home("GET", &path, "").await;
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
        let said = answer.json();
        assert_eq!((&said["status"], &said["groups"]), (&json!("failed"), &json!([2])), "{said}");
    }
    assert_eq!(world.home("GET", &format!("{check}/vhost/a"), "").await.status, 200);
    for path in ["/api/queues/a/q", "/api/queues/%2F/q", "/api/users", "/api/whoami"] {
        assert_eq!(world.home("GET", path, "").await.status, 200, "{path}");
    }
    world.lose(0).await;
    assert_eq!(world.home("GET", "/api/queues", "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_go_without_a_group_in_which_the_node_can_not_take_part_and_lists_and_exports_do_not()
{
    let world = with_queues().await;
    world.lose(2).await;
    *world.known.without_part.lock() = vec![2];
    for path in ["/api/attention", "/api/overview", "/api/nodes", "/api/health/checks/alarms"] {
        let answer = world.home("GET", path, "").await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    for (method, path) in [
        ("GET", "/api/queues"),
        ("GET", "/api/vhosts"),
        ("GET", "/api/connections/none"),
        ("GET", "/api/definitions"),
        ("POST", "/api/definitions?dry_run=true"),
        ("GET", "/api/events?seconds=1"),
        ("DELETE", "/api/connections/username/guest"),
    ] {
        let json = [("content-type", "application/json")];
        let answer = world.call(&world.home, method, path, "guest", &json, "{}").await;
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_groups_are_used_again() {
    let world = with_queues().await;
    let before = world.known.connections.load(Ordering::Relaxed);
    for _ in 0..50 {
        assert_eq!(world.home("GET", "/api/queues?page=1", "").await.status, 200);
    }
    let made = world.known.connections.load(Ordering::Relaxed) - before;
    assert!(made < 20, "{made} connections for 100 requests to groups");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_those_of_all_groups_each_once() {
    let world = World::start().await;
    let path = "/api/events?seconds=600&kind=queue.created,vhost.,user.";
    let mut following = world.follow(path, "guest").await;
    let greeting = until_of(&mut following, "\n\n").await;
    assert!(greeting.contains(": events from now on"), "{greeting}");
    world.home("PUT", "/api/queues/b/in-b", "{}").await;
    world.home("PUT", "/api/users/new", r#"{"password":"x","tags":""}"#).await;
    world.home("PUT", "/api/vhosts/new", r#"{"group":1}"#).await;
    world.home("PUT", "/api/queues/a/in-a", "{}").await;
    world.home("PUT", "/api/queues/%2F/last", "{}").await;
    let begun = Instant::now();
    let mut text = String::new();
    while !["in-a", "in-b", "last", "\"new\""].iter().all(|name| text.contains(name)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{text}");
        text += &until_of(&mut following, "\n\n").await;
    }
    for once in ["event: user.created", "event: vhost.created", "in-a", "in-b"] {
        assert_eq!(text.matches(once).count(), 1, "{once} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_of_several_groups_comes_whole_and_deep_pages_are_there() {
    let world = World::start().await;
    let mut expected: Vec<Value> = Vec::new();
    for (group, vhost) in [(1, "a"), (2, "b"), (0, "c")] {
        for nth in 0..1500 {
            let name = format!("q{nth:05}");
            let admin = world.admin_of(group);
            admin.declare_queue(vhost, &name, NewQueue::default()).expect("a queue");
            expected.push(json!({ "name": name, "vhost": vhost }));
        }
    }
    let list = world.home("GET", "/api/queues?columns=name,vhost", "").await;
    assert_eq!(list.headers["transfer-encoding"], "chunked");
    assert_eq!(list.json(), json!(expected));
    let deep = "/api/queues?columns=name,vhost&page=9&page_size=500";
    let page = world.home("GET", deep, "").await.json();
    assert_eq!(page["items"], json!(expected[4000..]));
    let sorted = "/api/queues?columns=name,vhost&page=40&page_size=100&sort=name&sort_reverse=true";
    let page = world.home("GET", sorted, "").await.json();
    let mut by_name = expected.clone();
    by_name.sort_by_key(|one| one["name"].as_str().expect("a name").to_owned());
    by_name.reverse();
    assert_eq!(page["items"], json!(by_name[3900..4000]));
}

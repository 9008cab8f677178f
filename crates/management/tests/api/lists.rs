//! Pages, filters, order and columns.

use crate::support::Broker;
use courser_broker::admin::{NewQueue, PageRequest};
use serde_json::{Value, json};
use std::cell::Cell;
use std::cmp::Ordering;

fn declare(broker: &Broker, names: &[&str]) {
    for name in names {
        broker.admin().declare_queue("/", name, NewQueue::default()).expect("a queue");
    }
}

fn names(list: &Value) -> Vec<&str> {
    let items = list.as_array().expect("a list");
    items.iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

async fn with_six() -> Broker {
    let broker = Broker::start().await;
    declare(&broker, &["alpha", "beta", "gamma", "Delta", "eps.one", "eps.two"]);
    broker
}

#[tokio::test]
async fn without_a_page_there_is_a_list_and_no_filter() {
    let broker = with_six().await;
    let list = broker.get("/api/queues?name=alpha&page_size=2").await.json();
    assert_eq!(names(&list), ["Delta", "alpha", "beta", "eps.one", "eps.two", "gamma"]);
}

#[tokio::test]
async fn a_page_says_where_it_stands() {
    let broker = with_six().await;
    let page = broker.get("/api/queues?page=2&page_size=4").await.json();
    assert_eq!(names(&page["items"]), ["eps.two", "gamma"]);
    for (name, value) in [
        ("filtered_count", 6),
        ("item_count", 2),
        ("page", 2),
        ("page_count", 2),
        ("page_size", 4),
        ("total_count", 6),
    ] {
        assert_eq!(page[name], value, "{name}");
    }
}

#[tokio::test]
async fn names_are_filtered_by_a_part_or_an_expression_in_any_case() {
    let broker = with_six().await;
    for (query, expected) in [
        ("name=ELTA", vec!["Delta"]),
        ("name=eps.", vec!["eps.one", "eps.two"]),
        ("name=%5E(alpha%7Cdel)&use_regex=true", vec!["Delta", "alpha"]),
        ("name=%5Eeps(?=.two)&use_regex=true&pagination=false", vec!["eps.two"]),
        ("name=(&use_regex=true", vec![]),
        ("name=none", vec![]),
    ] {
        let page = broker.get(&format!("/api/queues/%2F?page=1&{query}")).await;
        assert_eq!(page.status, 200, "{query}");
        let page = page.json();
        assert_eq!(names(&page["items"]), expected, "{query}");
        assert_eq!(page["filtered_count"], expected.len(), "{query}");
        assert_eq!(page["total_count"], 6, "{query}");
        assert_eq!(page["page_count"], usize::from(!expected.is_empty()), "{query}");
    }
}

#[tokio::test]
async fn pages_that_there_can_not_be_are_refused() {
    let broker = with_six().await;
    let invalid = "invalid_pagination_parameters";
    for (query, error, reason) in [
        ("page=0", invalid, "Invalid pagination parameters: page number 0, page size 100"),
        (
            "page=1&page_size=501",
            invalid,
            "Invalid pagination parameters: page number 1, page size 501",
        ),
        ("page=abc", "bad_request", "Pagination parameters are invalid"),
        (
            "page=99&page_size=10",
            "page_out_of_range",
            "Page out of range, page: 99 page size: 10, len: 6",
        ),
        (
            "page=9&page_size=10&sort=messages",
            "page_out_of_range",
            "Page out of range, page: 9 page size: 10, len: 6",
        ),
    ] {
        let answer = broker.get(&format!("/api/queues?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(answer.refusal(), (error.to_owned(), json!(reason)), "{query}");
    }
    assert_eq!(broker.get("/api/queues?page=99999999999999999999").await.status, 400);
}

#[tokio::test]
async fn lists_are_sorted_by_any_column() {
    let broker = with_six().await;
    let all = ["Delta", "alpha", "beta", "eps.one", "eps.two", "gamma"];
    let backwards: Vec<&str> = all.iter().rev().copied().collect();
    let list = broker.get("/api/queues?sort=name&sort_reverse=true").await.json();
    assert_eq!(names(&list), backwards);
    let page =
        broker.get("/api/queues?page=1&page_size=2&sort=name&sort_reverse=true").await.json();
    assert_eq!(names(&page["items"]), &backwards[..2]);
    let unknown = broker.get("/api/queues?sort=no.such.column").await.json();
    assert_eq!(names(&unknown), all);
}

#[tokio::test]
async fn what_belongs_to_a_vhost_or_a_user_is_paged_likewise() {
    let broker = with_six().await;
    for nth in 0..3 {
        let bind = format!(r#"{{"routing_key":"key.{nth}"}}"#);
        broker.send("POST", "/api/bindings/%2F/e/amq.topic/q/alpha", &bind).await;
        let policy = format!("/api/policies/%2F/policy-{nth}");
        broker.send("PUT", &policy, r#"{"pattern":"x","definition":{"max-length":1}}"#).await;
        broker.add_user(&format!("user-{nth}"), "management", &["/"]);
        let limit = format!("/api/user-limits/user-{nth}/max-channels");
        broker.send("PUT", &limit, r#"{"value":10}"#).await;
        broker
            .send(
                "PUT",
                &format!("/api/parameters/federation-upstream-set/%2F/p-{nth}"),
                r#"{"value":1}"#,
            )
            .await;
        broker.send("PUT", &format!("/api/global-parameters/g-{nth}"), r#"{"value":1}"#).await;
    }
    for (path, name) in [
        ("/api/bindings/%2F", "key."),
        ("/api/bindings/%2F/e/amq.topic/q/alpha", "ALPHA"),
        ("/api/policies", "policy-"),
        ("/api/permissions", "user-"),
        ("/api/user-limits", "user-"),
        ("/api/parameters/federation-upstream-set", "p-"),
        ("/api/global-parameters", "g-"),
    ] {
        let page = broker.get(&format!("{path}?page=2&page_size=2&name={name}")).await.json();
        let counts = (&page["filtered_count"], &page["item_count"], &page["page_count"]);
        assert_eq!(counts, (&json!(3), &json!(1), &json!(2)), "{path}: {page}");
        assert!(broker.get(path).await.json().is_array(), "{path}");
    }
    let page = broker.get("/api/consumers?page=1").await.json();
    assert_eq!(page["items"], json!([]));
}

#[tokio::test]
async fn pages_are_sorted_by_what_queues_are() {
    let broker = with_six().await;
    let stream = r#"{"durable":true,"arguments":{"x-queue-type":"stream"}}"#;
    broker.send("PUT", "/api/queues/%2F/a-stream", stream).await;
    let long = r#"{"durable":true,"arguments":{"x-max-length":9,"x-expires":60000}}"#;
    broker.send("PUT", "/api/queues/%2F/long", long).await;
    let policy =
        r#"{"pattern":"^eps","apply-to":"queues","definition":{"max-length":1,"message-ttl":9}}"#;
    broker.send("PUT", "/api/policies/%2F/short", policy).await;
    let operator = r#"{"pattern":"^gamma$","apply-to":"queues","definition":{"max-length":5}}"#;
    broker.send("PUT", "/api/operator-policies/%2F/bound", operator).await;
    broker.send("PUT", "/api/queues/%2F/gamma/pause", "").await;
    for (sort, reverse, first) in [
        ("type", true, "a-stream"),
        ("state", false, "gamma"),
        ("type", false, "Delta"),
        ("arguments", true, "long"),
        ("arguments.x-max-length", true, "long"),
        ("arguments.x-queue-type", true, "a-stream"),
        ("effective_policy_definition", true, "eps.two"),
        ("effective_policy_definition.max-length", true, "gamma"),
        ("operator_policy", true, "gamma"),
        ("no.such.column", true, "long"),
    ] {
        let query = format!("page=1&page_size=1&sort={sort}&sort_reverse={reverse}");
        let page = broker.get(&format!("/api/queues?{query}")).await.json();
        assert_eq!(names(&page["items"]), [first], "{query}");
    }
}

#[tokio::test]
async fn pages_show_only_what_is_asked_for() {
    let broker = with_six().await;
    let stream = r#"{"durable":true,"arguments":{"x-queue-type":"stream","x-max-age":"1D"}}"#;
    broker.send("PUT", "/api/queues/%2F/a-stream", stream).await;
    broker.send("PUT", "/api/queues/%2F/gamma/pause", "").await;
    let policy = r#"{"pattern":"^eps","apply-to":"queues","definition":{"max-length":1}}"#;
    broker.send("PUT", "/api/policies/%2F/short", policy).await;
    let body = json!({ "routing_key": "beta", "properties": {}, "payload": "x", "payload_encoding": "string" });
    broker.send("POST", "/api/exchanges/%2F//publish", &body.to_string()).await;
    for (query, expected) in [
        ("type=stream", vec!["a-stream"]),
        ("state=paused", vec!["gamma"]),
        ("has=messages", vec!["beta"]),
        ("has=policy", vec!["eps.one", "eps.two"]),
        ("has=arguments.x-max-age&columns=name", vec!["a-stream"]),
        ("has=policy&name=two", vec!["eps.two"]),
        ("has=policy&sort=name&sort_reverse=true", vec!["eps.two", "eps.one"]),
        ("type=classic&state=running&has=messages&sort=messages", vec!["beta"]),
        ("type=none", vec![]),
    ] {
        let page = broker.get(&format!("/api/queues?page=1&{query}")).await.json();
        assert_eq!(names(&page["items"]), expected, "{query}: {page}");
        assert_eq!(page["filtered_count"], expected.len(), "{query}");
        assert_eq!(page["total_count"], 7, "{query}");
    }
    let page = broker.get("/api/exchanges?page=1&type=fanout").await.json();
    assert_eq!(names(&page["items"]), ["amq.fanout"]);
    let long = format!("/api/queues?page=1&has={}", "x".repeat(257));
    assert_eq!(broker.get(&long).await.status, 400);
}

/// A number that counts how often it was compared with another one.
struct Counted<'a>(u64, &'a Cell<usize>);

impl Ord for Counted<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.1.set(self.1.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counted<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted<'_> {}

#[tokio::test]
async fn a_sorted_page_costs_no_sort_of_all_queues() {
    const QUEUES: u64 = 8192;
    let broker = Broker::start().await;
    let all: Vec<String> = (0..QUEUES).map(|nth| format!("q{nth}")).collect();
    declare(&broker, &all.iter().map(String::as_str).collect::<Vec<_>>());
    let compared = Cell::new(0);
    let list = broker.admin().queues(None).expect("queues");
    let page = list.page_by(&PageRequest::first(100), true, |queue| {
        let shuffled = queue.id().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        Some(Counted(shuffled, &compared))
    });
    assert_eq!((page.items.len(), page.filtered), (100, QUEUES as usize));
    // To sort all of them would take 13 comparisons a queue.
    assert!(compared.get() < 6 * QUEUES as usize, "{} comparisons", compared.get());
}

#[tokio::test]
async fn only_the_wanted_columns_are_shown() {
    let broker = with_six().await;
    let list = broker.get("/api/queues?columns=name,vhost,messages_details.rate").await.json();
    let first = json!({ "name": "Delta", "vhost": "/", "messages_details": { "rate": 0.0 } });
    assert_eq!(list[0], first);
    let none = broker.get("/api/queues?columns=").await.json();
    assert_eq!(none, json!([[], [], [], [], [], []]));
    let page = broker.get("/api/queues?columns=name&page=1&page_size=1").await.json();
    assert_eq!(page["items"], json!([{ "name": "Delta" }]));
}

#[tokio::test]
async fn a_list_shows_what_the_caller_may_see() {
    let broker = with_six().await;
    broker.admin().change_vhost("other", |_| {}).expect("a vhost");
    broker.admin().declare_queue("other", "hidden", NewQueue::default()).expect("a queue");
    broker.add_user("inside", "management", &["other"]);
    broker.add_user("watcher", "monitoring", &[]);
    let list = broker.call("GET", "/api/queues", Some("inside"), "").await.json();
    assert_eq!(names(&list), ["hidden"]);
    let list = broker.call("GET", "/api/queues", Some("watcher"), "").await.json();
    assert_eq!(list, json!([]));
    let header = [("x-vhost", "other")];
    let narrowed =
        broker.call_with("GET", "/api/queues", Some("guest:guest"), &header, b"").await.json();
    assert_eq!(names(&narrowed), ["hidden"]);
    let vhosts = broker.call("GET", "/api/vhosts", Some("watcher"), "").await.json();
    assert_eq!(names(&vhosts), ["/", "other"]);
    let vhosts = broker.call("GET", "/api/vhosts", Some("inside"), "").await.json();
    assert_eq!(names(&vhosts), ["other"]);
}

#[tokio::test]
async fn a_long_list_comes_whole_in_pieces() {
    let broker = Broker::start().await;
    let expected: Vec<String> = (0..2000).map(|nth| format!("q{nth:05}")).collect();
    declare(&broker, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    let answer = broker.get("/api/queues").await;
    assert_eq!(answer.headers["transfer-encoding"], "chunked");
    assert_eq!(names(&answer.json()), expected);
}

#[tokio::test]
async fn pages_are_sorted_by_what_queues_hold() {
    let broker = with_six().await;
    for (queue, messages) in [("beta", 3), ("Delta", 1), ("gamma", 2)] {
        for _ in 0..messages {
            let body = json!({ "routing_key": queue, "properties": {}, "payload": "x", "payload_encoding": "string" });
            let path = "/api/exchanges/%2F//publish";
            assert_eq!(broker.send("POST", path, &body.to_string()).await.status, 200);
        }
    }
    for column in ["messages", "messages_ready", "message_stats.publish"] {
        let path = format!("/api/queues?page=1&page_size=4&sort_reverse=true&sort={column}");
        let page = broker.get(&path).await.json();
        assert_eq!(names(&page["items"])[..3], ["beta", "gamma", "Delta"], "{column}");
        let path = format!("/api/queues?page=2&page_size=3&sort={column}");
        let page = broker.get(&path).await.json();
        assert_eq!(names(&page["items"]), ["Delta", "gamma", "beta"], "{column}");
        assert_eq!((&page["filtered_count"], &page["page_count"]), (&json!(6), &json!(2)));
        let path = format!("/api/queues?page=1&page_size=1&name=a&sort_reverse=true&sort={column}");
        let page = broker.get(&path).await.json();
        assert_eq!((names(&page["items"]), &page["filtered_count"]), (vec!["beta"], &json!(4)));
    }
    let page = broker.get("/api/queues?page=9&page_size=10&sort=consumers").await;
    assert_eq!(page.refusal().0, "page_out_of_range");
}

#[tokio::test]
async fn ranges_are_checked_like_any_other_argument() {
    let broker = with_six().await;
    let path = |range: &str| format!("/api/queues/%2F/alpha?{range}");
    for (age, step) in [
        (1_u64 << 61, 1_u64 << 61),
        (1 << 62, 1 << 62),
        (u64::MAX, u64::MAX),
        (10, 1_000_000_000_000_000_000),
        (10, 0),
        (501, 1),
    ] {
        let range = format!("lengths_age={age}&lengths_incr={step}");
        for path in [path(&range), format!("/api/queues?{range}")] {
            let refused = broker.get(&path).await;
            assert_eq!(refused.status, 400, "{path}");
            let expected = format!("Invalid range parameters: age {age}, incr {step}");
            assert_eq!(refused.refusal().1, json!(expected));
        }
    }
    let longest = broker.get(&path("lengths_age=500&lengths_incr=1")).await.json();
    let samples = longest["messages_details"]["samples"].as_array().map(Vec::len);
    assert_eq!(samples, Some(501));
}

#[tokio::test]
async fn rows_and_samples_are_bounded_together() {
    let broker = Broker::start().await;
    let names: Vec<String> = (0..200).map(|nth| format!("q{nth}")).collect();
    declare(&broker, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let range = "lengths_age=500&lengths_incr=1&disable_stats=true";
    assert_eq!(broker.get(&format!("/api/queues?page=1&page_size=120&{range}")).await.status, 200);
    for list in ["", "page=1&page_size=121&", "page=1&page_size=500&"] {
        let refused = broker.get(&format!("/api/queues?{list}{range}")).await;
        let reason = refused.refusal().1;
        let reason = reason.as_str().expect("a text");
        assert_eq!(refused.status, 400, "{list}");
        assert!(
            reason.starts_with("Invalid range parameters: 501 samples of each of "),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn arguments_that_each_row_is_compared_with_are_bounded() {
    let broker = Broker::start().await;
    let columns = |count: usize| format!("columns={}", vec!["name"; count].join(","));
    let (word, parameters) = ("m".repeat(256), |count: usize| vec!["_=b"; count].join("&"));
    for most in [columns(256), format!("sort={word}"), format!("has={word}"), parameters(61)] {
        let path = format!("/api/queues?page=1&page_size=1&{most}");
        assert_eq!(broker.get(&path).await.status, 200, "{path}");
    }
    for (more, reason) in [
        (columns(257), "columns names more than 256 members"),
        (format!("sort={word}m"), "sort is longer than the 256 characters of any column"),
        (format!("has={word}m"), "has is longer than the 256 characters of any column"),
        (parameters(65), "The query has more than 64 parameters"),
    ] {
        for path in ["/api/queues", "/api/bindings/%2F", "/api/whoami"] {
            let refused = broker.get(&format!("{path}?{more}")).await;
            assert_eq!((refused.status, refused.refusal().1), (400, json!(reason)), "{path}");
        }
    }
}

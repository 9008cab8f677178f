//! What one request of the lowest rank can cost: for each route, with the largest arguments that are taken.
//!
//! The lowest rank is a user with the tag `management` who may read from one queue. `bill.txt` bounds the memory that a
//! request takes and the work that it makes, both in allocated KiB: neither depends on how fast the machine is. A route
//! that is not in it fails the test. What others are refused costs no more than [`REFUSED_KIB`].

mod clients;
mod counting;
#[path = "../api/direct.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod direct;
mod expressions;
mod largest;
#[path = "../api/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod support;
mod waiting;

use counting::{Cost, measured};
use courser_auth::Permission;
use courser_broker::admin::{NewMessage, NewQueue};
use courser_codec::{FieldTable, ShortString};
use direct::{Asked, Direct};
use largest::{QUEUE, arguments, path};
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Queues, and bindings of one of them: each is a row of a list.
const ROWS: usize = 48;
/// Messages of the queue that may be read, and bytes of each.
const MESSAGES: usize = 32;
const MESSAGE_BYTES: usize = 64 << 10;
/// What a request costs that is refused by the tags of its user, however large it is.
const REFUSED_KIB: usize = 400;
const LOW: &str = "low";
const ROOT: &str = "root";

/// A broker with some of each kind, and a user who may read from one queue.
fn world() -> Direct {
    let direct = Direct::new();
    direct.add_user(LOW, "management");
    direct.add_user(ROOT, "administrator");
    let admin = direct.broker.admin();
    for nth in 0..ROWS {
        let arguments = FieldTable::new().with("x-max-length", 1_000_000_i64);
        let queue = NewQueue { durable: true, auto_delete: false, arguments };
        let name = if nth == 0 { QUEUE.to_owned() } else { format!("{}{nth}", "q".repeat(200)) };
        admin.declare_queue("/", &name, queue).expect("a queue");
    }
    let read = Permission { read: format!("^{QUEUE}$"), ..Permission::default() };
    admin.set_permission(LOW, "/", read).expect("let in");
    admin.set_permission(ROOT, "/", Permission::all()).expect("let in");
    direct
}

/// Fills the queue again, which some requests empty.
async fn fill(direct: &Direct) {
    let admin = direct.broker.admin();
    let key = ShortString::try_from(QUEUE).expect("short");
    let waiting = admin.queue("/", QUEUE.as_bytes()).expect("a queue").ready;
    for _ in waiting..MESSAGES {
        let body = vec![b'p'; MESSAGE_BYTES].into();
        let message = NewMessage { routing_key: key.clone(), body, ..NewMessage::default() };
        let publishing = admin.publish(ROOT, "/", &message).expect("it is let in");
        publishing.await.expect("it is routed");
    }
}

async fn bind(direct: &Direct) {
    for nth in 0..ROWS {
        let path = format!("/api/bindings/%2F/e/amq.topic/q/{QUEUE}");
        let body = format!(r#"{{"routing_key":"{}.{nth}","arguments":{{}}}}"#, "k".repeat(200));
        let request = Asked { body: &body, ..Asked::new("POST", &path).by(ROOT) };
        let request = direct::head(&request, body.len()) + &body;
        assert_eq!(asked(direct, request.as_bytes()).await, 201);
    }
}

/// Asks, and takes what comes without keeping it. Returns the status.
async fn asked(direct: &Direct, asked: &[u8]) -> u16 {
    asked_over(direct.connect(direct::HERE), asked).await
}

async fn asked_over(stream: DuplexStream, asked: &[u8]) -> u16 {
    let (mut reading, mut writing) = tokio::io::split(stream);
    // The broker may answer and close before it has read everything.
    let write = async {
        let _ = writing.write_all(asked).await;
    };
    let read = async {
        let (mut status, mut piece) = (None, vec![0; 16 << 10]);
        while let Ok(bytes @ 1..) = reading.read(&mut piece).await {
            let head = std::str::from_utf8(&piece[..bytes.min(12)]).unwrap_or_default();
            status = status.or_else(|| head.split(' ').nth(1)?.parse().ok());
        }
        status.expect("a status")
    };
    tokio::join!(write, read).1
}

/// The routes, by method and pattern.
async fn routes(direct: &Direct) -> Vec<(String, String)> {
    let document = direct.ask(Asked::new("GET", "/api/openapi.json")).await.json();
    let mut routes = Vec::new();
    for (pattern, operations) in document["paths"].as_object().expect("paths") {
        let methods = ["get", "put", "post", "delete"].into_iter();
        let has = methods.filter(|method| operations.get(method).is_some());
        routes.extend(has.map(|method| (method.to_uppercase(), pattern.clone())));
    }
    routes
}

/// The bounds of memory and work, by method and pattern.
fn bounds() -> BTreeMap<(String, String), Cost> {
    let lines = include_str!("bill.txt").lines();
    let (mut cost, mut bounds) = (Cost::default(), BTreeMap::new());
    for line in lines.filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["memory", memory, "work", work] = words[..] {
            let number = |text: &str| text.parse().expect("a number");
            cost = Cost { memory_kib: number(memory), work_kib: number(work) };
            continue;
        }
        for method in &words[1..] {
            let key = ((*method).to_owned(), words[0].to_owned());
            assert!(bounds.insert(key, cost).is_none(), "{line} is there twice");
        }
    }
    bounds
}

/// What a route costs with each of its largest arguments, at most; and whether its user was let in.
async fn cost(direct: &Direct, method: &str, pattern: &str) -> (Cost, bool) {
    let (mut most, mut is_let_in) = (Cost::default(), false);
    for (query, body) in arguments(method, pattern) {
        fill(direct).await;
        let path = format!("{}{query}", path(pattern));
        let request = Asked { body: &body, ..Asked::new(method, &path).by(LOW) };
        let request = (direct::head(&request, body.len()) + &body).into_bytes();
        let (status, cost) = measured(asked(direct, &request)).await;
        // A check may fail.
        let is_answered = status < 500 || status == 503 && pattern.contains("/health/");
        assert!(is_answered && status != 414 && status != 431, "{status}: {method} {path}");
        is_let_in |= status != 401;
        most = most.max(cost);
    }
    (most, is_let_in)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_of_the_lowest_rank_costs_more_than_its_bill_says() {
    let direct = world();
    bind(&direct).await;
    let _clients = clients::connect(&direct).await;
    let (mut bounds, mut wrong) = (bounds(), Vec::new());
    let refused = Cost { memory_kib: REFUSED_KIB, work_kib: REFUSED_KIB };
    let mut costs = Vec::new();
    for (method, pattern) in routes(&direct).await {
        let (cost, is_let_in) = cost(&direct, &method, &pattern).await;
        costs.push((method, pattern, cost, is_let_in));
    }
    for (pattern, cost) in expressions::costs(&direct).await {
        costs.push(("GET".to_owned(), pattern.to_owned(), cost, true));
    }
    for (method, pattern, cost, is_let_in) in costs {
        let bound = match bounds.remove(&(method.clone(), pattern.clone())) {
            Some(bound) => bound,
            None if !is_let_in => refused,
            None => Cost::default(),
        };
        if !cost.is_within(bound) {
            let Cost { memory_kib, work_kib } = cost;
            wrong.push(format!("{method} {pattern} {memory_kib} {work_kib}"));
        }
    }
    wrong.extend(bounds.into_keys().map(|(method, pattern)| format!("no {method} {pattern}")));
    assert!(wrong.is_empty(), "memory and work in KiB beyond the bill:\n{}", wrong.join("\n"));
    // Nothing else may be counted meanwhile, so it is part of this test.
    waiting::check(&direct, ROOT).await;
    waiting::check_gathered(&direct, ROOT).await;
    waiting::check_scrape(&direct).await;
}

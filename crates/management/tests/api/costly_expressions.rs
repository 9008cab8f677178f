//! Regular expressions that take long for each name.

use crate::support::Broker;
use courser_broker::admin::{Admin, NewQueue};

/// Takes some milliseconds for each long name.
pub const COSTLY: &str = "(?:%5Bab%5D{0,60}a){0,30}%5Bab%5D{0,60}z";
const TOO_LONG: &str = "the regular expression takes too long to be looked for in all names";

/// Declares queues whose names have 250 bytes, none like another, and one `alpha`.
pub fn declare_long_names(admin: &Admin) {
    let declare = |name: &str| {
        admin.declare_queue("/", name, NewQueue::default()).expect("a queue");
    };
    let mut state: u64 = 1;
    for nth in 0..1000 {
        let mut name = format!("{nth:05}");
        while name.len() < 250 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            name.push(if state >> 63 == 0 { 'a' } else { 'b' });
        }
        declare(&name);
    }
    declare("alpha");
}

#[tokio::test]
async fn an_expression_that_takes_long_for_each_name_is_given_up() {
    let broker = Broker::start().await;
    declare_long_names(&broker.admin());
    for order in ["", "&sort=name", "&sort=consumer_details"] {
        let path = format!("/api/queues?page=1&use_regex=true&name={COSTLY}{order}");
        let refused = broker.get(&path).await;
        assert_eq!((refused.status, refused.refusal().1), (400, TOO_LONG.into()), "{order}");
    }
    let path = format!("/metrics/detailed?family=queue_consumer_count&queue={COSTLY}");
    let refused = broker.metrics(&path).await;
    assert_eq!((refused.status, &*refused.body), (400, TOO_LONG.as_bytes()));
    let usual = broker.get("/api/queues?page=1&use_regex=true&name=%5E(alpha%7C%5Bab%5D*q)").await;
    let usual = usual.json();
    assert_eq!((&usual["items"][0]["name"], &usual["item_count"]), (&"alpha".into(), &1.into()));
}

/// While no thread is free to make pages, none of the threads that serve connections does.
#[test]
fn an_expression_for_metrics_is_compiled_where_pages_are_made() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(8)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let broker = Broker::start().await;
        let (held, until) = std::sync::mpsc::channel::<()>();
        let until = std::sync::Arc::new(std::sync::Mutex::new(until));
        for _ in 0..16 {
            let until = std::sync::Arc::clone(&until);
            tokio::task::spawn_blocking(move || drop(until.lock().map(|until| until.recv())));
        }
        let asked =
            tokio::spawn(async move { broker.metrics("/metrics/detailed?queue=%28").await });
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert!(!asked.is_finished(), "it was compiled by a thread that serves connections");
        drop(held);
        assert_eq!(asked.await.expect("no panic").status, 400);
    });
}

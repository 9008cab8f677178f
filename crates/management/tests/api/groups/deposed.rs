//! A node that led home, and does not know yet that another one does.

use super::support::World;
use courser_broker::{Broker, Limits, PolicyKind};
use courser_journal::testing::WatchedStore;
use courser_management::HOME;
use courser_store::{MemoryGauge, MemoryStore, Store};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The broker of a group, and what it keeps its definitions in.
pub fn broker(group: u16) -> (Arc<Broker>, Arc<WatchedStore>) {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::clone(&gauge)))));
    let kept = Arc::clone(&store) as Arc<dyn Store>;
    (Broker::of_group(group, kept, gauge, Limits::default(), 7), store)
}

/// Method, path and body of changes in a vhost of another group.
fn changes() -> [(&'static str, &'static str, String); 4] {
    let policy = json!({ "pattern": "q", "definition": { "max-length": 1 } });
    let queue = json!({ "name": "imported", "vhost": "b", "durable": true });
    [
        ("PUT", "/api/queues/b/q", "{}".to_owned()),
        ("PUT", "/api/policies/b/p", policy.to_string()),
        ("POST", "/api/definitions", json!({ "queues": [queue] }).to_string()),
        ("DELETE", "/api/queues/b/there", String::new()),
    ]
}

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// A cluster with a queue in the vhost, whose home has to prove that it leads.
async fn contested() -> World {
    let world = World::start().await;
    assert_ne!(world.group_of("b"), Some(HOME));
    assert_eq!(world.home("PUT", "/api/queues/b/there", "{}").await.status, 201);
    world.home_store.contest();
    world
}

/// The queues in the vhost, and how many policies there are.
fn found(world: &World) -> (Vec<String>, usize) {
    let group = world.admin_of(world.group_of("b").expect("it is there"));
    let queues = group.queues(Some("b")).expect("it is there");
    let policies = group.policies("b", PolicyKind::User).expect("it is there");
    (queues.iter().map(|queue| queue.name.to_string()).collect(), policies.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_lead_home_any_more_passes_no_change_on() {
    let world = contested().await;
    world.home_store.depose();
    for (method, path, body) in changes() {
        let answer = world.call(&world.home, method, path, "guest", &JSON, &body).await;
        assert_eq!(answer.status, 503, "{method} {path}: {answer:?}");
        assert_eq!(found(&world), (vec!["there".to_owned()], 0), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_passed_on_when_it_is_proven_that_home_is_led_here_and_not_before() {
    let world = contested().await;
    for (method, path, body) in changes() {
        let before = found(&world);
        let asked_for = async {
            while !world.home_store.awaits_proof().0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let mut asking = Box::pin(world.call(&world.home, method, path, "guest", &JSON, &body));
        tokio::select! {
            answer = &mut asking => panic!("{method} {path}: {answer:?}"),
            () = asked_for => {}
        }
        assert_eq!(found(&world), before, "{method} {path}");
        let proving = async {
            loop {
                world.home_store.prove();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let answer = tokio::select! {
            answer = asking => answer,
            () = proving => unreachable!("it goes on"),
        };
        assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
        assert_ne!(found(&world), before, "{method} {path}");
    }
}

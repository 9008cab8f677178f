//! Answers of a broker whose log another machine may lead: they wait until it is proven that none does.

use crate::direct::{Asked, Direct};
use crate::support::Answer;
use courser_journal::testing::WatchedStore;
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use std::time::Duration;

/// Longer than such an answer takes.
const A_WHILE: Duration = Duration::from_millis(100);

async fn world() -> (Arc<WatchedStore>, Direct) {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::clone(&gauge)))));
    let direct = Direct::on(Arc::clone(&store) as _, gauge);
    direct.add_user("root", "administrator");
    let made = direct.ask(Asked::new("PUT", "/api/vhosts/there").by("root")).await;
    assert_eq!(made.status, 201);
    store.contest();
    (store, direct)
}

/// The answer when the lead is proven again and again.
async fn proven(store: &WatchedStore, direct: &Direct, asked: Asked<'_>) -> Answer {
    let proving = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            store.prove();
        }
    };
    tokio::select! {
        answer = direct.ask(asked) => answer,
        () = proving => unreachable!("it goes on"),
    }
}

const QUESTIONS: [(&str, &str, u16); 8] = [
    ("GET", "/api/vhosts/there", 200),
    ("GET", "/api/vhosts/gone", 404),
    ("GET", "/api/users", 200),
    ("GET", "/api/definitions", 200),
    ("DELETE", "/api/vhosts/gone", 404),
    // It is there, and nothing of it changes.
    ("PUT", "/api/vhosts/there", 204),
    ("GET", "/api/queues", 200),
    // Of a message without properties.
    ("POST", "/api/exchanges/%2F/amq.direct/route", 200),
];

#[tokio::test]
async fn what_is_read_is_told_when_it_is_proven_and_not_before() {
    let (store, direct) = world().await;
    for (method, path, status) in QUESTIONS {
        let asked = || Asked::new(method, path).by("root");
        let answer = tokio::time::timeout(A_WHILE, direct.ask(asked())).await;
        assert!(answer.is_err(), "{method} {path}: {answer:?}");
        assert_eq!(proven(&store, &direct, asked()).await.status, status, "{method} {path}");
    }
    let unknown = || Asked::new("GET", "/api/overview").by("stranger");
    let answer = tokio::time::timeout(A_WHILE, direct.ask(unknown())).await;
    assert!(answer.is_err(), "a user may have been made: {answer:?}");
    assert_eq!(proven(&store, &direct, unknown()).await.status, 401);
    let overview = direct.ask(Asked::new("GET", "/api/overview").by("root")).await;
    assert_eq!(overview.status, 200, "how a node does is its own");
}

#[tokio::test]
async fn nothing_is_told_where_another_machine_leads() {
    let (store, direct) = world().await;
    store.depose();
    for (method, path, _) in QUESTIONS {
        let answer = direct.ask(Asked::new(method, path).by("root")).await;
        assert_eq!(answer.status, 503, "{method} {path}");
    }
}

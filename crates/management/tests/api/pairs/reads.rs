//! Questions beside a change that waits for the log: each is answered, from what there was before or what comes.

use super::{OF_NOTHING, OF_USER, OF_VHOST, World, Write};
use crate::direct::Asked;
use courser_auth::Permission;
use std::time::Duration;

/// To what is in the vhost `v`.
const OF_NAMES: &[Write] = &[
    ("PUT", "/api/queues/v/new", r#"{"durable":true}"#),
    ("PUT", "/api/queues/v/q/pause", ""),
    ("DELETE", "/api/queues/v/q", ""),
    ("PUT", "/api/exchanges/v/new", r#"{"type":"topic","durable":true}"#),
    ("DELETE", "/api/exchanges/v/e", ""),
    ("POST", "/api/bindings/v/e/e/q/q", r#"{"routing_key":"other"}"#),
    ("DELETE", "/api/bindings/v/e/e/q/q/key", ""),
    ("PUT", "/api/operator-policies/v/p", r#"{"pattern":"a","definition":{"max-length":1}}"#),
    ("PUT", "/api/vhosts/v", r#"{"default_queue_type":"quorum"}"#),
];
/// Changes something itself.
const CHANGES: &str = "/api/aliveness-test/{vhost}";

/// The paths that can be asked for, with the names of what [`world`] has.
pub(super) async fn questions(world: &World) -> Vec<String> {
    let asked = Asked::new("GET", "/api/openapi.json");
    let document = world.direct.ask(asked).await.json();
    let paths = document["paths"].as_object().expect("paths").iter();
    let asked = paths.filter(|(path, of)| of.get("get").is_some() && *path != CHANGES);
    let named = asked.map(|(path, _)| {
        let parts = path.split('/').map(|part| match part {
            "{vhost}" => "v",
            "{user}" => "u",
            "{queue}" | "{destination}" => "q",
            "{exchange}" => "e",
            "{name}" => "p",
            "{props}" => "key",
            "{component}" => "federation-upstream-set",
            named if named.starts_with('{') => "1",
            literal => literal,
        });
        parts.collect::<Vec<_>>().join("/")
    });
    // What goes on for ever is asked for none of it.
    let goes_on = |path: &str| path == "/api/events" || path == "/api/log/stream";
    named.map(|path| if goes_on(&path) { path + "?seconds=0" } else { path }).collect()
}

pub(super) async fn world() -> World {
    let world = World::new();
    world.direct.broker.admin().set_permission("root", "v", Permission::all()).expect("let in");
    for (method, path, body) in [
        ("PUT", "/api/queues/v/q", r#"{"durable":true}"#),
        ("PUT", "/api/exchanges/v/e", r#"{"type":"direct","durable":true}"#),
        ("POST", "/api/bindings/v/e/e/q/q", r#"{"routing_key":"key"}"#),
        ("PUT", "/api/policies/v/p", r#"{"pattern":"q","definition":{"max-length":9}}"#),
    ] {
        let status = world.send((method, path, body)).await.expect("a status");
        assert!(status < 300, "{method} {path}: {status}");
    }
    world
}

// One thread: a question that waits on it for the log holds up all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn all_questions_are_answered_while_a_change_waits_for_the_log() {
    let questions = questions(&World::new()).await;
    let (mut waited, mut asked, mut answered) = (Vec::new(), 0, 0);
    for write in [OF_USER, OF_VHOST, OF_NOTHING, OF_NAMES].concat() {
        let world = world().await;
        world.store.hold(true);
        let writing = world.send(write);
        while !writing.is_finished() && !world.store.is_waited_for() {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        for path in &questions {
            asked += 1;
            // Each may take as long as a change is held up at most.
            world.store.hold(true);
            let status = world.direct.ask(Asked::new("GET", path).by("root")).await.status;
            answered += usize::from(status == 200);
            if world.store.was_let_go() {
                waited.push(format!("{path} waits for {write:?}"));
                break;
            }
        }
        world.store.hold(false);
        writing.await.expect("a status");
    }
    assert!(waited.is_empty(), "{waited:#?}");
    // The others ask for what this node has not.
    assert!(answered > asked * 2 / 3, "{answered} of {asked}");
}

//! Groups that have not adopted yet what home has, or have adopted more than home had when it passed a request on.

use super::support::World;
use crate::support::exchange_over;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;

const GROUP: u16 = 1;

#[tokio::test]
async fn a_vhost_that_its_group_does_not_know_yet_is_on_its_way() {
    let world = World::start().await;
    world.known.lags.store(1, Ordering::Relaxed);
    assert_eq!(world.home("PUT", "/api/vhosts/new", r#"{"group":1}"#).await.status, 201);
    for (method, path) in [
        ("PUT", "/api/queues/new/q"),
        ("GET", "/api/queues/new/q"),
        ("GET", "/api/queues/new"),
        ("GET", "/api/exchanges/new/amq.direct"),
        ("PUT", "/api/policies/new/p"),
    ] {
        let answer = world.home(method, path, r#"{"pattern":"q","definition":{"max-length":1}}"#);
        let answer = answer.await;
        assert_eq!(answer.status, 503, "{method} {path}: {answer:?}");
        let said = answer.json()["reason"].to_string();
        assert!(said.contains("vhost 'new' is on its way to group 1"), "{method} {path}: {said}");
    }
    // The copy is made when this returns.
    drop(courser_management::Groups::changed(&*world.known));
    assert_eq!(world.home("PUT", "/api/queues/new/q", "{}").await.status, 201);
    assert_eq!(world.home("GET", "/api/queues/new/q", "").await.status, 200);
    assert_eq!(world.home("GET", "/api/queues/new/other", "").await.status, 404);
}

/// What the group answers to a request that home has passed on for an administrator, as its definitions of this version had it.
async fn asked(world: &World, user: &str, version: u64) -> u16 {
    let inside = json!({
        "group": GROUP, "rows": false, "from": "127.0.0.1:1",
        "user": user, "tags": ["administrator"], "version": version, "standing": "Kept",
    });
    let request = format!(
        "GET /api/connections HTTP/1.1\r\nhost: inside\r\nconnection: close\r\nx-courser-inside: {}\r\n\r\n",
        URL_SAFE_NO_PAD.encode(inside.to_string())
    );
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let stop = watch::Sender::new(false);
    let api = Arc::clone(&world.apis()[usize::from(GROUP)]);
    tokio::spawn(api.serve_inside(theirs, stop.subscribe()));
    exchange_over(ours, request.into_bytes(), false).await.status
}

#[tokio::test]
async fn a_request_that_comes_late_is_not_of_a_user_who_has_been_deleted() {
    let world = World::start().await;
    let made =
        world.home("PUT", "/api/users/late", r#"{"password":"late","tags":"administrator"}"#);
    assert_eq!(made.await.status, 201);
    let known = world.admin_of(GROUP).adopted_version().0;
    assert_eq!(asked(&world, "late", known).await, 200);
    assert_eq!(world.home("DELETE", "/api/users/late", "").await.status, 204);
    assert!(world.admin_of(GROUP).adopted_version().0 > known);
    assert_eq!(asked(&world, "late", known).await, 401);
    // Of one who was made at home later the group does not know yet.
    let later = world.admin_of(GROUP).adopted_version().0 + 1;
    assert_eq!(asked(&world, "new", later).await, 200);
}

//! Imports whose user loses the right to them meanwhile.

use super::support::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_import_nothing_for_who_is_deleted_meanwhile() {
    let world = World::start().await;
    *world.known.meanwhile.lock() = Some(|admin| admin.delete_user("guest").expect("it is there"));
    let file = r#"{"vhosts":[{"name":"new"}],"queues":[{"name":"q","vhost":"a"}]}"#;
    let json = [("content-type", "application/json")];
    let refused = world.call(&world.home, "POST", "/api/definitions", "guest", &json, file).await;
    assert_eq!(refused.status, 401);
    assert!(world.group_of("new").is_some(), "what came before stays");
    assert!(world.admin_of(1).queues(Some("a")).expect("its queues").is_empty());
}

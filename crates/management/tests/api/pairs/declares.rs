//! A declare beside a deletion: nothing is made without the permission for it, even if it was there a moment ago.

use super::{AHEAD, World, Write};
use courser_auth::{PasswordHash, Permission};
use std::time::Duration;

/// A user who may declare anything, and nothing else.
const MAKER: &str = "maker";

const DEAD_LETTERS: &str =
    r#"{"auto_delete":true,"arguments":{"x-dead-letter-exchange":"amq.fanout"}}"#;
const ALTERNATE: &str =
    r#"{"type":"direct","durable":false,"arguments":{"alternate-exchange":"amq.fanout"}}"#;
/// Changes of names wait behind this one while the store is held.
const OTHER: Write = ("PUT", "/api/queues/v/other", r#"{"durable":true}"#);

// One thread: a request that waits on it for what another one writes holds up all others, each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_passes_messages_on_is_not_made_without_the_permission_for_that() {
    for (path, body) in [("/api/queues/v/it", DEAD_LETTERS), ("/api/exchanges/v/it", ALTERNATE)] {
        let world = World::new();
        world.direct.add_user_with(PasswordHash::decode(super::FIRST, None), MAKER, "management");
        let admin = world.direct.broker.admin();
        admin.set_permission("root", "v", Permission::all()).expect("a permission");
        let permission = Permission { configure: ".*".to_owned(), ..Permission::default() };
        admin.set_permission(MAKER, "v", permission).expect("a permission");
        let put = ("PUT", path, body);
        assert_eq!(world.send_by(MAKER, put).await.expect("a status"), 401, "{path} is new");
        assert_eq!(world.send(put).await.expect("a status"), 201);
        assert_eq!(world.send_by(MAKER, put).await.expect("a status"), 204, "{path} is there");
        world.store.hold(true);
        let mut asked = vec![world.send(OTHER)];
        while !asked[0].is_finished() && !world.store.is_waited_for() {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        asked.push(world.send(("DELETE", path, "")));
        tokio::time::sleep(AHEAD * 20).await;
        asked.push(world.send_by(MAKER, put));
        tokio::time::sleep(AHEAD * 20).await;
        world.store.hold(false);
        for answer in asked {
            answer.await.expect("a status");
        }
        let is_there = admin.queue("v", b"it").is_ok() || admin.exchange("v", b"it").is_ok();
        assert!(!is_there, "{path} was deleted");
    }
}

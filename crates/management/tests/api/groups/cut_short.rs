//! Imports whose user loses the right to them meanwhile, and those that a group refuses.

use super::support::World;
use super::told::OF_ROOT_TOKEN;
use crate::policy_turns::until;
use crate::support::PATIENCE;
use courser_auth::{Again, Authority, Origin, PasswordHash, Resource, Right, Tags, User};
use courser_broker::admin::Admin;
use courser_management::HOME;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::task::JoinSet;

/// More than one user has places for.
const IMPORTS: usize = 40;

/// How long the groups take to answer.
const LATE: Duration = Duration::from_secs(5);

async fn import(world: &World, file: &str) -> u16 {
    let json = [("content-type", "application/json")];
    world.call(&world.home, "POST", "/api/definitions", "guest", &json, file).await.status
}

/// Takes the right to import from the user.
fn demote(admin: &Admin) {
    let change = |user: &mut courser_auth::User| {
        user.tags = Tags::parse("management").expect("tags");
        Ok(())
    };
    admin.change_user("guest", change).expect("it is there");
}

/// How many queues a vhost has.
fn queues(world: &World, vhost: &str) -> usize {
    let group = world.group_of(vhost).expect("it is there");
    world.admin_of(group).queues(Some(vhost)).expect("its queues").len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_import_nothing_for_who_is_deleted_meanwhile() {
    let world = World::start().await;
    *world.known.meanwhile.lock() = Some(|admin| admin.delete_user("guest").expect("it is there"));
    let file = r#"{"vhosts":[{"name":"new"}],"queues":[{"name":"q","vhost":"a"}]}"#;
    assert_eq!(import(&world, file).await, 401);
    assert!(world.group_of("new").is_some(), "what came before stays");
    assert_eq!(queues(&world, "a"), 0);
}

#[tokio::test]
async fn who_is_in_the_file_goes_on_importing_as_the_file_has_made_it() {
    let world = World::start().await;
    let file = r#"{"users":[{"name":"guest","password_hash":"","tags":["administrator","other"]}],
                   "queues":[{"name":"q","vhost":"a"}]}"#;
    assert_eq!(import(&world, file).await, 204);
    assert_eq!(queues(&world, "a"), 1);
}

// No time passes but for what waits for the groups.
#[tokio::test(start_paused = true)]
async fn who_loses_the_right_while_an_import_waits_for_its_place_imports_nothing() {
    let world = Arc::new(World::start().await);
    world.known.late_s.store(LATE.as_secs(), Ordering::Relaxed);
    let mut imports = JoinSet::new();
    for nth in 0..IMPORTS {
        let world = Arc::clone(&world);
        let file = format!(r#"{{"queues":[{{"name":"q{nth}","vhost":"a"}}]}}"#);
        imports.spawn(async move { import(&world, &file).await });
    }
    tokio::time::sleep(LATE / 5).await;
    demote(&world.admin_of(HOME));
    let mut done = 0;
    while let Some(status) = imports.join_next().await {
        let status = status.expect("no panic");
        assert!(status == 204 || status == 401, "{status}");
        done += usize::from(status == 204);
    }
    assert!(done > 0 && done < IMPORTS, "{done} had a place");
    assert_eq!(queues(&world, "a"), done);
}

// Likewise.
#[tokio::test(start_paused = true)]
async fn the_part_that_a_group_makes_is_the_last_one_for_who_is_deleted_meanwhile() {
    let world = Arc::new(World::start().await);
    world.known.late_s.store(LATE.as_secs(), Ordering::Relaxed);
    let importing = Arc::clone(&world);
    let importing = tokio::spawn(async move {
        let file = r#"{"queues":[{"name":"q","vhost":"a"},{"name":"q","vhost":"b"}]}"#;
        import(&importing, file).await
    });
    tokio::time::sleep(LATE / 5).await;
    world.admin_of(HOME).delete_user("guest").expect("it is there");
    assert_eq!(importing.await.expect("no panic"), 401);
    assert_eq!([queues(&world, "a"), queues(&world, "b")], [1, 0]);
}

/// Definitions of a new vhost of a group, with a queue in it, and of vhosts that the groups know.
const OF_NEW_VHOST: &str = r#"{
    "vhosts": [{ "name": "new", "group": 1, "default_queue_type": "quorum" }],
    "permissions": [
        { "user": "guest", "vhost": "new", "configure": ".*", "write": ".*", "read": ".*" }
    ],
    "queues": [{ "name": "q", "vhost": "new", "durable": true }, { "name": "q", "vhost": "a" }]
}"#;

// Likewise.
#[tokio::test(start_paused = true)]
async fn an_import_waits_until_groups_know_of_its_vhosts() {
    let world = World::start().await;
    world.known.lags.store(5, Ordering::Relaxed);
    assert_eq!(import(&world, OF_NEW_VHOST).await, 204);
    assert_eq!([queues(&world, "new"), queues(&world, "a")], [1, 1]);
}

// Likewise.
#[tokio::test(start_paused = true)]
async fn an_import_sends_nothing_to_a_group_that_does_not_know_of_its_vhosts() {
    let world = World::start().await;
    world.known.lags.store(usize::MAX, Ordering::Relaxed);
    assert_eq!(import(&world, OF_NEW_VHOST).await, 503);
    assert_eq!(queues(&world, "a"), 0);
    world.known.lags.store(0, Ordering::Relaxed);
    assert_eq!(import(&world, OF_NEW_VHOST).await, 204);
}

#[tokio::test]
async fn an_import_goes_to_the_group_that_a_vhost_has_when_all_groups_know_of_it() {
    let world = World::start().await;
    assert_eq!(world.group_of("a"), Some(1));
    *world.known.meanwhile.lock() = Some(|home| {
        let vhost = home.vhost_handle("a").expect("it is there");
        home.set_vhost_group(&vhost, 2).expect("moved");
    });
    let file = r#"{"queues":[{"name":"q","vhost":"a"}]}"#;
    assert_eq!(import(&world, file).await, 204);
    assert_eq!((world.group_of("a"), queues(&world, "a")), (Some(2), 1));
}

/// An administrator whom the authority lets in a few times more.
pub const OF_FEW: &str = "of-few";
const FEW: usize = 10;

#[derive(Debug)]
pub struct Few {
    user: Arc<User>,
    left: AtomicUsize,
}

impl Few {
    pub fn to_begin_with() -> Arc<dyn Authority> {
        let mut user = User::new(OF_FEW, PasswordHash::none());
        user.origin = Origin::Elsewhere;
        user.tags = Tags::parse("administrator").expect("tags");
        Arc::new(Few { user: Arc::new(user), left: AtomicUsize::new(FEW) })
    }
}

impl Authority for Few {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, _: &str) -> bool {
        true
    }

    fn permits(&self, _: &str, _: Right, _: Resource<'_>) -> bool {
        true
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn again(&self) -> Again {
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() { Again::Same } else { Again::Refused }
    }

    fn passport(&self) -> Option<String> {
        Some(OF_FEW.to_owned())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn home_imports_as_long_as_the_authority_of_who_asked_lets_it_in() {
    const USERS: usize = 5 * FEW;
    let world = World::start().await;
    // More than a second from row to row.
    world.tick_ms.store(2_000, Ordering::Relaxed);
    let name = |nth| format!("new-{nth}");
    let users: Vec<Value> = (0..USERS)
        .map(|nth| json!({ "name": name(nth), "password_hash": "", "tags": [] }))
        .collect();
    let file = json!({ "users": users }).to_string();
    let json = [("content-type", "application/json")];
    let answer = world.call(&world.home, "POST", "/api/definitions", OF_FEW, &json, &file).await;
    let known = world.admin_of(HOME).accounts();
    let made = (0..USERS).filter(|nth| known.user(&name(*nth)).is_some()).count();
    assert_eq!(answer.status, 401, "{made} made: {answer:?}");
    assert!((1..USERS).contains(&made), "{made}");
}

/// Imports that one user has at home at a time.
const AT_HOME: usize = 16;

/// As long as what is returned is there, no change of users gets on at home.
fn hold_accounts(world: &World) -> (Sender<()>, JoinHandle<()>) {
    let (going_on, until) = channel::<()>();
    let (begun, is_at_it) = channel();
    let admin = world.admin_of(HOME);
    let changing = std::thread::spawn(move || {
        let change = |_: &mut User| {
            begun.send(()).expect("it is waited for");
            let _ = until.recv();
            Ok(())
        };
        admin.put_user("changed", &[], change).map(drop).expect("it is changed");
    });
    is_at_it.recv_timeout(PATIENCE).expect("it begins");
    (going_on, changing)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_whose_client_has_gone_keeps_its_place_at_home_until_it_is_done() {
    let world = Arc::new(World::start().await);
    let (going_on, changing) = hold_accounts(&world);
    for nth in 0..IMPORTS {
        let importing = Arc::clone(&world);
        let file =
            json!({ "users": [{ "name": nth.to_string(), "password_hash": "", "tags": [] }] });
        let now_ms = world.told_ms() + 1;
        world.now_ms.store(now_ms, Ordering::Relaxed);
        let importing = tokio::spawn(async move { import(&importing, &file.to_string()).await });
        // Of the others, those that have no place never begin.
        until(|| nth > 0 || world.told_ms() >= now_ms).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        importing.abort();
    }
    drop(going_on);
    changing.join().expect("no panic");
    let all = world.admin_of(HOME);
    let made =
        || (0..IMPORTS).filter(|nth| all.accounts().user(&nth.to_string()).is_some()).count();
    // Those that have begun come to their end, and give their places back.
    until(|| made() > 0).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(made() <= AT_HOME, "{} imports at a time", made());
    assert_eq!(import(&world, "{}").await, 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_waits_for_a_place_at_home_makes_nothing_once_the_authority_refuses() {
    let world = Arc::new(World::start().await);
    let ask = |path: String, method: &'static str, body: String| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let json = [("content-type", "application/json")];
            world.call(&world.home, method, &path, OF_ROOT_TOKEN, &json, &body).await.status
        })
    };
    let (going_on, changing) = hold_accounts(&world);
    let user = r#"{"password_hash":"","tags":[]}"#;
    let mut others = Vec::new();
    for nth in 0..AT_HOME {
        let now_ms = world.told_ms() + 1;
        world.now_ms.store(now_ms, Ordering::Relaxed);
        others.push(ask(format!("/api/users/other-{nth}"), "PUT", user.to_owned()));
        // It has a place.
        until(|| world.told_ms() >= now_ms).await;
    }
    let file = json!({ "users": [{ "name": "new", "password_hash": "", "tags": [] }] });
    let importing = ask("/api/definitions".to_owned(), "POST", file.to_string());
    // It may be about to wait; then it is refused before that.
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.is_out.store(true, Ordering::Relaxed);
    drop(going_on);
    changing.join().expect("no panic");
    assert_eq!(importing.await.expect("no panic"), 401);
    assert!(world.admin_of(HOME).accounts().user("new").is_none());
    for other in others {
        assert_eq!(other.await.expect("no panic"), 201);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn home_notes_that_a_group_has_refused_something_half_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = World::audited(folder.path().join("audit.log")).await;
    let json = [("content-type", "application/json")];
    for _ in 0..100 {
        world.home("DELETE", "/api/queues/b/none", "").await;
    }
    let file = r#"{"exchanges":[{"vhost":"b","name":"x","type":"topic"},{"vhost":"b","name":"y","type":"none"}]}"#;
    for path in ["/api/definitions", "/api/definitions/b"] {
        let refused = world.call(&world.home, "POST", path, "guest", &json, file).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        let lines = world.home("GET", "/api/audit?count=1", "").await.json();
        assert_eq!((&lines[0]["path"], &lines[0]["status"]), (&json!(path), &json!(400)));
    }
}

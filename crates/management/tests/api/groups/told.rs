//! A user of an authority other than the directory.

use super::support::{GROUPS, World};
use courser_auth::{Again, Authority, Origin, PasswordHash, Resource, Right, Tags, User};
use courser_broker::admin::{Admin, PolicyKind};
use courser_management::{Groups, HOME};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};

/// A user whom no directory knows: it may read what is called so in vhost `b`, and make what begins with it.
pub const OF_TOKEN: &str = "of-token";
/// The same, whose token ends at this time.
pub const OF_BRIEF_TOKEN: &str = "of-token-that-ends";
const ENDS_MS: u64 = 1_000_001;
/// The same, who may do everything.
pub const OF_ROOT_TOKEN: &str = "of-token-of-root";

#[derive(Debug)]
pub struct Told {
    user: Arc<User>,
    is_out: Arc<AtomicBool>,
}

impl Told {
    /// Its authority lets it in no more once `is_out` says so.
    pub fn until(name: &str, is_out: &Arc<AtomicBool>) -> Arc<dyn Authority> {
        let mut user = User::new(name, PasswordHash::none());
        user.origin = Origin::Elsewhere;
        let tags = if name == OF_ROOT_TOKEN { "administrator" } else { "management" };
        user.tags = Tags::parse(tags).expect("tags");
        Arc::new(Told { user: Arc::new(user), is_out: Arc::clone(is_out) })
    }
}

impl Authority for Told {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, vhost: &str) -> bool {
        vhost == "b"
    }

    fn permits(&self, vhost: &str, right: Right, resource: Resource<'_>) -> bool {
        let begins = resource.name().starts_with(OF_TOKEN.as_bytes());
        vhost == "b" && begins && right != Right::Write
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn again(&self) -> Again {
        if self.is_out.load(Ordering::Relaxed) { Again::Refused } else { Again::Same }
    }

    fn expires_ms(&self) -> Option<u64> {
        (self.user.name == OF_BRIEF_TOKEN).then_some(ENDS_MS)
    }

    fn passport(&self) -> Option<String> {
        Some(self.user.name.clone())
    }
}

#[tokio::test]
async fn what_waits_in_a_group_ends_with_the_token_of_who_asked() {
    let world = World::start().await;
    world.both("PUT", "/api/queues/b/of-token", "{}").await;
    let path = "/api/queues/b/of-token";
    let asked = async || world.both_as("GET", path, OF_BRIEF_TOKEN, &[], "").await.status;
    assert_eq!(asked().await, 200);
    world.now_ms.store(ENDS_MS, Ordering::Relaxed);
    assert_eq!(asked().await, 401);
}

/// Has the message of a queue moved by a user whom home has changed, and changes while the group is at it, which only then
/// hears of both. Returns the status, and how many messages are left.
async fn moved(before: fn(&Admin), meanwhile: fn(&Admin)) -> (u16, usize) {
    let world = World::start().await;
    let publish = r#"{"properties":{},"routing_key":"q","payload":"","payload_encoding":"string"}"#;
    world.home("PUT", "/api/queues/b/q", "{}").await;
    let published = world.home("POST", "/api/exchanges/b/amq.default/publish", publish).await;
    assert_eq!(published.status, 200, "{published:?}");
    let (known, admin) = (Arc::clone(&world.known), world.admin_of(HOME));
    before(&admin);
    *world.known.at_clock.lock() = Some(Box::new(move || {
        meanwhile(&admin);
        // The copy is made when this returns.
        drop(known.changed());
    }));
    let to = r#"{"to":{"exchange":"amq.fanout"}}"#;
    let done = world.home("POST", "/api/queues/b/q/move", to).await;
    assert!(world.known.at_clock.lock().is_none(), "the group has heard of it");
    let group = world.group_of("b").expect("it is there");
    assert_ne!(group, HOME);
    (done.status, world.admin_of(group).queue("b", b"q").expect("it is there").ready)
}

#[tokio::test]
async fn a_group_goes_on_when_it_learns_of_the_hash_that_a_login_has_replaced() {
    let rehash = |admin: &Admin| {
        let change = |user: &mut User| {
            user.password = PasswordHash::quick(b"guest").expect("a hash");
            Ok(())
        };
        admin.change_user("guest", change).expect("it is there");
    };
    assert_eq!(moved(rehash, |_| {}).await.0, 200);
}

const POLICY: &str = r#"{"pattern":"^q","definition":{"expires":1000}}"#;

/// Puts a policy into vhost `b`. Returns the status.
fn put(world: &Arc<World>, name: &str, user: &'static str) -> JoinHandle<u16> {
    let (world, path) = (Arc::clone(world), format!("/api/policies/b/{name}"));
    tokio::spawn(
        async move { world.call(&world.home, "PUT", &path, user, &[], POLICY).await.status },
    )
}

/// The same, where the group does not get on with it until what is returned is dropped.
async fn put_held(world: &Arc<World>, name: &str) -> (JoinHandle<u16>, mpsc::Sender<()>) {
    let ((begun, begins), (leave, left)) = (mpsc::channel(), mpsc::channel::<()>());
    let at_clock = Arc::clone(&world.known.at_clock);
    // The first look at the clock lets it in; it has its turn at the second one.
    *world.known.at_clock.lock() = Some(Box::new(move || {
        *at_clock.lock() = Some(Box::new(move || {
            begun.send(()).expect("the test listens");
            _ = left.recv();
        }));
    }));
    let putting = put(world, name, "guest");
    let coming = tokio::task::spawn_blocking(move || begins.recv_timeout(Duration::from_secs(60)));
    coming.await.expect("no panic").expect("it has its turn");
    (putting, leave)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_policies_in_a_group_is_not_made_if_its_user_is_let_in_no_more_at_its_turn() {
    let world = Arc::new(World::start().await);
    let (first, leave) = put_held(&world, "first").await;
    let second = put(&world, "second", OF_ROOT_TOKEN);
    // Long enough to be let in, and to wait.
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.is_out.store(true, Ordering::Relaxed);
    drop(leave);
    assert_eq!(first.await.expect("no panic"), 201);
    assert_eq!(second.await.expect("no panic"), 401);
    assert_eq!(put(&world, "third", "guest").await.expect("no panic"), 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_policies_goes_to_the_group_that_its_vhost_is_in_at_its_turn() {
    for at_home in [false, true] {
        let world = Arc::new(World::start().await);
        let (first, leave) = put_held(&world, "first").await;
        let second = put(&world, "second", OF_ROOT_TOKEN);
        // Long enough to be let in, and to wait.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = world.group_of("b").expect("it is there");
        let to = (1..GROUPS).find(|group| *group != before && !at_home).unwrap_or(HOME);
        let admin = world.admin_of(HOME);
        let vhost = admin.vhost_handle("b").expect("it is there");
        admin.set_vhost_group(&vhost, to).expect("it is moved");
        drop(world.known.changed());
        drop(leave);
        first.await.expect("no panic");
        assert_eq!(second.await.expect("no panic"), 201, "to {to}");
        let policies = world.admin_of(to).policies("b", PolicyKind::User).expect("it is there");
        assert!(policies.iter().any(|policy| policy.name == "second"), "{policies:?}");
    }
}

#[tokio::test]
async fn a_group_goes_on_no_more_when_the_user_is_gone() {
    let delete = |admin: &Admin| admin.delete_user("guest").expect("it is there");
    assert_eq!(moved(|_| {}, delete).await, (401, 1));
}

/// A user whom a program knows that says nothing more once the user is logged in, until it is told to.
pub const OF_SILENT: &str = "of-silent";

/// A list that has had to wait for so long waits for the program.
const LIMIT: Duration = Duration::from_secs(60);

/// How often the user has logged in, and whether the program is silent.
static SILENT: (Mutex<(usize, bool)>, Condvar) = (Mutex::new((0, true)), Condvar::new());

#[derive(Debug)]
pub struct Silent(Arc<User>);

impl Silent {
    pub fn at_all() -> Arc<dyn Authority> {
        let mut user = User::new(OF_SILENT, PasswordHash::none());
        user.origin = Origin::Elsewhere;
        user.tags = Tags::parse("management").expect("tags");
        SILENT.0.lock().0 += 1;
        Arc::new(Silent(Arc::new(user)))
    }

    fn logins() -> usize {
        SILENT.0.lock().0
    }

    fn end() {
        SILENT.0.lock().1 = false;
        SILENT.1.notify_all();
    }

    fn wait() {
        SILENT.1.wait_while(&mut SILENT.0.lock(), |(_, is_silent)| *is_silent);
    }
}

impl Authority for Silent {
    fn user(&self) -> &Arc<User> {
        &self.0
    }

    fn permits_vhost(&self, _: &str) -> bool {
        Silent::wait();
        true
    }

    fn permits(&self, _: &str, _: Right, _: Resource<'_>) -> bool {
        true
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn passport(&self) -> Option<String> {
        Some(OF_SILENT.to_owned())
    }
}

/// Lets others go on until something is so, which is waited for by the machine's clock: the test's may stand still.
async fn yield_until(is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < 2 * LIMIT, "in vain");
        tokio::task::yield_now().await;
    }
}

// No time passes while the program is asked.
#[tokio::test(start_paused = true)]
async fn lists_of_users_whose_program_is_silent_hold_up_no_list_of_others() {
    const LISTS: usize = 60;
    let world = Arc::new(World::start().await);
    let mut lists = JoinSet::new();
    for _ in 0..LISTS {
        let world = Arc::clone(&world);
        lists.spawn(async move {
            world.call(&world.home, "GET", "/api/queues", OF_SILENT, &[], "").await.status
        });
    }
    yield_until(|| Silent::logins() >= LISTS).await;
    std::thread::spawn(|| {
        std::thread::sleep(LIMIT);
        Silent::end();
    });
    assert_eq!(world.home("GET", "/api/queues", "").await.status, 200);
    assert!(lists.try_join_next().is_none(), "it was answered before any of those that wait");
    Silent::end();
    while let Some(status) = lists.join_next().await {
        let status = status.expect("no panic");
        assert!(status == 200 || status == 503, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_deleted_while_its_request_waits_is_told_nothing_of_any_group() {
    let administrator = r#"{"password":"low","tags":"administrator"}"#;
    for path in ["/api/queues", "/api/definitions", "/api/overview"] {
        let world = World::start().await;
        world.home("PUT", "/api/users/low", administrator).await;
        let changing = Arc::clone(&world.known.changes).write_owned().await;
        let asked = world.call(&world.home, "GET", path, "low", &[], "");
        let deleted = async {
            // The request has a share in what it waits for, as the world and the guard have.
            yield_until(|| Arc::strong_count(&world.known.changes) >= 3).await;
            world.home("DELETE", "/api/users/low", "").await;
            drop(changing);
        };
        let (answer, ()) = tokio::join!(asked, deleted);
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
    }
}

//! Changes of policies, which may take long, keep no others waiting.

use crate::direct::{Asked, Direct, HERE, OF_TOKEN, TOKEN_MS, head};
use crate::support::{PATIENCE, exchange_over};
use courser_auth::{
    Again, Authority, Origin, PasswordHash, Permission, Resource, Right, Tags, User,
};
use courser_broker::admin::{Policy, PolicyKind};
use courser_journal::testing::WatchedStore;
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinSet;

/// Requests of one user that are answered at the same time.
pub const OF_USER: usize = 16;

/// Users who make policies.
pub fn add_makers(direct: &Direct, makers: &[&str]) {
    for maker in makers {
        direct.add_user(maker, "policymaker");
        direct.broker.admin().set_permission(maker, "/", Permission::all()).expect("let in");
    }
}

pub async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("it becomes so");
}

/// Sends a request, and waits for nothing.
pub async fn send(direct: &Direct, asked: Asked<'_>) -> DuplexStream {
    let mut stream = direct.connect(HERE);
    let request = head(&asked, asked.body.len()) + asked.body;
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    stream
}

/// A broker whose log does not take the next change until what is returned is dropped, and says when it comes.
fn held() -> (Direct, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::clone(&gauge)))));
    let direct = Direct::on(Arc::clone(&store) as _, gauge);
    // Later ones would wait too.
    add_makers(&direct, &["maker", "other"]);
    let others = [("stranger", "policymaker"), ("clerk", "management"), ("root", "administrator")];
    for (user, tag) in others {
        direct.add_user(user, tag);
    }
    let ((begun, begins), (leave, left)) = (mpsc::channel(), mpsc::channel());
    store.before_next_append(move || {
        begun.send(()).expect("the test listens");
        _ = left.recv();
    });
    (direct, begins, leave)
}

/// Waits on a thread that may be blocked.
async fn comes(begins: mpsc::Receiver<()>) {
    let coming = tokio::task::spawn_blocking(move || begins.recv_timeout(PATIENCE));
    coming.await.expect("no panic").expect("it comes");
}

const POLICY: &str = r#"{"pattern":"^q","definition":{"expires":1000}}"#;

fn put<'a>(path: &'a str, user: &'a str) -> Asked<'a> {
    Asked { body: POLICY, ..Asked::new("PUT", path).by(user) }
}

fn policies(direct: &Direct) -> Vec<Policy> {
    direct.broker.admin().policies("/", PolicyKind::User).expect("the vhost")
}

fn names(direct: &Direct) -> Vec<String> {
    policies(direct).into_iter().map(|policy| policy.name).collect()
}

/// Lets what has been sent come as far as it can: what is sent behind it has been answered many times.
async fn settle(direct: &Direct, user: &str) {
    for _ in 0..20 {
        let whoami = direct.ask(Asked::new("GET", "/api/whoami").by(user)).await;
        assert_eq!(whoami.status, 200);
    }
}

pub async fn status(mut stream: DuplexStream) -> u16 {
    let answering = exchange_over(&mut stream, Vec::new(), false);
    tokio::time::timeout(PATIENCE, answering).await.expect("an answer").status
}

#[tokio::test]
async fn changes_of_policies_that_wait_for_another_one_take_no_places() {
    let (direct, begins, leave) = held();
    let first = send(&direct, put("/api/policies/%2F/first", "maker")).await;
    comes(begins).await;
    let mut waiting = Vec::new();
    for nth in 0..OF_USER {
        waiting.push(send(&direct, put(&format!("/api/policies/%2F/{nth}"), "maker")).await);
    }
    let clear = Asked::new("DELETE", "/api/policies/%2F/first").by("maker");
    waiting.push(send(&direct, clear).await);
    // Long enough that all have come.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let whoami = direct.ask(Asked::new("GET", "/api/whoami").by("maker")).await;
        assert_eq!(whoami.status, 200);
    }
    drop(leave);
    for mut stream in [first].into_iter().chain(waiting) {
        let answer = exchange_over(&mut stream, Vec::new(), false).await;
        assert!(matches!(answer.status, 201 | 204), "{answer:?}");
    }
    assert_eq!(names(&direct).len(), OF_USER);
}

#[tokio::test]
async fn a_change_of_policies_that_waited_is_not_made_if_its_user_may_not_make_it_by_then() {
    let (direct, begins, leave) = held();
    let _first = send(&direct, put("/api/policies/%2F/first", "maker")).await;
    comes(begins).await;
    let (let_in, is_let_in) = tokio::sync::oneshot::channel();
    let second = direct.ask_slowly(put("/api/policies/%2F/second", OF_TOKEN), || {
        let_in.send(()).expect("the test listens");
    });
    let meanwhile = async {
        is_let_in.await.expect("it is let in");
        tokio::time::sleep(Duration::from_millis(200)).await;
        direct.now_ms.fetch_add(2 * TOKEN_MS, Ordering::Relaxed);
        drop(leave);
    };
    let (second, ()) = tokio::join!(second, meanwhile);
    assert_eq!(second.status, 401, "its token is at its end: {second:?}");
    assert_eq!(direct.ask(put("/api/policies/%2F/third", "maker")).await.status, 201);
    assert_eq!(names(&direct), ["first", "third"]);
}

#[tokio::test]
async fn who_may_change_no_policies_of_a_vhost_waits_for_none_there() {
    let (direct, begins, leave) = held();
    let first = send(&direct, put("/api/policies/%2F/first", "maker")).await;
    comes(begins).await;
    for user in ["stranger", "clerk"] {
        let refused = direct.ask(put("/api/policies/%2F/second", user)).await;
        assert_eq!(refused.status, 401, "{user}: {refused:?}");
    }
    let refused = direct.ask(put("/api/operator-policies/%2F/second", "maker")).await;
    assert_eq!(refused.status, 401, "{refused:?}");
    drop(leave);
    assert_eq!(status(first).await, 201);
    assert_eq!(names(&direct), ["first"]);
}

#[tokio::test]
async fn changes_of_one_user_that_wait_are_not_all_in_front_of_those_of_others() {
    let (direct, begins, leave) = held();
    let mut waiting = vec![send(&direct, put("/api/policies/%2F/first", "maker")).await];
    comes(begins).await;
    for nth in 1..=3 {
        let policy = format!(r#"{{"pattern":"^{nth}","definition":{{"expires":1000}}}}"#);
        let asked = put("/api/policies/%2F/second", "maker");
        waiting.push(send(&direct, Asked { body: &policy, ..asked }).await);
        settle(&direct, "clerk").await;
    }
    waiting.push(send(&direct, put("/api/policies/%2F/second", "other")).await);
    settle(&direct, "clerk").await;
    drop(leave);
    for stream in waiting {
        let status = status(stream).await;
        assert!(matches!(status, 201 | 204), "{status}");
    }
    let second = policies(&direct).remove(1);
    assert_eq!(second.pattern, "^3", "the other user's was the last");
}

#[tokio::test]
async fn a_change_of_policies_that_waits_for_a_place_keeps_no_others_from_theirs() {
    let direct = Direct::new();
    add_makers(&direct, &["maker", "other"]);
    // As long as this is so, requests have a place, and wait on their thread.
    let is_shut = Arc::new(AtomicBool::new(true));
    let ((begun, begins), (leave, left)) = (mpsc::channel(), mpsc::channel::<()>());
    let (tests_thread, left) = (std::thread::current().id(), Mutex::new(left));
    let (is_shut_now, now_ms) = (Arc::clone(&is_shut), Arc::clone(&direct.now_ms));
    let clock = move || {
        if std::thread::current().id() != tests_thread && is_shut_now.load(Ordering::Relaxed) {
            _ = begun.send(());
            _ = left.lock().map(|left| left.recv());
        }
        now_ms.load(Ordering::Relaxed)
    };
    assert!(direct.clock.set(Box::new(clock)).is_ok());
    let mut answering = Vec::new();
    for _ in 0..OF_USER {
        answering.push(send(&direct, Asked::new("GET", "/api/whoami").by("maker")).await);
    }
    let all_begin = move || (0..OF_USER).all(|_| begins.recv_timeout(PATIENCE).is_ok());
    assert!(tokio::task::spawn_blocking(all_begin).await.expect("no panic"));
    is_shut.store(false, Ordering::Relaxed);
    let waiting = send(&direct, put("/api/policies/%2F/first", "maker")).await;
    settle(&direct, "other").await;
    assert_eq!(direct.ask(put("/api/policies/%2F/second", "other")).await.status, 201);
    assert_eq!(names(&direct), ["second"]);
    drop(leave);
    for stream in answering {
        assert_eq!(status(stream).await, 200);
    }
    assert_eq!(status(waiting).await, 201);
}

#[tokio::test]
async fn changes_of_policies_that_wait_leave_room_to_bodies_of_other_requests() {
    let (direct, begins, leave) = held();
    let first = send(&direct, put("/api/policies/%2F/first", "maker")).await;
    comes(begins).await;
    let direct = Arc::new(direct);
    let mut waiting = JoinSet::new();
    // All the room that two users have, which is all that there is, in bodies as large as others may be.
    for (user, bytes) in ["maker", "other"]
        .into_iter()
        .flat_map(|user| [9_900_000, 9_900_000, 9_900_000, 3_850_000].map(|bytes| (user, bytes)))
    {
        let direct = Arc::clone(&direct);
        waiting.spawn(async move {
            let policy = POLICY.to_owned() + &" ".repeat(bytes - POLICY.len());
            let asked = put("/api/policies/%2F/large", user);
            direct.ask(Asked { body: &policy, ..asked }).await.status
        });
    }
    settle(&direct, "clerk").await;
    let question = format!("{{{}}}", " ".repeat(100_000));
    let asked = Asked::new("POST", "/api/exchanges/%2F/amq.direct/route").by("root");
    let answer = direct.ask(Asked { body: &question, ..asked }).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    while let Some(refused) = waiting.join_next().await {
        assert_eq!(refused.expect("no panic"), 400, "no policy needs that");
    }
    drop(leave);
    assert_eq!(status(first).await, 201);
}

/// A policymaker whom another program knows, which answers when it is let go on.
#[derive(Debug)]
struct Asks {
    user: Arc<User>,
    asked: AtomicUsize,
    left: Mutex<mpsc::Receiver<()>>,
    /// What it answers about a vhost.
    permits: bool,
    /// Whether it would not let the user in any more.
    is_out: AtomicBool,
}

const OF_ASKS: &str = "asks";

impl Asks {
    /// One that answers when what is returned is dropped.
    fn known_to(direct: &Direct, permits: bool) -> (Arc<Self>, mpsc::Sender<()>) {
        let (leave, left) = mpsc::channel();
        let mut user = User::new(OF_ASKS, PasswordHash::none());
        user.origin = Origin::Elsewhere;
        user.tags = Tags::parse("policymaker").expect("tags");
        let (user, asked, left) = (Arc::new(user), AtomicUsize::new(0), Mutex::new(left));
        let asks = Arc::new(Asks { user, asked, left, permits, is_out: AtomicBool::new(false) });
        direct.known_elsewhere.set(Arc::clone(&asks) as _).expect("set once");
        (asks, leave)
    }

    async fn is_asked(&self) {
        until(|| self.asked.load(Ordering::Relaxed) > 0).await;
    }
}

impl Authority for Asks {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, _: &str) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        _ = self.left.lock().map(|left| left.recv());
        self.permits
    }

    fn permits(&self, _: &str, _: Right, _: Resource<'_>) -> bool {
        false
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn again(&self) -> Again {
        match self.is_out.load(Ordering::Relaxed) {
            true => Again::Refused,
            false => Again::Same,
        }
    }
}

#[tokio::test]
async fn while_another_program_is_asked_who_may_change_policies_others_change_theirs() {
    let direct = Direct::new();
    add_makers(&direct, &["maker"]);
    let (asks, leave) = Asks::known_to(&direct, false);
    let refused = send(&direct, put("/api/policies/%2F/first", OF_ASKS)).await;
    asks.is_asked().await;
    assert_eq!(direct.ask(put("/api/policies/%2F/second", "maker")).await.status, 201);
    drop(leave);
    assert_eq!(status(refused).await, 401);
    assert_eq!(names(&direct), ["second"]);
}

#[tokio::test]
async fn who_is_let_in_by_another_program_no_more_changes_no_policies_when_its_turn_comes() {
    let (direct, begins, leave) = held();
    let (asks, _) = Asks::known_to(&direct, true);
    let first = send(&direct, put("/api/policies/%2F/first", "maker")).await;
    comes(begins).await;
    let second = send(&direct, put("/api/policies/%2F/second", OF_ASKS)).await;
    asks.is_asked().await;
    asks.is_out.store(true, Ordering::Relaxed);
    drop(leave);
    assert_eq!(status(first).await, 201);
    assert_eq!(status(second).await, 401);
    assert_eq!(names(&direct), ["first"]);
}

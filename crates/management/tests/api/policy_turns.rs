//! Policies with patterns that take long: neither a look at what they would change nor setting them keeps others waiting.

use crate::direct::{Asked, Direct, HERE, OF_TOKEN, TOKEN_MS, head};
use crate::support::exchange_over;
use courser_auth::{Authority, Origin, PasswordHash, Permission, Resource, Right, Tags, User};
use courser_broker::admin::{NewQueue, Policy, PolicyKind};
use courser_journal::testing::WatchedStore;
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

const PREVIEW: &str = "/api/policy-preview/%2F";
/// Requests of one user that are answered at the same time.
const OF_USER: usize = 16;
/// Previews of one user that have begun.
const PREVIEWS_OF_USER: usize = 32;

/// Users who make policies.
fn add_makers(direct: &Direct, makers: &[&str]) {
    for maker in makers {
        direct.add_user(maker, "policymaker");
        direct.broker.admin().set_permission(maker, "/", Permission::all()).expect("let in");
    }
}

/// A policy whose pattern takes some milliseconds for each of the names in [`with_long_names`].
fn costly() -> String {
    let pattern = "^[0-9]{4}(?:a*b?){600}[^a-z]";
    format!(r#"{{"pattern":"{pattern}","definition":{{"expires":1000}}}}"#)
}

fn long_name(nth: usize) -> String {
    format!("{nth:04}{}", "ab".repeat(123))
}

/// A broker with queues whose names have 250 bytes.
fn with_long_names() -> Direct {
    let direct = Direct::new();
    for nth in 0..2000 {
        let queue = NewQueue { durable: false, ..NewQueue::default() };
        direct.broker.admin().declare_queue("/", &long_name(nth), queue).expect("a queue");
    }
    direct
}

async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("it becomes so");
}

/// Sends a request, and waits for nothing.
async fn send(direct: &Direct, asked: Asked<'_>) -> DuplexStream {
    let mut stream = direct.connect(HERE);
    let request = head(&asked, asked.body.len()) + asked.body;
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    stream
}

#[tokio::test]
async fn a_preview_whose_patterns_take_too_long_is_given_up() {
    let direct = with_long_names();
    add_makers(&direct, &["maker"]);
    let policy = costly();
    let asked = Asked { body: &policy, ..Asked::new("POST", PREVIEW).by("maker") };
    let refused = direct.ask(asked).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let reason = refused.json()["reason"].as_str().unwrap_or_default().to_owned();
    let said =
        "the patterns of the policies take too long to be matched with all names: after 5 s, ";
    let (looked_at, all) = reason
        .strip_prefix(said)
        .and_then(|rest| rest.strip_suffix(" queues and exchanges")?.split_once(" of "))
        .unwrap_or_else(|| panic!("{reason}"));
    let (looked_at, all): (usize, usize) =
        (looked_at.parse().expect("a number"), all.parse().expect("a number"));
    assert!(looked_at < all && all > 2000, "{reason}");
}

#[tokio::test]
async fn previews_of_costly_patterns_leave_places_to_others_and_end_with_their_clients() {
    let direct = Arc::new(with_long_names());
    let makers = ["one", "two"];
    add_makers(&direct, &makers);
    direct.add_user("root", "administrator");
    let previewing: Vec<JoinHandle<()>> = (0..2 * OF_USER)
        .map(|nth| {
            let (direct, maker) = (Arc::clone(&direct), makers[nth % 2]);
            tokio::spawn(async move {
                let policy = costly();
                let asked = Asked { body: &policy, ..Asked::new("POST", PREVIEW).by(maker) };
                direct.ask(asked).await;
            })
        })
        .collect();
    // Long enough that all have come.
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(direct.ask(Asked::new("GET", "/api/overview").by("root")).await.status, 200);
    }
    assert!(previewing.iter().all(|one| !one.is_finished()), "the overview waited for a preview");
    previewing.iter().for_each(JoinHandle::abort);
    // Other work that is done in portions has its turn, behind those that are being made.
    let path = format!("/api/queues/%2F/{}/messages", long_name(0));
    assert_eq!(direct.ask(Asked::new("GET", &path).by("one")).await.status, 200);
}

#[tokio::test]
async fn what_previews_of_one_user_keep_counts_and_is_bounded() {
    let direct = with_long_names();
    add_makers(&direct, &["maker"]);
    let policy = costly();
    let asked = Asked { body: &policy, ..Asked::new("POST", PREVIEW).by("maker") };
    let mut previewing = vec![send(&direct, asked).await];
    let kept = || direct.broker.admin().memory_uses().answers;
    until(|| kept() > 0).await;
    let each = kept();
    for _ in 1..PREVIEWS_OF_USER + OF_USER {
        previewing.push(send(&direct, asked).await);
    }
    until(|| kept() >= PREVIEWS_OF_USER as u64 * each).await;
    // Long enough that more would have begun.
    for _ in 0..400 {
        assert!(kept() <= PREVIEWS_OF_USER as u64 * each, "{} of {each}", kept());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(previewing);
    until(|| kept() == 0).await;
}

/// A broker whose log does not take the next change until what is returned is dropped, and says when it comes.
fn held() -> (Direct, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::clone(&gauge)))));
    let direct = Direct::on(Arc::clone(&store) as _, gauge);
    // Later ones would wait too.
    add_makers(&direct, &["maker", "other"]);
    for (user, tag) in [("stranger", "policymaker"), ("clerk", "management")] {
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
    let coming = tokio::task::spawn_blocking(move || begins.recv());
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

async fn status(mut stream: DuplexStream) -> u16 {
    exchange_over(&mut stream, Vec::new(), false).await.status
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
    let all_begin = move || (0..OF_USER).all(|_| begins.recv().is_ok());
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

/// A policymaker whom another program knows, which answers when it is let go on.
#[derive(Debug)]
struct Asks {
    user: Arc<User>,
    asked: AtomicUsize,
    left: Mutex<mpsc::Receiver<()>>,
}

const OF_ASKS: &str = "asks";

impl Authority for Asks {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, _: &str) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        _ = self.left.lock().map(|left| left.recv());
        false
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
}

#[tokio::test]
async fn while_another_program_is_asked_who_may_change_policies_others_change_theirs() {
    let direct = Direct::new();
    add_makers(&direct, &["maker"]);
    let (leave, left) = mpsc::channel();
    let mut user = User::new(OF_ASKS, PasswordHash::none());
    user.origin = Origin::Elsewhere;
    user.tags = Tags::parse("policymaker").expect("tags");
    let (user, asked, left) = (Arc::new(user), AtomicUsize::new(0), Mutex::new(left));
    let asks = Arc::new(Asks { user, asked, left });
    direct.known_elsewhere.set(Arc::clone(&asks) as _).expect("set once");
    let refused = send(&direct, put("/api/policies/%2F/first", OF_ASKS)).await;
    until(|| asks.asked.load(Ordering::Relaxed) > 0).await;
    assert_eq!(direct.ask(put("/api/policies/%2F/second", "maker")).await.status, 201);
    drop(leave);
    assert_eq!(status(refused).await, 401);
    assert_eq!(names(&direct), ["second"]);
}

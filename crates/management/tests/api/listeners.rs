//! Answers that go on for a while: they end with the right of who listens.

use crate::direct::{Asked, Direct, HERE, OF_TOKEN, TOKEN_MS, head};
use crate::support::until_of;
use courser_auth::{Permission, Tags, User};
use courser_broker::admin::NewQueue;
use courser_codec::FieldTable;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

const PATIENCE: Duration = Duration::from_secs(60);
const QUEUES: usize = 3000;

fn world() -> Direct {
    let direct = Direct::new();
    direct.add_user("user", "monitoring");
    direct.broker.admin().set_permission("user", "/", Permission::all()).expect("let in");
    direct
}

fn declare(direct: &Direct, name: &str) {
    let queue = NewQueue { durable: false, auto_delete: false, arguments: FieldTable::new() };
    direct.broker.admin().declare_queue("/", name, queue).expect("a queue");
}

async fn asked(direct: &Direct, asked: Asked<'_>) -> DuplexStream {
    let mut stream = direct.connect(HERE);
    stream.write_all(head(&asked, 0).as_bytes()).await.expect("it is taken");
    stream
}

/// What comes until the end.
async fn rest(mut stream: DuplexStream) -> String {
    let mut text = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await;
    reading.expect("in time").expect("bytes");
    String::from_utf8_lossy(&text).into_owned()
}

/// A client listens to events in a session, which is ended. Returns what it is told after that.
async fn told_after(end: impl AsyncFnOnce(&Direct, &str)) -> String {
    let direct = world();
    let cookie = direct.log_in("user").await;
    let headers = [("cookie", cookie.as_str()), ("accept", "text/event-stream")];
    let events = Asked { headers: &headers, ..Asked::new("GET", "/api/events") };
    let mut stream = asked(&direct, events).await;
    until_of(&mut stream, "events from now on").await;
    declare(&direct, "before");
    until_of(&mut stream, "before").await;
    end(&direct, &cookie).await;
    declare(&direct, "later");
    rest(stream).await
}

#[tokio::test]
async fn a_stream_ends_with_the_session_that_it_was_begun_in() {
    let logged_out = told_after(async |direct, cookie| {
        let headers = [("cookie", cookie), ("x-courser-csrf", "1")];
        let out = Asked { headers: &headers, ..Asked::new("DELETE", "/api/login") };
        assert_eq!(direct.ask(out).await.status, 204);
    });
    let text = logged_out.await;
    assert!(!text.contains("later"), "{text}");
}

#[tokio::test]
async fn a_stream_ends_when_its_session_has_been_unused_for_too_long() {
    let unused = told_after(async |direct, _| {
        direct.now_ms.fetch_add(365 * 24 * 3_600_000, Ordering::Relaxed);
    });
    let text = unused.await;
    assert!(!text.contains("later"), "{text}");
}

/// A list is asked for, of which the rest comes after something is done. Returns whether all of it comes.
async fn is_whole(path: &str, meanwhile: impl FnOnce(&Direct)) -> bool {
    let direct = world();
    for nth in 0..QUEUES {
        declare(&direct, &format!("{nth}-{}", "x".repeat(200)));
    }
    let mut stream = asked(&direct, Asked::new("GET", path).by("user")).await;
    until_of(&mut stream, "{").await;
    meanwhile(&direct);
    rest(stream).await.ends_with("0\r\n\r\n")
}

#[tokio::test]
async fn a_long_list_ends_with_the_right_of_who_asked_for_it() {
    assert!(is_whole("/api/queues", |_| {}).await);
    let is_gone = |direct: &Direct| {
        direct.broker.admin().delete_user("user").expect("it is there");
    };
    assert!(!is_whole("/api/queues", is_gone).await);
    let is_out = |direct: &Direct| {
        direct.broker.admin().clear_permission("user", "/").expect("it is there");
    };
    assert!(!is_whole("/api/queues", is_out).await);
    assert!(!is_whole("/api/queues/%2F", is_out).await);
    let has_lost_its_tag = |direct: &Direct| {
        let change = |user: &mut User| {
            user.tags = Tags::parse("management")?;
            Ok(())
        };
        direct.broker.admin().change_user("user", change).expect("it is there");
    };
    assert!(!is_whole("/api/queues", has_lost_its_tag).await);
    let other = |direct: &Direct| direct.add_user("other", "management");
    assert!(is_whole("/api/queues", other).await);
}

#[tokio::test]
async fn an_import_ends_with_the_token_of_who_asked_for_it() {
    let direct = Direct::new();
    let queues: Vec<_> = (0..QUEUES)
        .map(|nth| json!({ "vhost": "/", "name": format!("q{nth}"), "durable": false }))
        .collect();
    let body = json!({ "queues": queues }).to_string();
    let json = [("content-type", "application/json")];
    let asked = Asked {
        body: &body,
        headers: &json,
        ..Asked::new("POST", "/api/definitions").by(OF_TOKEN)
    };
    let admin = direct.broker.admin();
    let made = move || admin.queues(Some("/")).expect("its queues").len();
    let (made_until_now, now_ms) = (made.clone(), Arc::clone(&direct.now_ms));
    let clock = move || {
        let now_ms = now_ms.load(Ordering::Relaxed);
        if made_until_now() == 0 { now_ms } else { now_ms + TOKEN_MS + 1 }
    };
    assert!(direct.clock.set(Box::new(clock)).is_ok());
    let answer = direct.ask(asked).await;
    assert_eq!((answer.status, made() < QUEUES), (401, true), "{} made: {answer:?}", made());
}

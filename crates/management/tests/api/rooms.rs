//! The memory that answers have: none is larger than its share, and what waits for clients is counted and bounded.

use crate::direct::{Asked, Direct, ELSEWHERE, HERE, head};
use courser_auth::Permission;
use courser_broker::admin::{ConnectionDetails, NewBinding, NewMessage, NewQueue};
use courser_broker::{Batch, Identity, Session};
use courser_codec::{FieldTable, Method, ShortString, basic};
use serde_json::{Value, json};
use std::sync::mpsc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

const PATIENCE: Duration = Duration::from_secs(60);
const GET: &str = "/api/queues/%2F/q/get";

/// Users with all permissions in a broker with a queue.
pub fn world(users: &[&str]) -> Direct {
    let direct = Direct::new();
    for user in users {
        direct.add_user(user, "monitoring");
        direct.broker.admin().set_permission(user, "/", Permission::all()).expect("let in");
    }
    declare(&direct, "q");
    direct
}

pub fn declare(direct: &Direct, name: &str) {
    let queue = NewQueue { durable: false, auto_delete: false, arguments: FieldTable::new() };
    direct.broker.admin().declare_queue("/", name, queue).expect("a queue");
}

/// Binds with arguments of so many bytes.
fn bind(direct: &Direct, source: &str, destination: &str, key: &str, bytes: usize) {
    let short = |text: &str| ShortString::try_from(text).expect("short");
    let binding = NewBinding {
        source: short(source),
        destination: short(destination),
        to_queue: true,
        routing_key: short(key),
        arguments: FieldTable::new().with("note", "x".repeat(bytes)),
    };
    direct.broker.admin().bind("/", binding).expect("a binding");
}

/// Asks, and reads the head of the answer only.
async fn ask_and_wait(direct: &Direct, user: &str, path: &str) -> (DuplexStream, u16) {
    let mut stream = direct.connect(HERE);
    let request = head(&Asked::new("GET", path).by(user), 0);
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let status = status_of(&mut stream).await;
    (stream, status)
}

/// Asks for the first message of a queue, which stays there, and reads the head of the answer only.
async fn get_and_wait(
    direct: &Direct,
    user: &str,
    queue: &str,
    truncate: usize,
) -> (DuplexStream, u16) {
    let body = json!({
        "count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": truncate,
    });
    let (path, body) = (format!("/api/queues/%2F/{queue}/get"), body.to_string());
    let mut stream = direct.connect(HERE);
    let request = head(&Asked::new("POST", &path).by(user), body.len()) + &body;
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let status = status_of(&mut stream).await;
    (stream, status)
}

async fn status_of(stream: &mut DuplexStream) -> u16 {
    let mut status = [0; 12];
    let reading = tokio::time::timeout(PATIENCE, stream.read_exact(&mut status)).await;
    reading.expect("in time").expect("an answer");
    std::str::from_utf8(&status[9..]).expect("text").parse().expect("a status")
}

/// Waits until what answers have is as wanted.
pub async fn counts(direct: &Direct, is_wanted: impl Fn(u64) -> bool) {
    let waiting = async {
        while !is_wanted(direct.broker.admin().memory_uses().answers) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is counted");
}

/// No timer of the test's runtime fires until what is returned is dropped, or much longer than the test takes.
pub fn time_stands_still() -> mpsc::Sender<()> {
    tokio::time::pause();
    let (sender, dropped) = mpsc::channel();
    // A paused clock goes on by itself when nothing runs, but not beside a thread that is at work.
    tokio::task::spawn_blocking(move || _ = dropped.recv_timeout(10 * PATIENCE));
    sender
}

pub async fn publish(direct: &Direct, header: usize, body: usize) {
    publish_to(direct, "q", header, body).await;
}

async fn publish_to(direct: &Direct, queue: &str, header: usize, body: usize) {
    let mut message = NewMessage {
        routing_key: ShortString::try_from(queue).expect("short"),
        body: vec![1; body].into(),
        ..NewMessage::default()
    };
    message.properties.headers = Some(FieldTable::new().with("h", "\u{1}".repeat(header)));
    let publishing = direct.broker.admin().publish("user", "/", &message);
    publishing.expect("it is let in").await.expect("it is routed");
}

#[tokio::test]
async fn lists_that_wait_for_their_clients_are_counted_and_each_user_has_its_part() {
    const ROWS: u64 = 266;
    const NOTE_BYTES: u64 = 30_000;
    let direct = world(&["user", "other"]);
    for row in 0..ROWS {
        bind(&direct, "amq.topic", "q", &row.to_string(), NOTE_BYTES as usize);
    }
    let bytes = ROWS * NOTE_BYTES;
    let (first, status) = ask_and_wait(&direct, "user", "/api/bindings").await;
    assert_eq!(status, 200);
    counts(&direct, |counted| (bytes..2 * bytes).contains(&counted)).await;
    // 32 MiB are less than ten of them.
    let mut waiting = vec![first];
    let refused = loop {
        let (stream, status) = ask_and_wait(&direct, "user", "/api/bindings").await;
        waiting.push(stream);
        if status != 200 {
            break status;
        }
    };
    assert!(refused == 503 && (4..10).contains(&waiting.len()), "{refused}: {}", waiting.len());
    let (other, status) = ask_and_wait(&direct, "other", "/api/bindings").await;
    assert_eq!(status, 200, "another user has its own");
    drop((waiting, other));
    counts(&direct, |counted| counted == 0).await;
    assert_eq!(direct.ask(Asked::new("GET", "/api/bindings").by("user")).await.status, 200);
}

#[tokio::test]
async fn a_list_in_another_order_counts_what_it_remembers() {
    let direct = world(&["user"]);
    for nth in 0..2_000 {
        declare(&direct, &format!("{nth}{}", "x".repeat(200)));
    }
    let (_stream, status) = ask_and_wait(&direct, "user", "/api/queues?sort=name").await;
    assert_eq!(status, 200);
    counts(&direct, |counted| counted >= 2_000 * size_of::<usize>() as u64).await;
}

#[tokio::test]
async fn taken_messages_have_no_more_than_their_answers_share() {
    let direct = world(&["user"]);
    for _ in 0..400 {
        publish(&direct, 100_000, 10).await;
    }
    let body =
        json!({ "count": 1000, "truncate": 0, "ackmode": "ack_requeue_false", "encoding": "auto" });
    let body = body.to_string();
    let asked = Asked { body: &body, ..Asked::new("POST", GET).by("user") };
    let answer = direct.ask(asked).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.len() <= 32 << 20, "{} bytes", answer.body.len());
    let taken = answer.json().as_array().expect("a list").len();
    let left = direct.broker.admin().queue("/", b"q").expect("a queue").ready;
    assert!(taken > 1 && taken + left == 400, "{taken} taken, {left} left");
}

/// Large answers that wait for their client, as many as there is room for.
async fn unread(direct: &Direct, user: &str) -> Vec<(DuplexStream, u16)> {
    let whole = get_and_wait(direct, user, "large", 1 << 30).await;
    assert_eq!(whole.1, 200);
    let part = || get_and_wait(direct, user, "large", 4_000_000);
    let (second, third, fourth) = tokio::join!(part(), part(), part());
    vec![whole, second, third, fourth]
}

#[tokio::test]
async fn large_answers_that_wait_for_their_clients_leave_room_for_small_messages() {
    let direct = world(&["user", "one", "two"]);
    declare(&direct, "large");
    publish_to(&direct, "large", 1, 7_300_000).await;
    publish(&direct, 1, 5).await;
    let _unread = tokio::join!(unread(&direct, "one"), unread(&direct, "two"));
    for _ in 0..3 {
        let (_, status) = get_and_wait(&direct, "user", "q", 1 << 30).await;
        assert_eq!(status, 200);
    }
    let looking = Asked::new("GET", "/api/queues/%2F/q/messages").by("user");
    assert_eq!(direct.ask(looking).await.status, 200);
}

#[tokio::test]
async fn a_large_answer_that_its_client_takes_slowly_ends_after_a_quarter_of_an_hour() {
    const JSON_BYTES: usize = 6;
    let direct = world(&["user"]);
    publish(&direct, 1, 1 << 20).await;
    let (mut stream, status) = get_and_wait(&direct, "user", "q", 1 << 30).await;
    assert_eq!(status, 200);
    tokio::time::pause();
    let (mut some, mut taken) = (vec![0; 100_000], 0);
    // Always something before the connection counts as stalled.
    for _ in 0..60 {
        if stream.read_exact(&mut some).await.is_err() {
            break;
        }
        taken += some.len();
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    let mut rest = Vec::new();
    // The end is an error or none.
    let _ = stream.read_to_end(&mut rest).await;
    let all = JSON_BYTES << 20;
    assert!((all / 2..all).contains(&(taken + rest.len())), "{taken} and {}", rest.len());
    counts(&direct, |counted| counted == 0).await;
}

#[tokio::test]
async fn a_large_answer_says_how_long_it_is() {
    let direct = world(&["user"]);
    publish(&direct, 1, 1 << 20).await;
    let body = json!({ "count": 1, "ackmode": "ack_requeue_true", "encoding": "auto" }).to_string();
    let answer = direct.ask(Asked { body: &body, ..Asked::new("POST", GET).by("user") }).await;
    assert_eq!(answer.headers["content-length"], answer.body.len().to_string());
    assert_eq!(answer.json()[0]["payload"].as_str().map(str::len), Some(1 << 20));
    counts(&direct, |counted| counted == 0).await;
}

#[tokio::test]
async fn a_page_of_messages_ends_before_the_one_that_does_not_fit_in() {
    let direct = world(&["user"]);
    for body in [100, 2 << 20, 4 << 20, 8 << 20] {
        publish(&direct, 1, body).await;
    }
    let ask = async |path: &str| -> Value {
        let answer = direct.ask(Asked::new("GET", path).by("user")).await;
        assert!(answer.status == 200 && answer.body.len() < 33 << 20, "{}", answer.body.len());
        answer.json()
    };
    let first = ask("/api/queues/%2F/q/messages?count=10").await;
    assert_eq!((first["messages"].as_array().map(Vec::len), &first["next"]), (Some(2), &json!(2)));
    let second = ask("/api/queues/%2F/q/messages?count=10&offset=2").await;
    assert_eq!(second["messages"][0]["payload"].as_str().map(str::len), Some(4 << 20));
    assert_eq!(second["next"], 3);
    let last = &ask("/api/queues/%2F/q/messages?count=10&offset=3").await["messages"][0];
    let shown = last["payload"].as_str().map_or(0, str::len);
    assert!((1 << 20..8 << 20).contains(&shown), "{shown}: as much of it as fits in");
    assert_eq!(last["payload_bytes"], 8 << 20);
}

#[tokio::test]
async fn a_message_that_goes_to_very_many_places_is_traced_to_some_and_the_rest_are_counted() {
    let direct = world(&["user"]);
    for nth in 0..1_500 {
        let name = format!("many{nth}");
        declare(&direct, &name);
        bind(&direct, "amq.fanout", &name, "", 30_000);
    }
    let path = "/api/exchanges/%2F/amq.fanout/route";
    let answer = direct.ask(Asked { body: "{}", ..Asked::new("POST", path).by("user") }).await;
    assert!(answer.body.len() < 2 << 20, "{} bytes", answer.body.len());
    let trace = answer.json();
    assert_eq!(trace["queues"].as_array().map(Vec::len), Some(1000));
    assert_eq!((&trace["queue_count"], &trace["step_count"]), (&json!(1500), &json!(1)));
    assert_eq!(
        (&trace["routed"], &trace["steps"][0]["destinations"]),
        (&json!(true), &json!(1500))
    );
}

#[tokio::test]
async fn a_user_whose_bodies_come_slowly_keeps_no_others_out() {
    let direct = world(&["user", "other"]);
    let mut waiting = Vec::new();
    for _ in 0..600 {
        let mut stream = direct.connect(ELSEWHERE);
        let request = head(&Asked::new("POST", GET).by("user"), 100);
        // The oldest lose their places.
        let _ = stream.write_all(request.as_bytes()).await;
        waiting.push(stream);
    }
    let asked = Asked { from: [192, 0, 2, 8], ..Asked::new("GET", "/api/whoami").by("other") };
    assert_eq!(direct.ask(asked).await.status, 200);
}

/// Has a request that takes messages wait for its turn while something is done, and looks that it takes none.
async fn waited(meanwhile: impl FnOnce(&Direct)) -> u16 {
    const MESSAGES: usize = 12;
    let direct = world(&["user"]);
    for _ in 0..MESSAGES {
        publish(&direct, 1, 1 << 20).await;
    }
    let path = "/api/queues/%2F/q/messages?count=1";
    let (unread, status) = ask_and_wait(&direct, "user", path).await;
    assert_eq!(status, 200);
    let body =
        json!({ "count": 1000, "ackmode": "ack_requeue_false", "encoding": "auto" }).to_string();
    // It wants all that its user may have for messages, of which an answer has a part.
    let asking = direct.ask(Asked { body: &body, ..Asked::new("POST", GET).by("user") });
    let meanwhile = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        meanwhile(&direct);
        drop(unread);
    };
    let (answer, ()) = tokio::join!(asking, meanwhile);
    assert_eq!(direct.broker.admin().queue("/", b"q").expect("a queue").ready, MESSAGES);
    answer.status
}

#[tokio::test]
async fn a_request_that_waited_for_its_turn_is_refused_if_its_user_is_gone_by_then() {
    let status = waited(|direct| direct.broker.admin().delete_user("user").expect("it is there"));
    assert_eq!(status.await, 401);
}

#[tokio::test]
async fn a_request_that_waited_for_its_turn_is_refused_if_its_user_may_not_read_by_then() {
    let status = waited(|direct| {
        let permission = Permission { read: String::new(), ..Permission::all() };
        direct.broker.admin().set_permission("user", "/", permission).expect("let in");
    });
    assert_eq!(status.await, 401);
}

#[tokio::test]
async fn a_request_that_waited_for_its_turn_is_refused_if_its_user_may_not_enter_by_then() {
    let status = waited(|direct| {
        direct.broker.admin().clear_permission("user", "/").expect("it is there");
    });
    assert_eq!(status.await, 404);
}

#[tokio::test]
async fn newcomers_get_in_when_as_many_places_are_kept_as_may_be() {
    let users = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let direct = world(&users);
    // An answer that its client does not take ends after a while, and all of them are to be there at once.
    let _still = time_stands_still();
    // Enough that the list goes out in pieces, and little enough that each user has room for its part of them.
    for row in 0..5 {
        bind(&direct, "amq.topic", "q", &row.to_string(), 30_000);
    }
    let mut kept = Vec::new();
    for nth in 0..512 {
        let user = users[nth % users.len()];
        let (stream, status) = ask_and_wait(&direct, user, "/api/bindings").await;
        assert_eq!(status, 200);
        kept.push(stream);
    }
    let asked = |stream| {
        let request = head(&Asked::new("GET", "/api/openapi.json"), 0).into_bytes();
        async move {
            let mut stream: DuplexStream = stream;
            // The other end may be closed already.
            let _ = stream.write_all(&request).await;
            let mut answer = Vec::new();
            let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
            reading.expect("in time").map(|_| answer).unwrap_or_default()
        }
    };
    assert!(asked(direct.connect(ELSEWHERE)).await.starts_with(b"HTTP/1.1 200"));
    assert!(asked(direct.connect_operator()).await.starts_with(b"HTTP/1.1 200"));
}

/// A connection with so many consumers of the queue on its only channel.
fn consume(direct: &Direct, user: &str, count: usize) -> Session {
    let admission = direct.broker.admit(user, "/").expect("let in");
    let user = ShortString::try_from(user).expect("short");
    let identity = Identity { user, cancel_notify: true, impersonator: false };
    let details = ConnectionDetails { name: "many".to_owned(), ..ConnectionDetails::default() };
    let mut session = direct.broker.open_connection(admission, identity, 128 << 10, details);
    session.admit_channel().expect("let in");
    session.open_channel(1);
    let mut batch = Batch::default();
    for _ in 0..count {
        let consume =
            basic::Consume { queue: "q".try_into().expect("short"), ..Default::default() };
        session.request(&mut batch, 1, &Method::BasicConsume(consume)).expect("it is taken");
    }
    session.flush(&mut batch).expect("it is taken");
    session
}

#[tokio::test]
async fn a_queue_and_a_channel_show_the_first_of_many_consumers_and_the_list_has_all() {
    let direct = world(&["user"]);
    let _session = consume(&direct, "user", 600);
    let ask = async |path: &str| direct.ask(Asked::new("GET", path).by("user")).await.json();
    for path in ["/api/queues/%2F/q", "/api/channels/many%20(1)"] {
        let details = ask(path).await["consumer_details"].as_array().map(Vec::len);
        assert_eq!(details, Some(500), "{path}");
    }
    assert_eq!(ask("/api/queues/%2F/q").await["consumers"], 600);
    assert_eq!(ask("/api/consumers").await.as_array().map(Vec::len), Some(600));
}

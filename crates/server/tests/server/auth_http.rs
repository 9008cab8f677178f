//! Users whom another program knows: who gets in, what they may do, and what happens when that program is away.

use crate::support::{Client, Heard, PATIENCE, TestServer, short};
use courser::{Config, HttpListen};
use courser_codec::queue;
use parking_lot::Mutex;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A program that knows `alice`, who has the password `s3cret` and may do everything with what begins with `own`, and
/// `boss`, an administrator. It notes what it is asked.
struct Program {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    is_silent: Arc<AtomicBool>,
}

impl Program {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let is_silent = Arc::new(AtomicBool::new(false));
        let (notes, silent) = (Arc::clone(&asked), Arc::clone(&is_silent));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (notes, silent) = (Arc::clone(&notes), Arc::clone(&silent));
                std::thread::spawn(move || answer_all(stream, &notes, &silent));
            }
        });
        Program { address, asked, is_silent }
    }

    async fn broker(&self, change: impl FnOnce(&mut Config)) -> TestServer {
        TestServer::start_with(|config| {
            let path = |name: &str| format!("http://{}/auth/{name}", self.address);
            config.auth_http.user_path = path("user");
            config.auth_http.vhost_path = path("vhost");
            config.auth_http.resource_path = path("resource");
            config.auth_http.topic_path = path("topic");
            change(config);
        })
        .await
    }

    fn asked_for(&self, what: &str) -> usize {
        self.asked.lock().iter().filter(|one| one.contains(what)).count()
    }
}

/// Answers the requests of a connection.
fn answer_all(mut stream: TcpStream, notes: &Mutex<Vec<String>>, silent: &AtomicBool) {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_lowercase();
            let length = lower.split("content-length: ").nth(1).map_or(0, |rest| {
                rest.split("\r\n").next().and_then(|one| one.parse().ok()).expect("a length")
            });
            if body.len() >= length {
                let line = head.lines().next().expect("a line");
                let question = format!("{line} {body}");
                let said = verdict(&question);
                notes.lock().push(question);
                if silent.load(Ordering::Relaxed) {
                    continue_to_end(&mut stream);
                    return;
                }
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{said}", said.len());
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
                read.clear();
                continue;
            }
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => read.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

fn continue_to_end(stream: &mut TcpStream) {
    while stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
}

fn verdict(question: &str) -> &'static str {
    let has = |part: &str| question.contains(part);
    if has("/auth/user") {
        return match () {
            () if has("username=alice&password=s3cret") => "allow management",
            () if has("username=boss&password=b%26ss") => "allow administrator",
            () if has("username=odd") => "perhaps",
            () => "deny nobody of that name",
        };
    }
    let is_own = has("name=own") || has("name=amq.default") || has("/auth/vhost");
    if is_own && has("vhost=%2F") && !has("routing_key=secret") { "allow" } else { "deny" }
}

async fn declare(client: &mut Client, name: &str) -> Heard {
    client.call(queue::Declare { queue: short(name), ..Default::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_of_the_program_may_do_what_the_program_says() {
    let program = Program::start();
    let server = program.broker(|_| {}).await;
    let mut client = Client::log_in(server.address(), "alice", "s3cret").await.expect("let in");
    client.declare("own-1").await;
    client.publish("own-1", b"hello").await;
    assert_eq!(client.count("own-1").await, 1);
    let text =
        "ACCESS_REFUSED - configure access to queue 'other' in vhost '/' refused for user 'alice'";
    assert_eq!(declare(&mut client, "other").await, Heard::ChannelClosed(1, text.to_owned()));
    client.close().await;
    for (user, password) in [("alice", "wrong"), ("odd", "x"), ("nobody", "x")] {
        let refused = Client::log_in(server.address(), user, password).await.err();
        assert!(matches!(refused, Some(Heard::Closed(403, _))), "{user}: {refused:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_the_broker_come_first() {
    let program = Program::start();
    let server = program.broker(|_| {}).await;
    let mut client = Client::log_in(server.address(), "guest", "guest").await.expect("let in");
    client.declare("anything").await;
    client.close().await;
    assert_eq!(program.asked.lock().len(), 0, "it is not concerned");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_remembered_for_a_while() {
    let program = Program::start();
    let server = program.broker(|config| config.auth_http.cache_seconds = 600).await;
    for _ in 0..3 {
        let mut client = Client::log_in(server.address(), "alice", "s3cret").await.expect("let in");
        client.declare("own-1").await;
        client.close().await;
    }
    assert_eq!(program.asked_for("/auth/user"), 1);
    assert_eq!(program.asked_for("/auth/vhost"), 1);
    assert_eq!(program.asked_for("/auth/resource"), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_it_does_not_say_in_time_is_a_no() {
    let program = Program::start();
    let server = program
        .broker(|config| {
            config.auth_http.cache_seconds = 0;
            config.auth_http.timeout_ms = 300;
        })
        .await;
    let mut client = Client::log_in(server.address(), "alice", "s3cret").await.expect("let in");
    client.declare("own-1").await;
    program.is_silent.store(true, Ordering::Relaxed);
    let started = Instant::now();
    let heard = declare(&mut client, "own-2").await;
    assert!(
        matches!(&heard, Heard::ChannelClosed(1, text) if text.starts_with("ACCESS_REFUSED")),
        "{heard:?}"
    );
    let refused = Client::log_in(server.address(), "alice", "s3cret").await.err();
    assert!(matches!(refused, Some(Heard::Closed(403, _))), "{refused:?}");
    assert!(started.elapsed() < PATIENCE / 2, "nobody waits for ever");
    program.is_silent.store(false, Ordering::Relaxed);
    client.reopen().await;
    client.declare("own-2").await;
    client.close().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_go_on_while_it_is_waited_for() {
    let program = Program::start();
    let server = program.broker(|config| config.auth_http.cache_seconds = 0).await;
    let mut alices = Vec::new();
    for _ in 0..4 {
        let alice = Client::log_in(server.address(), "alice", "s3cret").await.expect("let in");
        alices.push(alice);
    }
    let mut guest = Client::connect(server.address()).await;
    program.is_silent.store(true, Ordering::Relaxed);
    // More than there are threads for connections.
    for alice in &mut alices {
        alice.tell(queue::Declare { queue: short("own-1"), ..Default::default() }).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let started = Instant::now();
    guest.declare("q").await;
    assert!(started.elapsed() < Duration::from_millis(2500), "{:?}", started.elapsed());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_users_are_users_of_the_http_api_by_their_tags() {
    let program = Program::start();
    let server = program
        .broker(|config| {
            let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
            config.management.listen = HttpListen::At(vec![any_port]);
        })
        .await;
    let ask = async |path: &str, credentials: &str| {
        let mut stream =
            tokio::net::TcpStream::connect(server.http_addresses()[0]).await.expect("a connection");
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Basic {credentials}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut said = String::new();
        let reading = stream.read_to_string(&mut said);
        tokio::time::timeout(PATIENCE, reading).await.expect("in time").expect("an answer");
        said
    };
    // alice:s3cret, boss:b&ss, and alice with another password.
    let (alice, boss, wrong) = ("YWxpY2U6czNjcmV0", "Ym9zczpiJnNz", "YWxpY2U6eA==");
    let said = ask("/api/whoami", alice).await;
    assert!(
        said.contains(r#""name":"alice""#) && said.contains(r#""is_internal_user":false"#),
        "{said}"
    );
    assert!(ask("/api/queues/%2F", alice).await.starts_with("HTTP/1.1 200"));
    assert!(ask("/api/users", alice).await.starts_with("HTTP/1.1 401"));
    assert!(ask("/api/users", boss).await.starts_with("HTTP/1.1 200"));
    assert!(ask("/api/whoami", wrong).await.starts_with("HTTP/1.1 401"));
    server.stop().await;
}

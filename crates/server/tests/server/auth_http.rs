//! Users whom another program knows: who gets in, what they may do, and what happens when that program is away.

use crate::support::{AuthProgram, Client, Heard, PATIENCE, TestServer, short, wait_until};
use courser::HttpListen;
use courser_codec::queue;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

async fn declare(client: &mut Client, name: &str) -> Heard {
    client.call(queue::Declare { queue: short(name), ..Default::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_of_the_program_may_do_what_the_program_says() {
    let program = AuthProgram::start();
    let server = program.broker(|_| {}).await;
    let mut client = Client::log_in(server.address(), "alice", "s3cret").await.expect("let in");
    client.declare("own-1").await;
    client.publish("own-1", b"hello").await;
    assert_eq!(client.count("own-1").await, 1);
    let text =
        "ACCESS_REFUSED - configure access to queue 'other' in vhost '/' refused for user 'alice'";
    assert_eq!(declare(&mut client, "other").await, Heard::ChannelClosed(1, text.to_owned()));
    client.close().await;
    for (user, password) in [("alice", "wrong"), ("odd", "x"), ("stranger", "x")] {
        let refused = Client::log_in(server.address(), user, password).await.err();
        assert!(matches!(refused, Some(Heard::Closed(403, _))), "{user}: {refused:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_the_broker_come_first() {
    let program = AuthProgram::start();
    let server = program.broker(|_| {}).await;
    let mut client = Client::log_in(server.address(), "guest", "guest").await.expect("let in");
    client.declare("anything").await;
    client.close().await;
    assert_eq!(program.asked.lock().len(), 0, "it is not concerned");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_remembered_for_a_while() {
    let program = AuthProgram::start();
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
    let program = AuthProgram::start();
    let server = program
        .broker(|config| {
            config.auth_http.cache_seconds = 0;
            config.auth_http.timeout_ms = 3_000;
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
    assert!(started.elapsed() < PATIENCE / 2, "no login waits for ever");
    program.is_silent.store(false, Ordering::Relaxed);
    client.reopen().await;
    client.declare("own-2").await;
    client.close().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_go_on_while_it_is_waited_for() {
    let program = AuthProgram::start();
    let server = program
        .broker(|config| {
            config.auth_http.cache_seconds = 0;
            config.auth_http.timeout_ms = 30_000;
        })
        .await;
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
    guest.declare("q").await;
    for alice in &mut alices {
        assert!(alice.is_silent(1).await, "no client has waited while the guest was served");
    }
    program.is_silent.store(false, Ordering::Relaxed);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_users_are_users_of_the_http_api_by_their_tags() {
    let program = AuthProgram::start();
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

/// Sends a request, and reads what comes to the end.
async fn asked(server: &TestServer, line: &str, head: &str, body: &str) -> String {
    let mut stream = opened(server, line, &format!("connection: close\r\n{head}"), body).await;
    to_end(&mut stream).await
}

async fn opened(server: &TestServer, line: &str, head: &str, body: &str) -> tokio::net::TcpStream {
    let mut stream =
        tokio::net::TcpStream::connect(server.http_addresses()[0]).await.expect("a connection");
    let length = body.len();
    let request =
        format!("{line} HTTP/1.1\r\nhost: x\r\n{head}content-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

async fn to_end(stream: &mut tokio::net::TcpStream) -> String {
    let mut said = String::new();
    let reading = stream.read_to_string(&mut said);
    tokio::time::timeout(PATIENCE, reading).await.expect("in time").expect("an answer");
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_and_a_stream_ask_it_again() {
    let program = AuthProgram::start();
    let server = program
        .broker(|config| {
            let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
            config.management.listen = HttpListen::At(vec![any_port]);
            config.auth_http.cache_seconds = 0;
        })
        .await;
    let login = asked(&server, "POST /api/login", "", "username=boss&password=b%26ss").await;
    let cookie = login.split("set-cookie: ").nth(1).expect("a cookie").split(';').next();
    let head = format!("cookie: {}\r\nx-courser-csrf: 1\r\n", cookie.expect("a pair"));
    let is_let_in = async |line: &str, body: &str| {
        let said = asked(&server, line, &head, body).await;
        said.starts_with("HTTP/1.1 20")
    };
    assert!(is_let_in("GET /api/users", "").await);
    *program.word_on_boss.lock() = "allow management";
    assert!(is_let_in("GET /api/whoami", "").await);
    assert!(!is_let_in("GET /api/users", "").await, "its tags are what the program says now");
    *program.word_on_boss.lock() = "allow administrator";
    assert!(is_let_in("GET /api/users", "").await);
    let mut events = opened(&server, "GET /api/events", &head, "").await;
    let mut begun = String::new();
    while !begun.contains("events from now on") {
        let mut bytes = [0; 512];
        let read = tokio::time::timeout(PATIENCE, events.read(&mut bytes)).await;
        begun += &String::from_utf8_lossy(&bytes[..read.expect("in time").expect("it is open")]);
    }
    *program.word_on_boss.lock() = "deny";
    assert!(!is_let_in("GET /api/whoami", "").await);
    let user = r#"{"password":"x","tags":"administrator"}"#;
    assert!(!is_let_in("PUT /api/users/backdoor", user).await);
    let mut guest = Client::connect(server.address()).await;
    guest.declare("q").await;
    let heard = to_end(&mut events).await;
    assert!(!heard.contains("queue.created"), "{heard}");
    server.stop().await;
}

/// `count` connections of alice that each ask whether they may declare another queue, which the program does not say yet.
async fn alices_that_ask(server: &TestServer, program: &AuthProgram, count: usize) -> Vec<Client> {
    let mut alices = Vec::new();
    for _ in 0..count {
        let alice = Client::log_in(server.address(), "alice", "s3cret").await.expect("let in");
        alices.push(alice);
    }
    *program.holds.lock() = Some("username=alice&vhost=%2F&tags=management&resource=");
    for (nth, alice) in alices.iter_mut().enumerate() {
        let name = format!("own-{nth}");
        alice.tell(queue::Declare { queue: short(&name), ..Default::default() }).await;
    }
    alices
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_many_questions_has_no_other_user_refused() {
    const ALICES: usize = 100;
    let program = AuthProgram::start();
    let server = program.broker(|config| config.auth_http.timeout_ms = 30_000).await;
    let mut alices: JoinSet<Heard> = JoinSet::new();
    for mut alice in alices_that_ask(&server, &program, ALICES).await {
        alices.spawn(async move { alice.next_at_any_time().await });
    }
    // One that has more questions than it may have pending is refused, and no other user is.
    let refused = alices.join_next().await.expect("one of them").expect("no panic");
    assert!(matches!(refused, Heard::ChannelClosed(1, _)), "{refused:?}");
    let mut bob = Client::log_in(server.address(), "bob", "s3cret").await.expect("let in");
    bob.declare("own-bob").await;
    bob.publish("own-bob", b"hello").await;
    assert_eq!(bob.count("own-bob").await, 1);
    *program.holds.lock() = None;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_a_user_wait_for_a_place() {
    const ALICES: usize = 60;
    let program = AuthProgram::start();
    let server = program.broker(|config| config.auth_http.timeout_ms = 30_000).await;
    let mut alices = alices_that_ask(&server, &program, ALICES).await;
    wait_until("some ask", async || program.asked_for("/auth/resource") > 0).await;
    assert!(alices[ALICES - 1].is_silent(300).await);
    let asked = program.asked_for("/auth/resource");
    assert!(
        asked <= 16,
        "a user has a quarter of 64 places, fewer where few files may be open: {asked}"
    );
    *program.holds.lock() = None;
    for alice in &mut alices {
        let heard = alice.next().await;
        assert!(matches!(heard, Heard::DeclareOk { .. }), "{heard:?}");
    }
    server.stop().await;
}

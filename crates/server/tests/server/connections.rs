//! Sockets that speak AMQP badly, too late, not at all, or in large numbers.

use crate::support::{Client, Heard, PATIENCE, Process, TestServer, short, wait_until};
use courser_codec::{Frame, Method, basic, channel, connection, queue};
use courser_connection::client::Config;
use courser_connection::server::Config as ConnectionConfig;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// Everything that the broker says to these bytes until it closes the connection.
async fn answer(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // It may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    // A reset is an end as well.
    let _ = tokio::time::timeout(PATIENCE, reading).await.expect("an end");
    answer
}

#[tokio::test]
async fn a_wrong_protocol_header_is_answered_with_the_right_one() {
    let server = TestServer::start().await;
    let mut waited = Duration::MAX;
    for wrong in [
        &b"AMQP\x00\x01\x00\x00"[..],
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"xxxxxxxx",
    ] {
        let start = Instant::now();
        assert_eq!(answer(server.address(), wrong).await, HEADER, "{wrong:?}");
        waited = waited.min(start.elapsed());
    }
    assert!(waited < ConnectionConfig::default().linger_timeout, "{waited:?}: not closed at once");
    server.stop().await;
}

#[tokio::test]
async fn a_login_mechanism_that_is_not_offered_gets_no_frame() {
    // Longer than any test here waits for the end.
    let server = TestServer::start_with(|config| config.amqp.handshake_timeout_ms = 600_000).await;
    let start_ok = connection::StartOk {
        mechanism: short("FOO"),
        locale: short("en_US"),
        ..Default::default()
    };
    let mut bytes = HEADER.to_vec();
    start_ok.write_frame(0, &mut bytes);
    let said = answer(server.address(), &bytes).await;
    let (frame, length) = Frame::parse(&said, 0).expect("a frame").expect("all of it");
    let start = Method::decode(frame.payload).expect("a method");
    assert_eq!((start.name(), length), ("connection.start", said.len()), "and nothing else");
    server.stop().await;
}

#[tokio::test]
async fn what_a_client_asks_before_it_is_let_in_is_answered_behind_that() {
    let server = TestServer::start().await;
    let mut bytes = HEADER.to_vec();
    let response = b"\0guest\0guest";
    let (mechanism, locale) = (short("PLAIN"), short("en_US"));
    connection::StartOk { mechanism, locale, response, ..Default::default() }
        .write_frame(0, &mut bytes);
    connection::TuneOk { channel_max: 10, frame_max: 131_072, heartbeat: 0 }
        .write_frame(0, &mut bytes);
    connection::Open { virtual_host: short("/") }.write_frame(0, &mut bytes);
    channel::Open {}.write_frame(1, &mut bytes);
    let close = connection::Close { reply_code: 200, ..Default::default() };
    close.write_frame(0, &mut bytes);
    let said = answer(server.address(), &bytes).await;
    let (mut rest, mut names) = (&said[..], Vec::new());
    while let Some((frame, length)) = Frame::parse(rest, 0).expect("frames") {
        names.push(Method::decode(frame.payload).expect("a method").name());
        rest = &rest[length..];
    }
    let expected = [
        "connection.start",
        "connection.tune",
        "connection.open-ok",
        "channel.open-ok",
        "connection.close-ok",
    ];
    assert_eq!(names, expected);
    server.stop().await;
}

#[tokio::test]
async fn garbage_after_the_header_ends_only_its_connection() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    let address = server.address();
    let mut random = 1u64;
    let attempts: Vec<_> = (0..50)
        .map(|_| {
            let mut bytes = HEADER.to_vec();
            for _ in 0..200 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                bytes.push((random >> 56) as u8);
            }
            tokio::spawn(async move { answer(address, &bytes).await })
        })
        .collect();
    for attempt in attempts {
        let said = attempt.await.expect("an attempt");
        assert_eq!(said.first(), Some(&1), "connection.start, at least");
    }
    client.declare("q").await;
    server.stop().await;
}

#[tokio::test]
async fn a_frame_that_is_announced_too_large_is_not_waited_for() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    client.stream.write_all(&[3, 0, 1, 0x7f, 0xff, 0xff, 0xff]).await.expect("sent");
    let heard = client.next().await;
    assert!(matches!(&heard, Heard::Closed(501, _)), "{heard:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_ended() {
    let server = TestServer::start_with(|config| config.amqp.handshake_timeout_ms = 1_000).await;
    let start = Instant::now();
    assert_eq!(answer(server.address(), b"").await, b"");
    assert_eq!(answer(server.address(), b"AMQP").await, b"");
    let said = answer(server.address(), HEADER).await;
    assert!(!said.is_empty(), "connection.start, and then the end");
    assert!(start.elapsed() >= Duration::from_secs(3));
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_is_open_may_be_silent_for_longer_than_a_handshake() {
    const LIMIT_MS: u64 = 3_000;
    let server = TestServer::start_with(|config| config.amqp.handshake_timeout_ms = LIMIT_MS).await;
    let mut client = Client::connect(server.address()).await;
    assert!(client.is_silent(LIMIT_MS + 500).await);
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    use courser_connection::Credentials;
    let server = TestServer::start().await;
    let wrong = |user: &[u8], password: &[u8]| Config {
        credentials: Credentials::Plain { user: user.into(), password: password.into() },
        ..Config::default()
    };
    for (user, password) in [(&b"guest"[..], &b"wrong"[..]), (b"stranger", b"guest"), (b"", b"")] {
        let mut client = Client::begin(server.address(), wrong(user, password)).await;
        let text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For \
                    details see the broker logfile.";
        assert_eq!(client.next().await, Heard::Closed(403, text.into()));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_vhost_that_is_not_there_is_refused() {
    let server = TestServer::start().await;
    let virtual_host = "missing".try_into().expect("short");
    let config = Config { virtual_host, ..Config::default() };
    let mut client = Client::begin(server.address(), config).await;
    let refused = Heard::Closed(530, "NOT_ALLOWED - vhost missing not found".into());
    assert_eq!(client.next().await, refused);
    server.stop().await;
}

#[tokio::test]
async fn no_more_connections_than_allowed_are_served_even_all_at_once() {
    const MOST: usize = 10;
    let server = TestServer::start_with(|config| config.limits.connections_max = MOST).await;
    let address = server.address();
    let attempts: Vec<_> = (0..MOST * 5)
        .map(|_| {
            tokio::spawn(async move {
                let mut client = Client::begin(address, Config::default()).await;
                let opened = client.next().await == Heard::Opened;
                opened.then_some(client)
            })
        })
        .collect();
    let mut served = Vec::new();
    for attempt in attempts {
        served.extend(attempt.await.expect("an attempt"));
    }
    assert_eq!(served.len(), MOST);
    served.pop();
    wait_until("a place is free", async || {
        let mut client = Client::begin(address, Config::default()).await;
        client.next().await == Heard::Opened
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn many_connections_come_and_go() {
    const COUNT: usize = 300;
    let server = TestServer::start().await;
    let mut clients = Vec::new();
    for _ in 0..COUNT {
        let mut client = Client::connect(server.address()).await;
        client.declare("q").await;
        client.consume("q", true).await;
        clients.push(client);
    }
    for round in 0..COUNT as u32 {
        clients[0].publish("q", &round.to_be_bytes()).await;
    }
    for client in &mut clients {
        assert_eq!(client.bodies(1).await.len(), 1, "each gets its turn");
    }
    clients.truncate(1);
    let mut other = Client::connect(server.address()).await;
    wait_until("the others' consumers are gone", async || other.counts("q").await.1 == 1).await;
    other.publish("q", b"x").await;
    other.publish("q", b"y").await;
    assert_eq!(clients[0].bodies(2).await, [b"x", b"y"]);
    server.stop().await;
}

#[tokio::test]
async fn connections_that_have_gone_leave_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = Process::start(&folder);
    let exclusive = Method::from(queue::Declare { exclusive: true, ..Default::default() });
    let mut resident = Vec::new();
    for _ in 0..12 {
        for _ in 0..100 {
            let mut client = Client::connect(broker.address).await;
            let answer = client.call(exclusive).await;
            assert!(matches!(answer, Heard::DeclareOk { .. }), "{answer:?}");
            client.consume("", false).await;
            let bind = queue::Bind { exchange: short("amq.fanout"), ..Default::default() };
            assert_eq!(client.call(bind).await, Heard::Reply("queue.bind-ok"));
            let message = client.encode("amq.fanout", "", &[7; 3000]);
            client.stream.write_all(&message).await.expect("an open connection");
            assert_eq!(client.bodies(1).await.len(), 1);
        }
        resident.push(broker.resident_bytes());
    }
    let grown = resident[11].saturating_sub(resident[1]) / 1024;
    // One that holds 3,000 bytes for each of the last 1,000 connections would have 3 MiB more.
    assert!(grown < 1500, "{grown} KiB more after 1,000 connections: {resident:?}");
}

#[tokio::test]
async fn an_exclusive_queues_name_is_free_when_its_connection_is_closed() {
    let server = TestServer::start().await;
    let declare = Method::from(queue::Declare {
        queue: "mine".try_into().expect("short"),
        exclusive: true,
        ..Default::default()
    });
    for _ in 0..50 {
        let mut client = Client::connect(server.address()).await;
        let answer = client.call(declare).await;
        assert!(matches!(answer, Heard::DeclareOk { .. }), "{answer:?}");
        client.close().await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_lost_socket_returns_what_was_not_acknowledged() {
    let server = TestServer::start().await;
    let mut lost = Client::connect(server.address()).await;
    let mut other = Client::connect(server.address()).await;
    lost.declare("q").await;
    lost.consume("q", false).await;
    other.publish("q", b"1").await;
    other.publish("q", b"2").await;
    assert_eq!(lost.bodies(2).await, [b"1", b"2"]);
    drop(lost);
    other.consume("q", false).await;
    assert_eq!(other.bodies(2).await, [b"1", b"2"]);
    server.stop().await;
}

#[tokio::test]
async fn heartbeats_are_sent_and_missed() {
    let server = TestServer::start_with(|config| config.amqp.heartbeat_s = 1).await;
    let start = Instant::now();
    let mut client = Client::connect(server.address()).await;
    let mut heartbeats = 0;
    let mut bytes = [0; 64];
    // This client does not send any.
    loop {
        let reading = client.stream.read(&mut bytes);
        match tokio::time::timeout(PATIENCE, reading).await.expect("an end").unwrap_or(0) {
            0 => break,
            count => heartbeats += count / 8,
        }
    }
    assert!(start.elapsed() >= Duration::from_secs(2), "two heartbeats may be missed");
    assert!(heartbeats >= 1);
    server.stop().await;
}

#[tokio::test]
async fn silent_connections_give_their_places_to_those_that_log_in() {
    const MOST: usize = 20;
    let server = TestServer::start_with(|config| config.limits.connections_max = MOST).await;
    let address = server.address();
    let mut silent = Vec::new();
    for _ in 0..MOST * 3 {
        silent.push(TcpStream::connect(address).await.expect("a connection"));
    }
    let mut clients = Vec::new();
    for number in 0..MOST {
        let mut client = Client::begin(address, Config::default()).await;
        assert_eq!(client.next().await, Heard::Opened, "{number}");
        clients.push(client);
    }
    let mut refused = Client::begin(address, Config::default()).await;
    assert_eq!(refused.next().await, Heard::Gone, "all places are in use");
    for stream in &mut silent {
        assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0, "made room");
    }
    server.stop().await;
}

/// Whether the system asks after the other end of a connection from time to time, by its own table.
#[cfg(target_os = "linux")]
fn is_asked_after(local: SocketAddr, remote: SocketAddr) -> bool {
    let hex = |address: SocketAddr| match address {
        SocketAddr::V4(address) => {
            let ip = u32::from_ne_bytes(address.ip().octets());
            format!("{ip:08X}:{:04X}", address.port())
        }
        SocketAddr::V6(_) => panic!("an address of this machine"),
    };
    let (local, remote) = (hex(local), hex(remote));
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the system's connections");
    table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|row| {
        let is_it = row.get(1..3).is_some_and(|ends| ends == [&local[..], &remote]);
        is_it && row.get(5).is_some_and(|timer| timer.starts_with("02:"))
    })
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_machine_that_vanishes_is_noticed_by_the_system() {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let listen = courser::HttpListen::At(vec![any_port]);
    let server = TestServer::start_with(|config| config.management.listen = listen).await;
    for address in [server.address(), server.http_addresses()[0]] {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let client = stream.local_addr().expect("an address");
        wait_until("the system asks after it", async || is_asked_after(address, client)).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_published_before_a_method_that_ends_the_connection_is_there() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    client.declare("q").await;
    // In one read with what is wrong.
    let mut bytes = client.encode("", "q", b"before");
    basic::Ack { delivery_tag: 1, multiple: false }.write_frame(0, &mut bytes);
    client.stream.write_all(&bytes).await.expect("an open connection");
    let heard = client.wait_for(|heard| matches!(heard, Heard::Closed(..))).await;
    assert!(matches!(heard, Heard::Closed(504, _)), "{heard:?}");
    let mut other = Client::connect(server.address()).await;
    assert_eq!(other.count("q").await, 1);
    server.stop().await;
}

//! AMQP over WebSocket: what goes through, who may connect, and how it ends.

use crate::support::{Client, Heard, PATIENCE, TestServer, wait_until};
use crate::unfinished::{publish_start, send_unfinished};
use courser::{Config, HttpListen};
use courser_codec::write_body_frame;
use courser_connection::client::Config as ClientConfig;
use futures_util::{Sink, Stream};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

pub type Socket = WebSocketStream<TcpStream>;

async fn start(change: impl FnOnce(&mut Config)) -> TestServer {
    TestServer::start_with(|config| {
        config.management.listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
        change(config);
    })
    .await
}

/// The client's end of a socket at `path`, with these headers besides.
async fn open(
    server: &TestServer,
    path: &str,
    headers: &[(&'static str, String)],
) -> Result<(Socket, Option<String>), u16> {
    open_at(server.http_addresses()[0], path, headers).await
}

pub async fn open_at(
    address: SocketAddr,
    path: &str,
    headers: &[(&'static str, String)],
) -> Result<(Socket, Option<String>), u16> {
    let mut request = format!("ws://{address}{path}").into_client_request().expect("a URL");
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("a value"));
    }
    let stream = TcpStream::connect(address).await.expect("a connection");
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((socket, answer)) => {
            let protocol = answer.headers().get("sec-websocket-protocol");
            Ok((socket, protocol.map(|one| one.to_str().expect("text").to_owned())))
        }
        Err(Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

async fn opened(server: &TestServer) -> Socket {
    open(server, "/ws/amqp", &[]).await.expect("a socket").0
}

async fn send<S>(socket: &mut WebSocketStream<S>, message: Message)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| Pin::new(&mut *socket).poll_ready(cx)).await.expect("room");
    Pin::new(&mut *socket).start_send(message).expect("sent");
    poll_fn(|cx| Pin::new(&mut *socket).poll_flush(cx)).await.expect("sent");
}

async fn next(socket: &mut Socket) -> Option<Message> {
    let coming = poll_fn(|cx| Pin::new(&mut *socket).poll_next(cx));
    let message = tokio::time::timeout(PATIENCE, coming).await.expect("something to hear");
    message.and_then(Result::ok)
}

/// The code with which the broker ends the socket; what it says before is of no interest.
async fn close_code(socket: &mut Socket) -> Option<CloseCode> {
    while let Some(message) = next(socket).await {
        if let Message::Close(frame) = message {
            return frame.map(|frame| frame.code);
        }
    }
    None
}

/// How bytes are cut into messages.
enum Cut {
    /// At most so many in each.
    Whole(usize),
    /// All from the first 4 KiB on that come at once are in one message, whose end never comes.
    LastHasNoEnd,
}

/// A stream of bytes over a socket. What is sent is cut into messages of at most `cut` bytes.
pub fn pipe<S>(socket: WebSocketStream<S>, cut: usize) -> DuplexStream
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    pipe_in(socket, Cut::Whole(cut))
}

fn pipe_in<S>(mut socket: WebSocketStream<S>, cut: Cut) -> DuplexStream
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut inner, outer) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move {
        let (cut, is_last_endless) = match cut {
            Cut::Whole(bytes) => (bytes, false),
            Cut::LastHasNoEnd => (4096, true),
        };
        let (mut buffer, mut is_last) = (vec![0; cut], false);
        loop {
            tokio::select! {
                read = inner.read(&mut buffer) => match read {
                    Ok(count @ 1..) => {
                        let kind = if is_last { Data::Continue } else { Data::Binary };
                        is_last |= is_last_endless && count == cut;
                        let bytes = buffer[..count].to_vec();
                        let frame = Frame::message(bytes, OpCode::Data(kind), !is_last);
                        send(&mut socket, Message::Frame(frame)).await;
                    }
                    _ => return,
                },
                message = poll_fn(|cx| Pin::new(&mut socket).poll_next(cx)) => match message {
                    Some(Ok(Message::Binary(bytes))) => {
                        assert_whole(&bytes);
                        if inner.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                    Some(Ok(_)) => {}
                    _ => return,
                },
            }
        }
    });
    outer
}

/// Fails unless this is frames of AMQP from the beginning of one to the end of one.
fn assert_whole(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let size: [u8; 4] = bytes[3..7].try_into().expect("a header");
        let end = u32::from_be_bytes(size) as usize + 8;
        assert_eq!(bytes[end - 1], 0xce, "the end of a frame");
        bytes = &bytes[end..];
    }
}

#[tokio::test]
async fn messages_of_every_size_go_through_however_frames_are_cut() {
    let server = start(|_| {}).await;
    for (path, cut) in [("/ws/amqp", 65536), ("/ws", 5), ("/", 1000), ("/ws/", 1)] {
        let (socket, protocol) = open(&server, path, &[]).await.expect("a socket");
        assert_eq!(protocol, None);
        let mut client = Client::connect_on(pipe(socket, cut), ClientConfig::default()).await;
        client.declare("q").await;
        client.consume("q", true).await;
        for size in [0, 1, 200, 20_000 * cut.min(10), 300 * cut.min(1000)] {
            let body = vec![size as u8; size];
            client.publish("q", &body).await;
            assert!(client.bodies(1).await[0] == body, "a body of {size} bytes, cut at {cut}");
        }
        client.close().await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_consumer_that_is_slow_gets_everything_later() {
    let server = start(|_| {}).await;
    let socket = opened(&server).await;
    let mut consumer = Client::connect_on(pipe(socket, 4096), ClientConfig::default()).await;
    consumer.declare("q").await;
    consumer.consume("q", true).await;
    let mut publisher = Client::connect(server.address()).await;
    // More than sockets and pipes hold.
    let body = vec![7; 100_000];
    for _ in 0..200 {
        publisher.publish("q", &body).await;
    }
    publisher.count("q").await;
    let bodies = consumer.bodies(200).await;
    assert!(bodies.iter().all(|got| *got == body));
    server.stop().await;
}

#[tokio::test]
async fn a_consumer_that_has_read_everything_stays_however_long_it_gets_nothing() {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let server = start(|config| config.amqp.send_timeout_ms = TIMEOUT.as_millis() as u64).await;
    // Without heartbeats nothing is written to it in the meantime.
    let config = ClientConfig { heartbeat_s: 0, ..ClientConfig::default() };
    let mut consumer = Client::connect_on(pipe(opened(&server).await, 4096), config).await;
    consumer.declare("q").await;
    consumer.consume("q", true).await;
    let mut publisher = Client::connect(server.address()).await;
    // More than sockets and pipes hold: the last of it has to wait for the socket.
    for _ in 0..200 {
        publisher.publish("q", &[7; 100_000]).await;
    }
    publisher.count("q").await;
    assert_eq!(consumer.bodies(200).await.len(), 200);
    tokio::time::sleep(TIMEOUT + Duration::from_secs(2)).await;
    publisher.publish("q", b"later").await;
    assert_eq!(consumer.bodies(1).await, [b"later"]);
    server.stop().await;
}

#[tokio::test]
async fn the_login_is_that_of_amqp_and_the_operator_sees_both_ends() {
    let server = start(|_| {}).await;
    let socket = opened(&server).await;
    let peer = socket.get_ref().local_addr().expect("an address");
    let mut client = Client::connect_on(pipe(socket, 4096), ClientConfig::default()).await;
    let seen: Vec<_> = server.admin().connections(None).expect("all vhosts").iter().collect();
    assert_eq!(seen[0].name, format!("{peer} -> {}", server.http_addresses()[0]));
    client.close().await;
    let credentials =
        courser_connection::Credentials::Plain { user: "guest".into(), password: "wrong".into() };
    let config = ClientConfig { credentials, ..ClientConfig::default() };
    let mut client = Client::begin_on(pipe(opened(&server).await, 4096), config).await;
    assert!(matches!(client.next().await, Heard::Closed(403, _)));
    let credentials = courser_connection::Credentials::External;
    let config = ClientConfig { credentials, ..ClientConfig::default() };
    let mut client = Client::begin_on(pipe(opened(&server).await, 4096), config).await;
    assert!(
        matches!(client.next().await, Heard::Closed(..)),
        "only the operator needs no password"
    );
    server.stop().await;
}

#[tokio::test]
async fn pages_of_other_origins_are_refused_unless_they_are_named() {
    let server = start(|config| {
        config.management.cors_origins = vec!["https://tools.example".into(), "*".into()];
    })
    .await;
    let own = format!("http://{}", server.http_addresses()[0]);
    let wanted = [
        (own.as_str(), None),
        ("https://tools.example", None),
        ("https://evil.example", Some(403)),
        ("https://tools.example.evil.example", Some(403)),
        ("http://127.0.0.1:1", Some(403)),
        ("null", Some(403)),
    ];
    for (origin, status) in wanted {
        let opened = open(&server, "/ws/amqp", &[("origin", origin.to_owned())]).await;
        assert_eq!(opened.err(), status, "{origin}");
    }
    server.stop().await;
}

#[tokio::test]
async fn guest_does_not_come_by_a_name_that_a_page_can_make_up() {
    for (host, listed, is_let_in) in
        [("localhost", "", true), ("evil.example", "", false), ("mq.example", "mq.example", true)]
    {
        let server = start(|config| {
            config.management.hosts =
                [listed].into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        })
        .await;
        let headers = [("host", host.to_owned()), ("origin", format!("http://{host}"))];
        let (socket, _) = open(&server, "/ws/amqp", &headers).await.expect("a socket");
        let mut client = Client::begin_on(pipe(socket, 4096), ClientConfig::default()).await;
        let is_refused = matches!(client.next().await, Heard::Closed(403, _));
        assert_eq!(!is_refused, is_let_in, "{host}");
        drop(client);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_protocol_that_begins_as_amqp_is_agreed_to() {
    let server = start(|_| {}).await;
    let offered = [("sec-websocket-protocol", "mqtt, amqp091, amqp".to_owned())];
    let (_socket, protocol) = open(&server, "/ws/amqp", &offered).await.expect("a socket");
    assert_eq!(protocol.as_deref(), Some("amqp091"));
    server.stop().await;
}

#[tokio::test]
async fn a_socket_ends_with_the_code_that_says_why() {
    let server = start(|_| {}).await;
    let mut socket = opened(&server).await;
    send(&mut socket, Message::text("AMQP")).await;
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Unsupported));

    let mut socket = opened(&server).await;
    // The end of a message that has not begun, without a mask.
    socket.get_mut().write_all(&[0x80, 0]).await.expect("sent");
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Protocol));

    let mut socket = opened(&server).await;
    send(&mut socket, Message::binary(b"HTTP/1.1".to_vec())).await;
    assert_eq!(next(&mut socket).await, Some(Message::binary(b"AMQP\0\0\x09\x01".to_vec())));
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Normal));
    server.stop().await;
}

#[tokio::test]
async fn messages_whose_end_does_not_come_are_counted_and_bounded_as_over_tcp() {
    const MOST: u64 = 64 << 20;
    let server = start(|config| config.limits.memory_high_bytes = MOST).await;
    let admin = server.admin();
    let used = || admin.memory_uses().incomplete;
    let connect = async || {
        let pipe = pipe_in(opened(&server).await, Cut::LastHasNoEnd);
        Client::connect_on(pipe, ClientConfig::default()).await
    };
    let mut begun = connect().await;
    let mut bytes = publish_start(1, "amq.direct");
    write_body_frame(1, &vec![7; 100_000], &mut bytes);
    begun.stream.write_all(&bytes).await.expect("an open connection");
    wait_until("what has come is counted", async || used() >= 100_000).await;
    for _ in 0..3 {
        let mut client = connect().await;
        send_unfinished(&mut client).await;
        let heard = client.wait_for(|heard| matches!(heard, Heard::Closed(..))).await;
        assert!(matches!(heard, Heard::Closed(506, _)), "{heard:?}");
        assert!((100_000..MOST / 2).contains(&used()), "{}", used());
    }
    drop(begun);
    wait_until("it is given back", async || used() == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn pings_are_answered() {
    let server = start(|_| {}).await;
    let mut socket = opened(&server).await;
    send(&mut socket, Message::Ping(b"there?".to_vec().into())).await;
    assert_eq!(next(&mut socket).await, Some(Message::Pong(b"there?".to_vec().into())));
    server.stop().await;
}

/// The status of what is answered to a request that is written out.
async fn status(server: &TestServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.http_addresses()[0]).await.expect("a connection");
    let request = request.replace("\\n", "\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut said = vec![0; 12];
    let reading = stream.read_exact(&mut said);
    tokio::time::timeout(PATIENCE, reading).await.expect("in time").expect("an answer");
    String::from_utf8_lossy(&said[9..]).into_owned()
}

#[tokio::test]
async fn what_is_no_handshake_is_told_so() {
    let server = start(|_| {}).await;
    let head = "Host: x\\nConnection: close, Upgrade\\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\n";
    let upgrade = |line: &str, version: u32, key: &str| {
        let version = format!("Upgrade: websocket\\nSec-WebSocket-Version: {version}\\n");
        format!("{line} HTTP/1.1\\n{head}{version}{key}\\n")
    };
    let wanted = [
        (format!("GET /ws/amqp HTTP/1.1\\n{head}\\n"), "426"),
        (upgrade("GET /ws/amqp", 8, key), "426"),
        (upgrade("GET /ws/amqp", 13, ""), "400"),
        (upgrade("POST /ws/amqp", 13, key), "400"),
        (upgrade("GET /ws/mqtt", 13, key), "404"),
        (upgrade("GET /ws/amqp", 13, key), "101"),
        ("GET / HTTP/1.1\\nHost: x\\nConnection: close\\n\\n".to_owned(), "200"),
    ];
    for (request, expected) in wanted {
        assert_eq!(status(&server, &request).await, expected, "{request}");
    }
    server.stop().await;
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let server = start(|config| config.management.websocket = false).await;
    assert_eq!(open(&server, "/ws/amqp", &[]).await.err(), Some(404));
    server.stop().await;
}

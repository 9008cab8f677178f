//! A broker with its HTTP API, and a client that sees every byte of an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser::{Config, HttpListen, Management, Metrics, Server};
use courser_auth::{PasswordHash, Permission, Tags, User};
use courser_broker::admin::Admin;
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than anything takes, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A broker.
pub struct Broker {
    pub server: Server,
    pub folder: TempDir,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    /// What was received, to its end.
    pub fn parsed(received: &[u8]) -> Self {
        parse(received, false)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// `error` and `reason` of a refusal.
    pub fn refusal(&self) -> (String, Value) {
        let body = self.json();
        (body["error"].as_str().expect("an error").to_owned(), body["reason"].clone())
    }
}

/// An address with port 0.
pub fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

impl Broker {
    pub async fn start() -> Self {
        Broker::start_with(Management::default()).await
    }

    /// With other settings of the API than the usual ones.
    pub async fn start_with(management: Management) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config {
            listen: vec![any_port()],
            data_dir: folder.path().join("data"),
            management: Management { listen: HttpListen::At(vec![any_port()]), ..management },
            metrics: Metrics { listen: HttpListen::At(vec![any_port()]), ..Metrics::default() },
            ..Config::default()
        };
        let server = Server::start(config).await.expect("a broker");
        Broker { server, folder }
    }

    pub fn of(server: Server, folder: TempDir) -> Self {
        Broker { server, folder }
    }

    pub async fn stop(self) {
        self.server.stop().await.expect("nothing has failed");
    }

    pub fn admin(&self) -> Admin {
        self.server.admin()
    }

    pub fn http(&self) -> SocketAddr {
        self.server.http_addresses()[0]
    }

    /// A user with these tags and, if any, all permissions in these vhosts; its password is its name.
    pub fn add_user(&self, name: &str, tags: &str, vhosts: &[&str]) {
        // Quick to check: these tests are not about hashes.
        let hash = PasswordHash::quick(name.as_bytes()).expect("a hash");
        let mut user = User::new(name, hash);
        user.tags = Tags::parse(tags).expect("tags");
        self.admin().create_user(user).expect("a user");
        for vhost in vhosts {
            self.admin().set_permission(name, vhost, Permission::all()).expect("a permission");
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, Some("guest"), "").await
    }

    /// As the administrator, with a body.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> Answer {
        self.call(method, path, Some("guest"), body).await
    }

    /// As a user whose password is its name, or without credentials.
    pub async fn call(&self, method: &str, path: &str, user: Option<&str>, body: &str) -> Answer {
        let login = user.map(|user| format!("{user}:{user}"));
        self.call_with(method, path, login.as_deref(), &[], body.as_bytes()).await
    }

    /// A page of metrics, without credentials.
    pub async fn metrics(&self, path: &str) -> Answer {
        self.call_at(self.server.metrics_addresses()[0], "GET", path, None, &[], &[]).await
    }

    pub async fn call_with(
        &self,
        method: &str,
        path: &str,
        login: Option<&str>,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.call_at(self.http(), method, path, login, headers, body).await
    }

    pub async fn call_at(
        &self,
        address: SocketAddr,
        method: &str,
        path: &str,
        login: Option<&str>,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n");
        if let Some(login) = login {
            request += &format!("authorization: Basic {}\r\n", STANDARD.encode(login));
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            request += &format!("content-length: {}\r\n", body.len());
        }
        request += "\r\n";
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        let is_head = method == "HEAD";
        tokio::time::timeout(PATIENCE, exchange(address, bytes, is_head)).await.expect("an answer")
    }
}

/// A client that listens to server-sent events.
pub async fn follow(
    broker: &Broker,
    user: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> TcpStream {
    let mut stream = TcpStream::connect(broker.http()).await.expect("a connection");
    let login = STANDARD.encode(format!("{user}:{user}"));
    let mut request = format!(
        "GET {path} HTTP/1.1\r\nhost: broker\r\naccept: text/event-stream\r\n\
         authorization: Basic {login}\r\n"
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).await.expect("it is taken");
    stream
}

/// What comes until `wanted` has come, or the end.
pub async fn until(stream: &mut TcpStream, wanted: &str) -> String {
    until_of(stream, wanted).await
}

/// The same, of any connection.
pub async fn until_of(stream: &mut (impl AsyncRead + Unpin), wanted: &str) -> String {
    let mut text = String::new();
    // The last chunk may be all that comes.
    let is_last = |text: &str| text == "0\r\n\r\n" || text.ends_with("\r\n0\r\n\r\n");
    while !text.contains(wanted) && !is_last(&text) {
        let mut bytes = [0; 4096];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await;
        let read = read.expect("it comes").expect("it can be read");
        if read == 0 {
            break;
        }
        text += &String::from_utf8_lossy(&bytes[..read]);
    }
    text
}

/// Sends bytes, and reads until the other side closes.
pub async fn exchange(address: SocketAddr, request: Vec<u8>, is_head: bool) -> Answer {
    let stream = TcpStream::connect(address).await.expect("a connection");
    exchange_over(stream, request, is_head).await
}

/// The same, over a connection that is there.
pub async fn exchange_over(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Vec<u8>,
    is_head: bool,
) -> Answer {
    // The broker may answer and close before it has read everything.
    let _ = stream.write_all(&request).await;
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received).await;
    parse(&received, is_head)
}

fn parse(received: &[u8], is_head: bool) -> Answer {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = std::str::from_utf8(&received[..end]).expect("a head in ASCII");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let rest = &received[end + 4..];
    let body = match headers.get("transfer-encoding").map(String::as_str) {
        Some("chunked") => unchunked(rest),
        _ => rest.to_vec(),
    };
    if let Some(length) = headers.get("content-length").filter(|_| !is_head) {
        assert_eq!(length.parse(), Ok(body.len()), "the body is as long as it says");
    }
    Answer { status: status.expect("a status"), headers, body }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n").expect("a length");
        let digits = std::str::from_utf8(&rest[..line]).expect("digits");
        let length = usize::from_str_radix(digits, 16).expect("a number");
        rest = &rest[line + 2..];
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&rest[..length]);
        rest = &rest[length + 2..];
    }
}

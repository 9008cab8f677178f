//! A broker that is asked: over HTTP, and by clients.

use crate::support::{PATIENCE, config_in};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser::{Clock, HttpListen, Server, Surroundings};
use courser_client::{Channel, Connection, Credentials, Error, Options, ShortString};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The least: files that are kept ready take time to make, and room in an archive.
pub const SEGMENT_BYTES: u64 = 1 << 20;

/// Where a broker is.
#[derive(Clone, Copy)]
pub struct At {
    pub amqp: SocketAddr,
    pub http: SocketAddr,
}

impl At {
    /// A request as `guest`: the status, and the answer.
    pub async fn ask(self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.ask_as("guest:guest", method, path, body).await
    }

    /// The same as another user.
    pub async fn ask_as(self, who: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.http).await.expect("a connection");
        let (who, body) = (STANDARD.encode(who), body.to_string());
        // By this version of HTTP no answer comes in chunks.
        let request = format!(
            "{method} /api/{path} HTTP/1.0\r\nhost: broker\r\nauthorization: Basic {who}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        read.expect("in time").expect("an answer");
        let answer = String::from_utf8(answer).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), serde_json::from_str(body).unwrap_or_default())
    }

    /// What is at a path.
    pub async fn get(self, path: &str) -> Value {
        let (status, value) = self.ask("GET", path, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// Has something changed.
    pub async fn change(self, method: &str, path: &str, body: &Value) {
        let (status, value) = self.ask(method, path, body).await;
        assert!(matches!(status, 200..=204), "{method} {path}: {status} {value}");
    }

    /// How many messages a queue has.
    pub async fn count(self, vhost: &str, queue: &str) -> u64 {
        let queue = self.get(&format!("queues/{vhost}/{queue}")).await;
        queue["messages"].as_u64().unwrap_or_else(|| panic!("no count: {queue}"))
    }

    /// The messages of a queue, without a change to them.
    pub async fn messages(self, vhost: &str, queue: &str) -> Vec<Value> {
        let mut page = self.get(&format!("queues/{vhost}/{queue}/messages?count=1000")).await;
        serde_json::from_value(page["messages"].take()).expect("a list")
    }

    /// A client of a vhost, with what the broker says if it does not let it in.
    pub async fn log_in(
        self,
        vhost: &str,
        user: &str,
        password: &str,
    ) -> Result<Connection, Error> {
        let stream = TcpStream::connect(self.amqp).await.expect("a connection");
        let credentials = Credentials::Plain { user: user.into(), password: password.into() };
        let virtual_host = ShortString::try_from(vhost).expect("a short name");
        let options = Options { credentials, virtual_host, ..Options::default() };
        Connection::open_on(stream, options).await
    }

    /// A client of `guest` in a vhost, with a channel that has its publishes confirmed.
    pub async fn client(self, vhost: &str) -> (Connection, Channel) {
        let connection = self.log_in(vhost, "guest", "guest").await.expect("a connection");
        let channel = connection.open_channel().await.expect("a channel");
        channel.confirm_select().await.expect("confirms");
        (connection, channel)
    }
}

/// A broker of this version on a data folder that is there, at the time at which that was made.
pub struct Opened {
    server: Server,
    folder: TempDir,
    ahead_ms: Arc<AtomicI64>,
}

impl Opened {
    /// Opens the folder `data` in `folder`. What it was made to keep for days is kept, whenever that is.
    pub async fn start(folder: TempDir, made_ms: i64) -> Self {
        let ahead_ms = Arc::new(AtomicI64::new(made_ms - Clock::system().now_ms() as i64));
        Self::start_at(folder, ahead_ms).await
    }

    async fn start_at(folder: TempDir, ahead_ms: Arc<AtomicI64>) -> Self {
        let mut config = config_in(&folder);
        config.management.listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
        config.journal.segment_bytes = SEGMENT_BYTES;
        let clock = Clock::shifted(Arc::clone(&ahead_ms));
        let surroundings = Surroundings { clock, ..Surroundings::default() };
        let server = Server::start_within(config, surroundings).await.expect("it is opened");
        Opened { server, folder, ahead_ms }
    }

    pub fn at(&self) -> At {
        At { amqp: self.server.addresses()[0], http: self.server.http_addresses()[0] }
    }

    pub async fn restart(self) -> Self {
        self.server.stop().await.expect("a clean stop");
        Self::start_at(self.folder, self.ahead_ms).await
    }

    pub async fn stop(self) {
        self.server.stop().await.expect("a clean stop");
    }

    /// Lets time pass at once.
    pub fn pass_ms(&self, ms: i64) {
        self.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

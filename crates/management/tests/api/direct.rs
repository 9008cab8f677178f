//! An API without a server around it: its requests may come from anywhere, at any time.

use crate::support::{Answer, exchange_over};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser_auth::{
    AccountError, Authority, Grant, Login, LoginRefused, Resource, Right, Tags, User,
};
use courser_auth::{Origin, PasswordHash};
use courser_broker::{Broker, Limits};
use courser_management::{Api, LoginCounts, NodeFacts, Settings, Web};
use courser_store::{MemoryGauge, MemoryStore, Store};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(60);
/// An address of this machine.
pub const HERE: [u8; 4] = [127, 0, 0, 1];
/// An address of another one.
pub const ELSEWHERE: [u8; 4] = [192, 0, 2, 7];
/// Who logs in with this name has a token of an administrator, for so long.
pub const OF_TOKEN: &str = "token";
pub const TOKEN_MS: u64 = 1000;

/// A broker in memory, and its API. The password of each user is its name.
pub struct Direct {
    pub broker: Arc<Broker>,
    pub api: Arc<Api>,
    pub now_ms: Arc<AtomicU64>,
    /// What the clock says instead, if the test has set it.
    pub clock: Arc<OnceLock<Clock>>,
    /// A user whom another program knows.
    pub known_elsewhere: Arc<OnceLock<Arc<dyn Authority>>>,
    stop: watch::Sender<bool>,
}

/// Milliseconds since 1970.
pub type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// A request.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub login: Option<&'a str>,
    pub headers: &'a [(&'a str, &'a str)],
    pub from: [u8; 4],
    pub body: &'a str,
}

impl<'a> Asked<'a> {
    pub fn new(method: &'a str, path: &'a str) -> Self {
        Asked { method, path, login: None, headers: &[], from: HERE, body: "" }
    }

    /// By a user with its password.
    pub fn by(self, user: &'a str) -> Self {
        Asked { login: Some(user), ..self }
    }
}

impl Direct {
    pub fn new() -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        Direct::on(Arc::new(MemoryStore::new(Arc::clone(&gauge))), gauge)
    }

    pub fn on(store: Arc<dyn Store>, gauge: Arc<MemoryGauge>) -> Self {
        // Larger messages than usual: of how large a client's may be, these tests are not.
        let limits = Limits { message_max_bytes: 512 << 20, ..Limits::default() };
        let broker = Broker::new(store, gauge, limits, 7);
        Direct::of(broker, None)
    }

    /// With an audit log in this file.
    pub fn audited(file: PathBuf) -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        Direct::of(Broker::new(store, gauge, Limits::default(), 7), Some(file))
    }

    fn of(broker: Arc<Broker>, audit_log: Option<PathBuf>) -> Self {
        let now_ms = Arc::new(AtomicU64::new(1_000_000));
        let known_elsewhere = Arc::default();
        let clock = Arc::default();
        let settings =
            Settings { audit_log, ..settings(&broker, (&now_ms, &clock), &known_elsewhere) };
        let api = Api::new(broker.admin(), settings);
        Direct { broker, api, now_ms, clock, known_elsewhere, stop: watch::Sender::new(false) }
    }

    pub fn add_user(&self, name: &str, tags: &str) {
        self.add_user_with(PasswordHash::quick(name.as_bytes()), name, tags);
    }

    pub fn add_user_with(&self, hash: Result<PasswordHash, AccountError>, name: &str, tags: &str) {
        let mut user = User::new(name, hash.expect("a hash"));
        user.tags = Tags::parse(tags).expect("tags");
        self.broker.admin().create_user(user).expect("a user");
    }

    pub fn connect(&self, from: [u8; 4]) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (peer, local) = (SocketAddr::from((from, 1)), SocketAddr::from((HERE, 2)));
        let api = Arc::clone(&self.api);
        tokio::spawn(api.serve(theirs, peer, local, None, self.stop.subscribe()));
        ours
    }

    /// A connection of the operator of this machine.
    pub fn connect_operator(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(Arc::clone(&self.api).serve_operator(theirs, self.stop.subscribe()));
        ours
    }

    /// Sends a request.
    pub async fn ask(&self, asked: Asked<'_>) -> Answer {
        let request = format!("{}{}", head(&asked, asked.body.len()), asked.body);
        let asking = exchange_over(self.connect(asked.from), request.into_bytes(), false);
        tokio::time::timeout(PATIENCE, asking).await.expect("an answer")
    }

    /// Sends a request whose body comes when its sender has been let in, and `meanwhile` has been done. Without that, it is
    /// answered without its body.
    pub async fn ask_slowly(&self, asked: Asked<'_>, meanwhile: impl FnOnce()) -> Answer {
        let headers = [asked.headers, &[("expect", "100-continue")]].concat();
        let head = head(&Asked { headers: &headers, ..asked }, asked.body.len());
        let mut stream = self.connect(asked.from);
        stream.write_all(head.as_bytes()).await.expect("it is taken");
        let mut told = [0; 25];
        let reading = tokio::time::timeout(PATIENCE, stream.read_exact(&mut told)).await;
        reading.expect("in time").expect("an answer");
        if &told != b"HTTP/1.1 100 Continue\r\n\r\n" {
            let mut rest = told.to_vec();
            let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
            reading.expect("in time").expect("an answer");
            return Answer::parsed(&rest);
        }
        meanwhile();
        let body = asked.body.as_bytes().to_vec();
        tokio::time::timeout(PATIENCE, exchange_over(stream, body, false)).await.expect("an answer")
    }

    /// Begins a session, and returns its cookie.
    pub async fn log_in(&self, user: &str) -> String {
        let body = format!("username={user}&password={user}");
        let answer = self.ask(Asked { body: &body, ..Asked::new("POST", "/api/login") }).await;
        assert_eq!(answer.status, 200, "{user}: {answer:?}");
        answer.headers["set-cookie"].split(';').next().expect("a pair").to_owned()
    }
}

pub fn head(asked: &Asked<'_>, length: usize) -> String {
    let Asked { method, path, login, headers, .. } = asked;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n");
    if let Some(user) = login {
        head += &format!("authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{user}")));
    }
    for (name, value) in *headers {
        head += &format!("{name}: {value}\r\n");
    }
    head + &format!("content-length: {length}\r\n\r\n")
}

fn settings(
    broker: &Arc<Broker>,
    (now_ms, clock): (&Arc<AtomicU64>, &Arc<OnceLock<Clock>>),
    known_elsewhere: &Arc<OnceLock<Arc<dyn Authority>>>,
) -> Settings {
    let known_elsewhere = Arc::clone(known_elsewhere);
    let accounts = Arc::clone(broker.accounts());
    let (known, now, token_now) = (Arc::clone(&accounts), Arc::clone(now_ms), Arc::clone(now_ms));
    let clock = Arc::clone(clock);
    Settings {
        accounts,
        log_in: Arc::new(move |name, password, from| {
            let name = String::from_utf8(name).expect("a name");
            let decided = match known.directory().user(&name).cloned() {
                _ if name.as_bytes() != &password[..] => {
                    Err(LoginRefused::InvalidCredentials(name))
                }
                Some(user) => known.come_from(&user, from).map(|()| Login {
                    user,
                    account: None,
                    rehashed: None,
                    grant: None,
                }),
                None if name == OF_TOKEN => {
                    let until_ms = token_now.load(Ordering::Relaxed) + TOKEN_MS;
                    Ok(granted(Arc::new(Token::until(until_ms))))
                }
                None => match known_elsewhere.get() {
                    Some(one) if one.user().name == name => Ok(granted(Arc::clone(one))),
                    _ => Err(LoginRefused::InvalidCredentials(name)),
                },
            };
            Box::pin(async move { decided })
        }),
        now_ms: Arc::new(move || {
            clock.get().map_or_else(|| now.load(Ordering::Relaxed), |clock| clock())
        }),
        node: NodeFacts::default(),
        web: Web::default(),
        websocket: None,
        log: Arc::default(),
        amqp_logins: Arc::new(|| LoginCounts { succeeded: 0, failed: 0 }),
        forget_amqp_logins: Arc::new(|| {}),
        suspend_listeners: Arc::new(|_| {}),
        listeners_suspended: Arc::new(|| false),
        scrub: None,
        runtime: Arc::new(|_| Err("nothing changes here".to_owned())),
        configured: Arc::new(serde_json::Value::default),
        certificates: Arc::new(Vec::new),
        notices: Arc::new(Vec::new),
        cluster: None,
        groups: None,
        readmit: None,
        audit_log: None,
        audit_log_mode: 0o600,
    }
}

fn granted(authority: Arc<dyn Authority>) -> Login {
    let user = Arc::clone(authority.user());
    Login { user, account: None, rehashed: None, grant: Some(Grant::new(authority)) }
}

/// A token of an administrator.
#[derive(Debug)]
struct Token {
    user: Arc<User>,
    until_ms: u64,
}

impl Token {
    fn until(until_ms: u64) -> Self {
        let mut user = User::new(OF_TOKEN, PasswordHash::none());
        user.origin = Origin::Elsewhere;
        user.tags = Tags::administrator();
        Token { user: Arc::new(user), until_ms }
    }
}

impl Authority for Token {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, _vhost: &str) -> bool {
        true
    }

    fn permits(&self, _vhost: &str, _right: Right, _resource: Resource<'_>) -> bool {
        true
    }

    fn permits_topic(&self, _vhost: &str, _right: Right, _of: &[u8], _key: &[u8]) -> bool {
        true
    }

    fn expires_ms(&self) -> Option<u64> {
        Some(self.until_ms)
    }
}

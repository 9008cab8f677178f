//! The settings of endpoints, and what is wrong with them.

use crate::accounts::{Login, Roster};
use crate::security::Security;
use omq_tokio::MechanismSetup;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Every key of an endpoint.
const KEYS: [&str; 19] = [
    "socket",
    "bind",
    "connect",
    "queue",
    "exchange",
    "routing_key",
    "subscribe",
    "user",
    "password",
    "vhost",
    "security",
    "allow_null",
    "persistent",
    "prefetch",
    "high_water_messages",
    "high_water_bytes",
    "max_message_bytes",
    "peers_max",
    "timeout_ms",
];

/// What is wrong with the settings of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    problem: String,
}

impl ConfigError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        ConfigError { problem: problem.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// A type of ZeroMQ socket that an endpoint can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SocketKind {
    /// Takes messages of PUSH peers, for a queue or an exchange.
    Pull,
    /// Gives the messages of a queue to PULL peers.
    Push,
    /// Takes messages of PUB peers, for an exchange; the first frame is the routing key.
    Sub,
    /// Gives the messages of an exchange to SUB peers, as they subscribe.
    Xpub,
    /// Takes requests of REQ and DEALER peers for a queue, and gives them the replies.
    Router,
    /// Gives the requests of a queue to REP and ROUTER peers, and takes their replies.
    Dealer,
}

impl SocketKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            SocketKind::Pull => "pull",
            SocketKind::Push => "push",
            SocketKind::Sub => "sub",
            SocketKind::Xpub => "xpub",
            SocketKind::Router => "router",
            SocketKind::Dealer => "dealer",
        }
    }
}

/// An endpoint: a ZeroMQ socket and what it maps to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointConfig {
    /// What kind of socket it is.
    pub socket: SocketKind,
    /// Where it listens, such as `tcp://127.0.0.1:5555` or `ipc:///run/courser.zmq`.
    #[serde(default)]
    pub bind: Option<String>,
    /// Or where it connects to.
    #[serde(default)]
    pub connect: Option<String>,
    /// The queue that it publishes to or consumes; declared as a durable one if it is missing.
    #[serde(default)]
    pub queue: Option<String>,
    /// The exchange that it publishes to (pull, sub) or binds to (xpub).
    #[serde(default)]
    pub exchange: Option<String>,
    /// The routing key of what a pull socket publishes to an exchange.
    #[serde(default)]
    pub routing_key: String,
    /// What a sub socket subscribes to; everything unless said otherwise.
    #[serde(default = "everything")]
    pub subscribe: Vec<String>,
    /// The broker's user that the endpoint acts as.
    #[serde(default = "guest")]
    pub user: String,
    /// The password of that user.
    #[serde(default = "guest")]
    pub password: String,
    /// The virtual host that it works in.
    #[serde(default = "root")]
    pub vhost: String,
    /// Who may connect, or what it shows where it connects.
    #[serde(default)]
    pub security: Security,
    /// Lets peers of other machines in without any security.
    #[serde(default)]
    pub allow_null: bool,
    /// Whether published messages survive a restart of the broker, in durable queues.
    #[serde(default = "yes")]
    pub persistent: bool,
    /// Messages of a queue that may be on their way to peers.
    #[serde(default = "prefetch")]
    pub prefetch: u16,
    /// Messages that may wait in the endpoint, each way.
    #[serde(default = "high_water_messages")]
    pub high_water_messages: u32,
    /// Bytes that may wait in the endpoint, each way.
    #[serde(default = "high_water_bytes")]
    pub high_water_bytes: usize,
    /// Bytes of a message; a peer that sends a larger one is disconnected.
    #[serde(default = "max_message_bytes")]
    pub max_message_bytes: usize,
    /// Peers at the same time; more are disconnected.
    #[serde(default = "peers_max")]
    pub peers_max: usize,
    /// Milliseconds that a request may take (router, dealer).
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u32,
}

pub(crate) fn everything() -> Vec<String> {
    vec![String::new()]
}
fn guest() -> String {
    "guest".into()
}
fn root() -> String {
    "/".into()
}
fn yes() -> bool {
    true
}
pub(crate) fn prefetch() -> u16 {
    64
}
fn high_water_messages() -> u32 {
    1000
}
fn high_water_bytes() -> usize {
    64 << 20
}
fn max_message_bytes() -> usize {
    1 << 20
}
fn peers_max() -> usize {
    1024
}
pub(crate) fn timeout_ms() -> u32 {
    30_000
}

/// Reads a list of endpoints; a key that does not exist is refused, with the one that was probably meant.
///
/// # Errors
/// What is wrong with which endpoint.
pub fn endpoints<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<EndpointConfig>, D::Error> {
    let list = Vec::<Map<String, Value>>::deserialize(from)?;
    let read = |(index, settings): (usize, Map<String, Value>)| {
        known_keys(&settings)
            .and_then(|()| {
                let mut settings = settings;
                if let Some(security) = settings.get_mut("security") {
                    tidy(security)?;
                }
                serde_json::from_value(Value::Object(settings))
                    .map_err(|error| ConfigError::new(error.to_string()))
            })
            .and_then(|endpoint: EndpointConfig| endpoint.check().map(|()| endpoint))
            .map_err(|error| serde::de::Error::custom(format!("endpoint {}: {error}", index + 1)))
    };
    list.into_iter().enumerate().map(read).collect()
}

fn known_keys(settings: &Map<String, Value>) -> Result<(), ConfigError> {
    let Some(unknown) = settings.keys().find(|key| !KEYS.contains(&key.as_str())) else {
        return Ok(());
    };
    let near = KEYS.iter().min_by_key(|key| strsim::damerau_levenshtein(unknown, key));
    Err(ConfigError::new(match near {
        Some(near) if strsim::damerau_levenshtein(unknown, near) <= near.len() / 2 => {
            format!("unknown key '{unknown}'; did you mean '{near}'?")
        }
        _ => format!("unknown key '{unknown}'; there are {}", KEYS.join(", ")),
    }))
}

/// Makes YAML's null the mechanism of that name, and refuses what would not be looked at.
fn tidy(security: &mut Value) -> Result<(), ConfigError> {
    let Value::Object(settings) = security else {
        let expected = "security: a mapping with 'mechanism' is expected: null, plain or curve";
        return Err(ConfigError::new(expected));
    };
    if settings.get("mechanism") == Some(&Value::Null) {
        settings.insert("mechanism".into(), "null".into());
    }
    let is_null = settings.get("mechanism").is_some_and(|mechanism| mechanism == "null");
    match settings.keys().find(|key| is_null && *key != "mechanism") {
        Some(key) => Err(ConfigError::new(format!(
            "security.{key} is not for the mechanism null, which lets everybody in"
        ))),
        None => Ok(()),
    }
}

impl EndpointConfig {
    /// An endpoint of this kind at this address, with the defaults.
    #[must_use]
    pub fn new(socket: SocketKind, bind: &str) -> Self {
        EndpointConfig {
            socket,
            bind: Some(bind.to_owned()),
            connect: None,
            queue: None,
            exchange: None,
            routing_key: String::new(),
            subscribe: everything(),
            user: guest(),
            password: guest(),
            vhost: root(),
            security: Security::Null,
            allow_null: false,
            persistent: true,
            prefetch: prefetch(),
            high_water_messages: high_water_messages(),
            high_water_bytes: high_water_bytes(),
            max_message_bytes: max_message_bytes(),
            peers_max: peers_max(),
            timeout_ms: timeout_ms(),
        }
    }

    /// What it is called in the log: its kind and its address.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.socket.name(), self.address().unwrap_or("nowhere"))
    }

    /// Where it binds or connects.
    pub(crate) fn address(&self) -> Option<&str> {
        self.bind.as_deref().or(self.connect.as_deref())
    }

    /// What the socket is set to, so that only the right peers get in, or the endpoint gets in where it connects.
    pub(crate) fn mechanism(&self) -> Result<MechanismSetup, ConfigError> {
        if self.bind.is_some() { self.security.of_server() } else { self.security.of_client() }
    }

    /// The users of the broker that it works as, in their virtual hosts: each once.
    #[must_use]
    pub fn logins(&self) -> Vec<Login> {
        Roster::of(self).logins
    }

    /// How what it publishes is marked.
    pub(crate) fn delivery_mode(&self) -> Option<u8> {
        Some(if self.persistent { 2 } else { 1 })
    }

    /// Messages that a socket may hold for a peer.
    pub(crate) fn send_messages(&self) -> u32 {
        match self.socket {
            // It drops what goes beyond, and its bytes are counted: see `Held`.
            SocketKind::Xpub => self.high_water_messages,
            _ => self.socket_messages(),
        }
    }

    /// Bytes that a socket may hold for a peer, where the library would drop what is beyond its own bound of 2 MiB.
    pub(crate) fn send_bytes(&self) -> Option<usize> {
        (self.socket == SocketKind::Xpub).then_some(self.high_water_bytes)
    }

    /// Messages that a socket may hold, so that their bytes stay below the bound too.
    pub(crate) fn socket_messages(&self) -> u32 {
        let by_bytes = self.high_water_bytes / self.max_message_bytes;
        self.high_water_messages.min(u32::try_from(by_bytes).unwrap_or(u32::MAX)).max(1)
    }
}

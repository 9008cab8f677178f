//! What the API is told by the server that starts it.

use crate::Cluster;
use crate::LoginCounts;
use crate::groups::Groups;
use crate::log_lines::LogLines;
use crate::oauth::OAuthClient;
use crate::runtime::{AskedSetting, SettingInEffect};
use crate::scrub::Scrub;
use courser_auth::{Accounts, Authority, Login, LoginRefused};
use courser_broker::admin::PeerCertificate;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use zeroize::Zeroizing;

/// What an API is made with.
pub struct Settings {
    /// The users, shared with all other protocols.
    pub accounts: Arc<Accounts>,
    /// Checks names and passwords, of AMQP clients likewise.
    pub log_in: LogIn,
    /// Milliseconds since 1970.
    pub now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// What is known of the process.
    pub node: NodeFacts,
    /// What concerns browsers.
    pub web: Web,
    /// Who serves AMQP over WebSocket; without it, WebSockets are not served.
    pub websocket: Option<ServeWebSocket>,
    /// The last lines of the log.
    pub log: Arc<LogLines>,
    /// Logins over AMQP.
    pub amqp_logins: Arc<dyn Fn() -> LoginCounts + Send + Sync>,
    /// Begins to count these anew.
    pub forget_amqp_logins: Arc<dyn Fn() + Send + Sync>,
    /// Suspends the listeners for clients, or resumes them.
    pub suspend_listeners: Arc<dyn Fn(bool) + Send + Sync>,
    /// Whether they are suspended.
    pub listeners_suspended: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Reads the journal of this broker for damage, if anything does; a node's is asked for by way of its cluster.
    pub scrub: Option<Arc<dyn Scrub>>,
    /// Answers what is asked about settings of this node that can change, and changes them.
    pub runtime: AskRuntime,
    /// All settings, without secrets, as the configuration was read last, as far as they have come into effect.
    pub configured: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// The certificates in use.
    pub certificates: Arc<dyn Fn() -> Vec<Certificate> + Send + Sync>,
    /// What could not be done as it was asked for.
    pub notices: Arc<dyn Fn() -> Vec<Notice> + Send + Sync>,
    /// The cluster that the broker is a node of, if it is one.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// The groups of the cluster, if this is the API of home; none where there is one group, or where this is another one.
    pub groups: Option<Arc<dyn Groups>>,
    /// Knows users again whom the home of the cluster has let in, and whom no directory has.
    pub readmit: Option<Readmit>,
    /// The file that says who has asked for which change; none if changes are not to be logged.
    pub audit_log: Option<PathBuf>,
    /// Who may read and write that file, where it has to be made.
    pub audit_log_mode: u32,
}

/// Something that an operator should know until it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What kind of thing it is, for programs.
    pub kind: &'static str,
    /// What is wrong, and what to do.
    pub text: &'static str,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Says what a setting is, or has become; or why it can't be that.
pub type AskRuntime = Arc<dyn Fn(&AskedSetting) -> Result<SettingInEffect, String> + Send + Sync>;

/// Checks a name and a password that came from an address, away from the threads that serve connections.
pub type LogIn = Arc<dyn Fn(Vec<u8>, Zeroizing<Vec<u8>>, IpAddr) -> LoggingIn + Send + Sync>;

/// What a user may do, as another authority has said it before ([`Authority::passport`]); none if that can't be read.
pub type Readmit = Arc<dyn Fn(&str) -> Option<Arc<dyn Authority>> + Send + Sync>;

/// A login that is being checked.
pub type LoggingIn = Pin<Box<dyn Future<Output = Result<Login, LoginRefused>> + Send>>;

/// A connection that was one for HTTP.
pub type Upgraded = TokioIo<hyper::upgrade::Upgraded>;

/// Serves what is behind the handshake of a WebSocket; must not block.
pub type ServeWebSocket = Arc<dyn Fn(Upgraded, WebSocketEnds) + Send + Sync>;

/// What the TLS handshake with a client has said of it.
#[derive(Clone, Debug)]
pub struct ClientTls {
    /// The protocol's version and the cipher suite, as in `TLSv1_3, TLS13_AES_256_GCM_SHA384`.
    pub session: String,
    /// What is shown of the client's certificate, if it presented one.
    pub certificate: Option<PeerCertificate>,
    /// The user that the client's certificate names, or why it names none.
    pub user: Result<String, &'static str>,
    /// Encrypted bytes that the client's socket has taken: TLS keeps some of what it is given, and takes more when all of that
    /// has gone. None are counted where the socket is another node's.
    pub taken: Arc<AtomicU64>,
}

/// Both ends of a WebSocket.
#[derive(Clone, Debug)]
pub struct WebSocketEnds {
    /// Where the client is.
    pub peer: SocketAddr,
    /// Where it has connected to.
    pub local: SocketAddr,
    /// With TLS: what its handshake has said.
    pub tls: Option<Arc<ClientTls>>,
    /// It was asked for by a name that need not be this machine's: users who may only come from here must not log in.
    pub by_foreign_name: bool,
    /// The system says that the client belongs to the user whom the broker runs as, or to root.
    pub is_operator: bool,
}

/// What concerns browsers.
#[derive(Clone, Debug)]
pub struct Web {
    /// Whether the web page is served.
    pub page: bool,
    /// What stands before every path, as `/mq`; empty for nothing.
    pub path_prefix: String,
    /// The origins, as `https://tools.example`, whose pages may use the API; `*` lets all of them read
    /// what needs no credentials.
    pub cors_origins: Vec<String>,
    /// Names that the API is reached by. Where there are some, requests for other names with a dot in them are refused; where
    /// there is none, users who may only come from this machine can't log in by such a name.
    pub hosts: Vec<String>,
    /// Seconds for which browsers use nothing but TLS, once they have; 0 says nothing of that.
    pub hsts_max_age_s: u64,
    /// Seconds after which an unused session ends.
    pub session_idle_s: u64,
    /// Where pages log people in for tokens, if they do.
    pub oauth: Option<OAuthClient>,
}

impl Default for Web {
    fn default() -> Self {
        Web {
            page: true,
            path_prefix: String::new(),
            cors_origins: Vec::new(),
            hosts: Vec::new(),
            hsts_max_age_s: 0,
            session_idle_s: 8 * 3600,
            oauth: None,
        }
    }
}

impl Web {
    /// Whether a page of this origin is named.
    pub(crate) fn names_origin(&self, origin: &str) -> bool {
        origin != "null" && self.cors_origins.iter().any(|one| one == origin)
    }

    /// Whether a page of this origin may read answers.
    pub(crate) fn shares_with(&self, origin: &str) -> bool {
        origin != "null" && self.cors_origins.iter().any(|one| one == "*" || one == origin)
    }
}

/// What is known of the process that the broker runs in.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// The name of the node, as `courser@host`.
    pub name: String,
    /// The name of the cluster.
    pub cluster_name: String,
    /// The version of the broker.
    pub version: String,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The folder that its data is in.
    pub data_dir: PathBuf,
    /// Connections that it takes at the same time.
    pub connections_max: usize,
    /// SASL mechanisms that clients may log in with.
    pub mechanisms: Vec<String>,
    /// Where it listens.
    pub listeners: Vec<ListenerFacts>,
    /// What TLS connections of clients can be like.
    pub tls: TlsFacts,
}

/// What TLS connections of clients can be like, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TlsFacts {
    /// Versions of TLS.
    pub versions: Vec<TlsVersionFacts>,
    /// Cipher suites.
    pub cipher_suites: Vec<CipherSuiteFacts>,
}

/// A version of TLS.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TlsVersionFacts {
    /// Its name, as `tlsv1.3`.
    pub name: &'static str,
    /// Whether the settings allow it.
    pub enabled: bool,
}

/// A cipher suite.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CipherSuiteFacts {
    /// Its name in the registry of IANA.
    pub name: String,
    /// The version of TLS that it is for.
    pub version: &'static str,
    /// Whether the settings allow that.
    pub enabled: bool,
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateUse {
    /// The broker shows it to clients.
    Server,
    /// The broker trusts clients whose certificates it has signed.
    ClientAuthority,
    /// A node of a cluster shows it to the others.
    Node,
    /// A node trusts others whose certificates it has signed.
    NodeAuthority,
}

/// A certificate in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its file.
    pub path: String,
    /// What it is for.
    pub purpose: CertificateUse,
    /// The host names for which clients are shown it; empty for all that no other one is for.
    pub hosts: Vec<String>,
    /// Whose it is, as RFC 4514 writes it.
    pub subject: String,
    /// The other names in it: of hosts, addresses and the like.
    pub alternative_names: Vec<String>,
    /// Who has signed it.
    pub issuer: String,
    /// Its number there, in hexadecimal digits.
    pub serial: String,
    /// From when on it is good, in seconds since 1970.
    pub not_before_s: i64,
    /// When it expires, in seconds since 1970.
    pub not_after_s: i64,
}

/// Where the broker listens, and for what.
#[derive(Clone, Debug)]
pub struct ListenerFacts {
    /// `amqp`, `amqp/ssl`, `http`, `https`, `http/prometheus` or `https/prometheus`.
    pub protocol: &'static str,
    /// The address.
    pub address: SocketAddr,
}

impl ListenerFacts {
    /// Whether AMQP clients come there.
    pub(crate) fn is_for_clients(&self) -> bool {
        matches!(self.protocol, "amqp" | "amqp/ssl")
    }

    /// Whether it is reached with TLS only.
    pub fn is_tls(&self) -> bool {
        matches!(self.protocol, "amqp/ssl" | "https" | "https/prometheus")
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("node", &self.node).finish_non_exhaustive()
    }
}

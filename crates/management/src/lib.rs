//! The HTTP API of the broker, with the paths, objects and answers that RabbitMQ's tools know.
//!
//! [`Api`] answers the requests of connections that the server accepts ([`Api::serve`]). One table
//! says what is served; see `routes`. A request is read and authenticated here, and answered on a
//! thread that may be blocked, by a handler that asks the broker's `admin` and nothing else. While
//! no client asks, nothing runs but what lets go of notes that were made for lists.
#![forbid(unsafe_code)]

mod api;
mod asking;
mod audit;
mod call;
mod caller;
mod cluster;
mod cookies;
mod definitions;
mod fetches;
#[doc(hidden)]
pub mod fuzzing;
mod groups;
mod hosts;
mod http;
mod json;
mod list;
mod listener;
mod log_lines;
mod log_throttle;
mod login;
mod metrics;
mod name_search;
mod oauth;
mod openapi;
mod packed;
mod page;
mod path;
mod portions;
mod process;
mod rates;
mod reference;
mod refusal;
mod reply;
mod routes;
mod runtime;
mod scrub;
mod sessions;
mod settings;
mod shares;
mod slow;
mod taken;
mod values;

pub use cluster::{Cluster, ClusterError, ClusterNode, ClusterRole, Drained, VhostMove};
pub use definitions::{
    FIRST_USERS_MADE, IMPORTED_BY_NODES, IMPORTED_HASH, ImportError, Imported, LEFT_OUT, Rows,
    import,
};
pub use groups::{Groups, HOME, Later, Settled};
pub use http::relay::{OwnAnswer, Relay, RelayIo, RelayStream};
pub use log_lines::{LogLevel, LogLine, LogLines};
pub use metrics::{EndpointFigures, Exporter, Ledger, LoginCounts, ServerFigures};
pub use oauth::{Asking, Endpoints, Issued, OAuthClient, ProviderError, TokenGrant, TokenProvider};
pub use runtime::{AskedSetting, NewLevel, NewLimit, RuntimeSetting, SettingInEffect};
pub use scrub::{Scrub, ScrubState};
pub use settings::{
    AskRuntime, Certificate, CertificateUse, CipherSuiteFacts, ClientTls, ListenerFacts, LogIn,
    LoggingIn, NodeFacts, Notice, Readmit, ServeWebSocket, Settings, TlsFacts, TlsVersionFacts,
    Upgraded, Web, WebSocketEnds,
};
pub use shares::{Share, Shares};

use api::RefusedPermissions;
use asking::{ASKERS_MAX, USER_ASKERS_MAX};
use audit::Audit;
use courser_broker::admin::Admin;
use fetches::Fetches;
use groups::link::Links;
use http::places::Places;
use list::Sweeps;
use log_throttle::LogThrottle;
use login::Logins;
use packed::Packed;
use rates::Rates;
use routes::Routes;
use sessions::Sessions;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;

/// The version of RabbitMQ whose API this is.
pub const API_VERSION: &str = "4.3.6";

/// Why a node should not be stopped now.
pub const QUORUM_CRITICAL: &str = "without this node, the cluster has no majority";

/// Why a node with an alarm fails its check.
pub const LOCAL_ALARMS: &str = "There are alarms in effect on the node";

/// Requests that are answered at the same time, and those of one user; others wait.
const ANSWERS_MAX: usize = 32;
const USER_ANSWERS_MAX: usize = 16;
/// Portions of longer work, such as a search in messages, that are done at the same time, and those of one
/// user; others wait.
const PORTIONS_MAX: usize = 4;
const USER_PORTIONS_MAX: usize = 2;
/// Requests that are answered from all groups at the same time, and those of one user; others wait.
const GATHERS_MAX: usize = 32;
const USER_GATHERS_MAX: usize = 16;
/// Exports of definitions, and looks at what imports would change, at the same time, and those of one user; others wait.
const EXPORTS_MAX: usize = 4;
const USER_EXPORTS_MAX: usize = 2;
/// Questions to the provider of tokens at the same time, for logins; who asks one more is refused.
const EXCHANGES_MAX: usize = 8;
/// Connections on which events are followed, and those of one user; who asks for one more is refused.
const FOLLOWERS_MAX: usize = 64;
const USER_FOLLOWERS_MAX: usize = 16;
/// As many more are let in of administrators, and of one of them: no others keep all of them out.
const ADMINISTRATORS_MORE: usize = 16;
const ADMINISTRATOR_MORE: usize = 4;
/// Bytes of requests that are read or answered at the same time, and those of one user; others wait.
const BODIES_BYTES_MAX: usize = 64 << 20;
const USER_BODIES_BYTES_MAX: usize = 32 << 20;

/// The HTTP API of a broker.
pub struct Api {
    pub(crate) admin: Admin,
    pub(crate) settings: Settings,
    pub(crate) audit: Option<Audit>,
    pub(crate) logins: Logins,
    pub(crate) sessions: Sessions,
    pub(crate) routes: Routes,
    pub(crate) rates: Rates,
    pub(crate) sweeps: Sweeps,
    pub(crate) refused_permissions: RefusedPermissions,
    pub(crate) fetches: Fetches,
    pub(crate) answers: Arc<Shares>,
    /// For work that takes longer than an answer.
    pub(crate) portions: Arc<Shares>,
    /// One for each vhost, for requests that change its policies.
    pub(crate) turns: Shares,
    /// One for each user in each vhost, for those of these requests that are that user's.
    pub(crate) own_turns: Shares,
    /// For requests whose users another program knows.
    pub(crate) askers: Shares,
    pub(crate) places: Arc<Places>,
    /// For connections of the operator of this machine, whom no others keep out.
    pub(crate) operators: Arc<Places>,
    /// For connections from home.
    pub(crate) inside: Arc<Places>,
    pub(crate) links: Links,
    pub(crate) gathers: Shares,
    /// Of these, for users whom another program knows.
    pub(crate) asking_gathers: Shares,
    pub(crate) exports: Shares,
    pub(crate) followers: Shares,
    /// For administrators who find no place among these.
    pub(crate) more_followers: Shares,
    /// For logins at the provider of tokens.
    pub(crate) exchanges: Semaphore,
    /// For what the log is told of moves, of parameters that nothing comes of, and of tokens of the provider.
    pub(crate) moves_log: LogThrottle,
    pub(crate) parameters_log: LogThrottle,
    pub(crate) tokens_log: LogThrottle,
    /// What strangers may read of this API, made once.
    pub(crate) description: OnceLock<Packed>,
    pub(crate) reference: OnceLock<Packed>,
    /// One permit a byte.
    pub(crate) bodies: Shares,
}

impl Api {
    /// The API of the broker that `admin` belongs to.
    pub fn new(admin: Admin, settings: Settings) -> Arc<Self> {
        Arc::new(Api {
            admin,
            audit: settings.audit_log.clone().map(|path| Audit::new(path, settings.audit_log_mode)),
            logins: Logins::new(&settings),
            sessions: Sessions::default(),
            settings,
            routes: Routes::new(api::TABLE),
            rates: Rates::default(),
            sweeps: Sweeps::default(),
            refused_permissions: RefusedPermissions::default(),
            fetches: Fetches::default(),
            answers: Arc::new(Shares::new(ANSWERS_MAX, USER_ANSWERS_MAX)),
            portions: Arc::new(Shares::new(PORTIONS_MAX, USER_PORTIONS_MAX)),
            turns: Shares::new(Semaphore::MAX_PERMITS, 1),
            own_turns: Shares::new(Semaphore::MAX_PERMITS, 1),
            askers: Shares::new(ASKERS_MAX, USER_ASKERS_MAX),
            places: Arc::default(),
            operators: Arc::default(),
            inside: Arc::default(),
            links: Links::default(),
            gathers: Shares::new(GATHERS_MAX, USER_GATHERS_MAX),
            asking_gathers: Shares::new(ASKERS_MAX, USER_ASKERS_MAX),
            exports: Shares::new(EXPORTS_MAX, USER_EXPORTS_MAX),
            followers: Shares::new(FOLLOWERS_MAX, USER_FOLLOWERS_MAX),
            more_followers: Shares::new(ADMINISTRATORS_MORE, ADMINISTRATOR_MORE),
            exchanges: Semaphore::new(EXCHANGES_MAX),
            moves_log: LogThrottle::default(),
            parameters_log: LogThrottle::default(),
            tokens_log: LogThrottle::default(),
            description: OnceLock::new(),
            reference: OnceLock::new(),
            bodies: Shares::new(BODIES_BYTES_MAX, USER_BODIES_BYTES_MAX),
        })
    }

    /// Whether what is in a vhost is in this broker, as far as it is in any.
    pub(crate) fn is_here(&self, vhost: &str) -> bool {
        self.admin.group_of(vhost).is_none_or(|group| group == self.admin.group())
    }

    pub(crate) fn now_ms(&self) -> u64 {
        (self.settings.now_ms)()
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

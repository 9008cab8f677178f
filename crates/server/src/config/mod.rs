//! Settings: what there is to set, where a setting comes from, and what is wrong with it.
//!
//! Defaults come first, a YAML file goes over them, the environment over both. The tree of the
//! defaults is also the list of what exists: a key that is not in it is an error.

mod addresses;
mod auth;
mod auth_http;
mod cluster;
mod explained;
mod http;
mod limits;
mod log;
mod management;
mod memory;
mod merge;
mod metrics;
mod networks;
mod oauth;
mod policies;
mod shown;
mod tls;

pub use auth::Auth;
pub use auth_http::{AuthHttp, AuthHttpMethod};
pub use cluster::Cluster;
pub use http::HttpListen;
pub use limits::LimitSettings;
pub(crate) use limits::{memory_fraction_bytes, memory_high_bytes, warn_of_memory};
pub use log::Log;
pub(crate) use log::{check_level, has_trace};
pub use management::Management;
pub use merge::ConfigError;
pub use metrics::Metrics;
pub use networks::Network;
pub use oauth::{OAuth, ScopeAlias, SigningKey};
pub use policies::{PolicySettings, VhostSettings};
pub use tls::{ClientCertificates, ExternalName, Tls, TlsHost, TlsVersion};

use courser_broker::{Limits, Policy, PolicyKind};
use courser_journal::{Disk, GroupDisk, RealDisk};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The commented file that `--generate-config` writes: every key with its default.
pub const TEMPLATE: &str = include_str!("template.yaml");

/// The least that the log's buffer holds.
const BUFFER_BYTES_MIN: usize = 64 << 10;

/// The longest gap between two syncs: confirms wait for it.
const GATHER_US_MAX: u64 = 100_000;
const AMQP_GATHER_US_MAX: u64 = 10_000;
const AMQP_THREADS_MAX: usize = 1024;
const SCRUB_DAYS_MAX: u32 = 365;

/// All settings of a broker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where to listen for AMQP connections. Port 0 stands for any free one.
    #[serde(deserialize_with = "addresses::list")]
    pub listen: Vec<SocketAddr>,
    /// Listeners with TLS.
    pub tls: Tls,
    /// What makes this broker a node of a cluster.
    pub cluster: Cluster,
    /// The folder that belongs to this broker alone; made if missing.
    pub data_dir: PathBuf,
    /// Whether the folder's group may read what is made in it; otherwise only its owner may.
    pub data_dir_group: bool,
    /// Who may log in.
    pub auth: Auth,
    /// A program that knows users whom the broker does not.
    pub auth_http: AuthHttp,
    /// Logins with tokens of OAuth 2.
    pub oauth: OAuth,
    /// What is negotiated with clients.
    pub amqp: Amqp,
    /// Bounds on what clients can make grow.
    pub limits: LimitSettings,
    /// The vhosts that there are besides `/`, and the limits of each.
    pub vhosts: Vec<VhostSettings>,
    /// Settings for all queues and exchanges whose names match.
    pub policies: Vec<PolicySettings>,
    /// Bounds on what policies and arguments ask for.
    pub operator_policies: Vec<PolicySettings>,
    /// How messages are kept on the disk.
    pub journal: JournalSettings,
    /// The HTTP API.
    pub management: Management,
    /// Metrics for Prometheus.
    pub metrics: Metrics,
    /// What ZeroMQ programs can reach.
    pub gateway: Gateway,
    /// What is written to standard error.
    pub log: Log,
}

/// What is negotiated with clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amqp {
    /// Channels on one connection.
    pub channel_max: u16,
    /// Bytes of the largest frame; at least 4096.
    pub frame_max: u32,
    /// Seconds between heartbeats that the broker proposes; 0 proposes none.
    pub heartbeat_s: u16,
    /// Milliseconds from the connection to the end of its handshake.
    pub handshake_timeout_ms: u64,
    /// Milliseconds that a client's socket may take nothing of what is sent to it; 0 for as long as it wants.
    pub send_timeout_ms: u64,
    /// Threads that serve clients at most, of which as many do as the load needs: see [`Workers`](crate::Workers);
    /// 0 for as many as the machine has processors.
    pub threads: usize,
    /// Microseconds that a thread of the runtime pauses before it waits for sockets, where processors
    /// are busy: see [`Gather`](crate::Gather).
    pub gather_us: u64,
    /// Bytes of the largest message body.
    pub max_message_bytes: u64,
    /// Where proxies connect from that say whose connections they pass on (PROXY protocol), to `listen`.
    pub proxy_protocol_from: Vec<Network>,
}

/// How messages are kept on the disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalSettings {
    /// Bytes of a segment file.
    pub segment_bytes: u64,
    /// Bytes that may wait for the disk before publishers have to.
    pub buffer_bytes: usize,
    /// Microseconds that persistent messages may wait for more to share their sync; 0 for none.
    pub gather_us: u64,
    /// Bytes of log after which a checkpoint is made, so that less has to be replayed at a start.
    pub checkpoint_after_bytes: u64,
    /// Bytes that the log may take beyond twice what is live in it before space is reclaimed.
    pub dead_bytes: u64,
    /// Segments that are kept ready; one of them is the reserve for acknowledgements on a full disk.
    pub spare_segments: usize,
    /// Days in which all of the journal is read once to find damage; 0 for only when an operator asks.
    pub scrub_days: u32,
}

/// What ZeroMQ programs can reach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Its sockets; none unless said otherwise.
    #[serde(deserialize_with = "crate::gateway::endpoints")]
    pub endpoints: Vec<crate::gateway::EndpointConfig>,
}

impl Default for Config {
    fn default() -> Self {
        let limits = Limits::default();
        let journal = courser_journal::Options::default();
        Config {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 5672))],
            tls: Tls::default(),
            cluster: Cluster::default(),
            data_dir: PathBuf::from("./courser-data"),
            data_dir_group: false,
            auth: Auth::default(),
            auth_http: AuthHttp::default(),
            oauth: OAuth::default(),
            amqp: Amqp {
                channel_max: 2047,
                frame_max: 131_072,
                heartbeat_s: 60,
                handshake_timeout_ms: 10_000,
                send_timeout_ms: 30_000,
                threads: 0,
                gather_us: 200,
                max_message_bytes: 16 * 1024 * 1024,
                proxy_protocol_from: Vec::new(),
            },
            limits: LimitSettings {
                connections_max: 65_536,
                memory_high_bytes: 0,
                outbox_high_bytes: limits.outbox_high_bytes,
                queues_max: limits.queues_max,
                exchanges_max: limits.exchanges_max,
                bindings_max: limits.bindings_max,
                consumers_per_channel_max: limits.consumers_per_channel_max,
                consumers_per_connection_max: limits.consumers_per_connection_max,
                consumers_per_queue_max: limits.consumers_per_queue_max,
                unacked_per_channel_max: limits.unacked_per_channel_max,
                transaction_max_bytes: limits.transaction_max_bytes,
                transaction_publishes_max: limits.transaction_publishes_max,
                pace_backlog: limits.pace_backlog,
            },
            vhosts: Vec::new(),
            policies: Vec::new(),
            operator_policies: Vec::new(),
            journal: JournalSettings {
                segment_bytes: journal.segment_bytes,
                buffer_bytes: journal.buffer_bytes,
                gather_us: journal.gather.as_micros() as u64,
                checkpoint_after_bytes: journal.checkpoint_after_bytes,
                dead_bytes: journal.dead_bytes,
                spare_segments: journal.spare_segments,
                scrub_days: 7,
            },
            management: Management::default(),
            metrics: Metrics::default(),
            gateway: Gateway::default(),
            log: Log::default(),
        }
    }
}

impl Config {
    /// The settings from `file` (if any) and the variables of `environment` that concern Courser.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        merge::load(file, environment)
    }

    /// Refuses values that no broker could run with.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.listen.is_empty() && self.tls.listen.is_empty() {
            let why = "needs at least one address, such as 127.0.0.1:5672";
            return Err(ConfigError::invalid("listen", why));
        }
        self.check_values()
    }

    /// The same for a broker that may listen nowhere: a program that embeds it has other ways in.
    pub(crate) fn check_values(&self) -> Result<(), ConfigError> {
        let wrong = |key, why: &str| Err(ConfigError::invalid(key, why));
        self.management.check()?;
        self.metrics.check()?;
        let tls_for_http = [&self.management.tls_listen, &self.metrics.tls_listen];
        self.tls.check(tls_for_http.iter().any(|addresses| !addresses.is_empty()))?;
        self.check_proxies()?;
        if self.amqp.frame_max < 4096 {
            return wrong("amqp.frame_max", "must be at least 4096");
        }
        if self.amqp.frame_max > 16 * 1024 * 1024 {
            return wrong("amqp.frame_max", "must be at most 16777216");
        }
        if self.amqp.channel_max == 0 {
            return wrong("amqp.channel_max", "must be at least 1");
        }
        if self.amqp.max_message_bytes > 512 * 1024 * 1024 {
            return wrong("amqp.max_message_bytes", "must be at most 536870912 (512 MiB)");
        }
        if self.amqp.handshake_timeout_ms == 0 {
            return wrong("amqp.handshake_timeout_ms", "must be at least 1");
        }
        if self.amqp.threads > AMQP_THREADS_MAX {
            return wrong("amqp.threads", "must be at most 1024");
        }
        if self.amqp.gather_us > AMQP_GATHER_US_MAX {
            return wrong("amqp.gather_us", "must be at most 10000");
        }
        self.limits.check()?;
        self.auth.check()?;
        self.auth_http.check()?;
        self.oauth.check()?;
        self.cluster.check()?;
        if self.cluster.is_on() && !self.gateway.endpoints.is_empty() {
            let why = "must be empty on a node of a cluster: only a broker by itself serves ZeroMQ";
            return wrong("gateway.endpoints", why);
        }
        if !(1 << 20..=1 << 30).contains(&self.journal.segment_bytes) {
            return wrong("journal.segment_bytes", "must be from 1048576 to 1073741824");
        }
        // A log that may hold next to nothing waits for the disk for ever.
        if self.journal.buffer_bytes < BUFFER_BYTES_MIN {
            return wrong("journal.buffer_bytes", "must be at least 65536");
        }
        if self.journal.gather_us > GATHER_US_MAX {
            return wrong("journal.gather_us", "must be at most 100000");
        }
        if self.journal.spare_segments < 3 {
            return wrong("journal.spare_segments", "must be at least 3");
        }
        if self.journal.scrub_days > SCRUB_DAYS_MAX {
            return wrong("journal.scrub_days", "must be at most 365");
        }
        self.log.check()?;
        policies::check_vhosts(&self.vhosts)?;
        self.all_policies().map(drop)
    }

    /// Refuses proxies of listeners that there are not.
    fn check_proxies(&self) -> Result<(), ConfigError> {
        let (tls, management, metrics) = (&self.tls, &self.management, &self.metrics);
        for (key, proxies, is_alone) in [
            ("amqp", &self.amqp.proxy_protocol_from, self.listen.is_empty()),
            ("tls", &tls.proxy_protocol_from, tls.listen.is_empty()),
            (
                "management",
                &management.proxy_protocol_from,
                management.addresses().is_empty() && management.tls_listen.is_empty(),
            ),
            (
                "metrics",
                &metrics.proxy_protocol_from,
                metrics.addresses().is_empty() && metrics.tls_listen.is_empty(),
            ),
        ] {
            if is_alone && !proxies.is_empty() {
                let key = format!("{key}.proxy_protocol_from");
                let why = "names proxies, but there is no address where they could connect to";
                return Err(ConfigError::invalid(&key, why));
            }
        }
        Ok(())
    }

    /// All policies with the vhosts that they are for.
    pub(crate) fn all_policies(&self) -> Result<Vec<(String, PolicyKind, Policy)>, ConfigError> {
        policies::policies(&self.policies, &self.operator_policies)
    }

    /// These, with what others have of all that takes effect when it is read again.
    #[must_use]
    pub fn with_reloaded(&self, read: &Config) -> Config {
        let mut now = Config {
            vhosts: read.vhosts.clone(),
            policies: read.policies.clone(),
            operator_policies: read.operator_policies.clone(),
            log: read.log.clone(),
            ..self.clone()
        };
        now.limits.memory_high_bytes = read.limits.memory_high_bytes;
        now
    }

    /// The disk, with the permissions that the settings want.
    pub fn disk(&self) -> Arc<dyn Disk> {
        match self.data_dir_group {
            true => Arc::new(GroupDisk),
            false => Arc::new(RealDisk),
        }
    }

    /// The mode of files that are not made through [`Config::disk`].
    pub(crate) fn file_mode(&self) -> u32 {
        if self.data_dir_group { 0o640 } else { 0o600 }
    }

    /// How long a client's socket may take nothing.
    pub(crate) fn send_timeout(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.amqp.send_timeout_ms)).filter(|timeout| !timeout.is_zero())
    }

    /// What the journal is opened with.
    pub fn journal_options(&self) -> courser_journal::Options {
        courser_journal::Options {
            segment_bytes: self.journal.segment_bytes,
            buffer_bytes: self.journal.buffer_bytes,
            gather: Duration::from_micros(self.journal.gather_us),
            checkpoint_after_bytes: self.journal.checkpoint_after_bytes,
            dead_bytes: self.journal.dead_bytes,
            spare_segments: self.journal.spare_segments,
            noting: Some(courser_broker::NOTING),
            ..courser_journal::Options::default()
        }
    }
}

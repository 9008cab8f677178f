//! The Courser broker as a library: listeners, the driver of each connection, and the settings.
//!
//! ```no_run
//! use courser::{Config, Server};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let config = Config { listen: vec!["127.0.0.1:0".parse()?], ..Config::default() };
//! let server = Server::start(config).await?;
//! println!("amqp://guest:guest@{}", server.addresses()[0]);
//! server.stop().await?;
//! # Ok(())
//! # }
//! ```

/// The examples of the page for programs that embed the broker.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Embedding;

mod accounts;
mod auth_http;
mod banner;
mod blocking;
mod clock;
mod cluster;
mod config;
mod data_dir;
mod definitions;
mod doors;
mod driver;
#[cfg(feature = "gateway")]
mod gateway;
#[cfg(not(feature = "gateway"))]
#[path = "gateway_absent.rs"]
mod gateway;
mod gather;
mod host;
mod http;
mod https;
mod inside;
#[cfg(test)]
mod interleavings;
mod listener;
mod log_lines;
mod login;
mod management;
mod metrics;
mod negotiated;
mod notices;
mod oauth;
mod open_files;
mod operator_socket;
mod peer;
mod places;
mod proxies;
mod read_buffers;
mod runtime_settings;
mod scrub;
mod server;
mod service;
mod storage;
mod suspension;
#[cfg(test)]
mod testing;
mod throttle;
mod timers;
mod tls;
mod turns;
mod watchdog;
mod websocket;
mod workers;

pub use banner::{banner, node_banner};
pub use clock::Clock;
pub use cluster::{Node, RecoveryError, recover};
pub use config::{
    Amqp, Auth, AuthHttp, AuthHttpMethod, ClientCertificates, Cluster, Config, ConfigError,
    ExternalName, Gateway, HttpListen, LimitSettings, Log, Management, Metrics, Network, OAuth,
    PolicySettings, ScopeAlias, SigningKey, TEMPLATE, Tls, TlsHost, TlsVersion, VhostSettings,
};
pub use definitions::DefinitionsError;
pub use doors::Addresses;
pub use gather::Gather;
pub use inside::NoPlace;
pub use listener::Inherited;
pub use log_lines::{Escaped, KeepLogLines};
pub use notices::Reloaded;
pub use open_files::raise_limit as raise_open_file_limit;
pub use runtime_settings::log_filter;
pub use server::{Server, StartError, Surroundings};
pub use storage::{StopError, StoreFailed};
pub use tls::TlsError;
pub use workers::Workers;

/// The name that brokers have where the settings give them none.
pub(crate) const CLUSTER_NAME: &str = "courser";

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

//! A gateway between ZeroMQ and an AMQP 0-9-1 broker.
//!
//! A list of [`EndpointConfig`]s says which ZeroMQ sockets there are and what each maps to. An endpoint is a task with a
//! socket on one side and an AMQP connection of its own on the other, over whatever stream a [`Connector`] makes: the
//! broker that it is built into hands out pipes in memory. One that publishes what it gets for what it consumes has a
//! second connection for that. So it can do what its user may do, and no more.
//!
//! What each kind of socket does, how messages are mapped and what is bounded by what: `docs/zeromq.md`.
#![forbid(unsafe_code)]

mod accounts;
mod bindings;
mod check;
mod config;
mod dealer;
mod endpoint;
mod frames;
mod handshakes;
mod held;
mod holders;
mod inbound;
mod intake;
mod link;
mod log_throttle;
mod metrics;
mod publisher;
mod push;
mod replies;
mod router;
mod security;
mod socket;
mod subscriptions;
mod watch;
mod xpub;

pub use accounts::{Account, Login};
pub use config::{ConfigError, EndpointConfig, SocketKind, endpoints};
pub use frames::{Envelope, FRAMES_HEADER, LENGTHS_HEADER, Mapped, from_amqp, to_amqp};
pub use handshakes::handshakes_wanted;
pub use link::{Connector, Stream};
pub use metrics::{Metrics, Snapshot};
pub use security::{CurveClient, PlainUser, Security};

use accounts::Roster;
use endpoint::Endpoint;
use link::Link;
use socket::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

/// How long endpoints have to hand over what they hold when the gateway stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings of an endpoint are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address can't be used.
    #[error("gateway: {endpoint}: {reason}")]
    Socket {
        /// Name of the endpoint.
        endpoint: String,
        /// What the system said.
        reason: String,
    },
    /// An endpoint takes larger messages than the broker.
    #[error(
        "gateway: {endpoint}: max_message_bytes is more than amqp.max_message_bytes, {broker_max}"
    )]
    Size {
        /// Name of the endpoint.
        endpoint: String,
        /// Bytes of the largest message that the broker takes.
        broker_max: u64,
    },
    /// The broker has no such user, or another password for it.
    #[error("gateway: {endpoint}: the broker does not know user '{user}' with this password")]
    Login {
        /// Name of the endpoint.
        endpoint: String,
        /// The user.
        user: String,
    },
}

/// A running gateway. Dropping it ends its endpoints at once; [`Gateway::stop`] lets them finish.
pub struct Gateway {
    stop: channel::Sender<bool>,
    tasks: JoinSet<()>,
    endpoints: Vec<Running>,
}

struct Running {
    name: String,
    address: String,
    metrics: Arc<Metrics>,
}

impl Gateway {
    /// Binds and connects the sockets of all endpoints, and starts to carry messages. Connections that have not finished
    /// their handshake may take so many descriptors together; [`handshakes_wanted`] are enough for all.
    ///
    /// # Errors
    /// When settings are wrong or an address is taken; nothing runs then. That the broker does not let an endpoint do
    /// what it is there for is no error: the endpoint says so in the log, and tries again.
    pub async fn start(
        configs: &[EndpointConfig],
        connector: Connector,
        handshakes: usize,
    ) -> Result<Self, StartError> {
        let (stop, stopping) = channel::channel(false);
        let mut gateway = Gateway { stop, tasks: JoinSet::new(), endpoints: Vec::new() };
        for config in configs {
            config.check()?;
            let metrics = Arc::new(Metrics::default());
            let roster = Roster::of(config);
            let places = handshakes::share(config, configs, handshakes);
            let opened = Bound::open(config, places, roster.logins.len() > 1, &metrics).await;
            let bound = opened.map_err(|error| StartError::Socket {
                endpoint: config.name(),
                reason: error.to_string(),
            })?;
            gateway.endpoints.push(Running {
                name: config.name(),
                address: bound.address.clone(),
                metrics: Arc::clone(&metrics),
            });
            let (halt, halting) = channel::channel(false);
            let links = roster
                .logins
                .iter()
                .map(|login| Link::new(config, login, &connector, &metrics, &halting))
                .collect();
            let endpoint = Endpoint { kind: config.socket, links, roster, bound, halt };
            gateway.tasks.spawn(endpoint.run(stopping.clone()));
        }
        Ok(gateway)
    }

    /// Names and addresses of the endpoints, with the real port where `*` was asked for.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, &str)> {
        self.endpoints.iter().map(|endpoint| (endpoint.name.as_str(), endpoint.address.as_str()))
    }

    /// What the endpoints count, by name, also when this has gone.
    pub fn counters(&self) -> Vec<(String, Arc<Metrics>)> {
        let of = |endpoint: &Running| (endpoint.name.clone(), Arc::clone(&endpoint.metrics));
        self.endpoints.iter().map(of).collect()
    }

    /// What has happened so far, by name of endpoint.
    pub fn snapshot(&self) -> Vec<(String, Snapshot)> {
        let of = |endpoint: &Running| (endpoint.name.clone(), endpoint.metrics.snapshot());
        self.endpoints.iter().map(of).collect()
    }

    /// Writes what has happened so far to the log.
    pub fn log_counters(&self) {
        for (endpoint, snapshot) in self.snapshot() {
            tracing::info!(endpoint, %snapshot, "gateway: so far");
        }
    }

    /// Stops taking messages, and waits a few seconds at most until the broker has confirmed those that were taken.
    pub async fn stop(mut self) {
        // An error means that no endpoint is left.
        let _ = self.stop.send(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_TIMEOUT, all).await.is_err() {
            tracing::warn!("gateway: endpoints did not finish in time");
        }
        for (endpoint, snapshot) in self.snapshot() {
            tracing::info!(endpoint, %snapshot, "gateway: stopped");
        }
    }
}

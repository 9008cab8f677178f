//! A running broker: its listeners and its end.

use crate::VERSION;
use crate::config::{Config, ConfigError};
use crate::data_dir::{DataDir, DataDirError};
use crate::driver::{self, Counted, Shared};
use crate::durable;
use crate::gateway;
use crate::timers;
use courser_broker::{Broker, PolicyError, RestoreError};
use courser_codec::FieldTable;
use courser_connection::server::{Config as ConnectionConfig, capabilities};
use courser_gateway::Gateway;
use courser_journal::{JournalStore, RecoverError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// Connections that may wait to be accepted.
const LISTEN_BACKLOG: u32 = 4096;
/// How long clients have to answer the broker's farewell.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a broker could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder can't be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// An address can't be listened on.
    #[error("can't listen on {address}: {error}{}", listen_hint(.error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The journal can't be taken into use.
    #[error("{path}: {error}", path = .path.display())]
    Journal {
        /// Its folder.
        path: PathBuf,
        /// What is wrong.
        error: RecoverError,
    },
    /// What the journal holds is not what this broker writes.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The gateway to ZeroMQ could not start.
    #[error(transparent)]
    Gateway(#[from] courser_gateway::StartError),
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A vhost or policy of the configuration can't be had.
    #[error("configuration: policies: {0}")]
    Policy(PolicyError),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

fn listen_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " (is another broker running? choose a port with --listen)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 need privileges)",
        _ => "",
    }
}

/// A broker that listens. Dropping it stops it without ceremony; [`Server::stop`] says goodbye.
pub struct Server {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    failure: watch::Receiver<Option<String>>,
    checkpoints: durable::Checkpoints,
    store: Arc<JournalStore>,
    gateway: Option<Gateway>,
    broker: Arc<Broker>,
    _data_dir: DataDir,
}

impl Server {
    /// Starts a broker on the current tokio runtime.
    pub async fn start(config: Config) -> Result<Server, StartError> {
        let data_dir = DataDir::open(&config.data_dir)?;
        let seed = getrandom::u64().map_err(StartError::Random)?;
        let limits = config.broker_limits();
        let (broker, store) = durable::open(&config, limits, seed)?;
        set_up(&broker, &config)?;
        let (stop, stopping) = watch::channel(false);
        let (failed, failure) = watch::channel(None);
        broker.on_failure(move |reason| {
            failed.send_replace(Some(reason.to_owned()));
        });
        let mut listeners = Vec::new();
        for address in &config.listen {
            let listener = listen(*address)
                .map_err(|error| StartError::Listen { address: *address, error })?;
            listeners.push(listener);
        }
        let shared = Arc::new(Shared {
            broker,
            auth: config.auth.clone(),
            connection: Arc::new(connection_config(&config)),
            connections: AtomicUsize::new(0),
        });
        let gateway = gateway::start(&config, &shared, &stopping).await?;
        let mut addresses = Vec::new();
        for listener in listeners {
            addresses.extend(listener.local_addr());
            let most = config.limits.connections_max;
            tokio::spawn(accept(listener, Arc::clone(&shared), most, stopping.clone()));
        }
        timers::start(&shared.broker, stopping);
        let checkpoints = durable::Checkpoints::start(&shared.broker, &store);
        let broker = Arc::clone(&shared.broker);
        let _data_dir = data_dir;
        Ok(Server { addresses, stop, failure, checkpoints, store, gateway, broker, _data_dir })
    }

    /// Takes over what can change while the broker runs: vhosts, their limits, and policies. If
    /// anything is wrong, no policy is changed.
    pub fn reload(&self, config: &Config) -> Result<(), StartError> {
        set_up(&self.broker, config)
    }

    /// The broker, for programs that embed it.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// Where it listens, with the real port where 0 was asked for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The gateway to ZeroMQ, if it has endpoints.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// Waits until the store has failed, and says why: nothing can be confirmed from then on, and
    /// the broker has to be stopped.
    pub async fn failed(&self) -> String {
        let mut failure = self.failure.clone();
        match failure.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // The broker is gone, and with it whatever could fail.
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops listening, closes every connection with 320, waits a few seconds at most for the
    /// clients to take note, and makes everything durable.
    pub async fn stop(mut self) -> Result<(), String> {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
        // An error means that nobody is left to be told.
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.stop.closed()).await;
        let Server { checkpoints, store, .. } = self;
        let closed = tokio::task::spawn_blocking(move || {
            checkpoints.finish();
            store.journal().close()
        });
        match closed.await {
            Ok(closed) => closed.map_err(|failure| failure.to_string()),
            Err(panicked) => Err(panicked.to_string()),
        }
    }
}

/// Makes the vhosts that the configuration names, and has its policies followed.
fn set_up(broker: &Arc<Broker>, config: &Config) -> Result<(), StartError> {
    let policies = config.all_policies()?;
    // Asked before anything is changed.
    config.check_vhosts_of_policies(|vhost| broker.vhost(vhost).is_some())?;
    for vhost in &config.vhosts {
        let defined = broker.define_vhost(&vhost.name, vhost.limits()).map_err(PolicyError::Store);
        defined.map_err(StartError::Policy)?;
    }
    broker.configure_policies(policies).map_err(StartError::Policy)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(LISTEN_BACKLOG)
}

fn connection_config(config: &Config) -> ConnectionConfig {
    let properties = FieldTable::new()
        .with("product", "Courser")
        .with("version", VERSION)
        .with("platform", "Rust")
        .with("copyright", "Copyright (c) 2026 The Courser authors")
        .with("information", "Licensed under the MIT License")
        .with("cluster_name", "courser")
        .with("capabilities", capabilities());
    ConnectionConfig {
        server_properties: properties,
        channel_max: config.amqp.channel_max,
        frame_max: config.amqp.frame_max,
        heartbeat_s: config.amqp.heartbeat_s,
        handshake_timeout: Duration::from_millis(config.amqp.handshake_timeout_ms),
        max_message_bytes: config.amqp.max_message_bytes,
        ..ConnectionConfig::default()
    }
}

async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    connections_max: usize,
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.changed() => return,
        };
        match accepted {
            Ok((stream, peer)) => admit(stream, peer, &shared, connections_max, &stopping),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Out of file descriptors, mostly: some time has to pass before one is free.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn admit(
    stream: TcpStream,
    peer: SocketAddr,
    shared: &Arc<Shared>,
    connections_max: usize,
    stopping: &watch::Receiver<bool>,
) {
    let Some(counted) = Counted::admit(shared, connections_max) else {
        tracing::warn!(%peer, connections_max, "refused: too many connections");
        return;
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "the connection was gone at once");
        return;
    }
    tokio::spawn(driver::serve(stream, peer, counted, stopping.clone()));
}

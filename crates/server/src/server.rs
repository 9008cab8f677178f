//! A running broker: its listeners and its end.

use crate::accounts;
use crate::auth_http::HttpUsers;
use crate::clock::Clock;
use crate::config::{Config, ConfigError};
use crate::data_dir::{DataDir, DataDirError};
use crate::definitions::{self, DefinitionsError};
use crate::driver::Shared;
use crate::gateway;
use crate::http::{HttpAddresses, HttpBound, HttpService, What};
use crate::inside::{self, NoPlace};
use crate::listener::{Bound, Inherited};
use crate::login::Logins;
use crate::negotiated;
use crate::open_files::OpenFiles;
use crate::operator_socket::{OperatorSocket, SocketFile};
use crate::places::Places;
use crate::proxies::Proxies;
use crate::storage::{self, StopError, StoreFailed};
use crate::throttle::Throttles;
use crate::timers;
use crate::tls::{Acceptor, Certificates, TlsError};
use crate::{management, metrics};
use courser_auth::AccountError;
use courser_broker::admin::Admin;
use courser_broker::{AccountsError, Broker, Fault, PolicyError, RestoreError, ShardFault};
use courser_gateway::Gateway;
use courser_store::ShardError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::sync::watch;

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
    /// Certificates, keys or authorities can't be used.
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
    /// Another program can't be asked for users.
    #[error("auth_http: {0}")]
    AuthHttp(String),
    /// A journal can't be taken into use.
    #[error(transparent)]
    Journal(#[from] ShardError),
    /// A shard can't be taken into use.
    #[error(transparent)]
    Shard(#[from] ShardFault),
    /// What the journal holds is not what this broker writes.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The gateway to ZeroMQ could not start.
    #[error(transparent)]
    Gateway(#[from] courser_gateway::StartError),
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A vhost of the configuration can't be had.
    #[error("configuration: vhosts: {0}")]
    Vhost(Fault),
    /// A policy of the configuration can't be had.
    #[error("configuration: policies: {0}")]
    Policy(PolicyError),
    /// The user of the configuration can't be one.
    #[error("configuration: auth: {0}")]
    Account(#[from] AccountError),
    /// The first users can't be made.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// Definitions that the configuration names can't be made.
    #[error("definitions: {}: {error}", path.display())]
    Definitions {
        /// The file, or the folder of files.
        path: PathBuf,
        /// What is wrong with it.
        error: DefinitionsError,
    },
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
    tls_addresses: Vec<SocketAddr>,
    http: HttpAddresses,
    metrics: HttpAddresses,
    certificates: Option<Arc<Certificates>>,
    stop: watch::Sender<bool>,
    failure: watch::Receiver<Option<String>>,
    checkpoints: storage::Checkpoints,
    gateway: Option<Gateway>,
    shared: Arc<Shared>,
    _socket: Option<SocketFile>,
    _data_dir: DataDir,
}

impl Server {
    /// Starts a broker on the current tokio runtime. With no address in `listen`, it serves [`Server::connect`] only.
    ///
    /// # Errors
    /// Why there is none: [`StartError::Config`] for settings that no broker could run with.
    pub async fn start(config: Config) -> Result<Server, StartError> {
        Self::start_on(config, Inherited::default()).await
    }

    /// As [`Server::start`], on sockets that the system listens on already. Where there are any of a
    /// kind, the addresses of that kind in the settings are not used.
    ///
    /// # Errors
    /// Why there is no broker.
    pub async fn start_on(config: Config, inherited: Inherited) -> Result<Server, StartError> {
        Self::begin(config, inherited, Clock::system()).await
    }

    /// As [`Server::start`], with a clock other than the machine's.
    ///
    /// # Errors
    /// Why there is no broker.
    pub async fn start_with_clock(config: Config, clock: Clock) -> Result<Server, StartError> {
        Self::begin(config, Inherited::default(), clock).await
    }

    async fn begin(
        config: Config,
        inherited: Inherited,
        clock: Clock,
    ) -> Result<Server, StartError> {
        config.check_values()?;
        // What is wrong with these is said before a long journal is replayed.
        let bound = Bound::new(&config, inherited)?;
        let (http, for_metrics) = bind_http(&config)?;
        let wants_tls = bound.wants_tls() || http.wants_tls() || for_metrics.wants_tls();
        let acceptor = match wants_tls {
            true => Some(Arc::new(Acceptor::new(&config.tls)?)),
            false => None,
        };
        let elsewhere = match config.auth_http.is_used() {
            true => Some(
                HttpUsers::new(&config.auth_http)
                    .map_err(|error| StartError::AuthHttp(error.to_string()))?,
            ),
            false => None,
        };
        let data_dir = DataDir::open(&config.data_dir, &*config.disk())?;
        let socket = OperatorSocket::bind(&config);
        let seed = getrandom::u64().map_err(StartError::Random)?;
        let limits = config.broker_limits();
        let (broker, storage) = storage::open(&config, limits, seed, clock.now_ms())?;
        // Before the users that a broker without any would make.
        definitions::load(&broker.admin(), &config.management.load_definitions)?;
        accounts::set_up(&broker, &config)?;
        set_up(&broker, &config)?;
        let (stop, stopping) = watch::channel(false);
        let (failed, failure) = watch::channel(None);
        broker.on_failure(move |reason| {
            failed.send_replace(Some(reason.to_owned()));
        });
        let open_files = OpenFiles::measure();
        let connections_max = open_files.connections_max(config.limits.connections_max);
        let logins = Logins::new(broker.accounts(), elsewhere, clock.clone());
        let shared = Arc::new(Shared {
            broker,
            clock: clock.clone(),
            logins,
            connection: Arc::new(negotiated::plain(&config)),
            tls_connection: Arc::new(negotiated::with_tls(&config)),
            send_timeout: config.send_timeout(),
            places: Arc::new(Places::new(connections_max)),
            throttles: Throttles::default(),
            paced: 0.into(),
        });
        let gateway = gateway::start(&config, &shared, &stopping).await?;
        let certificates =
            acceptor.as_ref().map(|acceptor| Certificates::watch(acceptor, stopping.clone()));
        let (addresses, tls_addresses) =
            bound.serve(&shared, acceptor.clone(), open_files, &stopping)?;
        let amqp = (&*addresses, &*tls_addresses);
        let metrics_at = for_metrics.addresses();
        let http_at = http.addresses();
        let at = (&http_at, &metrics_at);
        let api = management::api(&config, &shared, amqp, at, acceptor.as_ref(), &stopping);
        if !for_metrics.is_empty() {
            let exporter = metrics::exporter(&config, &api, gateway.as_ref());
            let service = HttpService::Metrics(exporter);
            for_metrics.serve(&service, acceptor.as_ref(), open_files, &stopping);
        }
        let _socket = socket.map(|socket| socket.serve(Arc::clone(&api), stopping.clone()));
        http.serve(&HttpService::Api(api), acceptor.as_ref(), open_files, &stopping);
        timers::start(&shared.broker, clock, stopping);
        let checkpoints = storage.start_checkpoints();
        let _data_dir = data_dir;
        Ok(Server {
            addresses,
            tls_addresses,
            http: http_at,
            metrics: metrics_at,
            certificates,
            stop,
            failure,
            checkpoints,
            gateway,
            shared,
            _socket,
            _data_dir,
        })
    }

    /// Takes over what can change while the broker runs: vhosts, their limits, and policies. If
    /// anything is wrong, no policy is changed. Certificates are read again.
    ///
    /// # Errors
    /// What is wrong with the settings; what is wrong with certificates goes to the log.
    pub fn reload(&self, config: &Config) -> Result<(), StartError> {
        if let Some(certificates) = &self.certificates {
            certificates.reload();
        }
        config.check_values()?;
        set_up(&self.shared.broker, config)
    }

    /// A connection without a socket, for a client in the same program: the stream speaks AMQP, as that of a socket
    /// does, and `Connection::open_on` of the crate `courser-client` takes it. The client logs in as any other, and counts as
    /// one that comes from this machine.
    ///
    /// # Errors
    /// When there are as many connections as there may be.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn connect(&self) -> Result<DuplexStream, NoPlace> {
        inside::connect(&self.shared, "in memory", self.stop.subscribe())
    }

    /// What an operator may ask of the broker and do to it, for programs that embed it.
    pub fn admin(&self) -> Admin {
        self.shared.broker.admin()
    }

    /// Where it listens, with the real port where 0 was asked for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where it listens with TLS.
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Where it serves the HTTP API.
    pub fn http_addresses(&self) -> &[SocketAddr] {
        &self.http.plain
    }

    /// Where it serves the HTTP API with TLS.
    pub fn https_addresses(&self) -> &[SocketAddr] {
        &self.http.tls
    }

    /// Where it serves metrics.
    pub fn metrics_addresses(&self) -> &[SocketAddr] {
        &self.metrics.plain
    }

    /// Where it serves metrics with TLS.
    pub fn metrics_tls_addresses(&self) -> &[SocketAddr] {
        &self.metrics.tls
    }

    /// The gateway to ZeroMQ, if it has endpoints.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// Waits until the store has failed, and says why: nothing can be confirmed from then on, and
    /// the broker has to be stopped.
    pub async fn failed(&self) -> StoreFailed {
        let mut failure = self.failure.clone();
        match failure.wait_for(Option::is_some).await {
            Ok(reason) => StoreFailed { reason: reason.clone().unwrap_or_default() },
            // The broker is gone, and with it whatever could fail.
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops listening, closes every connection with 320, waits a few seconds at most for the
    /// clients to take note, and makes everything durable.
    ///
    /// # Errors
    /// When that could not be made durable which nobody was told to be.
    pub async fn stop(mut self) -> Result<(), StopError> {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
        // An error means that nobody is left to be told.
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.stop.closed()).await;
        let Server { checkpoints, .. } = self;
        let closed = tokio::task::spawn_blocking(move || checkpoints.finish());
        match closed.await {
            Ok(closed) => Ok(closed?),
            Err(panicked) => Err(StopError::Panicked(panicked)),
        }
    }
}

/// Listens for the HTTP API and for metrics.
fn bind_http(config: &Config) -> Result<(HttpBound, HttpBound), StartError> {
    let what = What { name: "HTTP API", setting: "management.listen" };
    let api = &config.management;
    let http = HttpBound::new(
        &what,
        &api.listen,
        api.addresses(),
        &api.tls_listen,
        Proxies::new(&api.proxy_protocol_from),
    )?;
    let what = What { name: "metrics", setting: "metrics.listen" };
    let metrics = &config.metrics;
    let metrics = HttpBound::new(
        &what,
        &metrics.listen,
        metrics.addresses(),
        &metrics.tls_listen,
        Proxies::new(&metrics.proxy_protocol_from),
    )?;
    Ok((http, metrics))
}

/// Makes the vhosts that the configuration names, and has its policies followed.
fn set_up(broker: &Arc<Broker>, config: &Config) -> Result<(), StartError> {
    let policies = config.all_policies()?;
    // Asked before anything is changed.
    config.check_vhosts_of_policies(|vhost| broker.vhost(vhost).is_some())?;
    for vhost in &config.vhosts {
        let is_new = broker.vhost(&vhost.name).is_none();
        broker.define_vhost(&vhost.name, vhost.limits()).map_err(StartError::Vhost)?;
        if is_new {
            accounts::let_guest_into(broker, &vhost.name)?;
        }
    }
    broker.configure_policies(policies).map_err(StartError::Policy)
}

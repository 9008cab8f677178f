//! A running broker: its listeners and its end.

use crate::clock::Clock;
use crate::config::{Config, ConfigError};
use crate::data_dir::{DataDir, DataDirError};
use crate::definitions::DefinitionsError;
use crate::doors::{Addresses, Doors};
use crate::driver::SHUTDOWN;
use crate::gateway::{self, Gateway};
use crate::inside::{self, NoPlace};
use crate::listener::Inherited;
use crate::notices::{Notices, Reloaded};
use crate::operator_socket::{OperatorSocket, Operators, SocketFile};
use crate::runtime_settings::RuntimeSettings;
use crate::scrub::ScrubThread;
use crate::service::{self, Around, Reloads, Service};
use crate::storage::{self, Disk, StopError, StoreFailed};
use crate::tls::{Certificates, TlsError};
use courser_auth::AccountError;
use courser_broker::admin::Admin;
use courser_broker::{AccountsError, Fault, PolicyError, RestoreError, ShardFault};
use courser_cluster::forming::{Folder, FolderError};
use courser_store::ShardError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::DuplexStream;

/// How long clients have to answer the broker's farewell.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a broker could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder can't be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// An address can't be listened on.
    #[error("can't listen on {address} ({setting}): {error}{}", listen_hint(.error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The setting that names it.
        setting: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// Certificates, keys or authorities can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Another program can't be asked for users.
    #[error("auth_http: {0}")]
    AuthHttp(String),
    /// Tokens can't be checked.
    #[error("oauth: {0}")]
    OAuth(String),
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
    Gateway(#[from] gateway::StartError),
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
    Account(AccountError),
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
    /// The data folder can't be that of a node, or of a broker by itself.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The settings are those of a node of a cluster.
    #[error("cluster.listen is set: this is a node of a cluster, which is started as a Node")]
    Clustered,
    /// The address for other nodes can't be listened on.
    #[error("can't listen on {address} for other nodes: {error}")]
    ClusterListen {
        /// The address.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// There is no thread for what a node says to others.
    #[error("the thread for other nodes can't be started: {0}")]
    GroupThread(io::Error),
    /// There is no thread that takes settings over, or it has panicked.
    #[error("the settings can't be taken over: {0}")]
    Reload(io::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

// Not as its source too: the text says it already.
impl From<AccountError> for StartError {
    fn from(error: AccountError) -> Self {
        StartError::Account(error)
    }
}

impl StartError {
    /// Whether the settings say something that can't be done, rather than that something has failed.
    #[must_use]
    pub fn is_of_settings(&self) -> bool {
        use StartError::{Account, AuthHttp, Config, OAuth, Policy, Tls, Vhost};
        let is_one = matches!(self, Config(_) | Tls(_) | AuthHttp(_) | OAuth(_));
        is_one || matches!(self, Vhost(_) | Policy(_) | Account(_))
    }
}

fn listen_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => ". Is another broker running? Choose another port",
        io::ErrorKind::PermissionDenied => ". Ports below 1024 need privileges",
        _ => "",
    }
}

/// What a broker has of its machine. By default, that is the machine's own.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// The time.
    pub clock: Clock,
    /// Where its data folder is; without one, the machine's disk, with the permissions that the settings want.
    pub disk: Option<Arc<dyn Disk>>,
}

/// A broker that listens. Dropping it stops it without ceremony; [`Server::stop`] says goodbye.
pub struct Server {
    addresses: Addresses,
    certificates: Arc<Certificates>,
    notices: Arc<Notices>,
    runtime: Arc<RuntimeSettings>,
    /// Before the journals that it reads.
    scrub: Option<ScrubThread>,
    service: Service,
    reloads: Reloads,
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
        Self::begin(config, inherited, Surroundings::default()).await
    }

    /// As [`Server::start`], with a clock or a disk other than the machine's.
    ///
    /// # Errors
    /// Why there is no broker.
    pub async fn start_within(
        config: Config,
        surroundings: Surroundings,
    ) -> Result<Server, StartError> {
        Self::begin(config, Inherited::default(), surroundings).await
    }

    async fn begin(
        config: Config,
        inherited: Inherited,
        surroundings: Surroundings,
    ) -> Result<Server, StartError> {
        let Surroundings { clock, disk } = surroundings;
        let disk = disk.unwrap_or_else(|| config.disk());
        config.check_values()?;
        if config.cluster.is_on() {
            return Err(StartError::Clustered);
        }
        config.cluster.check_unused()?;
        // Where another broker has the folder, it has the addresses as a rule: that comes of it.
        let data_dir = DataDir::open(&config.data_dir, &*disk)?;
        // What is wrong with these is said before a long journal is replayed.
        let doors = Doors::bind(&config, inherited)?;
        let elsewhere = service::elsewhere(&config, doors.questions())?;
        Folder::refuse(&config.data_dir, &*disk)?;
        config.limits.warn_of_memory();
        config.management.open_audit_log(&config.data_dir, config.file_mode())?;
        let socket = OperatorSocket::bind(&config);
        let limits = config.broker_limits();
        let (broker, storage, journals) = storage::open(&config, disk, limits, clock.now_ms())?;
        service::prepare(&broker, &config)?;
        let notices = Arc::new(Notices::new(clock.clone()));
        let certificates = Certificates::new(doors.certificates(), &notices);
        let scrub = ScrubThread::start(journals, config.journal.scrub_days, &clock, &notices);
        let runtime = RuntimeSettings::new(&config, &clock);
        runtime.follow_memory_limit(&broker, 1);
        let around = Around {
            clock,
            runtime: Arc::clone(&runtime),
            scrub: scrub.as_ref().map(ScrubThread::scrubber),
            notices: Arc::clone(&notices),
            places: doors.places(&config),
            handshakes: doors.handshakes(),
            addresses: doors.addresses(),
            certificates: Arc::clone(&certificates),
            elsewhere,
            cluster: None,
            front: Weak::new(),
            ledger: Arc::default(),
        };
        let service = Service::start(broker, storage, &config, &around).await?;
        let stopping = service.stopping();
        certificates.watch(stopping.clone());
        doors.open(&service, &stopping)?;
        let operators = Operators::Api(Arc::clone(&service.api));
        let _socket = socket.map(|socket| socket.serve(operators, stopping));
        let (addresses, reloads) = (around.addresses, Reloads::default());
        let _data_dir = data_dir;
        Ok(Server {
            addresses,
            certificates,
            notices,
            runtime,
            scrub,
            service,
            reloads,
            _socket,
            _data_dir,
        })
    }

    /// Takes over what can change while the broker runs: vhosts, their limits, policies, the memory limit, and, where there is a
    /// [`log_filter`](crate::log_filter), the log's level. If anything is wrong, no policy, level or limit is changed. Certificates are
    /// read again.
    ///
    /// With many names and patterns it takes long. It goes on if the future is dropped, and no stop waits for it. A reload
    /// that is asked for meanwhile follows when it is done, so that the last settings hold.
    ///
    /// # Errors
    /// What is wrong with the settings; what is wrong with certificates goes to the log.
    pub async fn reload(&self, config: &Config) -> Result<(), StartError> {
        self.certificates.reload();
        config.check_values()?;
        let turn = Arc::clone(&self.reloads).lock_owned().await;
        let broker = Arc::downgrade(&self.service.shared.broker);
        let (runtime, config) = (Arc::clone(&self.runtime), config.clone());
        let taking_over = move || {
            service::set_up_again(&broker, &config)?;
            // Nothing refuses the rest.
            runtime.configure(&config);
            Ok(())
        };
        service::in_turn(turn, taking_over).await
    }

    /// Has operators see what came of reading the settings again, as far as it needs their attention.
    pub fn note_reload(&self, reloaded: Reloaded) {
        self.notices.reloaded(reloaded);
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
        inside::connect(&self.service.shared, "in memory", self.service.stopping())
    }

    /// What connections share, and when they end, for tests that serve streams of their own.
    #[cfg(test)]
    pub(crate) fn serving(
        &self,
    ) -> (&Arc<crate::driver::Shared>, tokio::sync::watch::Receiver<bool>) {
        (&self.service.shared, self.service.stopping())
    }

    /// What an operator may ask of the broker and do to it, for programs that embed it.
    pub fn admin(&self) -> Admin {
        self.service.shared.broker.admin()
    }

    /// All addresses that it listens on.
    pub fn all_addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Where it listens, with the real port where 0 was asked for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses.amqp
    }

    /// Where it listens with TLS.
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.addresses.amqp_tls
    }

    /// Where it serves the HTTP API.
    pub fn http_addresses(&self) -> &[SocketAddr] {
        &self.addresses.http
    }

    /// Where it serves the HTTP API with TLS.
    pub fn https_addresses(&self) -> &[SocketAddr] {
        &self.addresses.https
    }

    /// Where it serves metrics.
    pub fn metrics_addresses(&self) -> &[SocketAddr] {
        &self.addresses.metrics
    }

    /// Where it serves metrics with TLS.
    pub fn metrics_tls_addresses(&self) -> &[SocketAddr] {
        &self.addresses.metrics_tls
    }

    /// The gateway to ZeroMQ, if it has endpoints.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.service.gateway.as_ref()
    }

    /// Waits until the store has failed, and says why: nothing can be confirmed from then on, and
    /// the broker has to be stopped.
    pub async fn failed(&self) -> StoreFailed {
        self.service.failed().await
    }

    /// Stops listening, closes every connection with 320, waits a few seconds at most for the
    /// clients to take note, and makes everything durable.
    ///
    /// # Errors
    /// When what no client was told to be durable could not be made so.
    pub async fn stop(self) -> Result<(), StopError> {
        let Server { mut service, scrub, .. } = self;
        scrub.iter().for_each(ScrubThread::stop);
        if let Some(gateway) = service.gateway.take() {
            gateway.stop().await;
        }
        service.say_goodbye(SHUTDOWN, STOP_TIMEOUT).await;
        let Service { checkpoints, .. } = service;
        let closed = tokio::task::spawn_blocking(move || {
            // It may be reading what is closed then.
            drop(scrub);
            checkpoints.finish()
        });
        match closed.await {
            Ok(closed) => Ok(closed?),
            Err(panicked) => Err(StopError::Panicked(panicked)),
        }
    }
}

//! Lets connections in to the HTTP API, with TLS and without.

use crate::VERSION;
use crate::config::{ClientCertificates, Config, HttpListen};
use crate::driver::Shared;
use crate::listener::{LISTEN_BACKLOG, RETRY_INTERVAL, bind};
use crate::open_files::OpenFiles;
use crate::server::StartError;
use crate::tls::Acceptor;
use courser_management::{Api, ListenerFacts, NodeFacts, Settings, Web};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Addresses that are listened on; nobody is served at them yet.
#[derive(Default)]
pub(crate) struct HttpBound {
    plain: Vec<TcpListener>,
    tls: Vec<TcpListener>,
}

/// Where HTTP is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpAddresses {
    pub plain: Vec<SocketAddr>,
    pub tls: Vec<SocketAddr>,
}

impl HttpBound {
    /// Listens where the settings say. Where nobody has chosen an address and the usual one is taken,
    /// there is no HTTP API, and the log says so.
    ///
    /// # Errors
    /// The first address that can't be had.
    pub fn new(config: &Config) -> Result<Self, StartError> {
        let settings = &config.management;
        let plain = match (&settings.listen, listen_all(settings.listen.addresses())) {
            (HttpListen::Default, Err(StartError::Listen { address, error })) => {
                tracing::warn!(
                    %address,
                    %error,
                    "no HTTP API: its usual address can't be had. Choose another one (management.listen)"
                );
                Vec::new()
            }
            (_, listening) => listening?,
        };
        Ok(HttpBound { plain, tls: listen_all(&settings.tls_listen)? })
    }

    /// Whether there is anything to listen on with TLS.
    pub fn wants_tls(&self) -> bool {
        !self.tls.is_empty()
    }

    fn addresses(&self) -> HttpAddresses {
        let of = |listeners: &[TcpListener]| {
            listeners.iter().filter_map(|one| one.local_addr().ok()).collect()
        };
        HttpAddresses { plain: of(&self.plain), tls: of(&self.tls) }
    }

    /// Begins to serve. Returns the real addresses.
    pub fn serve(
        self,
        config: &Config,
        shared: &Arc<Shared>,
        amqp: (&[SocketAddr], &[SocketAddr]),
        acceptor: Option<Arc<Acceptor>>,
        open_files: OpenFiles,
        stopping: &watch::Receiver<bool>,
    ) -> HttpAddresses {
        let addresses = self.addresses();
        if self.plain.is_empty() && self.tls.is_empty() {
            return addresses;
        }
        let api = api(config, shared, amqp, &addresses);
        let door = |acceptor| Door {
            api: Arc::clone(&api),
            acceptor,
            open_files,
            stopping: stopping.clone(),
        };
        for listener in self.plain {
            tokio::spawn(door(None).accept(listener));
        }
        for listener in self.tls {
            tokio::spawn(door(acceptor.clone()).accept(listener));
        }
        addresses
    }
}

fn listen_all(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, StartError> {
    let listen = |address: &SocketAddr| {
        let listening = bind(*address).and_then(|socket| socket.listen(LISTEN_BACKLOG));
        listening.map_err(|error| StartError::Listen { address: *address, error })
    };
    addresses.iter().map(listen).collect()
}

fn api(
    config: &Config,
    shared: &Arc<Shared>,
    (plain, tls): (&[SocketAddr], &[SocketAddr]),
    http: &HttpAddresses,
) -> Arc<Api> {
    let listening = |protocol: &'static str, addresses: &[SocketAddr]| {
        let facts = |address: &SocketAddr| ListenerFacts { protocol, address: *address };
        addresses.iter().map(facts).collect::<Vec<_>>()
    };
    let mut listeners = listening("amqp", plain);
    listeners.extend(listening("amqp/ssl", tls));
    listeners.extend(listening("http", &http.plain));
    listeners.extend(listening("https", &http.tls));
    let mut mechanisms = vec!["PLAIN".to_owned(), "AMQPLAIN".to_owned()];
    if config.tls.client_certificates != ClientCertificates::None {
        mechanisms.push("EXTERNAL".to_owned());
    }
    let clock = shared.clock.clone();
    let node = NodeFacts {
        name: format!("courser@{}", host_name()),
        cluster_name: crate::CLUSTER_NAME.to_owned(),
        version: VERSION.to_owned(),
        started_ms: clock.now_ms(),
        data_dir: config.data_dir.clone(),
        memory_limit_bytes: config.broker_limits().memory_high_bytes,
        connections_max: shared.places.most(),
        mechanisms,
        listeners,
    };
    let settings = Settings {
        accounts: Arc::clone(shared.broker.accounts()),
        login_slots: shared.logins.slots(),
        now_ms: Arc::new(move || clock.now_ms()),
        node,
        audit_log: config.management.audit_log_in(&config.data_dir),
        web: Web {
            page: config.management.page,
            path_prefix: config.management.path_prefix.clone(),
            cors_origins: config.management.cors_origins.clone(),
            hsts_max_age_s: config.management.hsts_seconds,
            session_idle_s: config.management.session_idle_minutes.saturating_mul(60),
        },
    };
    Api::new(shared.broker.admin(), settings)
}

/// The name of this machine, as far as the system says it.
fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    if name.is_empty() { "localhost".to_owned() } else { name.into_owned() }
}

/// Lets connections in at one listener.
struct Door {
    api: Arc<Api>,
    acceptor: Option<Arc<Acceptor>>,
    open_files: OpenFiles,
    stopping: watch::Receiver<bool>,
}

impl Door {
    /// Accepts connections until the broker stops.
    async fn accept(mut self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = self.stopping.changed() => return,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) => {
                    tracing::debug!(%error, "an HTTP connection could not be accepted");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        if self.open_files.is_reserved(stream.as_raw_fd()) || !is_prompt(&stream) {
            tracing::debug!(%peer, "HTTP connection refused");
            return;
        }
        let (api, stopping) = (Arc::clone(&self.api), self.stopping.clone());
        match &self.acceptor {
            None => drop(tokio::spawn(api.serve(stream, peer, false, stopping))),
            Some(acceptor) => {
                let acceptor = Arc::clone(acceptor);
                tokio::spawn(async move {
                    match acceptor.accept(stream).await {
                        Ok((stream, _)) => api.serve(stream, peer, true, stopping).await,
                        Err(error) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                    }
                });
            }
        }
    }
}

/// Has short answers sent at once.
fn is_prompt(stream: &TcpStream) -> bool {
    let set: io::Result<()> = stream.set_nodelay(true);
    set.is_ok()
}

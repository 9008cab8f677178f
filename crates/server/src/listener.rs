//! Lets connections in, with TLS and without, as far as there are places and descriptors for them: at those
//! addresses that the settings name, or at sockets that the system listens on in the broker's place and hands
//! over when it starts it.

use crate::config::Config;
use crate::host::Host;
use crate::open_files::OpenFiles;
use crate::peer::Peer;
use crate::places::{Admission, Place};
use crate::proxies::{self, Proxies};
use crate::server::StartError;
use crate::service::stopped;
use crate::tls::Acceptor;
use courser_cluster::transport::keep_alive;
use listenfd::ListenFd;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// Connections that may wait to be accepted.
pub(crate) const LISTEN_BACKLOG: u32 = 4096;
/// How long to wait where a connection could not be accepted: some time has to pass before a descriptor is
/// free.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Addresses that are taken; no client is served at them yet.
pub(crate) struct Bound {
    plain: Vec<Taken>,
    tls: Vec<Taken>,
    proxies: Proxies,
    tls_proxies: Proxies,
}

enum Taken {
    /// To be listened on when the broker is ready.
    Address(SocketAddr, TcpSocket),
    /// The system listens: clients wait until the broker is ready.
    Listening(std::net::TcpListener),
}

impl Taken {
    fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Taken::Address(_, socket) => socket.local_addr(),
            Taken::Listening(listener) => listener.local_addr(),
        }
    }
}

/// Sockets that the system has handed over.
#[derive(Debug, Default)]
pub struct Inherited {
    plain: Vec<std::net::TcpListener>,
    tls: Vec<std::net::TcpListener>,
}

impl Inherited {
    /// The sockets that come with this process (`LISTEN_FDS`), by their names: `amqps` is for TLS, any
    /// other is for connections without. To be called once.
    ///
    /// # Errors
    /// A descriptor that is no listening socket.
    pub fn take() -> io::Result<Self> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let names: Vec<&str> = names.split(':').collect();
        let mut handed_over = ListenFd::from_env();
        let mut sockets = Inherited::default();
        for index in 0..handed_over.len() {
            let Some(listener) = handed_over.take_tcp_listener(index)? else { continue };
            listener.set_nonblocking(true)?;
            match names.get(index) {
                Some(&"amqps") => sockets.tls.push(listener),
                _ => sockets.plain.push(listener),
            }
        }
        Ok(sockets)
    }
}

impl Bound {
    /// Takes all addresses that the settings name, but for a kind of which there are sockets in
    /// `inherited`.
    ///
    /// # Errors
    /// The first that can't be had.
    pub fn new(config: &Config, inherited: Inherited) -> Result<Self, StartError> {
        Ok(Bound {
            plain: take("listen", &config.listen, inherited.plain)?,
            tls: take("tls.listen", &config.tls.listen, inherited.tls)?,
            proxies: Proxies::new(&config.amqp.proxy_protocol_from),
            tls_proxies: Proxies::new(&config.tls.proxy_protocol_from),
        })
    }

    /// Whether there is anything to listen on with TLS.
    pub fn wants_tls(&self) -> bool {
        !self.tls.is_empty()
    }

    /// The real addresses, those without TLS first.
    pub fn addresses(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let of = |sockets: &[Taken]| sockets.iter().filter_map(|one| one.address().ok()).collect();
        (of(&self.plain), of(&self.tls))
    }

    /// Begins to listen.
    ///
    /// # Errors
    /// The first that can't be listened on.
    pub fn serve(
        self,
        shared: &Arc<Host>,
        acceptor: Option<Arc<Acceptor>>,
        open_files: OpenFiles,
        stopping: &watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let door = |acceptor, proxies: &Proxies| Door {
            shared: Arc::clone(shared),
            acceptor,
            proxies: proxies.clone(),
            open_files,
            stopping: stopping.clone(),
        };
        open("listen", self.plain, || door(None, &self.proxies))?;
        open("tls.listen", self.tls, || door(acceptor.clone(), &self.tls_proxies))
    }
}

fn take(
    setting: &'static str,
    addresses: &[SocketAddr],
    inherited: Vec<std::net::TcpListener>,
) -> Result<Vec<Taken>, StartError> {
    if !inherited.is_empty() {
        return Ok(inherited.into_iter().map(Taken::Listening).collect());
    }
    let bind = |address: &SocketAddr| match bind(*address) {
        Ok(socket) => Ok(Taken::Address(*address, socket)),
        Err(error) => Err(StartError::Listen { address: *address, setting, error }),
    };
    addresses.iter().map(bind).collect()
}

pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Serves clients at these addresses, each through a door of its own.
fn open(
    setting: &'static str,
    sockets: Vec<Taken>,
    door: impl Fn() -> Door,
) -> Result<(), StartError> {
    for socket in sockets {
        let (address, is_own, listening) = match socket {
            Taken::Address(address, socket) => (address, true, socket.listen(LISTEN_BACKLOG)),
            Taken::Listening(listener) => {
                let unnamed = SocketAddr::from(([0, 0, 0, 0], 0));
                let address = listener.local_addr().unwrap_or(unnamed);
                (address, false, TcpListener::from_std(listener))
            }
        };
        let error = |error| StartError::Listen { address, setting, error };
        let listener = listening.map_err(error)?;
        match is_own {
            true => {
                let address = listener.local_addr().map_err(error)?;
                tokio::spawn(door().open_and_shut(listener, address))
            }
            // The system listens on it whether or not this process does.
            false => tokio::spawn(door().stand_open(listener)),
        };
    }
    Ok(())
}

/// Lets connections in at one listener.
struct Door {
    shared: Arc<Host>,
    acceptor: Option<Arc<Acceptor>>,
    /// Who says whose connections it passes on.
    proxies: Proxies,
    open_files: OpenFiles,
    stopping: watch::Receiver<bool>,
}

impl Door {
    /// Accepts connections until the broker stops. While clients are to go to other nodes, or the listeners are suspended,
    /// the broker does not listen at the address: they are refused at once, and try the next.
    async fn open_and_shut(self, mut listener: TcpListener, address: SocketAddr) {
        let mut stopping = self.stopping.clone();
        loop {
            tokio::select! {
                () = self.accept(&listener) => {}
                () = self.shared.turns_away(true) => {}
                () = stopped(&mut stopping) => return,
            }
            drop(listener);
            tracing::info!(%address, "no one listens any more: clients are turned away");
            listener = tokio::select! {
                listener = self.listen_again(address) => listener,
                () = stopped(&mut stopping) => return,
            };
            tracing::info!(%address, "listening again");
        }
    }

    /// Keeps the address, so that no other process takes it, and listens when clients may come again.
    async fn listen_again(&self, address: SocketAddr) -> TcpListener {
        let kept = bind(address);
        self.shared.turns_away(false).await;
        let mut listening = kept.and_then(|socket| socket.listen(LISTEN_BACKLOG));
        loop {
            match listening {
                Ok(listener) => return listener,
                Err(error) => self.warn(&error, "can't listen again; it is tried until it works"),
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
            listening = bind(address).and_then(|socket| socket.listen(LISTEN_BACKLOG));
        }
    }

    /// Accepts connections until the broker stops. Those that come while the listeners are suspended end at once.
    async fn stand_open(self, listener: TcpListener) {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            () = self.accept(&listener) => {}
            () = stopped(&mut stopping) => {}
        }
    }

    /// Accepts connections, for ever.
    async fn accept(&self, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    self.admit(stream, address);
                    self.shared.places.until_few_leave().await;
                }
                Err(error) => {
                    self.warn(&error, "a connection could not be accepted");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    fn warn(&self, error: &io::Error, what: &'static str) {
        if let Some(suppressed) = self.shared.throttles.connections.allow(Instant::now()) {
            tracing::warn!(%error, suppressed, "{what}");
        }
    }

    fn admit(&self, stream: TcpStream, address: SocketAddr) {
        if self.shared.is_suspended() {
            self.note(address, "refused: the listeners are suspended");
            return;
        }
        if let Err(error) = stream.set_nodelay(true).and_then(|()| keep_alive(&stream)) {
            tracing::debug!(peer = %address, %error, "the connection was gone at once");
            return;
        }
        let is_reserved = self.open_files.is_reserved(stream.as_raw_fd());
        let local = match stream.local_addr() {
            Ok(local) => local,
            Err(error) => {
                tracing::debug!(peer = %address, %error, "the connection was gone at once");
                return;
            }
        };
        let is_proxy = self.proxies.has(address);
        let places = &self.shared.places;
        let serve = |place| {
            let (shared, stopping) = (Arc::clone(&self.shared), self.stopping.clone());
            let newcomer = Newcomer { stream, address, local, place, shared, stopping };
            let acceptor = self.acceptor.clone();
            let task = match is_proxy {
                true => tokio::spawn(newcomer.serve_proxied(acceptor)),
                // The task of each connection has room for no more than it needs.
                false => match acceptor {
                    None => tokio::spawn(newcomer.serve_plain()),
                    Some(acceptor) => tokio::spawn(newcomer.serve_tls(acceptor)),
                },
            };
            task.abort_handle()
        };
        let admission = match is_reserved {
            true => places.exchange(serve),
            false => places.admit(serve),
        };
        match admission {
            Admission::Admitted => {}
            Admission::Replaced => {
                self.note(address, "too many connections: one that has not logged in makes room");
            }
            Admission::Refused if is_reserved => {
                self.note(address, "refused: nearly all file descriptors are in use");
            }
            Admission::Refused => self.note(address, "refused: too many connections"),
        }
    }

    fn note(&self, peer: SocketAddr, what: &'static str) {
        if let Some(suppressed) = self.shared.throttles.connections.allow(Instant::now()) {
            let connections_max = self.shared.places.most();
            tracing::warn!(%peer, connections_max, suppressed, "{what}");
        }
    }
}

/// A connection that has a place.
struct Newcomer {
    stream: TcpStream,
    address: SocketAddr,
    local: SocketAddr,
    place: Place,
    shared: Arc<Host>,
    stopping: watch::Receiver<bool>,
}

impl Newcomer {
    /// What the operator sees it by.
    fn name(&self) -> String {
        format!("{} -> {}", self.address, self.local)
    }

    /// Serves the client of a proxy.
    async fn serve_proxied(mut self, acceptor: Option<Arc<Acceptor>>) {
        let client = tokio::select! {
            client = proxies::client_of(&mut self.stream, self.address) => client,
            () = stopped(&mut self.stopping) => return,
        };
        self.address = match client {
            Ok(client) => client,
            Err(error) => {
                if let Some(suppressed) = self.shared.throttles.logins.allow(Instant::now()) {
                    tracing::warn!(proxy = %self.address, %error, suppressed, "connection refused");
                }
                return;
            }
        };
        match acceptor {
            None => self.serve_plain().await,
            Some(acceptor) => self.serve_tls(acceptor).await,
        }
    }

    fn serve_plain(self) -> impl Future<Output = ()> + Send {
        let name = self.name();
        let peer = Peer::new(self.address, None);
        self.shared.serve(self.stream, peer, self.place, name, self.stopping)
    }

    async fn serve_tls(self, acceptor: Arc<Acceptor>) {
        let name = self.name();
        let Newcomer { stream, address, place, shared, mut stopping, .. } = self;
        let accepted = tokio::select! {
            accepted = acceptor.accept(stream) => accepted,
            () = stopped(&mut stopping) => return,
        };
        match accepted {
            Ok((stream, tls)) => {
                tracing::debug!(peer = %address, session = tls.session, "TLS handshake done");
                let peer = Peer::new(address, Some(tls));
                shared.serve(stream, peer, place, name, stopping).await;
            }
            Err(error) => {
                if let Some(suppressed) = shared.throttles.connections.allow(Instant::now()) {
                    tracing::info!(peer = %address, %error, suppressed, "TLS handshake failed");
                }
            }
        }
    }
}

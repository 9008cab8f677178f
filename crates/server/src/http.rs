//! Lets connections in for HTTP, with TLS and without: to the API, and to the metrics.

use crate::cluster::Front;
use crate::config::HttpListen;
use crate::listener::{LISTEN_BACKLOG, RETRY_INTERVAL, bind};
use crate::open_files::OpenFiles;
use crate::places::{Admission, Place, Places};
use crate::proxies::{self, Proxies};
use crate::server::StartError;
use crate::service::stopped;
use crate::tls::{Acceptor, TlsStream};
use courser_cluster::transport::keep_alive;
use courser_management::{Api, ClientTls, Exporter};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Connections that may be in their TLS handshake, or before the header of their proxy, at the same time. One more gets
/// the place of the oldest.
const HANDSHAKES_MAX: usize = 256;

/// Who answers.
#[derive(Clone)]
pub(crate) enum HttpService {
    Api(Arc<Api>),
    Metrics(Arc<Exporter>),
    /// The API of the node that leads.
    Node(Arc<Front>),
    /// The metrics of this node.
    NodeMetrics(Arc<Front>),
}

impl HttpService {
    async fn serve<S>(
        self,
        stream: S,
        (peer, local): (SocketAddr, SocketAddr),
        tls: Option<Arc<ClientTls>>,
        stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        match self {
            HttpService::Api(api) => api.serve(stream, peer, local, tls, stopping).await,
            HttpService::Metrics(exporter) => exporter.serve(stream, peer, stopping).await,
            HttpService::Node(front) => {
                front.serve_http(stream, (peer, local), tls, stopping).await;
            }
            HttpService::NodeMetrics(front) => front.serve_metrics(stream, peer, stopping).await,
        }
    }
}

/// What one kind of service is called, for the log.
pub(crate) struct What {
    pub name: &'static str,
    /// The setting that says where it is served.
    pub setting: &'static str,
    /// The one that says where it is served over TLS.
    pub tls_setting: &'static str,
}

/// Addresses that are listened on; no client is served at them yet.
#[derive(Default)]
pub(crate) struct HttpBound {
    plain: Vec<TcpListener>,
    tls: Vec<TcpListener>,
    proxies: Proxies,
}

/// Where HTTP is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpAddresses {
    pub plain: Vec<SocketAddr>,
    pub tls: Vec<SocketAddr>,
}

impl HttpBound {
    /// Listens where the settings say. Where no address is set and the usual one is taken,
    /// there is no such service, and the log says so.
    ///
    /// # Errors
    /// The first address that can't be had.
    pub fn new(
        what: &What,
        chosen: &HttpListen,
        plain: &[SocketAddr],
        tls: &[SocketAddr],
        proxies: Proxies,
    ) -> Result<Self, StartError> {
        let plain = match (chosen, listen_all(what.setting, plain)) {
            (HttpListen::Default, Err(StartError::Listen { address, error, .. })) => {
                let What { name, setting, .. } = what;
                tracing::warn!(
                    %address,
                    %error,
                    "no {name}: the usual address can't be had. Choose another one ({setting})"
                );
                Vec::new()
            }
            (_, listening) => listening?,
        };
        Ok(HttpBound { plain, tls: listen_all(what.tls_setting, tls)?, proxies })
    }

    /// Whether there is anything to listen on with TLS.
    pub fn wants_tls(&self) -> bool {
        !self.tls.is_empty()
    }

    /// The real addresses.
    pub fn addresses(&self) -> HttpAddresses {
        let of = |listeners: &[TcpListener]| {
            listeners.iter().filter_map(|one| one.local_addr().ok()).collect()
        };
        HttpAddresses { plain: of(&self.plain), tls: of(&self.tls) }
    }

    /// Begins to serve.
    pub fn serve(
        self,
        service: &HttpService,
        acceptor: Option<&Arc<Acceptor>>,
        open_files: OpenFiles,
        stopping: &watch::Receiver<bool>,
    ) {
        let handshakes = Arc::new(Places::new(HANDSHAKES_MAX));
        let door = |acceptor: Option<&Arc<Acceptor>>| Door {
            handshakes: Arc::clone(&handshakes),
            service: service.clone(),
            acceptor: acceptor.cloned(),
            proxies: self.proxies.clone(),
            open_files,
            stopping: stopping.clone(),
        };
        for listener in self.plain {
            tokio::spawn(door(None).accept(listener));
        }
        for listener in self.tls {
            tokio::spawn(door(acceptor).accept(listener));
        }
    }
}

fn listen_all(
    setting: &'static str,
    addresses: &[SocketAddr],
) -> Result<Vec<TcpListener>, StartError> {
    let listen = |address: &SocketAddr| {
        let listening = bind(*address).and_then(|socket| socket.listen(LISTEN_BACKLOG));
        listening.map_err(|error| StartError::Listen { address: *address, setting, error })
    };
    addresses.iter().map(listen).collect()
}

/// Lets connections in at one listener.
struct Door {
    service: HttpService,
    acceptor: Option<Arc<Acceptor>>,
    proxies: Proxies,
    handshakes: Arc<Places>,
    open_files: OpenFiles,
    stopping: watch::Receiver<bool>,
}

impl Door {
    /// Accepts connections until the broker stops.
    async fn accept(mut self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stopped(&mut self.stopping) => return,
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
        let (service, stopping) = (self.service.clone(), self.stopping.clone());
        let newcomer = Newcomer { stream, peer, is_proxy: self.proxies.has(peer) };
        if self.acceptor.is_none() && !newcomer.is_proxy {
            tokio::spawn(newcomer.serve_plain(service, stopping));
            return;
        }
        let acceptor = self.acceptor.clone();
        let admission = self.handshakes.admit(|place| {
            tokio::spawn(newcomer.serve(service, acceptor, place, stopping)).abort_handle()
        });
        if admission == Admission::Replaced {
            tracing::debug!(%peer, "too many TLS handshakes: the oldest makes room");
        }
    }
}

/// A connection whose proxy and TLS have said what they have to.
enum Begun {
    Plain(Newcomer),
    /// With the addresses of its client and of this end.
    Tls(Box<TlsStream>, (SocketAddr, SocketAddr), Arc<ClientTls>),
}

/// A connection that was let in.
struct Newcomer {
    stream: TcpStream,
    peer: SocketAddr,
    is_proxy: bool,
}

impl Newcomer {
    async fn serve_plain(self, service: HttpService, stopping: watch::Receiver<bool>) {
        // One that is gone already has nothing to be served.
        let Ok(local) = self.stream.local_addr() else { return };
        service.serve(self.stream, (self.peer, local), None, stopping).await;
    }

    /// Serves it after its handshake, until whose end it has a place among those that are in theirs. A stop does not wait for that.
    async fn serve(
        self,
        service: HttpService,
        acceptor: Option<Arc<Acceptor>>,
        place: Place,
        mut stopping: watch::Receiver<bool>,
    ) {
        let begun = tokio::select! {
            begun = self.begin(acceptor) => begun,
            () = stopped(&mut stopping) => return,
        };
        drop(place);
        match begun {
            Some(Begun::Plain(newcomer)) => newcomer.serve_plain(service, stopping).await,
            Some(Begun::Tls(stream, ends, tls)) => {
                service.serve(*stream, ends, Some(tls), stopping).await;
            }
            None => {}
        }
    }

    /// Reads the header of its proxy, and shakes hands. None if that fails.
    async fn begin(mut self, acceptor: Option<Arc<Acceptor>>) -> Option<Begun> {
        if self.is_proxy {
            self.peer = match proxies::client_of(&mut self.stream, self.peer).await {
                Ok(client) => client,
                Err(error) => {
                    tracing::debug!(proxy = %self.peer, %error, "HTTP connection refused");
                    return None;
                }
            };
        }
        let Some(acceptor) = acceptor else { return Some(Begun::Plain(self)) };
        let Newcomer { stream, peer, .. } = self;
        let local = stream.local_addr().ok()?;
        match acceptor.accept(stream).await {
            Ok((stream, tls)) => Some(Begun::Tls(Box::new(stream), (peer, local), tls)),
            Err(error) => {
                tracing::debug!(%peer, %error, "TLS handshake failed");
                None
            }
        }
    }
}

/// Has short answers sent at once, and a connection end whose client has vanished.
fn is_prompt(stream: &TcpStream) -> bool {
    let set: io::Result<()> = stream.set_nodelay(true).and_then(|()| keep_alive(stream));
    set.is_ok()
}

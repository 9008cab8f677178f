//! Whoever comes to this node is served here if it leads, and passed on to the node that does if not.
//!
//! TLS and PROXY headers end here; what goes on is what the client says, and a note of who it is. While nobody leads,
//! clients wait some seconds: an election takes no longer as long as there is a majority.

use super::drain::{Clients, FAREWELL};
use super::ending::Ending;
use super::group::Group;
use super::groups::Groups;
use super::moving::Moves;
use super::redirect::Newcomer;
use super::roster::Roster;
use super::sockets::NO_SOCKETS;
use super::tunnel::{Note, SERVED, What, serve_note_http};
use super::whereabouts::Whereabouts;
use crate::driver::{self, ClientStream};
use crate::peer::Peer;
use crate::places::{Place, Places};
use crate::service::Service;
use crate::throttle::Throttles;
use courser_cluster::NodeId;
use courser_cluster::transport::{ByteStream, Endpoint, Purpose, Stream};
use courser_management::{ClientTls, Relay, RelayStream};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, copy_bidirectional, copy_bidirectional_with_sizes,
};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long an AMQP client waits for a node that leads.
const AMQP_PATIENCE: Duration = Duration::from_secs(10);
/// How long a request over HTTP does.
pub(super) const HTTP_PATIENCE: Duration = Duration::from_secs(3);
/// How long the node that leads may take to say that it serves a client.
pub(super) const SERVED_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait before the node that leads is tried again.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes of a client that are on their way, each direction.
const TUNNEL_BYTES: usize = 64 << 10;
/// Bytes of a pipe within the process.
pub(super) const PIPE_BYTES: usize = 64 << 10;
/// Why a client is refused that can go to another node.
const DRAINED: &str = "this node is drained";

/// Who serves clients.
#[derive(Clone)]
pub(crate) enum Serves {
    /// Nobody that is known.
    Nobody,
    /// Another node.
    There(NodeId),
    /// This node.
    Here(Arc<Service>),
}

/// Where a client goes.
pub(super) enum Way {
    Here(Arc<Service>),
    There(NodeId, Stream),
}

/// The doors' way to whoever serves.
pub(crate) struct Front {
    pub places: Arc<Places>,
    pub throttles: Arc<Throttles>,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) roster: Arc<Roster>,
    /// Those that are passed on.
    pub(super) clients: Clients,
    pub(super) groups: Arc<Groups>,
    /// Which group vhosts are in.
    pub(super) whereabouts: Whereabouts,
    /// Vhosts that go from one group to another.
    pub(super) moves: Moves,
    /// The version of home's definitions that all groups are known to have.
    pub(super) held_by_all: AtomicU64,
    /// Answers requests over HTTP that this node does not serve itself.
    relay: OnceLock<Arc<Relay>>,
    pub(super) metrics: OnceLock<Arc<Relay>>,
}

impl Front {
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        roster: Arc<Roster>,
        places: Arc<Places>,
        groups: Arc<Groups>,
    ) -> Arc<Self> {
        let throttles = Arc::<Throttles>::default();
        let (relay, metrics) = (OnceLock::new(), OnceLock::new());
        let (clients, whereabouts) = (Clients::default(), Whereabouts::default());
        Arc::new_cyclic(|me| Front {
            moves: Moves::of(me),
            places,
            throttles,
            endpoint,
            roster,
            clients,
            groups,
            whereabouts,
            held_by_all: AtomicU64::new(0),
            relay,
            metrics,
        })
    }

    /// Says what answers over HTTP what is not passed on.
    pub(super) fn set_relays(&self, relay: Arc<Relay>, metrics: Arc<Relay>) {
        let _ = self.relay.set(relay);
        let _ = self.metrics.set(metrics);
    }

    /// Who serves what is in the home group, and whatever concerns all groups.
    pub(super) fn serves(&self) -> Serves {
        self.groups.home().serves()
    }

    /// Whether vhosts may be in other groups than home.
    pub fn has_several_groups(&self) -> bool {
        self.groups.are_several()
    }

    /// Serves a client, or passes it on.
    pub async fn serve_amqp<S: ClientStream>(
        self: Arc<Self>,
        mut stream: S,
        peer: Peer,
        place: Place,
        name: String,
        mut stopping: watch::Receiver<bool>,
    ) {
        if matches!(self.serves(), Serves::There(_)) && self.clients.is_draining() {
            return self.say_refused(&peer, DRAINED);
        }
        let (home, note) = (Arc::clone(self.groups.home()), Note::amqp(&peer, &name));
        let way = tokio::select! {
            way = self.way(&home, &note, AMQP_PATIENCE) => way,
            _ = stopping.changed() => return,
        };
        let are_several = self.has_several_groups();
        match way {
            None => self.say_refused(&peer, "no node of the cluster leads"),
            Some(Way::Here(service)) => {
                let (shared, ending) = (Arc::clone(&service.shared), service.stopping());
                drop(service);
                if are_several {
                    let client = Newcomer { peer, place, name };
                    let home = (shared, ending);
                    return self.serve_at_home(Box::new(stream), client, home, stopping).await;
                }
                driver::serve(stream, peer, place, name, shared, ending).await;
            }
            Some(Way::There(node, mut tunnel)) => {
                let mut client = Newcomer { peer, place, name };
                if are_several {
                    let stream = Box::new(stream);
                    return self.serve_by_home(stream, client, (node, tunnel), stopping).await;
                }
                let to = (&*home, node);
                self.carry(&mut stream, &mut tunnel, to, &mut client, &mut stopping).await;
            }
        }
    }

    /// Carries what a client and the node that leads its group say to each other, until one of them ends or the client has to
    /// go.
    pub(super) async fn carry<S, T>(
        &self,
        stream: &mut S,
        tunnel: &mut T,
        (group, node): (&Group, NodeId),
        Newcomer { peer, place, name }: &mut Newcomer,
        stopping: &mut watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin,
        T: AsyncRead + AsyncWrite + Unpin,
    {
        // Whoever leads gives the place of one that does not log in to others.
        if !place.keep() {
            return;
        }
        let Some(client) = self.clients.enter(name, group.number) else {
            return self.say_refused(peer, DRAINED);
        };
        let ended = Notify::new();
        let mut tunnel = Ending::new(tunnel, &ended);
        let given_up = async {
            ended.notified().await;
            tokio::time::sleep(FAREWELL).await;
        };
        tokio::select! {
            ended = copy_bidirectional_with_sizes(stream, &mut tunnel, TUNNEL_BYTES, TUNNEL_BYTES) => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, %error, "connection lost");
                }
            }
            // The node that leads is done with the client, which may never end by itself.
            () = given_up => {
                tracing::debug!(%peer, "connection closed: the client does not end it");
            }
            // It may be stopped, and never say so.
            () = group.serves_no_more(node) => {
                tracing::debug!(%peer, %node, "connection closed: the node does not lead any more");
            }
            () = client.ended() => {
                tracing::debug!(%peer, "connection closed: this node is drained");
            }
            _ = stopping.changed() => {}
        }
    }

    /// Waits until clients are to go to other nodes, as this one is drained, or until they may come again. While
    /// nobody leads, what was goes on.
    pub async fn turns_away(&self, wanted: bool) {
        let (mut serves, mut draining) =
            (self.groups.home().watch_serves(), self.clients.subscribe());
        loop {
            let is_drained = draining.borrow_and_update().is_some();
            let reached = match &*serves.borrow_and_update() {
                Serves::There(_) => is_drained == wanted,
                Serves::Here(_) => !wanted,
                Serves::Nobody => !wanted && !is_drained,
            };
            if reached {
                return;
            }
            tokio::select! {
                _ = serves.changed() => {}
                _ = draining.changed() => {}
            }
        }
    }

    pub(super) fn say_refused(&self, peer: &Peer, why: &str) {
        if let Some(suppressed) = self.throttles.connections.allow(Instant::now().into()) {
            tracing::warn!(%peer, suppressed, "connection closed: {why}");
        }
    }

    /// Answers the requests of a connection to the HTTP API.
    pub async fn serve_http<S: ByteStream + 'static>(
        self: Arc<Self>,
        stream: S,
        (peer, local): (SocketAddr, SocketAddr),
        tls: Option<Arc<ClientTls>>,
        stopping: watch::Receiver<bool>,
    ) {
        if let Serves::Here(service) = self.serves() {
            let (api, stopping) = (Arc::clone(&service.api), service.stopping());
            drop(service);
            return api.serve(stream, peer, local, tls, stopping).await;
        }
        if let Some(relay) = self.relay.get() {
            let connect = || self.connect(Note::http(What::Http, peer, local, tls.as_deref()));
            let carry = self.carries_sockets(peer, local, stopping.clone());
            relay.serve(stream, peer, false, connect, carry, stopping).await;
        }
    }

    /// As [`Front::serve_http`], for the operator of this machine.
    pub async fn serve_operator<S: ByteStream + 'static>(
        self: Arc<Self>,
        stream: S,
        stopping: watch::Receiver<bool>,
    ) {
        if let Serves::Here(service) = self.serves() {
            let (api, stopping) = (Arc::clone(&service.api), service.stopping());
            drop(service);
            return api.serve_operator(stream, stopping).await;
        }
        if let Some(relay) = self.relay.get() {
            let peer = SocketAddr::from((IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
            let connect = || self.connect(Note::http(What::Operator, peer, peer, None));
            relay.serve(stream, peer, true, connect, NO_SOCKETS, stopping).await;
        }
    }

    /// A connection to the HTTP API of home, wherever that is.
    pub(super) async fn connect(&self, note: Note) -> io::Result<RelayStream> {
        self.connect_to(self.groups.home(), note).await
    }

    /// The same to that of any group. It ends with the lead: a node that is gone may never say so.
    pub(super) async fn connect_to(
        &self,
        group: &Arc<Group>,
        note: Note,
    ) -> io::Result<RelayStream> {
        match self.way(group, &note, HTTP_PATIENCE).await {
            None => {
                Err(io::Error::new(io::ErrorKind::NotConnected, "no node of the cluster leads"))
            }
            Some(Way::Here(service)) => Ok(pipe_to(service, note)),
            Some(Way::There(node, mut tunnel)) => {
                let (ours, mut theirs) = tokio::io::duplex(PIPE_BYTES);
                let group = Arc::clone(group);
                tokio::spawn(async move {
                    tokio::select! {
                        _ = copy_bidirectional(&mut theirs, &mut tunnel) => {}
                        () = group.serves_no_more(node) => {}
                    }
                });
                Ok(Box::new(ours))
            }
        }
    }

    /// Finds who serves a client of a group, for as long as it waits.
    pub(super) async fn way(&self, group: &Group, note: &Note, patience: Duration) -> Option<Way> {
        let until = Instant::now() + patience;
        let mut serves = group.watch_serves();
        let note = serde_json::to_string(note).ok()?;
        loop {
            let now = serves.borrow_and_update().clone();
            match now {
                Serves::Nobody => {}
                Serves::Here(service) => return Some(Way::Here(service)),
                Serves::There(node) => match self.dial(node, &note).await {
                    Ok(tunnel) => return Some(Way::There(node, tunnel)),
                    Err(error) => {
                        tracing::debug!(%node, %error, "the node that leads can't be reached")
                    }
                },
            }
            let next = match *serves.borrow() {
                Serves::Nobody => until,
                _ => until.min(Instant::now() + RETRY_INTERVAL),
            };
            tokio::select! {
                changed = serves.changed() => changed.ok()?,
                () = tokio::time::sleep_until(next) => {}
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }

    pub(super) async fn dial(&self, node: NodeId, note: &str) -> io::Result<Stream> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, "its address is not known");
        let address = self.roster.node(node).ok_or_else(unknown)?.address;
        let dialled = self.endpoint.dial(&address, Purpose::Tunnel, note).await;
        let mut stream = dialled.map_err(io::Error::other)?.stream;
        let served = tokio::time::timeout(SERVED_TIMEOUT, stream.read_u8()).await??;
        match served {
            SERVED => Ok(stream),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A connection to the HTTP API of a broker in this process.
pub(super) fn pipe_to(service: Arc<Service>, note: Note) -> RelayStream {
    let (own, other) = tokio::io::duplex(PIPE_BYTES);
    tokio::spawn(serve_note_http(service, own, note));
    Box::new(other)
}

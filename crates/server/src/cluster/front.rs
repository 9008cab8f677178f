//! A client that comes to this node is served here if it leads, and passed on to the node that does if not.
//!
//! TLS and PROXY headers end here; what goes on is what the client says, and a note of who it is. While no node leads,
//! clients wait some seconds: an election takes no longer as long as there is a majority.

use super::definitions::Spreading;
use super::drain::Clients;
use super::group::Group;
use super::groups::Groups;
use super::moving::Moves;
use super::opening::Opening;
use super::other_nodes::{OtherNodes, Tunnel, WhileLed};
use super::passing::{End, pass};
use super::redirect::Newcomer;
use super::tunnel::{Note, SERVED, What, serve_note_http};
use super::whereabouts::Whereabouts;
use crate::driver::{self, ClientStream};
use crate::notices::Notices;
use crate::open_files::OpenFiles;
use crate::peer::Peer;
use crate::places::{Place, Places};
use crate::service::{Service, stopped};
use crate::throttle::Throttles;
use courser_cluster::NodeId;
use courser_cluster::transport::{ByteStream, Endpoint};
use courser_management::{ClientTls, Relay, RelayStream};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long an AMQP client waits for a node that leads.
const AMQP_PATIENCE: Duration = Duration::from_secs(10);
/// How long a request over HTTP does.
pub(super) const HTTP_PATIENCE: Duration = Duration::from_secs(3);
/// How long the node that leads may take to say that it serves a client.
pub(super) const SERVED_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait before the node that leads is tried again.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes of a pipe within the process.
pub(super) const PIPE_BYTES: usize = 64 << 10;
/// Why a client is refused that can go to another node.
const DRAINED: &str = "this node is drained";
const NO_LEADER: &str = "no node of the cluster leads";
/// Why one is refused that can come again.
pub(super) const NO_DESCRIPTOR: &str =
    "nearly all file descriptors are in use, and who is passed on takes two";

/// Who serves clients.
#[derive(Clone)]
pub(crate) enum Serves {
    /// No node is known that does.
    Unknown,
    /// Another node.
    There(NodeId),
    /// This node.
    Here(Arc<Service>),
}

/// Where a client goes.
pub(super) enum Way {
    Here(Arc<Service>),
    There(NodeId, Tunnel),
}

/// The doors' way to the broker that serves.
pub(crate) struct Front {
    pub places: Arc<Places>,
    pub throttles: Arc<Throttles>,
    open_files: OpenFiles,
    /// How long a client's socket may take nothing; for ever if there is none.
    send_timeout: Option<Duration>,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) others: Box<dyn OtherNodes>,
    /// Those that are passed on.
    pub(super) clients: Clients,
    pub(super) groups: Arc<Groups>,
    /// Which group vhosts are in.
    pub(super) whereabouts: Whereabouts,
    /// Vhosts that go from one group to another.
    pub(super) moves: Moves,
    /// How far home's definitions have come.
    pub(super) spreading: Spreading,
    /// Answers requests over HTTP that this node does not serve itself.
    relay: OnceLock<Arc<Relay>>,
    pub(super) metrics: OnceLock<Arc<Relay>>,
}

impl Front {
    pub(super) fn new(
        (places, open_files): (Arc<Places>, OpenFiles),
        send_timeout: Option<Duration>,
        endpoint: Arc<Endpoint>,
        others: Box<dyn OtherNodes>,
        groups: &Arc<Groups>,
        notices: &Arc<Notices>,
    ) -> Arc<Self> {
        let throttles = Arc::<Throttles>::default();
        let (relay, metrics) = (OnceLock::new(), OnceLock::new());
        let (clients, whereabouts) = (Clients::default(), Whereabouts::default());
        Arc::new_cyclic(|me| Front {
            moves: Moves::of(me),
            places,
            throttles,
            open_files,
            send_timeout,
            endpoint,
            others,
            clients,
            groups: Arc::clone(groups),
            whereabouts,
            spreading: Spreading::new(notices),
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
        mut place: Place,
        name: String,
        mut stopping: watch::Receiver<bool>,
    ) {
        if matches!(self.serves(), Serves::There(_)) && self.clients.is_draining() {
            return self.say_refused(&peer, DRAINED);
        }
        let (home, note) = (Arc::clone(self.groups.home()), Note::amqp(&peer, &name));
        let way = tokio::select! {
            biased;
            way = self.way(&home, &note, AMQP_PATIENCE, Some(&mut place)) => way,
            () = stopped(&mut stopping) => return,
        };
        let are_several = self.has_several_groups();
        match way {
            Err(why) => self.say_refused(&peer, &why),
            Ok(Way::Here(service)) => {
                let (shared, ending) = (Arc::clone(&service.shared), service.stopping());
                drop(service);
                if are_several {
                    let client = Newcomer { peer, place, name };
                    let home = (shared, ending);
                    return self.serve_at_home(Box::new(stream), client, home, stopping).await;
                }
                driver::serve(stream, peer, place, name, shared, ending).await;
            }
            Ok(Way::There(node, mut tunnel)) => {
                let mut client = Newcomer { peer, place, name };
                if are_several {
                    let stream = Box::new(stream);
                    return self.serve_by_home(stream, client, (node, tunnel), stopping).await;
                }
                let (to, opening) = ((&*home, node), Opening::of_amqp());
                self.carry(&mut stream, &mut tunnel, to, &mut client, opening, &mut stopping).await;
            }
        }
    }

    /// Carries what a client and the node that leads its group say to each other, until one ends or the client has to go.
    pub(super) async fn carry<S, T>(
        &self,
        stream: &mut S,
        tunnel: &mut T,
        (group, node): (&Group, NodeId),
        Newcomer { peer, place, name }: &mut Newcomer,
        opening: Opening,
        stopping: &mut watch::Receiver<bool>,
    ) where
        S: ClientStream,
        T: ClientStream,
    {
        let Some(client) = self.clients.enter(name, group.number) else {
            return self.say_refused(peer, DRAINED);
        };
        tokio::select! {
            biased;
            ended = pass(stream, tunnel, place, opening, self.send_timeout) => match ended {
                Ok(End::Stalled) => self.say_stalled(peer),
                Ok(end) => tracing::debug!(%peer, ?end, "connection closed"),
                Err(error) => tracing::debug!(%peer, %error, "connection lost"),
            },
            // It may be stopped, and never say so.
            () = group.serves_no_more(node) => {
                tracing::debug!(%peer, %node, "connection closed: the node does not lead any more");
            }
            () = client.ended() => {
                tracing::debug!(%peer, "connection closed: this node is drained");
            }
            () = stopped(stopping) => {}
        }
    }

    /// Waits until clients are to go to other nodes, as this one is drained, or until they may come again. While
    /// no node leads, what was goes on.
    pub async fn turns_away(&self, wanted: bool) {
        let (mut serves, mut draining) =
            (self.groups.home().watch_serves(), self.clients.subscribe());
        loop {
            let is_drained = draining.borrow_and_update().is_some();
            let reached = match &*serves.borrow_and_update() {
                Serves::There(_) => is_drained == wanted,
                Serves::Here(_) => !wanted,
                Serves::Unknown => !wanted && !is_drained,
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

    fn say_stalled(&self, peer: &Peer) {
        if let Some(suppressed) = self.throttles.connections.allow(Instant::now().into()) {
            let timeout_ms = self.send_timeout.map(|timeout| timeout.as_millis() as u64);
            tracing::warn!(
                %peer,
                timeout_ms,
                suppressed,
                "disconnected: the client does not read what it is sent"
            );
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
            let carry = self.carries_sockets(peer, local, tls.clone(), stopping.clone());
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
            let carry = self.carries_sockets(peer, peer, None, stopping.clone());
            relay.serve(stream, peer, true, connect, carry, stopping).await;
        }
    }

    /// A connection to the HTTP API of home, wherever that is.
    pub(super) async fn connect(&self, note: Note) -> io::Result<RelayStream> {
        self.connect_to(self.groups.home(), note).await
    }

    /// The same to that of any group.
    pub(super) async fn connect_to(
        &self,
        group: &Arc<Group>,
        note: Note,
    ) -> io::Result<RelayStream> {
        let has_reserve = note.what == What::Operator;
        match self.way(group, &note, HTTP_PATIENCE, None).await {
            Err(why) => Err(io::Error::new(io::ErrorKind::NotConnected, why)),
            Ok(Way::Here(service)) => Ok(pipe_to(service, note)),
            Ok(Way::There(node, tunnel)) => {
                let is_reserved = |descriptor| self.open_files.is_reserved(descriptor);
                if tunnel.descriptor().is_some_and(is_reserved) && !has_reserve {
                    return Err(io::Error::other(NO_DESCRIPTOR));
                }
                Ok(Box::new(WhileLed::new(tunnel, group, node)))
            }
        }
    }

    /// Finds who serves a client of a group, for as long as it waits. One with a place may have to give that up, if it is
    /// not served here.
    ///
    /// # Errors
    /// Why it is not served.
    pub(super) async fn way(
        &self,
        group: &Group,
        note: &Note,
        patience: Duration,
        mut place: Option<&mut Place>,
    ) -> Result<Way, String> {
        let until = Instant::now() + patience;
        let mut serves = group.watch_serves();
        let note = serde_json::to_string(note).map_err(|error| error.to_string())?;
        loop {
            let now = serves.borrow_and_update().clone();
            let (why, next) = match now {
                Serves::Unknown => (NO_LEADER.to_owned(), until),
                Serves::Here(service) => {
                    if let Some(place) = place {
                        place.pass_on_no_more();
                    }
                    return Ok(Way::Here(service));
                }
                Serves::There(node) => {
                    if let Some(place) = &mut place {
                        if !place.pass_on() {
                            return Err(NO_DESCRIPTOR.to_owned());
                        }
                        // They have descriptors still.
                        self.places.until_few_leave().await;
                    }
                    let dialled = tokio::select! {
                        biased;
                        dialled = self.dial(node, &note) => dialled,
                        // It may be gone, and another one lead meanwhile.
                        () = group.serves_no_more(node) => Err(io::ErrorKind::Interrupted.into()),
                    };
                    match dialled {
                        Ok(tunnel) => return Ok(Way::There(node, tunnel)),
                        Err(error) => {
                            let why = format!("the node that leads can't be reached: {error}");
                            tracing::debug!(%node, "{why}");
                            (why, until.min(Instant::now() + RETRY_INTERVAL))
                        }
                    }
                }
            };
            tokio::select! {
                biased;
                // The sender is in the group, which is still there.
                _ = serves.changed() => {}
                () = tokio::time::sleep_until(next) => {}
            }
            if Instant::now() >= until {
                return Err(why);
            }
        }
    }

    /// A connection to a node that says that it serves what the note is of.
    pub(super) async fn dial(&self, node: NodeId, note: &str) -> io::Result<Tunnel> {
        let mut tunnel = self.others.dial(node, note).await?;
        let served = tokio::time::timeout(SERVED_TIMEOUT, tunnel.read_u8()).await??;
        match served {
            SERVED => Ok(tunnel),
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

#[cfg(test)]
mod tests;

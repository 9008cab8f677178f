//! The ZeroMQ side of an endpoint: its socket, and who is connected to it.

use crate::config::{EndpointConfig, SocketKind};
use crate::frames::FRAMES_MAX;
use crate::intake::Senders;
use crate::metrics::Metrics;
use crate::subscriptions::Budget;
use crate::watch::Watch;
use omq_tokio::engine::{AuthenticatedRecvItem, RecvSink, RecvSinkConfig, StateSignal};
use omq_tokio::{Endpoint, Error, Options, Payload, ReconnectPolicy, Socket, SocketType};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often silent peers are asked whether they live, and how long they have to answer.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a closing socket has for what it still holds.
const LINGER: Duration = Duration::from_secs(2);
/// How long an endpoint waits before it connects again, from the first to the last.
const RECONNECT_MIN: Duration = Duration::from_millis(100);
const RECONNECT_MAX: Duration = Duration::from_secs(5);

/// A socket that is bound or connects.
pub(crate) struct Bound {
    pub socket: Socket,
    /// What comes in, with who sent it, if that was asked for.
    pub senders: Option<Senders>,
    /// With the real port.
    pub address: String,
    /// For what peers subscribe to.
    pub budget: Arc<Budget>,
    is_bound: bool,
    watcher: JoinHandle<()>,
}

impl Bound {
    /// Opens the socket of an endpoint, with places for so many handshakes. If `knows_senders`, its messages are to be taken from `senders`.
    pub async fn open(
        config: &EndpointConfig,
        handshakes: usize,
        knows_senders: bool,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, Error> {
        let budget = Arc::new(Budget::new(config.high_water_bytes));
        let (kind, options) = (socket_type(config.socket), options(config, handshakes, &budget)?);
        let (socket, senders) = if !knows_senders {
            (Socket::try_new(kind, options)?, None)
        } else if kind == SocketType::Router {
            let socket = Socket::try_new(kind, options)?;
            (socket.clone(), Some(Senders::Router(socket)))
        } else {
            let (sink, channel) = sink(config.socket_messages() as usize);
            let socket = Socket::try_new_with_recv_sink_config(kind, options, Arc::new(sink))?;
            (socket, Some(Senders::Channel(channel)))
        };
        let watch = Watch::new(config, handshakes, &socket, metrics);
        let watcher = tokio::spawn(watch.run());
        if config.socket == SocketKind::Sub {
            for prefix in &config.subscribe {
                socket.subscribe(prefix.clone()).await?;
            }
        }
        let address: Endpoint = config.address().unwrap_or_default().parse()?;
        let address = if config.bind.is_some() {
            socket.bind(address).await?.to_string()
        } else {
            socket.connect(address.clone()).await?;
            address.to_string()
        };
        Ok(Bound { socket, senders, address, budget, is_bound: config.bind.is_some(), watcher })
    }

    /// Lets no peer in any more, and disconnects those that are there. What has come already can still be taken.
    pub async fn hang_up(&self) {
        // Errors mean that it has been unbound or disconnected before.
        let _ = match self.is_bound {
            true => self.socket.unbind(self.address.as_str()).await,
            false => self.socket.disconnect(self.address.as_str()).await,
        };
        for peer in self.socket.connections().await.unwrap_or_default() {
            let _ = self.socket.disconnect_peer(peer.connection_id).await;
        }
    }

    pub async fn close(self) {
        // It fails only when it is closed already.
        let _ = self.socket.clone().close().await;
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // It has the socket too, which would never be closed.
        self.watcher.abort();
    }
}

/// Has a socket put what it receives into a channel, with what is known of the sender.
fn sink(messages: usize) -> (RecvSinkConfig, mpsc::Receiver<AuthenticatedRecvItem>) {
    // The task that takes the messages waits at the channel, so no signal is needed.
    let no_signal = Arc::new(|| {});
    let (sink, channel) = RecvSink::authenticated(messages, no_signal.clone());
    (RecvSinkConfig::new(sink, no_signal, Arc::new(StateSignal::new()), messages), channel)
}

fn socket_type(kind: SocketKind) -> SocketType {
    match kind {
        SocketKind::Pull => SocketType::Pull,
        SocketKind::Push => SocketType::Push,
        SocketKind::Sub => SocketType::Sub,
        SocketKind::Xpub => SocketType::XPub,
        SocketKind::Router => SocketType::Router,
        SocketKind::Dealer => SocketType::Dealer,
    }
}

fn options(
    config: &EndpointConfig,
    handshakes: usize,
    budget: &Arc<Budget>,
) -> Result<Options, Error> {
    let mechanism = config.mechanism().map_err(|error| Error::Config(error.to_string()))?;
    let budget = Arc::clone(budget);
    Ok(Options {
        send_hwm: config.send_messages(),
        transmit_slot_cap: config.send_bytes(),
        recv_hwm: config.socket_messages(),
        // The library counts a slot of its own for each frame. What is too large then is for `Link::incoming` to drop.
        max_message_size: Some(config.max_message_bytes + FRAMES_MAX * size_of::<Payload>()),
        max_pending_handshakes: handshakes,
        linger: Some(LINGER),
        reconnect: ReconnectPolicy::Exponential { min: RECONNECT_MIN, max: RECONNECT_MAX },
        heartbeat_interval: Some(HEARTBEAT_INTERVAL),
        heartbeat_timeout: Some(HEARTBEAT_TIMEOUT),
        // A reply for a peer that is gone, or does not read, is to be counted.
        router_mandatory: true,
        mechanism,
        ..Options::default()
    }
    .subscription_admission(move |request| budget.admits(request.prefix)))
}

/// Waits until a peer is there. A socket that connects would take messages before that, and lose them with its end.
pub(crate) async fn has_peer(socket: &Socket) -> Result<(), Error> {
    loop {
        let seen = socket.connections_generation();
        if socket.ready_peer_count() > 0 {
            return Ok(());
        }
        socket.connections_changed(seen).await?;
    }
}

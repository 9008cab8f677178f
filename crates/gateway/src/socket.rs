//! The ZeroMQ side of an endpoint: its socket, and who is connected to it.

use crate::config::{EndpointConfig, SocketKind};
use crate::metrics::Metrics;
use omq_tokio::{
    Endpoint, Error, MonitorEvent, MonitorRecvError, MonitorStream, Options, Socket, SocketType,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often silent peers are asked whether they live, and how long they have to answer.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a closing socket has for what it still holds.
const LINGER: Duration = Duration::from_secs(2);

/// A socket that is bound or connects.
pub(crate) struct Bound {
    pub socket: Socket,
    /// With the real port.
    pub address: String,
    watcher: JoinHandle<()>,
}

impl Bound {
    pub async fn open(config: &EndpointConfig, metrics: &Arc<Metrics>) -> Result<Self, Error> {
        let socket = Socket::try_new(socket_type(config.socket), options(config)?)?;
        let watcher = tokio::spawn(watch(
            socket.clone(),
            socket.monitor(),
            config.name(),
            config.peers_max,
            Arc::clone(metrics),
        ));
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
        Ok(Bound { socket, address, watcher })
    }

    pub async fn close(self) {
        self.watcher.abort();
        // It fails only when it is closed already.
        let _ = self.socket.close().await;
    }
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

fn options(config: &EndpointConfig) -> Result<Options, Error> {
    let mechanism =
        config.security.mechanism().map_err(|error| Error::Config(error.to_string()))?;
    Ok(Options {
        send_hwm: config.socket_messages(),
        recv_hwm: config.socket_messages(),
        max_message_size: Some(config.max_message_bytes),
        linger: Some(LINGER),
        heartbeat_interval: Some(HEARTBEAT_INTERVAL),
        heartbeat_timeout: Some(HEARTBEAT_TIMEOUT),
        // A reply for a peer that is gone, or does not read, is to be counted.
        router_mandatory: true,
        mechanism,
        ..Options::default()
    })
}

/// Counts the peers, and disconnects those that are too many.
async fn watch(
    socket: Socket,
    mut events: MonitorStream,
    name: String,
    peers_max: usize,
    metrics: Arc<Metrics>,
) {
    let mut peers: usize = 0;
    loop {
        match events.recv().await {
            Ok(MonitorEvent::HandshakeSucceeded { peer, .. }) => {
                peers += 1;
                if peers > peers_max {
                    tracing::warn!(endpoint = name, peers_max, "gateway: too many peers");
                    Metrics::add(&metrics.turned_away, 1);
                    // It fails when the peer has gone by itself.
                    let _ = socket.disconnect_peer(peer.connection_id).await;
                }
            }
            Ok(MonitorEvent::Disconnected { .. }) => peers = peers.saturating_sub(1),
            Ok(MonitorEvent::HandshakeFailed { reason, .. }) => {
                tracing::warn!(endpoint = name, reason, "gateway: a peer was not let in");
                Metrics::add(&metrics.turned_away, 1);
            }
            Ok(_) => {}
            Err(MonitorRecvError::Lagged(_)) => {
                peers = socket.connections().await.map_or(peers, |list| list.len());
            }
            Err(_) => return,
        }
        metrics.peers.store(peers as u64, Ordering::Relaxed);
    }
}

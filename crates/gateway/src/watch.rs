//! Watches the peers of a socket: counts them, disconnects those that are too many, tells the log of those that are not
//! let in, and connects again where the library would not.

use crate::config::EndpointConfig;
use crate::handshakes::Handshakes;
use crate::log_throttle::LogThrottle;
use crate::metrics::Metrics;
use omq_tokio::{
    DisconnectReason, Endpoint, MonitorEvent, MonitorRecvError, MonitorStream, Socket,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// How long an endpoint waits before it shows its credentials again where they were refused.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

const UNFINISHED: &str = "others came, and it had not finished its handshake";
const TOO_MANY: &str = "there are more than peers_max";

pub(crate) struct Watch {
    socket: Socket,
    events: MonitorStream,
    name: String,
    peers_max: usize,
    connects: bool,
    metrics: Arc<Metrics>,
    refusals: LogThrottle,
    losses: LogThrottle,
    /// Who was disconnected last; what it had on its way may give more reasons to.
    turned_away: Option<u64>,
    /// By the numbers of their connections: events may tell again what a list of them has told.
    peers: HashSet<u64>,
    handshakes: Handshakes,
    /// A connection was made that is not known to have become a peer.
    is_reached: bool,
    /// What the log was told last of why there is no connection.
    told: Option<String>,
    /// When and where to connect again, where credentials were refused.
    again: Option<(Instant, Endpoint)>,
}

impl Watch {
    pub fn new(
        config: &EndpointConfig,
        handshakes: usize,
        socket: &Socket,
        metrics: &Arc<Metrics>,
    ) -> Self {
        Watch {
            socket: socket.clone(),
            events: socket.monitor(),
            name: config.name(),
            peers_max: config.peers_max,
            connects: config.connect.is_some(),
            metrics: Arc::clone(metrics),
            refusals: LogThrottle::default(),
            losses: LogThrottle::default(),
            turned_away: None,
            peers: HashSet::new(),
            handshakes: Handshakes::new(handshakes),
            is_reached: false,
            told: None,
            again: None,
        }
    }

    /// Watches until the socket is closed.
    pub async fn run(mut self) {
        loop {
            let at = self.again.as_ref().map(|(at, _)| *at);
            tokio::select! {
                event = self.events.recv() => match event {
                    Ok(event) => self.note(event).await,
                    Err(MonitorRecvError::Lagged(_)) => self.count_again().await,
                    Err(_) => return,
                },
                () = until(at), if at.is_some() => {
                    // The library gives up where credentials are refused; the peer may accept them later.
                    if let Some((_, endpoint)) = self.again.take() {
                        // It fails only when the socket is closed.
                        let _ = self.socket.connect(endpoint).await;
                    }
                }
            }
            self.metrics.peers.store(self.peers.len() as u64, Ordering::Relaxed);
        }
    }

    async fn note(&mut self, event: MonitorEvent) {
        match event {
            MonitorEvent::Accepted { connection_id, .. } => self.make_room(connection_id).await,
            MonitorEvent::HandshakeSucceeded { peer, .. } => {
                self.handshakes.end(peer.connection_id);
                self.welcome(peer.connection_id).await;
            }
            MonitorEvent::Disconnected { peer, reason, .. } => {
                self.handshakes.end(peer.connection_id);
                self.peers.remove(&peer.connection_id);
                self.lose(&reason);
            }
            MonitorEvent::HandshakeFailed { reason, .. } => self.refuse(&reason),
            MonitorEvent::SubscribeRejected { connection_id, .. } => {
                self.turn_away(connection_id, "the subscriptions need more than high_water_bytes")
                    .await;
            }
            MonitorEvent::Connected { .. } => self.reach(),
            MonitorEvent::ConnectDelayed { .. } => {
                self.complain("no peer answers at this address");
            }
            MonitorEvent::ConnectStopped { endpoint, .. } => {
                self.again = Some((Instant::now() + REFUSED_PAUSE, endpoint));
            }
            _ => {}
        }
    }

    /// Ends the oldest handshakes where there are too many.
    async fn make_room(&mut self, connection_id: u64) {
        self.handshakes.begin(connection_id);
        while let Some(oldest) = self.handshakes.pop_excess() {
            // That it has become a peer, or has failed, may have escaped this.
            let status = self.socket.connection_info(oldest).await;
            if status.is_ok_and(|status| status.is_some_and(|status| status.peer_info.is_none())) {
                self.turn_away(oldest, UNFINISHED).await;
            }
        }
    }

    /// Takes the peers from the socket. There were more events than the library keeps, for example thousands of
    /// subscriptions. Those that it has kept still come; they are older than the list.
    async fn count_again(&mut self) {
        let list = self.socket.connections().await.unwrap_or_default();
        self.peers = list.iter().map(|peer| peer.connection_id).collect();
        for peer in list.iter().skip(self.peers_max) {
            self.turn_away(peer.connection_id, TOO_MANY).await;
        }
    }

    async fn welcome(&mut self, connection_id: u64) {
        let is_new = self.peers.insert(connection_id);
        self.is_reached = false;
        if self.connects && self.told.take().is_some() {
            tracing::info!(endpoint = self.name, "gateway: connected");
        }
        if is_new && self.peers.len() > self.peers_max {
            self.turn_away(connection_id, TOO_MANY).await;
        }
    }

    async fn turn_away(&mut self, connection_id: u64, reason: &str) {
        if self.turned_away.replace(connection_id) == Some(connection_id) {
            return;
        }
        if let Some(suppressed) = self.refusals.may_say() {
            tracing::warn!(
                endpoint = self.name,
                reason,
                suppressed,
                "gateway: a peer is disconnected"
            );
        }
        Metrics::add(&self.metrics.turned_away, 1);
        // It fails when the peer has gone by itself.
        let _ = self.socket.disconnect_peer(connection_id).await;
    }

    fn lose(&mut self, reason: &DisconnectReason) {
        match reason {
            DisconnectReason::LocalClose => {}
            DisconnectReason::Error(reason) if !self.connects => {
                if let Some(suppressed) = self.losses.may_say() {
                    let text = "gateway: a peer was disconnected";
                    tracing::info!(endpoint = self.name, reason, suppressed, "{text}");
                }
            }
            _ if self.connects => self.complain("the connection was lost"),
            _ => {}
        }
    }

    fn refuse(&mut self, reason: &str) {
        self.is_reached = false;
        if self.connects {
            self.complain(&format!("not let in: {reason}"));
        } else {
            if let Some(suppressed) = self.refusals.may_say() {
                let text = "gateway: a peer was not let in";
                tracing::warn!(endpoint = self.name, reason, suppressed, "{text}");
            }
            Metrics::add(&self.metrics.turned_away, 1);
        }
    }

    /// A peer that hangs up in the middle of the handshake causes no event but the next attempt.
    fn reach(&mut self) {
        if self.connects && std::mem::replace(&mut self.is_reached, true) {
            self.complain(
                "not let in: the peer ends the connection (a wrong server_key, or none?)",
            );
        }
    }

    /// Tells the log why an endpoint has no connection, once for each reason: it goes on trying.
    fn complain(&mut self, reason: &str) {
        if self.told.as_deref() != Some(reason) {
            tracing::warn!(endpoint = self.name, reason, "gateway: not connected, trying again");
            self.told = Some(reason.to_owned());
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omq_tokio::{Options, SocketType};
    use serde_json::json;

    /// Longer than anything takes, also on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn peers_are_counted_once_when_events_were_lost() {
        const PEERS: usize = 10;
        let pull = json!({
            "socket": "pull", "bind": "tcp://127.0.0.1:0", "queue": "q", "peers_max": PEERS,
        });
        let config: EndpointConfig = serde_json::from_value(pull).expect("settings");
        let options = Options { monitor_capacity: 4, ..Options::default() };
        let socket = Socket::try_new(SocketType::Pull, options).expect("a socket");
        let metrics = Arc::new(Metrics::default());
        let watch = Watch::new(&config, 2 * PEERS, &socket, &metrics);
        let address: Endpoint = config.address().expect("an address").parse().expect("a good one");
        let address = socket.bind(address).await.expect("a free port");
        let mut peers = Vec::new();
        for _ in 0..PEERS {
            let peer = Socket::new(SocketType::Push, Options::default());
            peer.connect(address.clone()).await.expect("an address");
            peers.push(peer);
        }
        socket.wait_connected(PEERS, LONG).await.expect("all peers");
        let watcher = tokio::spawn(watch.run());
        let told = async |peers: u64| {
            while metrics.snapshot().peers != peers {
                assert_eq!(metrics.snapshot().turned_away, 0, "there is room for all");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, told(PEERS as u64)).await.expect("all are counted");
        // The event of its end is behind all that were kept.
        peers.pop().expect("a peer").close().await.expect("an open socket");
        tokio::time::timeout(LONG, told(PEERS as u64 - 1)).await.expect("one is gone");
        watcher.abort();
    }
}

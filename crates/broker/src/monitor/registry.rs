//! The connections that are open, and what is known of each.
//!
//! What there is to know of a connection lives in its outbox, which others reach it by anyway; the
//! registry keeps the outboxes by the names of their connections.

use super::client_properties::ClientProperties;
use super::interned::Interned;
use super::ordered::{Named, Ordered};
use crate::outbox::Outbox;
use crate::queue::ConnectionId;
use crate::vhost::VhostLabel;
use courser_codec::ShortString;
use std::fmt;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Bytes of a connection's name.
const NAME_BYTES_MAX: usize = 255;

/// The connections that are open, by name.
pub(crate) type Registry = Ordered<Outbox>;

/// What the driver of a connection knows of it when it opens.
#[derive(Clone, Debug, Default)]
pub struct ConnectionDetails {
    /// Where it comes from and goes to, as `127.0.0.1:55992 -> 127.0.0.1:5672`. Made different from
    /// all others' if it is not.
    pub name: String,
    /// How its user has logged in.
    pub mechanism: &'static str,
    /// Channels that it may have at most.
    pub channel_max: u16,
    /// Agreed interval of heartbeats in seconds, 0 for none.
    pub heartbeat_s: u16,
    /// What the client says of itself.
    pub client_properties: ClientProperties,
    /// With TLS: what its handshake has agreed on.
    pub tls: Option<Arc<TlsSession>>,
}

/// What a TLS handshake has agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// The protocol's version and the cipher suite, as in `TLSv1_3, TLS13_AES_256_GCM_SHA384`.
    pub session: String,
    /// What the client's certificate says, if it presented one.
    pub certificate: Option<PeerCertificate>,
}

/// What is shown of a client's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Whose it is, as RFC 4514 writes names.
    pub subject: String,
    /// Who signed it, likewise.
    pub issuer: String,
    /// From when to when it is good, as `2026-01-01T00:00:00Z - 2027-01-01T00:00:00Z`.
    pub validity: String,
    /// Its serial number in hexadecimal digits.
    pub serial: String,
}

/// What is known of an open connection.
pub(crate) struct Connection {
    pub id: ConnectionId,
    name: Box<str>,
    user: ShortString,
    pub vhost: Arc<VhostLabel>,
    pub mechanism: &'static str,
    pub channel_max: u16,
    pub heartbeat_s: u16,
    state: AtomicU8,
    pub since_ms: u64,
    /// Encoded, which takes much less, and shared with others who say the same.
    properties: Arc<[u8]>,
    pub traffic: Traffic,
    pub tls: Option<Arc<TlsSession>>,
}

/// What a connection's socket has taken and given. Only the connection's driver adds to it.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub received_bytes: AtomicU64,
    pub receives: AtomicU64,
    pub sent_bytes: AtomicU64,
    pub sends: AtomicU64,
}

/// What has gone through a connection's socket, or through those of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Bytes that came from clients.
    pub received_bytes: u64,
    /// Reads that brought some.
    pub receives: u64,
    /// Bytes that were sent to clients.
    pub sent_bytes: u64,
    /// Writes that took some.
    pub sends: u64,
}

impl AddAssign<&TrafficCounts> for TrafficCounts {
    fn add_assign(&mut self, more: &TrafficCounts) {
        self.received_bytes += more.received_bytes;
        self.receives += more.receives;
        self.sent_bytes += more.sent_bytes;
        self.sends += more.sends;
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// It is read and written as usual.
    Running = 0,
    /// It publishes during an alarm, and has to wait until that is over.
    Blocked = 1,
    /// It is ahead of the consumers of what it publishes, and gives them time.
    Flow = 2,
    /// It has been told to close.
    Closing = 3,
}

impl Connection {
    pub fn new(
        id: ConnectionId,
        vhost: Arc<VhostLabel>,
        user: ShortString,
        details: ConnectionDetails,
        since_ms: u64,
        interned: &Interned,
    ) -> Self {
        let ConnectionDetails {
            mut name,
            mechanism,
            channel_max,
            heartbeat_s,
            client_properties,
            tls,
        } = details;
        if name.is_empty() {
            name = format!("session {id}");
        }
        name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
        Connection {
            id,
            name: name.into(),
            user,
            vhost,
            mechanism,
            channel_max,
            heartbeat_s,
            state: AtomicU8::new(ConnectionState::Running as u8),
            since_ms,
            properties: interned.share(client_properties.as_bytes()),
            traffic: Traffic::default(),
            tls,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the client says of itself, encoded.
    pub fn properties(&self) -> &Arc<[u8]> {
        &self.properties
    }

    pub fn user(&self) -> &ShortString {
        &self.user
    }

    /// Makes its name different from all others'.
    pub fn distinguish(&mut self) {
        self.name = format!("{} #{}", self.name, self.id).into();
    }

    pub fn set_state(&self, state: ConnectionState) {
        // It does not open again.
        if self.state.load(Ordering::Relaxed) != ConnectionState::Closing as u8 {
            self.state.store(state as u8, Ordering::Relaxed);
        }
    }

    /// What it is doing.
    pub fn state(&self) -> ConnectionState {
        let known = [ConnectionState::Blocked, ConnectionState::Flow, ConnectionState::Closing];
        let state = self.state.load(Ordering::Relaxed);
        known.into_iter().find(|one| *one as u8 == state).unwrap_or(ConnectionState::Running)
    }

    /// The addresses of both ends, which its name consists of.
    pub fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        match self.name.split_once(" -> ") {
            Some((peer, local)) => (peer.parse().ok(), local.parse().ok()),
            None => (None, None),
        }
    }
}

impl Traffic {
    pub fn read(&self) -> TrafficCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TrafficCounts {
            received_bytes: read(&self.received_bytes),
            receives: read(&self.receives),
            sent_bytes: read(&self.sent_bytes),
            sends: read(&self.sends),
        }
    }

    /// Bytes came from the client.
    #[inline]
    pub fn received(&self, bytes: usize) {
        add(&self.received_bytes, bytes as u64);
        add(&self.receives, 1);
    }

    /// Bytes went to the client.
    #[inline]
    pub fn sent(&self, bytes: usize) {
        add(&self.sent_bytes, bytes as u64);
        add(&self.sends, 1);
    }
}

/// There is one who adds, so nothing is lost between the two steps.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Named for Outbox {
    fn name(&self) -> &[u8] {
        self.connection.name.as_bytes()
    }
}

//! What the broker keeps for its operator beside what it needs itself.

mod client_properties;
mod events;
mod interned;
mod ordered;
mod registry;

pub use client_properties::ClientProperties;
pub use events::{EVENTS_MAX, Event, EventKind, Followed, Follower};
pub(crate) use ordered::{Named, Ordered, Snapshot};
pub(crate) use registry::Connection;
pub use registry::{
    ConnectionDetails, ConnectionState, PeerCertificate, TlsSession, TrafficCounts,
};

use crate::counts::{MessageCounts, SharedSizes};
use crate::fault::Fault;
use crate::memory::{Memory, Use};
use crate::outbox::Outbox;
use crate::vhost::{Vhost, VhostLabel};
use events::Events;
use interned::Interned;
use parking_lot::Mutex;
use registry::Registry;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by the broker and its vhosts.
#[derive(Default)]
pub(crate) struct Monitor {
    pub registry: Registry,
    /// What clients say of themselves.
    pub properties: Interned,
    pub events: Arc<Events>,
    pub churn: ChurnCounters,
    /// How large the messages were that clients have published.
    pub sizes: SharedSizes,
    /// What has happened in vhosts that are not there any more.
    pub past_counts: Mutex<MessageCounts>,
    /// What went through connections that are over. Held while one is forgotten.
    past_traffic: Mutex<TrafficCounts>,
}

impl Monitor {
    /// What it keeps of what clients say of themselves counts in these books.
    pub fn new(memory: &Arc<Memory>) -> Arc<Self> {
        let properties = Interned::counted(memory.charge(Use::Sessions, 0));
        Arc::new(Monitor { properties, ..Monitor::default() })
    }

    /// Takes a connection in, under a name of its own.
    pub fn register(&self, outbox: Arc<Outbox>, now_ms: u64) -> Arc<Outbox> {
        let mut outcome = self.registry.try_insert(outbox);
        while let Err(mut refused) = outcome {
            if let Some(only) = Arc::get_mut(&mut refused) {
                only.connection.distinguish();
            }
            outcome = self.registry.try_insert(refused);
        }
        let (Ok(outbox) | Err(outbox)) = outcome;
        count(&self.churn.connections_opened);
        self.events.tell(|| about(&outbox, now_ms, EventKind::ConnectionOpened));
        if outbox.connection.vhost.is_deleted() {
            // It has been let in at the last moment.
            outbox.fail_connection(vhost_deleted(&outbox.connection.vhost.name));
        }
        outbox
    }

    /// Takes note of a connection's end.
    pub fn forget(&self, outbox: &Arc<Outbox>, now_ms: u64) {
        let is_this = |other: &Arc<Outbox>| Arc::ptr_eq(other, outbox);
        let is_removed = {
            let mut past = self.past_traffic.lock();
            let is_removed = self.registry.remove_if(outbox.name(), is_this);
            if is_removed {
                let traffic = outbox.connection.traffic.read();
                *past += &traffic;
                *outbox.connection.vhost.past_traffic.lock() += &traffic;
            }
            is_removed
        };
        if is_removed {
            self.properties.release(outbox.connection.properties());
            count(&self.churn.connections_closed);
            self.events.tell(|| about(outbox, now_ms, EventKind::ConnectionClosed));
        }
    }

    /// What has gone through all connections that there ever were.
    pub fn traffic(&self) -> TrafficCounts {
        // Locked until the end: a connection that goes meanwhile would count twice, or not at all.
        let past = self.past_traffic.lock();
        let mut all = *past;
        let connections = self.registry.snapshot();
        connections.starting_at(0).for_each(|one| all += &one.connection.traffic.read());
        all
    }

    /// The same for each of these vhosts, in their order.
    pub fn traffic_of(&self, vhosts: &[Arc<Vhost>]) -> Vec<TrafficCounts> {
        let _past = self.past_traffic.lock();
        let mut open: HashMap<*const VhostLabel, TrafficCounts> = HashMap::new();
        for one in self.registry.snapshot().starting_at(0) {
            // By the vhost itself: another one of its name may be there by now.
            *open.entry(Arc::as_ptr(&one.connection.vhost)).or_default() +=
                &one.connection.traffic.read();
        }
        let of = |vhost: &Arc<Vhost>| {
            let mut all = *vhost.label.past_traffic.lock();
            all += open.get(&Arc::as_ptr(&vhost.label)).unwrap_or(&TrafficCounts::default());
            all
        };
        vhosts.iter().map(of).collect()
    }

    /// A channel has been opened.
    pub fn channel_opened(&self, outbox: &Outbox, number: u16, now_ms: u64) {
        count(&self.churn.channels_opened);
        let event = || about(outbox, now_ms, EventKind::ChannelOpened).with("number", number);
        self.events.tell(event);
    }

    /// A channel is closed.
    pub fn channel_closed(&self, outbox: &Outbox, number: u16, now_ms: u64) {
        count(&self.churn.channels_closed);
        let event = || about(outbox, now_ms, EventKind::ChannelClosed).with("number", number);
        self.events.tell(event);
    }
}

/// How much has come and gone.
#[derive(Debug, Default)]
pub(crate) struct ChurnCounters {
    pub connections_opened: AtomicU64,
    pub connections_closed: AtomicU64,
    pub channels_opened: AtomicU64,
    pub channels_closed: AtomicU64,
    pub queues_declared: AtomicU64,
    pub queues_created: AtomicU64,
    pub queues_deleted: AtomicU64,
}

/// How much has come and gone since the broker's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Churn {
    /// Connections that entered a vhost.
    pub connections_opened: u64,
    /// Of those, the ones that are over.
    pub connections_closed: u64,
    /// Channels opened.
    pub channels_opened: u64,
    /// Of those, the ones that are closed.
    pub channels_closed: u64,
    /// Queues declared, whether they were there or not.
    pub queues_declared: u64,
    /// Queues made.
    pub queues_created: u64,
    /// Queues that have gone.
    pub queues_deleted: u64,
}

impl ChurnCounters {
    pub fn read(&self) -> Churn {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Churn {
            connections_opened: read(&self.connections_opened),
            connections_closed: read(&self.connections_closed),
            channels_opened: read(&self.channels_opened),
            channels_closed: read(&self.channels_closed),
            queues_declared: read(&self.queues_declared),
            queues_created: read(&self.queues_created),
            queues_deleted: read(&self.queues_deleted),
        }
    }
}

fn about(outbox: &Outbox, now_ms: u64, kind: EventKind) -> Event {
    let connection = &outbox.connection;
    let event = Event::new(now_ms, kind, &connection.vhost.name, connection.name());
    event.with("user", connection.user())
}

/// What the clients in a vhost are told when it goes.
pub(crate) fn vhost_deleted(name: &str) -> Fault {
    Fault::new(320, format_args!("vhost '{name}' is deleted"))
}

/// Counts one more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

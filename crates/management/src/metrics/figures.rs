//! What is read once for a page: numbers of the broker as a whole, and of its process.

use super::families::channels::ChannelRow;
use super::{Exporter, Exporters};
use crate::process::{ProcessFigures, disk_free_bytes};
use courser_broker::admin::{
    Admin, Alarms, Churn, LogFigures, MemoryUses, MessageCounts, PublishCounts, QueueCounts,
    QueueFigures, TrafficCounts,
};
use std::time::Duration;
use tokio::runtime::Handle;

/// What whoever starts the broker knows and the broker does not.
#[derive(Clone, Debug, Default)]
pub struct ServerFigures {
    /// The gateway's endpoints.
    pub endpoints: Vec<EndpointFigures>,
}

/// How many logins succeeded and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginCounts {
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those that failed.
    pub failed: u64,
}

/// What an endpoint of the gateway has counted.
#[derive(Clone, Debug, Default)]
pub struct EndpointFigures {
    /// Its name.
    pub name: String,
    /// Peers that are connected.
    pub peers: u64,
    /// Messages from peers.
    pub received: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Messages that the broker has taken.
    pub published: u64,
    /// Messages that the broker has refused.
    pub refused: u64,
    /// Messages that no queue got.
    pub unroutable: u64,
    /// Messages to peers.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Messages that could not be carried.
    pub dropped: u64,
    /// Requests that were not answered in time.
    pub expired: u64,
    /// Peers that were not let in.
    pub turned_away: u64,
    /// Logins at the broker.
    pub links: u64,
}

/// Numbers of the broker and its process.
pub(crate) struct NodeFigures {
    pub process: ProcessFigures,
    pub uptime: Duration,
    pub churn: Churn,
    pub alarms: Alarms,
    pub log: LogFigures,
    pub memory: MemoryUses,
    pub memory_used_bytes: u64,
    pub memory_limit_bytes: u64,
    pub disk_free_bytes: u64,
    pub connections: u64,
    pub connections_max: u64,
    pub channels: u64,
    pub consumers: u64,
    pub queues: u64,
    pub refused: u64,
    pub runtime_workers: u64,
    pub runtime_tasks: u64,
    pub runtime_queue: u64,
}

/// What is on a page besides: of all queues together, and so on.
pub(crate) struct Totals {
    pub messages: MessageCounts,
    pub queues: QueueFigures,
    pub channels: ChannelRow,
    pub publishers: u64,
    pub traffic: TrafficCounts,
    /// Bytes that wait to be sent.
    pub pending_bytes: usize,
    pub open_channels: usize,
}

impl Totals {
    /// Looks at every queue and every channel of all brokers on this node.
    pub fn read(exporters: &Exporters) -> Self {
        let mut all = Totals::of(&exporters.first().api.admin);
        exporters.iter().skip(1).for_each(|one| all.add(&Totals::of(&one.api.admin)));
        all
    }

    fn add(&mut self, more: &Totals) {
        self.messages += &more.messages;
        self.queues.ready += more.queues.ready;
        self.queues.unacked += more.queues.unacked;
        self.queues.consumers += more.queues.consumers;
        self.queues.counts.published += more.queues.counts.published;
        self.queues.counts.deliveries += &more.queues.counts.deliveries;
        self.channels.add_row(&more.channels);
        self.publishers += more.publishers;
        self.traffic += &more.traffic;
        self.pending_bytes += more.pending_bytes;
        self.open_channels += more.open_channels;
    }

    fn of(admin: &Admin) -> Self {
        let messages = admin.message_counts();
        let counts = QueueCounts { deliveries: messages.deliveries(), ..QueueCounts::default() };
        let mut queues = QueueFigures {
            vhost: "".into(),
            name: Default::default(),
            queue_type: "",
            ready: 0,
            unacked: 0,
            consumers: 0,
            counts,
        };
        // Without a vhost that could be missing, there is a list.
        for queue in admin.queue_figures(None).iter().flat_map(|all| all.iter()) {
            queues.ready += queue.ready;
            queues.unacked += queue.unacked;
            queues.consumers += queue.consumers;
        }
        let mut channels = ChannelRow::default();
        channels.counts.publishes = messages.publishes;
        channels.counts.deliveries = counts.deliveries;
        let mut publishers = 0;
        for connection in admin.channel_figures().iter() {
            for channel in &connection.0 {
                channels.add(channel);
                publishers += u64::from(channel.counts.publishes.published > 0);
            }
        }
        let (mut pending_bytes, mut open_channels) = (0, 0);
        for connection in admin.connection_figures().iter() {
            pending_bytes += connection.pending_bytes;
            open_channels += connection.channels;
        }
        let traffic = admin.traffic();
        Totals { messages, queues, channels, publishers, traffic, pending_bytes, open_channels }
    }

    pub fn publishes(&self) -> PublishCounts {
        self.messages.publishes
    }
}

impl NodeFigures {
    pub fn read(exporters: &Exporters, consumers: usize, refused: u64) -> Self {
        let mut all = NodeFigures::of(exporters.first(), consumers, refused);
        for more in exporters.iter().skip(1) {
            all.add(&NodeFigures::of(more, 0, 0));
        }
        all
    }

    /// Adds what another broker has; what is of the process is there already.
    fn add(&mut self, more: &NodeFigures) {
        let (churn, memory) = (&mut self.churn, &mut self.memory);
        for (sum, more) in [
            (&mut churn.connections_opened, more.churn.connections_opened),
            (&mut churn.connections_closed, more.churn.connections_closed),
            (&mut churn.channels_opened, more.churn.channels_opened),
            (&mut churn.channels_closed, more.churn.channels_closed),
            (&mut churn.queues_declared, more.churn.queues_declared),
            (&mut churn.queues_created, more.churn.queues_created),
            (&mut churn.queues_deleted, more.churn.queues_deleted),
            (&mut memory.messages, more.memory.messages),
            (&mut memory.definitions, more.memory.definitions),
            (&mut memory.transactions, more.memory.transactions),
            (&mut memory.sessions, more.memory.sessions),
            (&mut memory.places, more.memory.places),
            (&mut memory.deduplication, more.memory.deduplication),
            (&mut self.memory_used_bytes, more.memory_used_bytes),
            (&mut self.memory_limit_bytes, more.memory_limit_bytes),
            (&mut self.connections, more.connections),
            (&mut self.channels, more.channels),
            (&mut self.queues, more.queues),
        ] {
            *sum += more;
        }
        self.alarms.memory |= more.alarms.memory;
        self.alarms.disk |= more.alarms.disk;
        self.log += &more.log;
    }

    fn of(exporter: &Exporter, consumers: usize, refused: u64) -> Self {
        let (admin, facts) = (&exporter.api.admin, &exporter.api.settings.node);
        let churn = admin.churn();
        let runtime = Handle::current().metrics();
        NodeFigures {
            process: ProcessFigures::read(),
            uptime: Duration::from_millis(exporter.api.now_ms().saturating_sub(facts.started_ms)),
            churn,
            alarms: admin.alarms(),
            log: admin.log_figures(),
            memory: admin.memory_uses(),
            memory_used_bytes: admin.memory_used_bytes(),
            memory_limit_bytes: facts.memory_limit_bytes,
            disk_free_bytes: disk_free_bytes(&facts.data_dir),
            connections: admin.connection_figures().len() as u64,
            connections_max: facts.connections_max as u64,
            channels: churn.channels_opened.saturating_sub(churn.channels_closed),
            consumers: consumers as u64,
            queues: admin.vhosts().iter().map(|vhost| vhost.queues as u64).sum(),
            refused,
            runtime_workers: runtime.num_workers() as u64,
            runtime_tasks: runtime.num_alive_tasks() as u64,
            runtime_queue: runtime.global_queue_depth() as u64,
        }
    }
}

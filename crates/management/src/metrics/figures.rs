//! What is read once for a page: numbers of the broker as a whole, and of its process.

use super::Exporter;
use super::families::channels::ChannelRow;
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
    /// Looks at every queue and every channel.
    pub fn read(admin: &Admin) -> Self {
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
    pub fn read(exporter: &Exporter, consumers: usize, refused: u64) -> Self {
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

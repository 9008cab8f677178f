//! What is read once for a page: numbers of the broker as a whole, and of its process.

use super::families::channels::ChannelRow;
use super::ledger::Counts;
use super::{Exporter, Exporters};
use crate::process::{ProcessFigures, disk_free_bytes};
use courser_broker::admin::{
    Admin, Alarms, Churn, LogFigures, MemoryUses, PublishCounts, QueueContents, QueueCounts,
    QueueFigures,
};
use std::time::Duration;
use tokio::runtime::Handle;

/// What the server knows and the broker does not.
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
    /// What all brokers of the process have counted.
    pub counts: Counts,
    pub queues: QueueFigures,
    pub channels: ChannelRow,
    pub publishers: u64,
    /// Bytes that wait to be sent.
    pub pending_bytes: usize,
    pub open_channels: usize,
}

impl Totals {
    /// Looks at every queue and every channel of all brokers on this node.
    pub fn read(exporters: &Exporters) -> Self {
        let counts = exporters.first().ledger.read();
        let deliveries = counts.messages.deliveries();
        let mut all = Totals {
            queues: QueueFigures {
                vhost: "".into(),
                name: Default::default(),
                queue_type: "",
                ready: 0,
                unacked: 0,
                delayed: 0,
                consumers: 0,
                is_held: false,
                counts: QueueCounts { deliveries, ..QueueCounts::default() },
                contents: Some(QueueContents::NONE),
                memory_bytes: 0,
                head_timestamp: None,
            },
            channels: ChannelRow::default(),
            publishers: 0,
            pending_bytes: 0,
            open_channels: 0,
            counts,
        };
        all.channels.counts.publishes = all.publishes();
        all.channels.counts.deliveries = deliveries;
        exporters.admins().into_iter().for_each(|admin| all.add(admin));
        all
    }

    /// Adds what is there in a broker.
    fn add(&mut self, admin: &Admin) {
        // Without a vhost that could be missing, there is a list.
        for queue in admin.queue_figures(None).iter().flat_map(|all| all.iter()) {
            self.queues.ready += queue.ready;
            self.queues.unacked += queue.unacked;
            self.queues.delayed += queue.delayed;
            self.queues.consumers += queue.consumers;
            self.queues.memory_bytes += queue.memory_bytes;
            if let (Some(all), Some(more)) = (&mut self.queues.contents, &queue.contents) {
                *all += more;
            }
        }
        for connection in admin.channel_figures().iter() {
            for channel in &connection.0 {
                self.channels.add(channel);
                self.publishers += u64::from(channel.counts.publishes.published > 0);
            }
        }
        for connection in admin.connection_figures().iter() {
            self.pending_bytes += connection.pending_bytes;
            self.open_channels += connection.channels;
        }
    }

    pub fn publishes(&self) -> PublishCounts {
        self.counts.messages.publishes
    }
}

impl NodeFigures {
    pub fn read(exporters: &Exporters, consumers: usize, refused: u64) -> Self {
        let counts = exporters.first().ledger.read();
        let mut all = NodeFigures::of(exporters.first(), consumers, refused);
        for more in exporters.iter().skip(1) {
            all.add(&NodeFigures::of(more, 0, 0));
        }
        NodeFigures { churn: counts.churn, log: counts.log, ..all }
    }

    /// Adds what another broker has; what is of the process is there already.
    fn add(&mut self, more: &NodeFigures) {
        let memory = &mut self.memory;
        for (sum, more) in [
            (&mut memory.messages, more.memory.messages),
            (&mut memory.definitions, more.memory.definitions),
            (&mut memory.transactions, more.memory.transactions),
            (&mut memory.sessions, more.memory.sessions),
            (&mut memory.places, more.memory.places),
            (&mut memory.deduplication, more.memory.deduplication),
            (&mut memory.answers, more.memory.answers),
            (&mut memory.incomplete, more.memory.incomplete),
            (&mut memory.unread, more.memory.unread),
            (&mut memory.newcomers, more.memory.newcomers),
            (&mut memory.outboxes, more.memory.outboxes),
            (&mut memory.readers, more.memory.readers),
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
            memory_limit_bytes: admin.memory_high_bytes(),
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

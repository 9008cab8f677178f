//! Vhosts as an operator sees them.

use crate::counts::MessageCounts;
use crate::vhost::{Vhost, VhostLimits};
use std::sync::Arc;

/// A vhost.
#[derive(Clone, Debug, PartialEq)]
pub struct VhostView {
    /// Its name.
    pub name: String,
    /// What it may have at most.
    pub limits: VhostLimits,
    /// What it is for.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// The type of queues that are declared without one, if it is not `classic`.
    pub default_queue_type: Option<String>,
    /// Copies of all messages go to `amq.rabbitmq.trace`.
    pub tracing: bool,
    /// It can't be deleted.
    pub protected: bool,
    /// The group of a cluster that it is in. Where another one is served, the counts below are 0.
    pub group: u16,
    /// Connections that are open in it.
    pub connections: u64,
    /// How many queues it has.
    pub queues: usize,
    /// How many exchanges it has, the predefined ones included.
    pub exchanges: usize,
    /// How many bindings it has, those by name at the default exchange not counted.
    pub bindings: usize,
    /// How many messages have come and gone.
    pub counts: MessageCounts,
}

/// What the queues of a vhost hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageTotals {
    /// Messages that wait for a consumer.
    pub ready: u64,
    /// Messages delivered and not acknowledged.
    pub unacked: u64,
    /// Messages that have come back and wait for their next try.
    pub delayed: u64,
    /// Consumers, blocked ones included.
    pub consumers: u64,
}

impl VhostView {
    pub(super) fn of(vhost: &Vhost) -> Self {
        let settings = vhost.settings().unwrap_or_default();
        VhostView {
            name: vhost.name.clone(),
            limits: settings.limits,
            description: settings.description,
            tags: settings.tags,
            default_queue_type: settings.default_queue_type,
            tracing: settings.tracing,
            protected: settings.protected,
            group: settings.group,
            connections: vhost.connections(),
            queues: vhost.ordered_queues().len(),
            exchanges: vhost.ordered_exchanges().len(),
            bindings: vhost.binding_count(),
            counts: vhost.counts().read(),
        }
    }
}

impl MessageTotals {
    /// Adds up a vhost, one queue after the other.
    pub(super) fn of(vhost: &Arc<Vhost>) -> Self {
        let mut totals = MessageTotals::default();
        for queue in vhost.ordered_queues().starting_at(0) {
            let status = queue.shown_status();
            totals.ready += status.ready as u64;
            totals.unacked += status.unacked as u64;
            totals.delayed += status.delayed.messages as u64;
            totals.consumers += status.consumers as u64;
        }
        totals
    }
}

//! Connections and channels: each by itself, or all together.

use crate::metrics::table::{Family, Metric, counter, gauge, none, uncounted};
use crate::metrics::text::Kind::Gauge;
use courser_broker::admin::{ChannelCounts, ChannelView, ConnectionFigures};

/// What is counted on a channel, or on all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChannelRow {
    pub consumers: usize,
    pub unacked: usize,
    pub unconfirmed: u64,
    pub prefetch: u64,
    pub global_prefetch: u64,
    pub counts: ChannelCounts,
}

impl ChannelRow {
    pub fn of(channel: &ChannelView) -> Self {
        ChannelRow {
            consumers: channel.consumers,
            unacked: channel.unacked,
            unconfirmed: channel.unconfirmed,
            prefetch: channel.prefetch.into(),
            global_prefetch: channel.global_prefetch.into(),
            counts: channel.counts,
        }
    }

    /// Adds another channel, but not what has happened on it: sums of that fall when it goes.
    pub fn add(&mut self, channel: &ChannelView) {
        self.consumers += channel.consumers;
        self.unacked += channel.unacked;
        self.unconfirmed += channel.unconfirmed;
        self.prefetch += u64::from(channel.prefetch);
        self.global_prefetch += u64::from(channel.global_prefetch);
    }
}

pub(crate) const CONNECTIONS: &[Family<ConnectionFigures>] = &[
    Family {
        name: "connection_coarse_metrics",
        metrics: &[
            counter("connection_incoming_bytes_total", "Bytes from clients", |one| {
                one.traffic.received_bytes.into()
            }),
            counter("connection_outgoing_bytes_total", "Bytes to clients", |one| {
                one.traffic.sent_bytes.into()
            }),
            counter(
                "connection_process_reductions_total",
                "Always 0: there are no Erlang processes",
                none,
            ),
        ],
    },
    Family {
        name: "connection_metrics",
        metrics: &[
            counter("connection_incoming_packets_total", "Reads that brought bytes", |one| {
                one.traffic.receives.into()
            }),
            counter("connection_outgoing_packets_total", "Writes that took bytes", |one| {
                one.traffic.sends.into()
            }),
            gauge("connection_pending_packets", "Bytes that wait to be sent", |one| {
                one.pending_bytes.into()
            }),
            gauge("connection_channels", "Channels that are open", |one| one.channels.into()),
        ],
    },
];

pub(crate) const CHANNELS: &[Family<ChannelRow>] = &[
    Family { name: "channel_metrics", metrics: CHANNEL },
    Family { name: "channel_exchange_metrics", metrics: PUBLISHES },
    Family { name: "channel_queue_metrics", metrics: DELIVERIES },
    Family {
        name: "channel_process_metrics",
        metrics: &[counter(
            "channel_process_reductions_total",
            "Always 0: there are no Erlang processes",
            none,
        )],
    },
];

const CHANNEL: &[Metric<ChannelRow>] = &[
    gauge("channel_consumers", "Consumers on a channel", |one| one.consumers.into()),
    gauge("channel_messages_unacked", "Deliveries that wait for an acknowledgement", |one| {
        one.unacked.into()
    }),
    gauge("channel_messages_unconfirmed", "Publishes that wait for a confirm", |one| {
        one.unconfirmed.into()
    }),
    uncounted("channel_messages_uncommitted", Gauge, "Not counted"),
    uncounted("channel_acks_uncommitted", Gauge, "Not counted"),
    gauge("consumer_prefetch", "The prefetch of consumers made from now on", |one| {
        one.prefetch.into()
    }),
    gauge("channel_prefetch", "The prefetch of all consumers of a channel together", |one| {
        one.global_prefetch.into()
    }),
];

const PUBLISHES: &[Metric<ChannelRow>] = &[
    counter("channel_messages_published_total", "Messages published", |one| {
        one.counts.publishes.published.into()
    }),
    counter("channel_messages_confirmed_total", "Messages confirmed", |one| {
        one.counts.publishes.confirmed.into()
    }),
    counter(
        "channel_messages_unroutable_returned_total",
        "Messages that no queue got, returned to their publishers",
        |one| one.counts.publishes.returned.into(),
    ),
    counter(
        "channel_messages_unroutable_dropped_total",
        "Messages that no queue got, dropped as not mandatory",
        |one| one.counts.publishes.dropped.into(),
    ),
];

const DELIVERIES: &[Metric<ChannelRow>] = &[
    counter("channel_get_ack_total", "Answers to basic.get to be acknowledged", |one| {
        one.counts.deliveries.got.into()
    }),
    counter("channel_get_total", "Answers to basic.get not to be acknowledged", |one| {
        one.counts.deliveries.got_no_ack.into()
    }),
    counter(
        "channel_messages_delivered_ack_total",
        "Messages delivered to consumers that acknowledge",
        |one| one.counts.deliveries.delivered.into(),
    ),
    counter(
        "channel_messages_delivered_total",
        "Messages delivered to consumers that do not acknowledge",
        |one| one.counts.deliveries.delivered_no_ack.into(),
    ),
    counter("channel_messages_redelivered_total", "Messages delivered again", |one| {
        one.counts.deliveries.redelivered.into()
    }),
    counter("channel_messages_acked_total", "Messages acknowledged", |one| {
        one.counts.deliveries.acknowledged.into()
    }),
    counter("channel_get_empty_total", "basic.get of an empty queue", |one| {
        one.counts.deliveries.got_empty.into()
    }),
];

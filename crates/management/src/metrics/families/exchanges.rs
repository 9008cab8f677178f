//! Exchanges: each by itself, or all together.

use crate::metrics::table::{Family, Metric, counter, uncounted};
use crate::metrics::text::Kind::Counter;
use courser_broker::admin::{ExchangeView, PublishCounts};

/// Of each exchange only what was published to it is counted.
pub(crate) const EACH: Family<ExchangeView> = Family {
    name: "exchange_metrics",
    metrics: &[
        counter(PUBLISHED, PUBLISHED_HELP, |exchange| exchange.counts.published_in.into()),
        uncounted(CONFIRMED, Counter, ""),
        uncounted(RETURNED, Counter, ""),
        uncounted(DROPPED, Counter, ""),
    ],
};

/// Of all exchanges together it is what was published at all.
pub(crate) const ALL: &[Metric<PublishCounts>] = &[
    counter(PUBLISHED, PUBLISHED_HELP, |all| all.published.into()),
    counter(CONFIRMED, "Messages confirmed", |all| all.confirmed.into()),
    counter(RETURNED, "Messages that no queue got, returned to their publishers", |all| {
        all.returned.into()
    }),
    counter(DROPPED, "Messages that no queue got, dropped as not mandatory", |all| {
        all.dropped.into()
    }),
];

/// Copies that went from exchanges to queues, of all together.
pub(crate) const ROUTED: &[Metric<u64>] = &[
    counter(
        "queue_exchange_messages_published_total",
        "Copies of messages that went from exchanges to queues",
        |routed| (*routed).into(),
    ),
    counter("queue_messages_published_total", "Copies of messages that went to queues", |routed| {
        (*routed).into()
    }),
];

const PUBLISHED: &str = "exchange_messages_published_total";
const PUBLISHED_HELP: &str = "Messages published to an exchange";
const CONFIRMED: &str = "exchange_messages_confirmed_total";
const RETURNED: &str = "exchange_messages_unroutable_returned_total";
const DROPPED: &str = "exchange_messages_unroutable_dropped_total";
